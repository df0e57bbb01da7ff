"""The page of `harness report`: one file in which readers find what runs measured, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.reporting.html.first_screen import first_screen
from harness.reporting.html.key_words import CELL, ENDING, key_words
from harness.reporting.html.markup import (
    Html,
    element,
    joined,
    page_html,
    read_secrets,
    section_html,
)
from harness.reporting.html.next_steps import look_next
from harness.reporting.html.provenance import provenance_html
from harness.reporting.html.report_html import notes_html
from harness.reporting.html.reported_run import ReportedRun, made_of
from harness.reporting.html.run_differences import (
    Differences,
    differences_html,
    differences_of_runs,
)
from harness.reporting.html.run_sections import (
    benchmark_sections,
    judges_html,
    reading_html,
    repeats_html,
)
from harness.reporting.html.samples import RULE, Samples, pack, read_samples
from harness.reporting.text import counted

if TYPE_CHECKING:
    from harness.registry import Plugins

MEGABYTE = 1_000_000
OF_SAMPLES = 2_000
"""About how many bytes the part about samples takes without them."""

SHOWS = "`harness show RUN --sample ID` shows any."
BENCHMARK = "Benchmark "

Section = tuple[str, str, Html]
"""The id, the title and the content of a part."""


def report_page(
    runs: Sequence[ReportedRun],
    plugins: Plugins,
    *,
    title: str = "",
    unread: Sequence[str] = (),
    most_samples: int | None = None,
    most_megabytes: float = 30.0,
    labels: Sequence[str] = (),
    by: str | None = None,
    bases: Sequence[str] = (),
) -> str:
    """The report of these runs as one page; `unread` says which other runs could not be read.

    It holds at most so many samples if `most_samples` is given, else as many as fit into a page
    of `most_megabytes`. `labels` are files of people's labels, with which judges are compared.
    `by` is a slice of the data, within whose parts the runs are compared too. The runs are compared
    with that of `bases` which agrees with them, else with the best one.
    """
    read_secrets()
    title = title or f"Report on {counted(len(runs), 'run')}"
    samples = read_samples([task for run in runs for task in run.tasks])
    found = differences_of_runs(runs, by, bases)
    sections = list(_sections(runs, samples, plugins, labels, found))
    parts = [section_html(name, heading, inside) for name, heading, inside in sections]
    links = [(name, heading.removeprefix(BENCHMARK)) for name, heading, _ in sections]
    links.insert(-1, ("samples", "Samples"))
    head = joined([element("h1", title), element("p", made_of(runs), class_="note"),
                   notes_html(f"A run could not be read: {why}" for why in unread)])  # fmt: skip
    used = len(page_html(title, [head, *parts], sections=links).encode())
    viewer, blocks = _samples(samples, most_samples, used, most_megabytes)
    # Where the runs come from stands last, and the blocks behind it: the first screen is there
    # before they are read.
    parts.insert(-1, section_html("samples", "Samples", viewer))
    return page_html(title, [head, *parts, blocks], sections=links)


def _sections(
    runs: Sequence[ReportedRun],
    samples: Samples,
    plugins: Plugins,
    labels: Sequence[str],
    found: Differences,
) -> Iterator[Section]:
    known = key_words(runs, plugins)
    words, said = known.without(CELL), set[str]()
    without_tasks = words.without(ENDING)
    yield "results", "Results", words.key(first_screen(runs, found), said)
    yield "next", "What to look at next", words.key(look_next(runs, found), said)
    if len(runs) > 1:
        yield "differences", "Differences", words.key(differences_html(found), said)
    for number, (name, inside) in enumerate(benchmark_sections(runs, plugins, known), 1):
        yield f"benchmark-{number}", f"{BENCHMARK}{name}", inside
    if (repeats := repeats_html(runs)) is not None:
        yield "repeats", "Repeats", without_tasks.key(repeats, said)
    yield "reading", "Reading answers", without_tasks.key(reading_html(runs), set())
    if (judges := judges_html(runs, samples, plugins, labels)) is not None:
        yield "judges", "Judges", without_tasks.key(judges, set())
    yield "provenance", "Where this comes from", provenance_html(runs)


def _samples(
    samples: Samples, most: int | None, used: int, most_megabytes: float
) -> tuple[Html, Html]:
    """What the samples are and what of them is left out, and the blocks that hold them."""
    size = int(most_megabytes * MEGABYTE) - used - OF_SAMPLES
    blocks, kept = pack(samples, most=most, size=size)
    total = sum(map(len, samples.units))
    if not kept:
        takes = f"it takes {used / MEGABYTE:.1f} MB without them"
        why = f"{takes}, and --max_size is {most_megabytes:g}"
        why = "--samples 0 leaves them out" if most == 0 else why
        none = f"None of the {total:,} samples is on this page: {why}. {SHOWS}"
        none = none if total else "There are no samples: no task of these runs is finished."
        return notes_html([none, *samples.problems]), Html("")
    lines = [
        f"{kept:,} samples: a unit of a task, such as a person, with all that one model was "
        "asked and answered about it."
    ]
    if kept < total:
        why = "--samples" if most is not None else "the size of the page (--max_size)"
        lines.append(
            f"{total - kept:,} of {total:,} samples are left out, for {why}. What "
            f"is here was chosen in this order: {RULE}. {SHOWS}"
        )
    if most is not None and kept > most:
        lines.append(f"The samples of a unit stay together: they are more than --samples {most}.")
    paper = element("p", "Samples are not printed: open the file in a browser.", class_="on-paper")
    without = element("noscript", element("p", "Samples are drawn by the page's own script, which "
                                          "this browser does not run."))  # fmt: skip
    viewer = element("div", id="viewer")
    return joined([notes_html([*lines, *samples.problems]), paper, without, viewer]), blocks
