"""Scoring of a stored run: a function of its records alone, which asks no model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

import msgspec

from harness.base.errors import HarnessError, PluginError, TaskError, did_you_mean, one_of
from harness.base.hashing import LINE, sealed
from harness.base.redaction import without_key_material
from harness.calls.budget import player_name
from harness.calls.pricing import Cost, PriceTable, Spend
from harness.contracts.model import Usage
from harness.contracts.records import Records, Score, record_type
from harness.contracts.task import Task
from harness.runs.atomic_files import atomic_write, atomic_writer, read_sealed, sealed_file
from harness.runs.journal import JournalIndex, JournalRecords, in_shares
from harness.runs.manifest import Manifest, RoleEntry, TaskEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.aggregate import Columns, code_of_benchmark, sound, with_computed
from harness.scoring.processes import cores, write_shares
from harness.scoring.run_costs import cost_of_role
from harness.scoring.summary import RoleUse, StageSummary, TaskSummary, main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark, Metric

FORMAT = 1
COUNTED = (
    "calls", "from_store", "failed", "asked_schema", "met_schema", "thought_out", "truncated",
    "refused",
)  # fmt: skip
"""The counts of a role's calls, by the names of the summary's fields."""

SHARE = 100_000
"""Records that are worth a process: to score them takes a second, to start it a tenth or two."""

MOST_SHARES = 16
"""With more processes, most of the time would be that of the index, which one process makes."""


class Unfinished(HarnessError):
    """A task that cannot be scored yet: some items of its stages have no record."""


def how_to_finish(manifest: Manifest) -> str:
    """The hint how to finish a run's tasks, also after too many failures."""
    again = "repeat the run's command: it continues where it stopped"
    if manifest.status == "too_many_failures":
        again += " and asks again what got no answer; add --retry_failures to ask again what else "
        again += "failed (`harness show RUN --failures`), or a larger --max_failures to accept it"
    return again


class _Outcome(msgspec.Struct, frozen=True, gc=False):
    type: str
    cause: str = ""


class _Call(msgspec.Struct, frozen=True, gc=False):
    role: str
    member: str = ""
    source: str = "model"
    usage: Usage | None = None
    wasted: Usage | None = None
    untold: int = 0
    finish: str | None = None
    rung: str | None = None
    asked_schema: bool = False
    failure: _Outcome | None = None
    reasoning: msgspec.Raw = msgspec.Raw(b"")

    @property
    def thought_out(self) -> bool:
        """Whether the reply spent its limit on thinking."""
        if self.finish != "length" or self.failure is None:
            return False
        counted = self.usage is not None and self.usage.reasoning_tokens > 0
        return counted or bytes(self.reasoning) not in (b"", b"null")


class _Bare(msgspec.Struct, frozen=True):
    """The parts of a record that counting needs."""

    user: str
    id: str
    outcome: _Outcome
    calls: tuple[_Call, ...] = ()


def score_task(
    folder: RunFolder, manifest: Manifest, name: str, benchmark: Benchmark
) -> TaskSummary:
    """The summary of a finished task, scored from its records; writes its scores and summary.

    Raises Unfinished if records are missing; the files then stay as they were.
    """
    task = manifest.tasks[name].task()
    summary = score_into(folder.scores(name), folder, manifest, task, benchmark)
    values = without_key_material(msgspec.to_builtins(summary))
    atomic_write(folder.summary(name), sealed_file(values))
    return summary


