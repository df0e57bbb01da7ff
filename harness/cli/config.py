"""`harness config`: the settings in effect and the source of each."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from harness.base.errors import UsageError
from harness.base.redaction import (
    REDACTED,
    names_a_secret,
    redacted_args,
    safe_text,
    without_key_material,
)
from harness.cli.command import Option, command
from harness.cli.output import print_json
from harness.cli.run_options import RunCommand
from harness.cli.setting import data_of, settings_of
from harness.cli.settings_sources import EffectiveSettings, SettingValue
from harness.reporting.text import clean_text
from harness.scoring.grouping import grouped

DEFAULT = "default"
VARIABLES = {
    "HARNESS_CACHE": "folder of the store of answered calls",
    "HARNESS_DOWNLOADS": "folder of files fetched from the web",
    "OPENAI_BASE_URL": "address of `openai` models without a base_url",
    "OPENAI_API_KEY": "key of `openai` models without an api_key_env or api_key_file",
}
"""Variables that are not options; they are listed even if they are not set."""

HEADERS = "OPENAI_CUSTOM_HEADERS"
"""A variable whose lines are headers: their values may be keys and cookies."""

OTHERS = ("HARNESS_", "OPENAI_")
"""Prefixes of other variables that are listed if they are set."""


@command(
    "harness config",
    "harness config --all --model local --limit 20",
    "HARNESS_SEED=7 harness config --json",
    cls=RunCommand,
    options_metavar="[--all] [--json] [OPTION OF A RUN…]",
    params=[Option(["--all"], is_flag=True, help="show overridden values too")],
)
@click.pass_context
def config(ctx: click.Context, /, all: bool, **options: Any) -> int:
    """Print every setting of a run with its value and source. The sources, in order of precedence
    from lowest to highest: default, the user's file, the folder's file, the environment, the
    command line. Takes the options of a run; runs nothing and shows no keys.
    """
    effective: EffectiveSettings = ctx.obj
    document = without_key_material(
        {
            "settings": list(_rows(effective, ctx)),
            "models": [
                {"name": one.name, "spec": one.spec, "where": one.where}
                for one in effective.models.values()
            ],
            "variables": list(_variables(effective, ctx)),
            "files": [{"file": file, "there": there} for file, there in effective.files],
        }
    )
    if options["json"]:
        print_json(document)
    else:
        for line in _page(document, with_overridden=all):
            sys.stdout.write(clean_text(line) + "\n")
    return 0


def _rows(effective: EffectiveSettings, ctx: click.Context) -> Iterator[dict[str, Any]]:
    params = ctx.command.make_context("config", [], resilient_parsing=True).params
    defaults = {**params, **_other_defaults()}
    slots_of = grouped(
        (next(layer[0].option for layer in stack if layer), slot)
        for slot, stack in effective.slots.items()
    )
    for option in settings_of(ctx.command):
        slots = slots_of.get(option, [])
        for slot in slots:
            values = effective.slots[slot][-1]
            yield {
                **(_as_json(values[0], values=values) if values else _default(slot, defaults)),
                "overrides": [
                    _as_json(one, values=(one,))
                    for layer in reversed(effective.slots[slot][:-1])
                    for one in layer
                ],
            }
        if not slots and not any(effective.holding(option)):
            yield {**_default(option, defaults), "overrides": []}


def _other_defaults() -> dict[str, Any]:
    """The defaults of settings whose option has none."""
    from harness.calls.retry import Patience
    from harness.calls.store import default_path
    from harness.pipeline.settings import FailureLimits

    patience, limits = Patience(), FailureLimits()
    try:
        store = str(default_path())
    except UsageError:
        store = None
    shares = {name: getattr(limits, name) for name in FailureLimits.__struct_fields__}
    return {
        "attempts": patience.attempts,
        "timeout": patience.attempt_timeout,
        "total_timeout": patience.total_timeout,
        "start_timeout": patience.start_timeout,
        "max_failures": ",".join(f"{name}={share}" for name, share in shares.items()),
        "store": store,
    }


def _variables(effective: EffectiveSettings, ctx: click.Context) -> Iterator[dict[str, Any]]:
    read = {option.envvar for option in settings_of(ctx.command).values()}
    others = sorted(name for name in os.environ if name.startswith(OTHERS))
    for name in dict.fromkeys([*VARIABLES, *others]):
        if name in read:
            continue
        value, meant = os.environ.get(name), effective.misspelt.get(name)
        yield {
            "name": name,
            "value": "set, not shown"
            if value and (name == HEADERS or names_a_secret(name))
            else value,
            "meaning": VARIABLES.get(name),
            "hint": f"did you mean {meant}?" if meant else None,
        }


def _page(document: Mapping[str, Any], *, with_overridden: bool) -> Iterator[str]:
    from harness.contracts.model import Model

    models_own = f"{Model.concurrency}, or the model's own"
    settings = []
    for one in document["settings"]:
        unset = one["setting"] == "concurrency" and one["value"] is None
        value = models_own if unset else _word(one["value"])
        settings.append((one["setting"], value, one["where"] or DEFAULT))
        for other in one["overrides"] if with_overridden else ():
            settings.append(("  overrides", _word(other["value"]), other["where"] or DEFAULT))
    yield from _columns("settings", settings)
    models = [(one["name"], one["spec"], one["where"]) for one in document["models"]]
    yield from _columns("models", models)
    named = [
        (one["name"], _word(one["value"]), "; ".join(filter(None, (one["meaning"], one["hint"]))))
        for one in document["variables"]
    ]
    yield from _columns("variables", named)
    files = [(one["file"], "read" if one["there"] else "not found") for one in document["files"]]
    yield from _columns("files", files)


def _columns(title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    yield f"{title}:"
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield ("  " + "  ".join([*cells, row[-1]])).rstrip()


def _as_json(given: SettingValue, *, values: Sequence[SettingValue]) -> dict[str, Any]:
    value = given.value
    if len(values) > 1 and given.entry is None:
        # Two options of one slot, as --store and --no_store: each value is shown with its option.
        value = ", ".join(f"{one.option}={_word(one.value)}" for one in values)
    if given.entry is not None:
        text = given.value
        value = data_of(text)[1] if given.option == "data" else text.partition("=")[2]
        if given.option == "set":
            from harness.tasks.load import read_value

            # Keys and passwords are recognised by their names.
            if names_a_secret(given.entry.rpartition(".")[2]):
                value = REDACTED
            elif isinstance(typed := read_value(value), Mapping):
                value = json.dumps(redacted_args(typed))
    shown = value if isinstance(value, (bool, int, float)) else safe_text(_word(value))
    setting = given.slot.removesuffix(".*") if given.entry is not None else given.option
    return {"setting": setting, "value": shown, "source": given.source, "where": given.where}


def _default(setting: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    value = None if defaults.get(setting) in ("", [], ()) else defaults.get(setting)
    plain = value if isinstance(value, (bool, int, float)) or value is None else _word(value)
    return {"setting": setting, "value": plain, "source": DEFAULT, "where": None}


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple, Mapping)):
        value = ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value in (None, "") else str(value)
