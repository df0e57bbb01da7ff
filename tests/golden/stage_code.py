"""Which code decides what is recorded, as one hash for each version; run it to pin the hashes.

Stages, judges, respondents and the parsing ladder stand in keys by a version alone, so a version
must change with the code. `harness.testing.versions` says what of a plugin enters; of the ladder
its whole room does.
"""

from __future__ import annotations

import ast
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from harness.testing.code import hash_of, normal
from harness.testing.versions import Pins, complaints, pins_of, read_pins, write_pins

PINS = Path(__file__).with_name("stage_versions.json")
DISTRIBUTION = "user-understanding-harness"
COMMAND = "make pins"


def pins() -> Pins:
    """Version and code hash of all that keys hold by a version alone, in this project's plugins."""
    from harness.plugin_manager import GROUP
    from harness.testing.subject import subject

    found: Pins = {"parsing": {"ladder": ladder_pin()}}
    for point in entry_points(group=GROUP):
        if point.dist is not None and point.dist.name == DISTRIBUTION:
            for owner, parts in pins_of(subject(point.name)).items():
                found.setdefault(owner, {}).update(parts)
    return found


def ladder_pin() -> dict[str, Any]:
    """The version of the parsing ladder, and the hash of everything in its room."""
    import harness.parsing

    room = Path(harness.parsing.__file__).parent
    trees = [normal(ast.parse(path.read_text("utf-8")).body) for path in sorted(room.glob("*.py"))]
    return {"version": harness.parsing.LADDER_VERSION, "code": hash_of(trees)}


def main() -> None:
    """Writes the pins and tells what they change: code under an unchanged version above all."""
    before, now = read_pins(PINS), pins()
    write_pins(PINS, now)
    for line in complaints(before, now, command=COMMAND):
        print(line.replace(f"Then run `{COMMAND}`", "Pinned").replace(f"run `{COMMAND}`", "pinned"))


if __name__ == "__main__":
    main()