def score_into(
    scores: Path,
    folder: RunFolder,
    manifest: Manifest,
    task: Task,
    benchmark: Benchmark,
    *,
    processes: int | None = None,
) -> TaskSummary:
    """The summary of a finished task of a run; writes its scores to the file `scores`.

    The options of `task` may differ from the run's options if only scoring reads them. If its
    benchmark allows that, a large task is scored by several processes, or any by so many.
    """
    entry = manifest.tasks[task.name]
    metrics = chosen_metrics(task, benchmark)
    options = task_options(task, benchmark)
    indexes = _open(folder, manifest, task.name)
    records = _typed(entry, indexes, benchmark)
    scorer = _Scorer(
        benchmark.name,
        benchmark.score,
        benchmark.metrics,
        options,
        metrics,
        benchmark.stages_of_others,
    )
    roles = role_entries(manifest, task.name, benchmark)
    scores.parent.mkdir(exist_ok=True)
    with atomic_writer(scores) as file:
        shares = _shares(entry, indexes, benchmark, processes)
        write = partial(_write_scores, scorer)
        (columns, calls), *more = write_shares(write, shares, file, scores.parent)
    while more:
        other_columns, other_calls = more.pop(0)
        columns.extend(other_columns)
        for stage, one in other_calls.items():
            calls[stage].extend(one)
    name = task_and_repeat(task.name)[0]
    every = benchmark.published() if benchmark.published is not None else ()
    published = tuple(one for one in every if one.task == name and one.metric in task.metrics)
    counts = Counter(columns.counts)
    if benchmark.counts is not None:
        counts.update(benchmark.counts(records, options))
    return TaskSummary(
        format=FORMAT,
        task=task.name,
        version=task.version,
        content=entry.content,
        benchmark=task.benchmark,
        model=manifest.label,
        thinks=roles["candidate"].thinks if "candidate" in roles else None,
        roles={role: one.name for role, one in roles.items()},
        data=entry.data,
        comparable=entry.comparable,
        not_comparable_because=entry.not_comparable_because,
        limit=manifest.limit,
        seed=manifest.seed,
        repeat=task_and_repeat(task.name)[1],
        units=columns.units,
        counts=dict(sorted(counts.items())),
        notes=(tuple(benchmark.notes(records, options)) if benchmark.notes else ())
        or msgspec.UNSET,
        main=main_metrics(benchmark.main, metrics),
        metrics=columns.results(
            interval=task.interval,
            seed=manifest.seed,
            task=task.name,
            least_scored=task.least_scored,
        ),
        stages=_stage_summaries(manifest, task.name, calls, manifest.prices),
        slices={name: dict(sorted(one.items())) for name, one in columns.slices.items()}
        or msgspec.UNSET,
        published=published or msgspec.UNSET,
    )


def count_stages(
    folder: RunFolder, manifest: Manifest, name: str, prices: PriceTable | None
) -> dict[str, StageSummary]:
    """The stages of a task of a run, counted by the records that they have, at these prices."""
    indexes = {}
    for stage in manifest.tasks[name].stages:
        path = folder.path / manifest.tasks[name].folder / stage.file
        whole = stage.items is not None
        indexes[stage.name] = JournalIndex(path, stage.key, items=stage.items, finished=whole)
    return _stage_summaries(manifest, name, _calls_of(indexes), prices)


def unfinished_stages(entry: TaskEntry) -> tuple[str, ...]:
    """The stages of a task that may lack the record of an item."""
    return tuple(stage.name for stage in entry.stages if stage.items is None)


def chosen_metrics(task: Task, benchmark: Benchmark) -> dict[str, Metric]:
    """The benchmark's metrics that the task names, in the task's order."""
    for name in task.metrics:
        problem = f"benchmark {benchmark.name!r} has no metric {name!r}"
        one_of(name, benchmark.metrics, problem, TaskError, where=f"task {task.name!r}")
    return {name: benchmark.metrics[name] for name in task.metrics}


def read_summary(path: Path) -> TaskSummary | None:
    """The summary in a file; None if there is no file, as the task is then unfinished."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    hint = "run `harness score RUN` to write it again"
    return read_sealed(data, TaskSummary, path, what="summary", version=FORMAT, hint=hint)


def _open(folder: RunFolder, manifest: Manifest, name: str) -> dict[str, JournalIndex]:
    """The records of every stage; raises Unfinished unless each item has exactly one."""
    entry = manifest.tasks[name]
    indexes = {}
    problems = []
    if open_stages := unfinished_stages(entry):
        problems = [f"stages with items that have no record: {', '.join(open_stages)}"]
    else:
        for stage in entry.stages:
            path = folder.path / entry.folder / stage.file
            indexes[stage.name] = index = JournalIndex(path, stage.key, finished=True)
            if len(index) != stage.items:
                problems.append(f"{stage.name} ({len(index)} records of {stage.items} items)")
    if problems:
        raise Unfinished(
            f"task {name!r} is not finished",
            where=str(folder.path),
            found=", ".join(problems),
            expected="a record of every item of every stage",
            hint=how_to_finish(manifest),
        )
    return indexes


def _typed(
    entry: TaskEntry, indexes: Mapping[str, JournalIndex], benchmark: Benchmark
) -> dict[str, JournalRecords[Any, Any]]:
    stages = {stage.name: stage for stage in benchmark.stages}
    records: dict[str, JournalRecords[Any, Any]] = {}
    for kept in entry.stages:
        if kept.name not in stages:
            raise PluginError(
                f"benchmark {benchmark.name!r} lacks the stage {kept.name!r} of the run",
                where=f"task {entry.task().name!r}",
                found=f"stages {', '.join(stages)}",
                expected=f"stages {', '.join(each.name for each in entry.stages)}, as in the run",
                hint="use the release of the plugin that the manifest names",
            )
        stage = stages[kept.name]
        index = indexes[kept.name]
        kind = record_type(stage.item, stage.value)
        records[kept.name] = JournalRecords(index.path, kept.key, kind, index=index)
    return records


def task_options(task: Task, benchmark: Benchmark) -> msgspec.Struct:
    """The options of a kept task as its benchmark's own type."""
    try:
        return msgspec.convert(task.options, benchmark.options)
    except msgspec.ValidationError as error:
        raise TaskError(
            f"benchmark {benchmark.name!r} no longer accepts these options",
            where=f"task {task.name!r}",
            found=str(error),
            hint="use the release of the plugin that the manifest names",
        ) from error


