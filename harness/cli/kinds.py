"""What `harness models` and `harness judges` have in common: kinds, and the arguments of one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.plugin_manager import JudgeRegistration, ModelRegistration, Plugins, Registry

    Kind = ModelRegistration | JudgeRegistration


WANTS = {
    "model": "a model behind it: {name}:openai:model=NAME,base_url=URL",
    "judges": "judges behind it: {name}:openai:model=A,base_url=URL+openai:model=B,base_url=URL",
}
"""What a judge stands on, and how it is given."""


def add_kind_parser(subparsers: Any, command: str, *, of: str) -> argparse.ArgumentParser:
    """Add a command that lists kinds of something, or shows one with its arguments."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        command,
        help=f"the kinds of {of} there are, and their arguments",
        description=f"List the kinds of {of}. One that is named is shown with what each of its "
        "arguments means.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="one kind, with its arguments")
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    return parser


def show_kinds(
    args: argparse.Namespace, plugins: Plugins, registry: Registry[str, Any], *, named: Kind | None
) -> int:
    """Print the kinds of a registry, or the one that is named; the exit code is 0."""
    from harness.cli.reports import listed

    kinds: Sequence[Kind] = listed(plugins, registry) if named is None else [named]
    if args.json:
        from harness.cli.json_output import print_json

        print_json({args.command: [_as_json(one) for one in kinds]})
    elif named is None:
        _print_rows([(one.name, _summary(one)) for one in kinds])
    else:
        _print_page(named)
    return 0


def _as_json(kind: Kind) -> dict[str, Any]:
    stands = getattr(kind, "on", None)
    return {
        "name": kind.name,
        "plugin": kind.origin.plugin,
        "distribution": kind.origin.distribution,
        "description": kind.description,
        "arguments": dict(kind.arguments),
        **({} if stands is None else {"on": stands}),
    }


def _summary(kind: Kind) -> str:
    said = [kind.description, f"plugin {kind.origin.plugin}"]
    if kind.arguments:
        said.insert(1, f"arguments {', '.join(kind.arguments)}")
    return "; ".join(part for part in said if part)


def _print_page(kind: Kind) -> None:
    print(f"{kind.name}:")
    about = [
        ("about", kind.description),
        ("plugin", f"{kind.origin.plugin} of {kind.origin.distribution}"),
    ]
    behind = WANTS.get(getattr(kind, "on", ""))
    if behind is not None:
        about.append(("wants", behind.format(name=kind.name)))
    _print_rows([row for row in about if row[1]])
    if kind.arguments:
        print("arguments:")
        _print_rows(list(kind.arguments.items()))
    else:
        print("  its plugin declares no arguments")


def _print_rows(rows: Sequence[tuple[str, str]]) -> None:
    from harness.cli.tasks import aligned

    for line in aligned(rows) if rows else ["  no plugin offers one"]:
        print(line)
