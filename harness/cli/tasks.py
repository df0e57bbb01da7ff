"""`harness tasks`: what can be run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from harness.cli.errors import print_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.plugin_manager import Plugins
    from harness.tasks.catalogue import Catalogue, Entry


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of the whole."""
    parser = subparsers.add_parser(
        "tasks",
        help="the tasks, groups and tags there are",
        description="List tasks, groups and tags; name patterns or parts of names to see fewer.",
    )
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="a name, part, glob or tag")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Print the list; what could not be read is told on standard error. The exit code is 0."""
    import sys

    from harness.plugin_manager import load_plugins
    from harness.tasks.catalogue import Catalogue

    plugins = load_plugins()
    catalogue = Catalogue(plugins)
    entries = [entry for entry in catalogue.matching(args.patterns) if not entry.abstract]
    if args.json:
        import json

        document = _document(entries, catalogue, plugins)
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        return 0
    _print(entries)
    for line in (*map(str, plugins.broken), *plugins.problems, *catalogue.problems):
        print_error(line)
    return 0


def _document(entries: Sequence[Entry], catalogue: Catalogue, plugins: Plugins) -> dict[str, Any]:
    shared = ("name", "description", "tags")
    fields = {False: (*shared, "benchmark", "version"), True: (*shared, "members")}
    listed: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for entry in entries:
        is_group = entry.members is not None
        one = {name: getattr(entry, name) for name in fields[is_group]}
        listed[is_group].append({**one, "source": entry.bundle, "file": str(entry.file)})
    return {
        "tasks": listed[False],
        "groups": listed[True],
        "tags": _tags(entries),
        "broken": [
            {"plugin": one.entry_point, "distribution": one.distribution, "error": one.error}
            for one in plugins.broken
        ],
        "problems": [*plugins.problems, *catalogue.problems],
    }


def _tags(entries: Sequence[Entry]) -> dict[str, list[str]]:
    tags = sorted({tag for entry in entries for tag in entry.tags})
    return {tag: [entry.name for entry in entries if tag in entry.tags] for tag in tags}


def _print(entries: Sequence[Entry]) -> None:
    tasks = [(entry.name, entry.description) for entry in entries if entry.members is None]
    groups = [
        (entry.name, f"{entry.description} ({', '.join(entry.members)})".lstrip())
        for entry in entries
        if entry.members is not None
    ]
    tags = [(tag, ", ".join(names)) for tag, names in _tags(entries).items()]
    for title, rows in (("tasks", tasks), ("groups", groups), ("tags", tags)):
        if rows:
            print(f"{title}:")
            for line in aligned(rows):
                print(line)


def aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Two columns, the second wrapped to the width of the terminal."""
    import shutil
    import textwrap

    left = max(len(name) for name, _ in rows) + 4
    width = max(shutil.get_terminal_size((100, 24)).columns - left, 30)
    lines = []
    for name, text in rows:
        first, *more = textwrap.wrap(text, width) or [""]
        lines.append(f"  {name.ljust(left - 2)}{first}".rstrip())
        lines.extend(" " * left + line for line in more)
    return lines
