"""Tells what a log holds: who did how much of what, and how long the texts are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.base.errors import DataError
from harness.contracts.report import Axis, Bars, Figure, Report, Sheet
from harness.tasks.own_columns import read_own_columns, with_own_columns
from harness_gistbench.records import SIGNALS
from harness_gistbench.sources import open_log
from harness_gistbench.sources.rules import WORD
from harness_gistbench.synthesis.distributions import densities, spread_sheet
from harness_gistbench.synthesis.reading import PLAIN, opened, task_options
from harness_gistbench.synthesis.validation import name

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.report import Cell
    from harness_gistbench.log_index import LogIndex


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
    columns: Annotated[tuple[str, ...], Meta(description="as for a run: [TABLE.]COLUMN=NAME")] = ()
    values: Annotated[tuple[str, ...], Meta(description="as for a run: COLUMN.VALUE=MEANING")] = ()


def run(options: Options) -> Report:
    """What the data of a task holds, the whole of it, whomever a run would choose."""
    import numpy as np

    task, task_settings = task_options(options.task)
    columns = dict(read_own_columns("--columns", options.columns))
    values = dict(read_own_columns("--values", options.values))
    [task] = with_own_columns([task], columns, values)
    index = open_log(opened(task, options.data), task_settings)
    if not index.engagements:
        raise DataError(
            "no engagement is left to describe",
            found=f"{index.unrated} without a rating, {index.unknown} with objects without a text",
        )
    of_signals = index.arrays(
        f"SELECT {', '.join(SIGNALS)} FROM {index.people} WHERE kept > 0 ORDER BY user"
    )
    counts = np.stack(list(of_signals.values()), axis=1)
    people = counts.sum(axis=1)
    things = index.arrays(
        f"SELECT users, length(text) AS characters, len(regexp_extract_all(text, '{WORD}')) "
        "AS words FROM (SELECT object, count(DISTINCT user) AS users, any_value(text) AS text "
        f"FROM ({index.rows}) WHERE kept GROUP BY object) ORDER BY object"
    )
    users_of, characters = things["users"], things["characters"]
    spreads = {
        "engagements a user": people,
        "users an object": users_of,
        "characters a text": characters,
        "words a text": things["words"],
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
        ("left out: users without any other engagement", index.users - len(people)),
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
