"""`harness models`, `judges` and `embedders`: the installed kinds, or one with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.cli.command import Command, argument, command, json_option
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


def _lister(name: str, of: str, *, example: str, candidates: str) -> Command:
    @command(
        f"harness {name}", f"harness {name} {example}", name=name,
        help=f"List the kinds of {of}, or show the NAME of one with the meaning of its arguments.",
    )  # fmt: skip
    @argument(
        "kind", metavar="NAME", required=False, help="one kind, with its arguments",
        candidates=candidates,
    )  # fmt: skip
    @json_option
    def show(kind: str | None, json: bool) -> int:
        return _show(name, kind, json=json)

    return show


models = _lister("models", "model", example="openai", candidates="model_kinds")
judges = _lister("judges", "judge", example="lexical", candidates="judge_kinds")
embedders = _lister("embedders", "embedder", example="hashing", candidates="embedder_kinds")


def _show(command: str, name: str | None, *, json: bool) -> int:
    from harness.cli.tools import usable

    plugins = load_plugins()
    known: dict[str, tuple[Registry[str, Any], Callable[[str], Kind]]] = {
        "models": (plugins.models, plugins.model),
        "judges": (plugins.judges, plugins.judge),
        "embedders": (plugins.embedders, plugins.embedder),
    }
    registry, find = known[command]
    kinds: Sequence[Kind] = [find(name)] if name else usable(registry)
    if json:
        print_json({command: [_as_json(one) for one in kinds]})
    elif name:
        _print_page(kinds[0])
    elif kinds:
        print_rows([(one.name, _summary(one)) for one in kinds])
    else:
        print("  no installed plugin has one")
    return 0


def _print_page(kind: Kind) -> None:
    about = [
        ("about", kind.description),
        ("plugin", f"{kind.origin.plugin} of {kind.origin.distribution}"),
        ("wraps", WRAPS.get(getattr(kind, "on", ""), "").format(name=kind.name)),
    ]
    arguments = [*kind.arguments.items()]
    print_sections([(kind.name, [row for row in about if row[1]]), ("arguments", arguments)])
    if not arguments:
        print("  its plugin declares no arguments")


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
