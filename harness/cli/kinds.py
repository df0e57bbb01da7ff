"""`harness models`, `judges` and `embedders`: the installed kinds, or one with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.cli.command import argument, command, json_option
from harness.cli.output import print_json, print_rows, print_sections
from harness.registry import load_plugins

if TYPE_CHECKING:
    from harness.registry import (
        EmbedderRegistration,
        JudgeRegistration,
        ModelRegistration,
        Registry,
    )

    Kind = ModelRegistration | JudgeRegistration | EmbedderRegistration


WRAPS = {
    "model": "a model: {name}:openai:model=NAME,base_url=URL",
    "judges": "judges: {name}:openai:model=A,base_url=URL+openai:model=B,base_url=URL",
}
"""What a judge wraps, and how its SPEC names it."""


name_argument = partial(
    argument, "name", metavar="NAME", required=False, help="one kind, with its arguments"
)


@command("harness models", "harness models openai")
@name_argument(candidates="model_kinds")
@json_option
def models(name: str | None, json: bool) -> int:
    """List the kinds of model, or show the NAME of one with the meaning of its arguments."""
    return _show("models", name, json=json)


@command("harness judges", "harness judges lexical")
@name_argument(candidates="judge_kinds")
@json_option
def judges(name: str | None, json: bool) -> int:
    """List the kinds of judge, or show the NAME of one with the meaning of its arguments."""
    return _show("judges", name, json=json)


@command("harness embedders", "harness embedders hashing")
@name_argument(candidates="embedder_kinds")
@json_option
def embedders(name: str | None, json: bool) -> int:
    """List the kinds of embedder, or show the NAME of one with the meaning of its arguments."""
    return _show("embedders", name, json=json)


def _show(command: str, name: str | None, *, json: bool) -> int:
    from harness.cli.tools import usable

    plugins = load_plugins()
    known: dict[str, tuple[Registry[str, Any], Callable[[str], Kind]]] = {
        "models": (plugins.models, plugins.model),
        "judges": (plugins.judges, plugins.judge),
        "embedders": (plugins.embedders, plugins.embedder),
    }
    registry, find = known[command]
    named = find(name) if name else None
    kinds: Sequence[Kind] = usable(registry) if named is None else [named]
    if json:
        print_json({command: [_as_json(one) for one in kinds]})
    elif named is not None:
        wraps = WRAPS.get(getattr(named, "on", ""), "")
        about = [
            ("about", named.description),
            ("plugin", f"{named.origin.plugin} of {named.origin.distribution}"),
            ("wraps", wraps.format(name=named.name)),
        ]
        arguments = [*named.arguments.items()]
        shown = [row for row in about if row[1]]
        print_sections([(named.name, shown), ("arguments", arguments)])
        if not arguments:
            print("  its plugin declares no arguments")
    elif kinds:
        print_rows([(one.name, _summary(one)) for one in kinds])
    else:
        print("  no installed plugin has one")
    return 0


def _as_json(kind: Kind) -> dict[str, Any]:
    wraps = getattr(kind, "on", None)
    return {
        "name": kind.name,
        "plugin": kind.origin.plugin,
        "distribution": kind.origin.distribution,
        "description": kind.description,
        "arguments": dict(kind.arguments),
        **({} if wraps is None else {"on": wraps}),
    }


def _summary(kind: Kind) -> str:
    parts = [kind.description, f"plugin {kind.origin.plugin}"]
    if kind.arguments:
        parts.insert(1, f"arguments {', '.join(kind.arguments)}")
    return "; ".join(part for part in parts if part)