class _Scorer(NamedTuple):
    """The parts of a benchmark that another process needs."""

    name: str
    score: Callable[[Mapping[str, Records[Any, Any]], Any], Iterator[Score[Any]]]
    metrics: Mapping[str, Metric]
    options: msgspec.Struct
    chosen: Mapping[str, Metric]
    stages_of_others: Collection[str]


_Share: TypeAlias = tuple[Mapping[str, JournalRecords[Any, Any]], Mapping[str, JournalIndex]]
"""What is scored at a time: the records of some users, or of all, and their indexes."""


def _shares(
    entry: TaskEntry,
    indexes: Mapping[str, JournalIndex],
    benchmark: Benchmark,
    processes: int | None,
) -> list[_Share]:
    """A task in shares of its users, in their order; in one if its benchmark allows no more."""
    divided = [name for name in benchmark.scored_by_user if name in indexes]
    records = sum(len(indexes[name]) for name in divided)
    number = processes or min(records // SHARE, MOST_SHARES, cores())
    parts = in_shares(indexes, number if divided else 1)
    read = ({**indexes, **{name: part[name] for name in divided}} for part in parts)
    return [
        (_typed(entry, whole, benchmark), part) for whole, part in zip(read, parts, strict=True)
    ]


def _write_scores(
    scorer: _Scorer, share: _Share, file: BinaryIO
) -> tuple[Columns, dict[str, _Calls]]:
    columns = Columns(scorer.chosen, of_others=scorer.stages_of_others)
    encoder = msgspec.json.Encoder()
    records, indexes = share
    for score in _scores(scorer, records):
        columns.add(score)
        file.write(sealed(encoder.encode(score) + b"\n", LINE))
    return columns, _calls_of(indexes)


def _scores(benchmark: _Scorer, records: Mapping[str, Records[Any, Any]]) -> Iterator[Score[Any]]:
    declared = {
        metric.of or name for name, metric in benchmark.metrics.items() if metric.compute is None
    }
    for name, metric in benchmark.chosen.items():
        for column in metric.needs:
            problem = f"the metric {name!r} needs a column {column!r} that no score has"
            one_of(column, declared, problem, PluginError, where=f"benchmark {benchmark.name!r}")
    with code_of_benchmark(
        f"benchmark {benchmark.name!r} failed to score its records",
        hint="the records are kept: fix the benchmark, then run `harness score RUN`",
    ):
        for score in benchmark.score(records, benchmark.options):
            if not all(
                each.keys() <= declared
                for each in (score.values, score.missing, score.worst, score.lost or {})
            ):
                names = {*score.values, *score.missing, *score.worst, *(score.lost or ())}
                named = sorted(names - declared)
                raise PluginError(
                    f"benchmark {benchmark.name!r} has a score that none of its metrics reads",
                    where=f"the score of {score.id!r}",
                    found=", ".join(named),
                    expected=", ".join(sorted(declared)),
                    hint=did_you_mean(named[0], declared)
                    or "declare a metric of that name, or one that is `of` it",
                )
            yield with_computed(sound(score), benchmark.chosen)


def role_entries(manifest: Manifest, name: str, benchmark: Benchmark) -> dict[str, RoleEntry]:
    """The entry of each role in the stages of a run's task, in their order.

    A run has one list of roles for all its tasks, and tasks may differ in their roles.
    """
    kept = {stage.name for stage in manifest.tasks[name].stages}
    stages = [stage for stage in benchmark.stages if stage.name in kept]
    asked = dict.fromkeys(role for stage in stages for role in (*stage.roles, *stage.judges))
    entries = {role: manifest.player(name, role) for role in asked}
    return {role: entry for role, entry in entries.items() if entry is not None}


class _Tally:
    """Counts the calls of one role."""

    def __init__(self) -> None:
        self.with_usage = 0
        self.untold = 0
        self.counts: Counter[str] = Counter()
        self.rungs: Counter[str] = Counter()
        self.paid = Spend()
        self.saved = Spend()

    def add(self, call: _Call) -> None:
        self.counts["calls"] += 1
        self.counts["from_store"] += call.source != "model"
        self.counts["failed"] += call.failure is not None
        self.counts["asked_schema"] += call.asked_schema
        self.counts["thought_out"] += call.thought_out
        self.counts["truncated"] += call.finish == "length"
        self.counts["refused"] += call.finish == "refused"
        self.counts["met_schema"] += call.asked_schema and call.rung == "strict"
        if call.rung is not None:
            self.rungs[call.rung] += 1
        untold = call.finish is not None and call.usage is None
        self.untold += untold
        if call.usage is not None:
            self.with_usage += 1
            for field in Usage.__struct_fields__:
                self.counts[field] += getattr(call.usage, field)
        spend = self.paid if call.source == "model" else self.saved
        spend.calls += 1
        spend.unreported += untold or call.untold > 0
        spend.add(call.usage)
        spend.add(call.wasted)

    def extend(self, other: _Tally) -> None:
        """Count what another has counted too."""
        self.with_usage += other.with_usage
        self.untold += other.untold
        self.counts.update(other.counts)
        self.rungs.update(other.rungs)
        for mine, others in ((self.paid, other.paid), (self.saved, other.saved)):
            for name, number in asdict(others).items():
                setattr(mine, name, getattr(mine, name) + number)

    def use(self, cost: Cost | None, *, by_rule: bool) -> RoleUse:
        known = self.with_usage or by_rule or not self.untold
        counts: dict[str, Any] = {name: self.counts[name] for name in COUNTED}
        counts |= {name: self.counts[name] if known else None for name in Usage.__struct_fields__}
        return RoleUse(
            **counts,
            rungs=dict(sorted(self.rungs.items())),
            untold=0 if by_rule else self.untold,
            cost=cost,
        )


class _Calls:
    """Counts the outcomes of a stage's records, and their calls by role."""

    def __init__(self, index: JournalIndex) -> None:
        self.items = len(index)
        self.done = 0
        self.failures: Counter[str] = Counter()
        self.tallies: dict[str, _Tally] = defaultdict(_Tally)
        bare: JournalRecords[Any, Any] = JournalRecords(index.path, "", _Bare, index=index)
        record: Any
        for record in bare:
            if record.outcome.type == "done":
                self.done += 1
            else:
                self.failures[record.outcome.cause] += 1
            for call in record.calls:
                self.tallies[player_name(call.role, call.member)].add(call)

    def extend(self, other: _Calls) -> None:
        """Count what another has counted too."""
        self.items += other.items
        self.done += other.done
        self.failures.update(other.failures)
        for name, tally in other.tallies.items():
            self.tallies[name].extend(tally)

    def summary(self, use_of: Callable[[str, _Tally], RoleUse]) -> StageSummary:
        return StageSummary(
            items=self.items,
            done=self.done,
            failures=dict(sorted(self.failures.items())),
            roles={role: use_of(role, self.tallies[role]) for role in sorted(self.tallies)},
        )


def _calls_of(indexes: Mapping[str, JournalIndex]) -> dict[str, _Calls]:
    return {stage: _Calls(index) for stage, index in indexes.items()}


def _stage_summaries(
    manifest: Manifest, task: str, calls: Mapping[str, _Calls], prices: PriceTable | None
) -> dict[str, StageSummary]:
    def use_of(role: str, tally: _Tally) -> RoleUse:
        cost = None
        if prices is not None:
            entry = manifest.player(task, role)
            cost = cost_of_role(entry, prices, paid=tally.paid, saved=tally.saved)
        return tally.use(cost, by_rule=manifest.by_rule(task, role))

    return {stage: one.summary(use_of) for stage, one in calls.items()}
