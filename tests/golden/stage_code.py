"""Pins the versions of this project's stages, judges and respondents and of the parsing ladder.

`harness.testing.versions` says which code of a plugin counts; of the ladder its whole room does.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from harness.testing.versions import Pin, Pins, hash_of, pins_of, update

PINS = Path(__file__).with_name("stage_versions.json")
DISTRIBUTION = "user-understanding-harness"
COMMAND = "make pins"


def pins() -> Pins:
    """Version and code hash of all that keys hold by a version alone, in this project's plugins."""
    from harness.registry import GROUP
    from harness.testing.trial import plugin_under_test

    found: Pins = {"parsing": {"ladder": ladder_pin()}}
    for point in entry_points(group=GROUP):
        if point.dist is not None and point.dist.name == DISTRIBUTION:
            for owner, parts in pins_of(plugin_under_test(point.name)).items():
                found.setdefault(owner, {}).update(parts)
    return found


def ladder_pin() -> Pin:
    """The version of the parsing ladder, and the hash of everything in its room."""
    import harness.parsing

    code = hash_of(sorted(Path(harness.parsing.__file__).parent.glob("*.py")))
    return {"version": harness.parsing.LADDER_VERSION, "code": code}


if __name__ == "__main__":
    update(PINS, pins(), command=COMMAND)
