"""`harness tasks`: what can be run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from harness.cli.errors import print_error
from harness.cli.run import add_include_path
from harness.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.plugin_manager import Plugins
    from harness.tasks.catalogue import Catalogue, Entry


MOST_LISTED = 4
"""Tasks that one file makes are listed one by one up to so many, else as their pattern."""


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of the whole."""
    parser = subparsers.add_parser(
        "tasks",
        help="the tasks, groups and tags there are",
        description="Tell what there is to run, on one screen; with --all each task, group and "
        "tag with its description, with patterns or parts of names those that they mean. "
        "A task that is named in full is shown alone, with its benchmark, options, roles and data.",
    )
    parser.add_argument(
        "patterns", metavar="PATTERN", nargs="*", help="a name, part, glob or tag:WORD"
    )
    parser.add_argument("--all", action="store_true", help="all that there is, with descriptions")
    parser.add_argument("--json", action="store_true", help="all as one JSON document")
    add_include_path(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Print the list; what could not be read is told on standard error. The exit code is 0."""
    import sys

    from harness.cli.settle import included
    from harness.cli.tasks_overview import overview
    from harness.plugin_manager import load_plugins
    from harness.tasks.catalogue import Catalogue

    if args.all and args.patterns:
        raise UsageError("--all means nothing beside names", found=" ".join(args.patterns))
    plugins = load_plugins()
    catalogue = Catalogue(plugins, include_path=included(args.include_path))
    entries = [entry for entry in catalogue.matching(args.patterns) if not entry.abstract]
    named = [one for one in entries if one.members is None and one.name in args.patterns]
    if args.json:
        import json

        benchmarks = _benchmarks_of(named, plugins)
        document = {**_document(entries, catalogue, plugins), "benchmarks": benchmarks}
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        return 0
    pages = [one.name for one in named if _print_page(one.name, catalogue, plugins)]
    others = [one for one in entries if one.name not in pages]
    if args.patterns:
        _print_sections(_listed(others))
    elif not args.all:
        for line in overview(others, catalogue):
            print(line)
    else:
        shown = folded(others)
        tags = [(tag, ", ".join(names)) for tag, names in _tags(shown).items()]
        _print_sections([*_listed(shown), ("tags", tags)])
    for line in (*map(str, plugins.broken), *plugins.problems, *catalogue.problems):
        print_error(line)
    return 0


def _benchmarks_of(tasks: Sequence[Entry], plugins: Plugins) -> list[dict[str, str]]:
    """What the benchmarks of these tasks, which alone are loaded, tell about themselves."""
    found, fields = [], ("name", "description", "paper", "licence")
    for name in dict.fromkeys(task.benchmark or "" for task in tasks):
        try:
            if plugins.has_benchmark(name):
                benchmark = plugins.benchmark(name)
                found.append({field: getattr(benchmark, field) for field in fields})
        except HarnessError as error:
            print_error(error)
    return found


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


def folded(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with one in place of many that a file makes, in the place of the first."""
    from collections import Counter
    from dataclasses import replace

    counts = Counter((entry.file, entry.pattern) for entry in entries)
    shown: dict[object, Entry] = {}
    for entry in entries:
        family = (entry.file, entry.pattern)
        many = counts[family]
        if entry.pattern is None or many <= MOST_LISTED:
            shown[entry.name] = entry
            continue
        known = shown.get(family, entry)
        tags = tuple(dict.fromkeys((*known.tags, *entry.tags)))
        about = f"{many} tasks: {entry.about}" if entry.about else f"{many} tasks"
        shown[family] = replace(entry, name=entry.pattern, description=about, tags=tags)
    return list(shown.values())


def _tags(entries: Sequence[Entry]) -> dict[str, list[str]]:
    tags = sorted({tag for entry in entries for tag in entry.tags})
    return {tag: [entry.name for entry in entries if tag in entry.tags] for tag in tags}


def _print_page(name: str, catalogue: Catalogue, plugins: Plugins) -> bool:
    """Print all that is to be known of a task; whether its file could be read so far."""
    from harness.cli.task_page import page

    try:
        (task,) = catalogue.select([name]).tasks
    except HarnessError as error:
        print_error(error)
        return False
    _print_sections(page(task, plugins))
    return True


def _listed(entries: Sequence[Entry]) -> list[tuple[str, list[tuple[str, str]]]]:
    tasks = [(entry.name, entry.description) for entry in entries if entry.members is None]
    groups = [
        (entry.name, f"{entry.description} ({', '.join(entry.members)})".lstrip())
        for entry in entries
        if entry.members is not None
    ]
    return [("tasks", tasks), ("groups", groups)]


def _print_sections(sections: Iterable[tuple[str, list[tuple[str, str]]]]) -> None:
    for title, rows in sections:
        if rows:
            print(f"{title}:")
            for line in aligned(rows):
                print(line)


def aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Two columns, the second wrapped to the width of the terminal, which no text can steer."""
    import shutil
    import textwrap

    from harness.reporting.text import clean_text

    rows = [(clean_text(name), clean_text(text)) for name, text in rows]
    left = max(len(name) for name, _ in rows) + 4
    width = max(shutil.get_terminal_size((100, 24)).columns - left, 30)
    lines = []
    for name, text in rows:
        first, *more = textwrap.wrap(text, width) or [""]
        lines.append(f"  {name.ljust(left - 2)}{first}".rstrip())
        lines.extend(" " * left + line for line in more)
    return lines
