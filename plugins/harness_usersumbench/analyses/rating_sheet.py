"""Summaries for people to rate: a sheet with its guide, and a key that raters must not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness.reporting.label_files import csv_bytes, refuse_taken
from harness.runs.atomic_files import atomic_write, make_folder
from harness_usersumbench.analyses.examples import Example, examples_of, summarising
from harness_usersumbench.words import count_words

if TYPE_CHECKING:
    from harness import FinishedTask

SHEET, GUIDE, KEY = "for_raters/sheet.csv", "for_raters/GUIDE.md", "key.csv"
SHEET_COLUMNS = (
    "example", "query", "activities", "top_categories", "summary", "rater", "rating",
)  # fmt: skip
KEY_COLUMNS = ("example", "run", "task", "model", "user", "names_top_category")

StopShare = Annotated[
    float,
    Meta(gt=0, le=1, description="categories of a larger share of users are no top categories"),
]


class SheetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `usersum-sheet`."""

    out: Annotated[str, Meta(description="folder for the sheet and its key")]
    number: Annotated[int, Meta(ge=1, description="summaries of each task")] = 200
    seed: Annotated[int, Meta(description="which summaries are drawn")] = 0
    stop_share: StopShare = 0.8


@dataclass(frozen=True)
class Drawn:
    """An example with the task that it is from."""

    example: Example
    task: FinishedTask


def sheet(tasks: Sequence[FinishedTask], options: SheetOptions) -> Report:
    """The report of `usersum-sheet`, which writes the sheet, its guide and the key."""
    folder = Path(options.out).expanduser()
    refuse_taken(folder, (SHEET, GUIDE, KEY))
    drawn: dict[str, Drawn] = {}
    rows = []
    for task in summarising(tasks):
        every = examples_of(task, stop_share=options.stop_share)
        every.sort(key=lambda one: stable_int(options.seed, one.name))
        chosen = every[: options.number]
        drawn |= {one.name: Drawn(one, task) for one in chosen}
        words = sum(count_words(one.summary) for one in chosen)
        named = sum(one.names_top for one in chosen)
        shares = (words / len(chosen), 100 * named / len(chosen)) if chosen else (None, None)
        rows.append((task.label, task.task.name, len(every), len(chosen), *shares))
    ordered = sorted(drawn, key=lambda name: stable_int(options.seed, "order", name))
    write(folder, [drawn[name] for name in ordered])
    return Report(
        sheets=(
            Sheet(
                title="Summaries to rate",
                columns=(
                    *("model", "task", "summaries", "on the sheet"),
                    *("words of one", "names a top category, %"),
                ),
                rows=tuple(rows),
            ),
        ),
        notes=(
            f"written to {folder}: for_raters/ with the sheet and its guide, for the raters; and "
            f"{KEY}, which they must not see",
            "an example has the same name in every run with the same summary of the same user: "
            "ratings stay valid for runs with another predictor",
        ),
    )


def write(folder: Path, drawn: Sequence[Drawn]) -> None:
    """Write the sheet, its guide and the key into the folder."""
    rows = [
        {
            "example": one.example.name,
            "query": one.task.options.query,
            "activities": one.example.reference,
            "top_categories": ", ".join(one.example.top),
            "summary": one.example.summary,
            "rater": "",
            "rating": "",
            "run": one.task.run,
            "task": one.task.task.name,
            "model": one.task.label,
            "user": one.example.user,
            "names_top_category": "yes" if one.example.names_top else "no",
        }
        for one in drawn
    ]
    guide = resources.files("harness_usersumbench.analyses").joinpath("rating_guide.md")
    make_folder((folder / SHEET).parent, option="--out")
    for name, content in (
        (SHEET, csv_bytes(SHEET_COLUMNS, rows, lines=True)),
        (GUIDE, guide.read_bytes()),
        (KEY, csv_bytes(KEY_COLUMNS, rows)),
    ):
        atomic_write(folder / name, content, option="--out")
