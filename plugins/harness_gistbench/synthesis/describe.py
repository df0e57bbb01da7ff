"""Tells what a log holds: who did how much of what, and how long the texts are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.data.sampling import ranks
from harness.errors import DataError
from harness.results.report import Axis, Bars, Figure, Report, Sheet
from harness_gistbench.log_index import index_log, signal_counts
from harness_gistbench.sources import open_log
from harness_gistbench.synthesis.reading import PLAIN, opened, task_options
from harness_gistbench.synthesis.validation import QUANTILES, densities, name, spread

if TYPE_CHECKING:
    import numpy as np

    from harness.results.report import Cell
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


@dataclass(frozen=True, kw_only=True)
class Described:
    """What was counted.

    `counts` has a row a user and a column a signal; users of whom nothing is left are not in it.
    `users_of` is of each object how many users engaged with it. `characters` and `words` are of the
    text of each object.
    """

    index: LogIndex
    counts: np.ndarray
    users_of: np.ndarray
    characters: np.ndarray
    words: np.ndarray


def run(options: Options) -> Report:
    """What the data of a task holds, the whole of it, whomever a run would choose."""
    task, task_settings = task_options(options.task)
    dataset = opened(task, options.data)
    log = open_log(dataset, task_settings)
    found = counted(log)
    people = found.counts.sum(axis=1)
    return Report(
        sheets=(
            overview(found, least=task_settings.min_engagements, task=task.name),
            by_signal(found.counts),
            spreads(found, people),
        ),
        figures=(
            signal_bars(found.counts),
            densities("Lengths of histories", "engagements a user", {"users": people}),
            densities(
                "Lengths of texts", "characters of an object's text", {"objects": found.characters}
            ),
        ),
    )


def counted(log: Log) -> Described:
    """The numbers of a log; 12 bytes are held for each engagement."""
    import numpy as np

    index = index_log(log, seed=0, pool=1)
    kept = [(rows.users, rows.objects, rows.signals) for rows in index.rows.read()]
    users, hashes, signals = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    if not len(users):
        raise DataError(
            "no engagement is left to describe",
            found=f"{index.unrated} without a rating, {index.unknown} with objects without a text",
        )
    counts = signal_counts(users, signals, many=len(index.users))
    objects, numbers = np.unique(hashes, return_inverse=True)
    pairs = np.unique(numbers * len(index.users) + users)
    users_of = np.bincount(pairs // len(index.users), minlength=len(objects))
    characters, words = text_sizes(log, objects)
    return Described(
        index=index,
        counts=counts[counts.any(axis=1)],
        users_of=users_of,
        characters=characters,
        words=words,
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


def overview(found: Described, *, least: int, task: str) -> Sheet:
    """The numbers of everything."""
    people = found.counts.sum(axis=1)
    few = int((people < least).sum())
    index = found.index
    rows: tuple[tuple[Cell, ...], ...] = (
        ("users", len(people)),
        ("engagements", int(people.sum())),
        ("objects", len(found.users_of)),
        ("objects of more than one user", int((found.users_of > 1).sum())),
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


def spreads(found: Described, people: np.ndarray) -> Sheet:
    """How lengths are spread."""
    rows = (
        ("engagements a user", *spread(people)),
        ("users an object", *spread(found.users_of)),
        ("characters a text", *spread(found.characters)),
        ("words a text", *spread(found.words)),
    )
    return Sheet(title="Lengths", columns=("", "of", "mean", *QUANTILES), rows=rows)


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
