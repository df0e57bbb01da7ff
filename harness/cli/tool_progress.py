"""How far a data tool has come: a bar on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.analysis.analysis import no_progress
from harness.data.progress_lines import ProgressLines
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from harness.analysis.analysis import Progress


@contextmanager
def shown_progress(
    *, quiet: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """What shows a tool's progress on standard error until the block ends; nothing if `quiet`.

    with shown_progress(quiet=False) as progress:
        progress("users", 10, 400)
    """
    if quiet:
        yield no_progress
    elif sys.stderr.isatty():
        with _bars() as progress:
            yield progress
    else:
        yield ProgressLines(
            lambda line: print(clean_text(line), file=sys.stderr, flush=True), clock
        )


@contextmanager
def _bars() -> Iterator[Progress]:
    """Bars on a terminal, one for each kind of thing that is counted; gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        known = {}

        def progress(what: str, done: int, of: int | None = None) -> None:
            if what not in known:
                known[what] = bars.add_task(clean_text(what), total=of)
            bars.update(known[what], completed=done, total=of)

        yield progress
