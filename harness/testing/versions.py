"""The versions of a plugin's stages, judges and respondents, each pinned to a hash of its code.

Keys hold code by these versions alone, so that one must change with the code. `python -m
harness.testing.versions PLUGIN FILE` writes the pins of a plugin to a file and tells what changed;
`check_plugin(PLUGIN, versions=FILE)` complains where one changed without the other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from harness.errors import HarnessError, PluginError, UsageError
from harness.testing.code import code_of
from harness.testing.subject import Subject, subject

if TYPE_CHECKING:
    from harness.judging import JudgeParts, Stands
    from harness.pipeline.benchmark import Stage


class Pin(TypedDict):
    """The version of something, and the hash of the code that it stands for."""

    version: int
    code: str


Pins = dict[str, dict[str, Pin]]
"""By owner and part, as `stages of films` and `answer`."""


def pins_of(one: Subject) -> Pins:
    """Version and code hash of all that keys hold by a version alone, of one plugin."""
    plugins, package = one.plugins, one.package
    if one.loaded is None:
        raise PluginError(
            f"the plugin {one.name!r} is not loaded, and has no versions to pin",
            hint=f"`harness plugins {one.name}` tells why",
        )
    found: Pins = {}
    for name in one.benchmarks:
        benchmark, factory = plugins.benchmark(name), plugins.benchmarks[name].factory
        found[f"stages of {name}"] = {
            stage.name: Pin(version=stage.version, code=code_of_stage(stage, factory, package))
            for stage in benchmark.stages
        }
    for name in one.of(plugins.judges):
        registration = plugins.judges[name]
        judge: Any = registration.factory(_parts_of(registration.on))
        code = code_of(type(judge), package=package)
        found.setdefault("judges", {})[name] = Pin(version=judge.version, code=code)
    for key in one.of(plugins.respondents):
        respondent = plugins.respondents[key]
        code = code_of(respondent.factory(), package=package)
        pin = Pin(version=respondent.version, code=code)
        found.setdefault("respondents", {})["/".join(key)] = pin
    return found


def _parts_of(on: Stands) -> JudgeParts:
    """What a judge that stands on that can be made of: its code is looked at, and nothing asked."""
    from harness.judging import JudgeParts, Member

    anything: Any = object()
    if on == "judges":
        return JudgeParts(members=(Member(label="a", judge=anything),) * 2)
    return JudgeParts(model=anything if on == "model" else None)


def code_of_stage(stage: Stage, factory: Any, package: str) -> str:
    """The hash of all code that decides what the stage's records hold.

    A stage whose functions the harness made (`simple`) is pinned with everything its benchmark's
    factory names: which parts of that decide records cannot be told apart.
    """
    made_by_harness = stage.work.__module__.partition(".")[0] == "harness"
    parts = (stage.items, stage.work, stage.item, stage.value)
    return code_of(*parts, *([factory] if made_by_harness else []), package=package)


def complaints(before: Pins, now: Pins, *, command: str) -> list[str]:
    """What is wrong with pinned versions, one line a version; `command` pins them."""
    lines = []
    for owner, parts in sorted(now.items()):
        for part, pin in sorted(parts.items()):
            old = before.get(owner, {}).get(part)
            if old is None:
                lines.append(f"{owner}/{part} is not pinned: run `{command}`")
            elif old["version"] != pin["version"]:
                lines.append(f"{owner}/{part} has a new version: run `{command}`")
            elif old["code"] != pin["code"]:
                lines.append(
                    f"{owner}/{part} changed and is still version {pin['version']}: raise its "
                    "version, so that what the old code recorded is made again; where nothing "
                    f"recorded can differ, keep the version. Then run `{command}`"
                )
    gone = [
        f"{owner}/{part} is pinned and no longer there: run `{command}`"
        for owner, parts in sorted(before.items())
        for part in sorted(parts)
        if part not in now.get(owner, {})
    ]
    return lines + gone


def read_pins(file: Path) -> Pins:
    """The pins as last written; none where there is no file yet."""
    if not file.is_file():
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=Pins)
    except msgspec.DecodeError as error:
        raise UsageError(
            "pinned versions cannot be read", where=str(file), found=str(error),
            expected="a file that `python -m harness.testing.versions` wrote",
            hint="take its last good version, or remove it and pin anew",
        ) from error  # fmt: skip


def write_pins(file: Path, pins: Mapping[str, Any]) -> None:
    """Write pins so that a change of one is a change of one line."""
    file.write_text(json.dumps(pins, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def command_for(plugin: str, file: str | Path) -> str:
    """The command that pins a plugin's versions in a file."""
    return f"python -m harness.testing.versions {plugin} {file}"


def main() -> int:
    """Write the pins of a plugin and tell what they change; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.testing.versions", description=main.__doc__
    )
    parser.add_argument("plugin", help="the name of its entry point, or its package")
    parser.add_argument("file", type=Path, help="where the pins are kept, as tests/versions.json")
    asked = parser.parse_args()
    try:
        if not asked.file.resolve().parent.is_dir():
            raise UsageError(
                "no such folder", found=str(asked.file.parent),
                expected="a folder that is there, for the file of versions",
            )  # fmt: skip
        before = read_pins(asked.file)
        now = pins_of(subject(asked.plugin))
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    command = command_for(asked.plugin, asked.file)
    for line in complaints(before, now, command=command):
        print(line.replace(f"Then run `{command}`", "Pinned").replace(f"run `{command}`", "pinned"))
    write_pins(asked.file, now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
