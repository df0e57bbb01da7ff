"""Tells what a log holds: who did how much of what, and how long the texts are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.base.errors import DataError
from harness.contracts.report import Axis, Bars, Figure, Report, Sheet
from harness.data.sampling import ranks
from harness_gistbench.log_index import index_log, signal_counts
from harness_gistbench.sources import open_log
from harness_gistbench.synthesis.reading import PLAIN, opened, task_options
from harness_gistbench.synthesis.validation import densities, name, spread_sheet

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.report import Cell
    from harness_gistbench.log_index import Log, LogIndex


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Which data is described."""

    data: Annotated[
        str | None,
        Meta(
            description="a file or folder, or the word sample; without it the task's data on the "
            "hub, where it is on one"
        ),
    ] = None
    task: Annotated[
        str,
        Meta(description="the task whose layout the data is in; this one's is the plain schema"),
    ] = PLAIN


def run(options: Options) -> Report:
    """What the data of a task holds, the whole of it, whomever a run would choose.

    12 bytes are held for each engagement.
    """
    import numpy as np

    task, task_settings = task_options(options.task)
    log = open_log(opened(task, options.data), task_settings)
    index = index_log(log, seed=0, pool=1)
    kept = [(rows.users, rows.objects, rows.signals) for rows in index.rows.read()]
    users, hashes, signals = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    if not len(users):
        raise DataError(
            "no engagement is left to describe",
            found=f"{index.unrated} without a rating, {index.unknown} with objects without a text",
        )
    counts = signal_counts(users, signals, many=len(index.users))
    counts = counts[counts.any(axis=1)]
    people = counts.sum(axis=1)
    objects, numbers = np.unique(hashes, return_inverse=True)
    pairs = np.unique(numbers * len(index.users) + users)
    users_of = np.bincount(pairs // len(index.users), minlength=len(objects))
    characters, words = text_sizes(log, objects)
    spreads = {
        "engagements a user": people,
        "users an object": users_of,
        "characters a text": characters,
        "words a text": words,
    }
    return Report(
        sheets=(
            overview(index, people, users_of, least=task_settings.min_engagements, task=task.name),
            by_signal(counts),
            spread_sheet("Lengths", "of", spreads),
        ),
        figures=(
            signal_bars(counts),
            densities("Lengths of histories", "engagements a user", {"users": people}),
            densities(
                "Lengths of texts", "characters of an object's text", {"objects": characters}
            ),
        ),
    )


def text_sizes(log: Log, objects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Characters and words of the text of each object, of the first where the log has several.

    `objects` are their hashes, ascending.
    """
    import numpy as np

    sizes = np.zeros((len(objects), 2), dtype=np.int64)
    for part in log.texts():
        hashes = ranks(part.objects, seed=0)
        places = np.minimum(np.searchsorted(objects, hashes), len(objects) - 1)
        new = (objects[places] == hashes) & (sizes[places, 0] == 0)
        for row in np.flatnonzero(new).tolist():
            if not sizes[places[row], 0]:
                sizes[places[row]] = len(part.texts[row]), len(part.texts[row].split())
    return sizes[:, 0], sizes[:, 1]


def overview(
    index: LogIndex, people: np.ndarray, users_of: np.ndarray, *, least: int, task: str
) -> Sheet:
    """The numbers of everything: engagements by person, and users by object."""
    few = int((people < least).sum())
    rows: tuple[tuple[Cell, ...], ...] = (
        ("users", len(people)),
        ("engagements", int(people.sum())),
        ("objects", len(users_of)),
        ("objects of more than one user", int((users_of > 1).sum())),
        (f"users with fewer than {least} engagements", few),
        (f"users with fewer than {least} engagements, %", 100 * few / len(people)),
        ("engagements without a time", index.untimed),
        ("left out: engagements without a rating", index.unrated),
        ("left out: engagements with objects without a text", index.unknown),
        ("left out: users without any other engagement", len(index.users) - len(people)),
    )
    return Sheet(
        title="What the data holds",
        columns=("", "number"),
        rows=rows,
        notes=(f"{task} keeps users with at least {least} engagements",),
    )


def by_signal(counts: np.ndarray) -> Sheet:
    """How often each signal occurs; one that never does is left out."""
    total = int(counts.sum())
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name(code),
            int(of_signal.sum()),
            100 * float(of_signal.sum()) / total,
            int((of_signal > 0).sum()),
            float(of_signal.mean()),
        )
        for code, of_signal in enumerate(counts.T)
        if of_signal.any()
    )
    return Sheet(
        title="Engagements by type",
        columns=("type", "engagements", "%", "users with any", "mean a user"),
        rows=rows,
    )


def signal_bars(counts: np.ndarray) -> Figure:
    """A bar a signal."""
    sums = counts.sum(axis=0).tolist()
    present = [code for code, number in enumerate(sums) if number]
    bars = Bars(
        label="engagements",
        names=tuple(name(code) for code in present),
        values=tuple(float(sums[code]) for code in present),
        texts=tuple(f"{sums[code]:,}" for code in present),
    )
    return Figure(
        title="Engagements by type",
        x=Axis(label=""),
        y=Axis(label="engagements", low=0.0),
        marks=(bars,),
    )
