"""Where the numbers of a report come from: the command of each run first, then all it stands on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.base.redaction import redacted_spec
from harness.contracts.report import Cell, Sheet
from harness.reporting.html.markup import Html, details_html, element, joined
from harness.reporting.html.report_html import sheet_html
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.tables import data_name
from harness.runs.manifest import Manifest

SWITCHES = {
    "structured": "--structured", "allow_self_judging": "--allow_self_judging",
    "fresh": "--reuse=none", "offline": "--offline",
}  # fmt: skip
MAPPINGS = {"columns": "columns", "values": "values", "changes": "set"}
"""Settings that are given entry by entry, and the option of each."""


def provenance_html(runs: Sequence[ReportedRun]) -> Html:
    """For each run its command, its data, models, prompts, versions and sessions."""
    note = "Keys are left out of the commands: give them as the runs were given them."
    return joined([element("p", note, class_="note"), *map(_run_html, runs)])


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


def _run_html(run: ReportedRun) -> Html:
    manifest = run.manifest
    notes = [f"The run did not end well: {manifest.problem}"] if manifest.problem else []
    facts = {
        "run": manifest.run_id,
        "run key": manifest.run_key,
        "status": manifest.status,
        "seed": str(manifest.seed),
        "limit": "none" if manifest.limit is None else f"{manifest.limit:,}",
        **_cluster(manifest.settings),
        **{f"tag {name}": value for name, value in manifest.tags.items()},
        **{f"version of {name}": version for name, version in manifest.versions.items()},
        **{f"commit of {name}": commit for name, commit in manifest.commits.items()},
    }
    sessions = [(each.started, each.ended, each.status) for each in manifest.sessions]
    tasks = [
        (
            name, entry.definition.get("version"), entry.content, data_name(entry.data),
            entry.data.get("fingerprint"), "; ".join(chosen_of(entry.data)) or None,
            _json(entry.definition.get("options")),
        )
        for name, entry in manifest.tasks.items()
    ]  # fmt: skip
    roles = [(role, entry.name, _json(entry.identity)) for role, entry in manifest.roles.items()]
    stages = [
        (name, stage.name, stage.key, stage.items, _json(entry.templates))
        for name, entry in manifest.tasks.items()
        for stage in entry.stages
    ]
    tables: dict[str, tuple[tuple[str, ...], Iterable[tuple[Cell, ...]]]] = {
        "Run": (("what", "value"), facts.items()),
        "Sessions": (("started", "ended", "status"), sessions),
        "Tasks and data": (
            ("task", "version", "content", "data", "fingerprint", "chosen", "options"), tasks,
        ),
        "Models and judges": (("role", "name", "identity"), roles),
        "Stages": (("task", "stage", "key", "items", "digests of the prompts"), stages),
    }  # fmt: skip
    details = details_html("Everything that the run stands on", *(
        sheet_html(Sheet(title=title, columns=columns, rows=tuple(rows)))
        for title, (columns, rows) in tables.items()
    ))  # fmt: skip
    return element(
        "div", element("h3", run.label), element("pre", command_of(manifest), class_="command"),
        *(element("p", note, class_="note") for note in [*notes, *run.problems]), details,
    )  # fmt: skip


def _cluster(settings: Mapping[str, Any]) -> dict[str, str]:
    if settings.get("executor", "local") == "local":
        return {}
    names = ("ray_address", "workers", "engines")
    given = [f"--{name} {settings[name]}" for name in names if settings.get(name) is not None]
    return {"executor": " ".join([str(settings["executor"]), *given])}


def chosen_of(data: Mapping[str, Any]) -> list[str]:
    """How many users or other units of its data a task was given, and of how many."""
    return [
        f"{counts.get('chosen'):,} of {counts.get('of', counts.get('there', 0)):,} {what}"
        for what, counts in (data.get("chosen") or {}).items()
    ]


def _json(value: Any) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None
