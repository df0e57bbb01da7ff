"""Pins the versions of a plugin's stages, judges and respondents to hashes of their code.

The code is the text of the modules that hold the functions and types of a stage, the class of a
judge or the function of a respondent; modules that these import do not count.

Only these versions represent code in keys, so a version must change with its code. `python -m
harness.testing.versions PLUGIN FILE` writes the pins of a plugin to a file and prints the changes;
`check_plugin(PLUGIN, versions=FILE)` reports code that changed without its version.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, GenericAlias
from typing import Any, TypedDict, get_args, get_origin

import msgspec

from harness.base.errors import HarnessError, PluginError, UsageError
from harness.base.resources import top_level
from harness.contracts.judge import JudgeInput, JudgeParts, Member
from harness.testing.trial import PluginUnderTest, plugin_under_test


class Pin(TypedDict):
    """A version, and the hash of the code that it represents."""

    version: int
    code: str


Pins = dict[str, dict[str, Pin]]
"""The pins by owner and part, such as `stages of films` and `answer`."""


def pins_of(one: PluginUnderTest) -> Pins:
    """The pins of one plugin: of everything whose code only a version represents in keys."""
    plugins, package = one.plugins, one.package
    if one.loaded is None:
        raise PluginError(
            f"the plugin {one.name!r} is not loaded, so its versions cannot be pinned",
            hint=f"`harness list plugins {one.name}` shows the reason",
        )
    found: Pins = {}
    for name in one.benchmarks:
        benchmark, factory = plugins.benchmark(name), plugins.benchmarks[name].factory
        pinned = found.setdefault(f"stages of {name}", {})
        for stage in benchmark.stages:
            parts: list[Any] = [stage.items, stage.work, stage.item, stage.value]
            if top_level(stage.work.__module__) == "harness":  # made by `simple`
                parts.append(factory)
            pinned[stage.name] = Pin(version=stage.version, code=code_of(*parts, package=package))
    for registration in one.registered.get("judges", ()):
        judge: Any = registration.factory(_parts_of(registration.on))
        code = code_of(type(judge), package=package)
        found.setdefault("judges", {})[registration.name] = Pin(version=judge.version, code=code)
    for respondent in one.registered.get("respondents", ()):
        code = code_of(respondent.factory(), package=package)
        pin = Pin(version=respondent.version, code=code)
        found.setdefault("respondents", {})["/".join(respondent.key)] = pin
    return found


def _parts_of(on: JudgeInput) -> JudgeParts:
    """Parts to make a judge with, whose code is hashed and which is never asked."""
    anything: Any = object()
    if on == "judges":
        return JudgeParts(members=(Member(label="a", judge=anything),) * 2)
    return JudgeParts(model=anything if on == "model" else None)


def code_of(*parts: Any, package: str) -> str:
    """The hash of the modules of functions and types.

    PluginError where none of the parts is in the package, since the pin would never change.
    """
    modules = sorted({module for part in parts for module in _modules_of(part, package)})
    if not modules:
        raise PluginError(
            f"no code of {package} can be found to pin",
            found=", ".join(map(repr, parts)),
            expected="functions and classes of the plugin's own package",
        )
    return hash_of(Path(str(sys.modules[module].__file__)) for module in modules)


def hash_of(files: Iterable[Path]) -> str:
    """A hash over files in their order."""
    return hashlib.sha256(b"\n".join(file.read_bytes() for file in files)).hexdigest()[:32]


def _modules_of(part: Any, package: str) -> Iterator[str]:
    """The modules of a function or type; looks into partials and generic types."""
    if isinstance(part, functools.partial):
        for inner in (part.func, *part.args, *part.keywords.values()):
            yield from _modules_of(inner, package)
    elif isinstance(part, GenericAlias) or get_origin(part) is not None:
        for inner in get_args(part):
            yield from _modules_of(inner, package)
    elif isinstance(part, FunctionType | type) and top_level(part.__module__) == package:
        yield part.__module__


def pin_problems(before: Pins, now: Pins, *, command: str) -> list[str]:
    """The problems of pinned versions, one line for each version; `command` pins them."""
    lines = []
    parts = {(owner, part) for pins in (before, now) for owner in pins for part in pins[owner]}
    for owner, part in sorted(parts):
        old, new = (pins.get(owner, {}).get(part) for pins in (before, now))
        name = f"{owner}/{part}"
        if old is None:
            lines.append(f"{name} is not pinned: run `{command}`")
        elif new is None:
            lines.append(f"{name} is pinned and no longer there: run `{command}`")
        elif old["version"] != new["version"]:
            lines.append(f"{name} has a new version: run `{command}`")
        elif old["code"] != new["code"]:
            lines.append(
                f"{name} changed and is still version {new['version']}: raise its version, so "
                "that records of the old code are made again; where no record can differ, keep "
                f"the version. Then run `{command}`"
            )
    return lines


def read_pins(file: Path) -> Pins:
    """The pins in a file; none where the file does not exist."""
    if not file.is_file():
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=Pins)
    except msgspec.DecodeError as error:
        raise UsageError(
            "pinned versions cannot be read", where=str(file), found=str(error),
            expected="a file that `python -m harness.testing.versions` wrote",
            hint="restore its last valid version, or delete it and pin again",
        ) from error  # fmt: skip


def write_pins(file: Path, pins: Mapping[str, Any]) -> None:
    """Write pins so that a changed pin changes few lines of the file."""
    file.write_text(json.dumps(pins, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def update(file: Path, now: Pins, *, command: str) -> None:
    """Write pins to a file and print the changes, one line for each version."""
    for line in pin_problems(read_pins(file), now, command=command):
        print(line.replace(f"Then run `{command}`", "Pinned").replace(f"run `{command}`", "pinned"))
    write_pins(file, now)


def command_for(plugin: str, file: str | Path) -> str:
    """The command that pins a plugin's versions in a file."""
    return f"python -m harness.testing.versions {plugin} {file}"


def main() -> int:
    """Write the pins of a plugin and print the changes."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.testing.versions", description=main.__doc__
    )
    parser.add_argument("plugin", help="the plugin's entry point or package")
    parser.add_argument("file", type=Path, help="the file of the pins, such as tests/versions.json")
    args = parser.parse_args()
    try:
        if not args.file.resolve().parent.is_dir():
            raise UsageError(
                "the folder of the file of versions does not exist", found=str(args.file.parent),
                expected="FILE in an existing folder",
            )  # fmt: skip
        now = pins_of(plugin_under_test(args.plugin))
        update(args.file, now, command=command_for(args.plugin, args.file))
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
