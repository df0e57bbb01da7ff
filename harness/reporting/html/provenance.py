"""The command that makes a run again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from harness.base.redaction import redacted_spec
from harness.runs.manifest import Manifest

SWITCHES = {
    "structured": "--structured", "allow_self_judging": "--allow_self_judging",
    "fresh": "--reuse=none", "offline": "--offline",
}  # fmt: skip
MAPPINGS = {"columns": "columns", "values": "values", "changes": "set"}
"""Settings that are given entry by entry, and the option of each."""


def command_of(manifest: Manifest) -> str:
    """The command that makes a run with the same settings, on one line, without keys."""
    return " ".join(["harness run", *map(shlex.quote, _options(manifest.settings))])


def _options(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from ("--model", redacted_spec(str(settings.get("model", ""))))
    if arguments := settings.get("model_args"):
        yield from ("--model_args", _arguments(arguments))
    yield from ("--tasks", ",".join(map(str, settings.get("tasks") or ())))
    for role, spec in (settings.get("roles") or {}).items():
        safe = redacted_spec(str(spec))
        yield from ("--judge", safe) if role == "judge" else ("--role", f"{role}={safe}")
    data = settings.get("data")
    places = data if isinstance(data, Mapping) else {"*": data} if data else {}
    for task, place in places.items():
        yield from ("--data", str(place) if task == "*" else f"{task}={place}")
    for name, option in MAPPINGS.items():
        for key, value in (settings.get(name) or {}).items():
            yield from (f"--{option}", f"{key}={_value(value)}")
    if sampling := settings.get("sampling"):
        yield from ("--gen_kwargs", _arguments(sampling))
    for name in ("limit", "seed", "name"):
        if settings.get(name) not in (None, ""):
            yield from (f"--{name}", str(settings[name]))
    if (settings.get("num_repeats") or 1) > 1:
        yield from ("--num_repeats", str(settings["num_repeats"]))
    if failures := settings.get("max_failures"):
        yield from ("--max_failures", _arguments(failures))
    for tag, value in (settings.get("tags") or {}).items():
        yield from ("--tag", f"{tag}={value}")
    for folder in settings.get("include_path") or ():
        yield from ("--include_path", str(folder))
    if settings.get("prompts"):
        yield from ("--prompts", str(settings["prompts"]))
    for name, switch in SWITCHES.items():
        if settings.get(name):
            yield switch


def _arguments(given: Mapping[str, Any]) -> str:
    """Arguments as an option takes them; as JSON where a text would be read as several."""
    values = [_value(value) for value in given.values()]
    if any("," in value or "=" in value for value in values):
        return json.dumps(given, ensure_ascii=False)
    return ",".join(f"{name}={value}" for name, value in zip(given, values, strict=True))


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
