"""Summaries for people to rate: a sheet with its guide, and a key that raters must not see."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness.reporting.label_files import csv_bytes, refuse_taken, write_files
from harness_usersumbench.analyses.examples import Example, StopShare, examples_of
from harness_usersumbench.records import count_words

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

SHEET, GUIDE, KEY = "for_raters/sheet.csv", "for_raters/GUIDE.md", "key.csv"
COLUMNS = {
    SHEET: ("example", "query", "activities", "top_categories", "summary", "rater", "rating"),
    KEY: ("example", "run", "task", "model", "user", "names_top_category"),
}
NAMES = {True: "yes", False: "no", None: ""}

NOTES = (
    "an example has the same name in every run with the same summary of the same user, so ratings "
    "stay valid for runs with another predictor",
)


class SheetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `usersum-sheet`."""

    out: Annotated[str, Meta(description="folder for the sheet and its key")]
    number: Annotated[int, Meta(ge=1, description="summaries of each task")] = 200
    seed: Annotated[int, Meta(description="which summaries are drawn")] = 0
    stop_share: StopShare = 0.8


def sheet(tasks: Sequence[FinishedTask], options: SheetOptions) -> Report:
    """The report of `usersum-sheet`, which writes the sheet, its guide and the key."""
    folder = Path(options.out).expanduser()
    refuse_taken(folder, (SHEET, GUIDE, KEY))
    drawn: dict[str, dict[str, str]] = {}
    rows: list[tuple[Cell, ...]] = []
    for task, examples in examples_of(tasks, stop_share=options.stop_share):
        chosen = sorted(examples, key=lambda name: stable_int(options.seed, name))[: options.number]
        drawn |= {name: cells(examples[name], task) for name in chosen}
        known = [examples[name] for name in chosen]
        named = [one.names_top for one in known if one.names_top is not None]
        words = fmean(count_words(one.summary) for one in known) if known else None
        share = 100 * fmean(named) if named else None
        rows.append((task.label, task.task.name, len(examples), len(chosen), words, share))
    order = sorted(drawn, key=lambda name: stable_int(options.seed, "order", name))
    content = [drawn[name] for name in order]
    files = {name: csv_bytes(columns, content, lines=True) for name, columns in COLUMNS.items()}
    guide = resources.files("harness_usersumbench.analyses").joinpath("rating_guide.md")
    write_files(folder, {**files, GUIDE: guide.read_bytes()})
    counts = Sheet(
        title="Summaries to rate",
        columns=("model", "task", "summaries", "on the sheet", "words on average",
                 "name a top category, %"),
        rows=tuple(rows),
        notes=NOTES,
    )  # fmt: skip
    where = f"written to {folder}: {SHEET} and {GUIDE}, and {KEY}, which raters must not see"
    return Report(sheets=(counts,), notes=(where,))


def cells(one: Example, task: FinishedTask) -> dict[str, str]:
    """An example with its origin; raters are shown a part, and add their name and rating."""
    return {
        "example": one.name,
        "query": task.options.query,
        "activities": one.activities,
        "top_categories": ", ".join(one.top),
        "summary": one.summary,
        "rater": "",
        "rating": "",
        "run": task.run,
        "task": task.task.name,
        "model": task.label,
        "user": one.user,
        "names_top_category": NAMES[one.names_top],
    }
