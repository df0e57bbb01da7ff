"""A leaderboard as values: the pages of each task, with ranks as intervals, and histories.

Runs stand on one page if they agree in all but their candidate and are all comparable with
published results, or all not. Of each model the newest run is ranked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from harness.analysis.metric_texts import with_values
from harness.base.errors import HarnessError
from harness.base.hashing import digest
from harness.contracts.identity import path_parts
from harness.contracts.stage import CANDIDATE
from harness.runs.run_folder import plain_name, slug
from harness.scoring.comparable import named_differences, settings_of
from harness.scoring.comparison import compare, main_of
from harness.scoring.comparison_document import Comparison
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.paired_differences import Difference, holm_adjusted
from harness.scoring.rank_intervals import RankInterval, rank_intervals
from harness.scoring.score_run import chosen_metrics
from harness.scoring.summary import MetricResult
from harness.tasks.repeats import task_and_repeat

FORMAT = 1
INDEX = "index"
MODEL = "model"
"""The tag that says which model a run is of, where names and paths do not."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a page: its label, model and revision, and when it began.

    `result` is the main metric over all units of the run.
    """

    run: str
    label: str
    model: str
    revision: str
    began: str
    result: MetricResult


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """The newest run of a model: its metric on the units that all ranked runs share, its ranks."""

    entry: Entry
    common: MetricResult
    ranks: RankInterval


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the history of its model, with the difference from the run before it."""

    entry: Entry
    difference: Difference | None = None


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """Another page of the same task: its runs cannot stand on this page, and why."""

    page: str
    differs: str
    runs: tuple[str, ...]
    because: tuple[str, ...]


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a task. `left_out` has by run the reason why it is not ranked.

    `differs` is what sets it apart from the other pages of the task, in short.
    """

    page: str
    task: str
    differs: str = ""
    version: int
    benchmark: str
    metric: str
    higher_is_better: bool
    description: str
    confidence: float
    roles: dict[str, str]
    seed: int
    limit: int | None
    not_comparable_because: tuple[str, ...]
    ranked: tuple[Ranked, ...]
    differences: tuple[Difference, ...]
    history: dict[str, tuple[Step, ...]]
    left_out: dict[str, tuple[str, ...]]
    apart: tuple[Apart, ...] = ()
    doubts: tuple[str, ...] = ()


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """All pages, those that are comparable with published results first."""

    format: int = FORMAT
    boards: tuple[Board, ...]
    left_out: dict[str, str]


def leaderboard(
    tasks: Iterable[FinishedTask], left_out: Mapping[str, str] = MappingProxyType({})
) -> Leaderboard:
    """The leaderboard of these tasks of stored runs; the same tasks give the same one."""
    by_task: dict[str, list[FinishedTask]] = {}
    left_out = dict(sorted(left_out.items()))
    for task in sorted(tasks, key=lambda each: (each.task.name, began(each), each.run)):
        name, repeat = task_and_repeat(task.task.name)
        if repeat > 1:
            left_out[f"{task.run}, repeats of its tasks"] = "the first repeat stands for all"
        else:
            by_task.setdefault(name, []).append(task)
    boards: list[Board] = []
    taken = {_plain(name).lower() for name in by_task}
    for name, of_task in by_task.items():
        try:
            boards += [*_boards(name, of_task, taken)]
        except HarnessError as error:
            left_out[name] = str(error)
    boards.sort(key=lambda board: bool(board.not_comparable_because))
    return Leaderboard(boards=tuple(boards), left_out=left_out)


def began(task: FinishedTask) -> str:
    """When a run began."""
    return task.manifest.sessions[0].started if task.manifest.sessions else ""


def model_of(task: FinishedTask) -> str:
    """The name of a run's model without its revision: its tag, or the name of its candidate."""
    if MODEL in task.manifest.tags:
        return task.manifest.tags[MODEL]
    name = str(_candidate(task).get("name") or task.manifest.model)
    return (path_parts(name) or [name])[-1]


def revision_of(task: FinishedTask) -> str:
    """The revision of a run's model, or the run's label if a tag names the model."""
    about = _candidate(task)
    details = about.get("details", {})
    pinned = details.get("revision") or details.get("identity")
    apart = task.manifest.tags.get(MODEL) not in (None, task.manifest.label)
    return str(pinned or (task.manifest.label if apart else ""))


def _candidate(task: FinishedTask) -> Mapping[str, Any]:
    entry = task.manifest.player(task.task.name, CANDIDATE)
    found: Mapping[str, Any] = entry.identity.get("model", {}) if entry is not None else {}
    return found


_Kind: TypeAlias = tuple[bool, str]
"""Whether the results of a page are not comparable, and the digest of its settings."""


def _plain(task: str) -> str:
    """The name of the first page of a task, which is not that of the page over all."""
    plain = plain_name(task)
    return f"{plain}-task" if plain == INDEX else plain


