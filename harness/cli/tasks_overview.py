"""All that `--tasks` takes, on one screen: groups with what they are, tasks by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.cli.errors import print_error
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.tasks.catalogue import Catalogue, Entry

MORE = "`harness tasks NAME` tells more of one, `harness tasks --all` of all"


def overview(entries: Sequence[Entry], catalogue: Catalogue) -> Iterator[str]:
    """The lines of the screen; of many tasks that a file makes, those that no group holds."""
    import shutil
    import textwrap

    from harness.cli.tasks import folded
    from harness.reporting.text import clean_text

    width = shutil.get_terminal_size((100, 24)).columns
    held = {one.name: _held(one.name, catalogue) for one in entries if one.members is not None}
    grouped = {name for names in held.values() for name in names}
    if held:
        yield "groups, and how many tasks each has:"
    rows = [
        (clean_text(one.name), f"{len(held[one.name]):,}", clean_text(one.description))
        for one in entries
        if one.members is not None
    ]
    columns = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for name, many, about in rows:
        start = f"  {name.ljust(columns[0])}  {many.rjust(columns[1])}  "
        room = max(width - len(start), 20)
        yield start + (about if len(about) <= room else about[: room - 1].rstrip() + "…")
    tasks = [one for one in entries if one.members is None]
    alone = [one for one in tasks if one.pattern is None or one.name not in grouped]
    if alone:
        yield "tasks, beside those that matrices make for these groups:"
        names = ", ".join(clean_text(one.name) for one in folded(alone))
        yield from textwrap.wrap(
            names, width, initial_indent="  ", subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    yield MORE


def _held(group: str, catalogue: Catalogue) -> tuple[str, ...]:
    try:
        return catalogue.tasks_of(group)
    except HarnessError as error:
        print_error(error)
        return ()