def _boards(name: str, tasks: Sequence[FinishedTask], taken: set[str]) -> Iterator[Board]:
    """The pages of a task: first the one of the most and then the oldest runs, comparable ones
    before others.

    The name of each other page says what sets it apart; `taken` are the names of all pages
    in lower case.
    """
    kinds = grouped(
        ((not task.summary.comparable, digest(settings_of(task))), task) for task in tasks
    )
    order = sorted(
        kinds, key=lambda kind: (kind[0], -len(kinds[kind]), began(kinds[kind][0]), kind)
    )
    differ = {}
    for kind in order:
        # Pages that are comparable with published results and others are told apart anyway.
        like = [other for other in order if other[0] == kind[0] and other != kind]
        why = _differences(kinds[kind][-1], kinds[like[0]][-1]) if like else ()
        differ[kind] = why[0].partition(" against ")[0] if why else ""
    pages = {order[0]: _plain(name)}
    for kind in order[1:]:
        page = f"{_plain(name)}-{slug(differ[kind] or 'not comparable', longest=40)}"
        pages[kind] = f"{page}-{digest([*kind])[:8]}" if page.lower() in taken else page
        taken.add(pages[kind].lower())
    for kind in order:
        apart = tuple(
            Apart(
                page=pages[other],
                differs=differ[other],
                runs=tuple(task.run for task in kinds[other]),
                because=_why_apart(kinds[other][-1], kinds[kind][-1]),
            )
            for other in order
            if other != kind
        )
        yield _board(pages[kind], kinds[kind], apart, differs=differ[kind])


def _differences(task: FinishedTask, other: FinishedTask) -> tuple[str, ...]:
    return named_differences(settings_of(task), settings_of(other))


def _why_apart(task: FinishedTask, other: FinishedTask) -> tuple[str, ...]:
    reasons = _differences(task, other)
    if task.summary.comparable is not other.summary.comparable:
        stamps = task.summary.not_comparable_because or other.summary.not_comparable_because
        one = "these" if not task.summary.comparable else "those here"
        reasons += (f"{one} are not comparable with published results: {', '.join(stamps)}",)
    return reasons


def _board(
    page: str, tasks: Sequence[FinishedTask], apart: tuple[Apart, ...], differs: str
) -> Board:
    """The page of runs that agree in all but their candidate, in the order in which they began."""
    newest = tasks[-1]
    known = chosen_metrics(newest.task, newest.benchmark)
    metric = main_of(newest, known)[0]
    options = msgspec.to_builtins(newest.options)
    given = {name: [str(value)] for name, value in options.items()}
    models = grouped((model_of(task), task) for task in tasks)
    found = compare([of[-1] for of in models.values()], only=(metric,), all_pairs=True).comparison
    entries = {
        task.run: Entry(
            run=task.run,
            label=task.manifest.label,
            model=model_of(task),
            revision=revision_of(task),
            began=began(task),
            result=task.summary.metrics[metric],
        )
        for task in tasks
    }
    ranked = _ranked(found, metric, entries)
    at = {each.entry.run for each in ranked}
    left_out = {each.run: each.because for each in found.refused}
    left_out |= {
        run.run: (run.metrics[metric].undefined or "it has no value",)
        for run in found.runs
        if run.run not in at
    }
    every = (why for task in tasks for why in task.summary.not_comparable_because)
    return Board(
        page=page,
        task=found.task,
        differs=differs,
        version=found.version,
        benchmark=found.benchmark,
        metric=metric,
        higher_is_better=known[metric].higher_is_better,
        description=with_values(known[metric].description, given),
        confidence=newest.task.interval.confidence,
        roles=found.roles,
        seed=newest.manifest.seed,
        limit=newest.manifest.limit,
        not_comparable_because=tuple(dict.fromkeys(every)),
        ranked=ranked,
        differences=found.differences,
        history={
            model: tuple(_history(of, metric, entries))
            for model, of in sorted(models.items())
            if len(of) > 1
        },
        left_out=left_out,
        apart=apart,
        doubts=found.doubts,
    )


def _ranked(found: Comparison, metric: str, entries: Mapping[str, Entry]) -> tuple[Ranked, ...]:
    common = {run.run: run.common[metric] for run in found.runs if metric in run.common}
    if not common:
        return ()
    better = next(iter(common.values())).higher_is_better
    ranks = rank_intervals([*common], found.differences, higher_is_better=better)
    order = sorted(
        common, key=lambda run: (ranks[run].best, ranks[run].worst, entries[run].label, run)
    )
    return tuple(Ranked(entry=entries[r], common=common[r], ranks=ranks[r]) for r in order)


def _history(
    tasks: Sequence[FinishedTask], metric: str, entries: Mapping[str, Entry]
) -> Iterator[Step]:
    """The runs of one model, each with its difference from the one before."""
    yield Step(entry=entries[tasks[0].run])
    pairs = [
        compare([task, before], only=(metric,)).comparison.differences
        for before, task in itertools.pairwise(tasks)
    ]
    adjusted = iter(holm_adjusted([each for found in pairs for each in found]))
    for task, found in zip(tasks[1:], pairs, strict=True):
        yield Step(entry=entries[task.run], difference=next(adjusted) if found else None)
