"""What every plugin promises, a check each: of its texts first, then of runs over its samples."""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import BudgetSpent, HarnessError
from harness.contracts.model import CallError, Reply, Request
from harness.contracts.records import Record, record_type
from harness.pipeline.run import RunResult
from harness.registry import CHOSEN
from harness.runs.journal_index import Head, JournalRecords, scan
from harness.runs.run_folder import RunFolder
from harness.scoring.aggregate import NOT_FINITE
from harness.scoring.summary import TaskSummary
from harness.testing.scripted import Answer, ScriptedModel, offered
from harness.testing.trial import Trial, Tried, scores_of

BROKEN = "broken"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One promise that is not kept: where, what is wrong, and what to do."""

    check: str
    where: str
    problem: str
    to_do: str

    def __str__(self) -> str:
        problem = self.problem.replace("\n", "\n    ")
        return f"[{self.check}] {self.where}: {problem}\n    to do: {self.to_do}"


Check = Callable[[Trial], Iterator[Finding]]
"""A promise that is looked at on a trial; it gives a finding for each place that breaks it."""


def loads(trial: Trial) -> Iterator[Finding]:
    """The plugin loads, its hooks are hooks, its names are its own, its factories make things."""
    one = trial.subject
    where = f"entry point {one.point.name} = {one.point.value}"
    for broken in one.plugins.broken:
        if (broken.entry_point, broken.distribution) == (one.name, one.distribution):
            yield Finding(
                check="loads", where=where, problem=broken.traceback.strip(),
                to_do="mend what the traceback ends with",
            )  # fmt: skip
            return
    if one.loaded is None:
        yield Finding(
            check="loads", where=where, problem=f"it is left out by {CHOSEN}",
            to_do=f"name it there too, or run the tests without {CHOSEN}",
        )  # fmt: skip
        return
    for problem in one.plugins.problems_of(one.loaded):
        yield Finding(
            check="loads", where=where, problem=problem,
            to_do="spell hooks as harness/registry/hookspecs.py does; begin names with the "
            "plugin's",
        )  # fmt: skip
    yield from _factories(trial)


def _factories(trial: Trial) -> Iterator[Finding]:
    one, plugins = trial.subject, trial.subject.plugins
    factories: dict[str, Callable[[], object]] = {
        **{
            f"benchmark {name}": functools.partial(plugins.benchmark, name)
            for name in one.benchmarks
        },
        **{f"analysis {n}": plugins.analyses[n].factory for n in one.of(plugins.analyses)},
        **{
            f"tool {' '.join(n)}": plugins.data_tools[n].factory for n in one.of(plugins.data_tools)
        },
        **{
            f"respondent {'/'.join(n)}": plugins.respondents[n].factory
            for n in one.of(plugins.respondents)
        },
    }
    for what, factory in factories.items():
        try:
            made = factory()
        except Exception as error:  # foreign code, and the others are still to be made
            yield Finding(
                check="loads", where=what,
                problem=f"its factory raised {type(error).__name__}: {error}",
                to_do="register a function that takes nothing and gives the thing itself",
            )  # fmt: skip
            continue
        if what.startswith("respondent") and not callable(made):
            yield Finding(
                check="loads", where=what, problem=f"its factory gave {made!r}, no function",
                to_do="register a function that gives the respondent: `lambda: respond`",
            )  # fmt: skip


def tasks(trial: Trial) -> Iterator[Finding]:
    """Every task file is in order, and every benchmark has a task with a sample."""
    from harness.cli.validate import Checker
    from harness.tasks.load import shown

    one = trial.subject
    folder = one.plugins.package_of(one.benchmarks[0]) if one.benchmarks else None
    for problem in one.catalogue.problems:
        if folder is not None and (str(folder) in problem or shown(folder) in problem):
            yield Finding(
                check="tasks", where=one.package, problem=problem,
                to_do="mend the file, or give the task a name of its own",
            )  # fmt: skip
    checker = Checker(one.plugins, one.catalogue)
    for entry in one.entries:
        for document in checker.documents(entry.name):
            for error in checker.errors(document):
                yield Finding(
                    check="tasks", where=document.name, problem=str(error),
                    to_do=f"`harness validate {document.name}` shows the line",
                )  # fmt: skip
    for name in one.benchmarks:
        if not any(task.benchmark == name and task.data.sample for task in trial.tasks):
            yield Finding(
                check="tasks", where=f"benchmark {name}", problem="no task of it has a sample",
                to_do="put a few rows into the package and name them under data.sample: nobody "
                "can try the benchmark else, and no check can run it",
            )  # fmt: skip


def prompts(trial: Trial) -> Iterator[Finding]:
    """Every prompt is a stage's, and renders with the variables that it is given."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates

    one = trial.subject
    templates = Templates(prompt_folders(one.plugins))
    for name in one.benchmarks:
        stages = one.plugins.benchmark(name).stages
        asked = {
            f"{prompt}.{role}"
            for stage in stages
            for prompt in stage.templates
            for role in (*stage.roles, *stage.judges)
        }
        for prompt in templates.names(name):
            where = f"prompts/{name}/{prompt}.j2"
            if prompt not in asked:
                yield Finding(
                    check="prompts", where=where, problem="no stage asks with this prompt",
                    to_do=f"name it as one of {', '.join(sorted(asked))}, or begin its name with _",
                )  # fmt: skip
                continue
            text, _, role = prompt.rpartition(".")
            if not templates.need(name, text, role).variables:
                yield Finding(
                    check="prompts", where=where, problem="it shows nothing of the item",
                    to_do="use the variables that the stage gives it",
                )  # fmt: skip
    yield from _rehearsed(trial)


def _rehearsed(trial: Trial) -> Iterator[Finding]:
    from harness.pipeline.forecast import rehearse
    from harness.pipeline.settings import make_settings

    judge = ScriptedModel(name="judge")
    for tried in trial.tried:
        players = tried.others(judge=judge.spec, other="baseline")
        settings = make_settings(
            {"tasks": tried.names, "model": "baseline", "roles": players, "data": "sample"}
        )
        try:
            with offered((judge,)):
                forecast = asyncio.run(rehearse(settings, trial.subject.plugins))
        except HarnessError as error:
            yield Finding(
                check="prompts", where=f"benchmark {tried.benchmark.name}", problem=str(error),
                to_do="give the prompt every variable it names, or drop the variable",
            )  # fmt: skip
            continue
        for stage in forecast.stages:
            for role in stage.roles:
                if not any(message.content.strip() for message in role.first_prompt):
                    yield Finding(
                        check="prompts", where=f"{stage.task}/{stage.stage}",
                        problem=f"the {role.role} was asked nothing in a rehearsal over the sample",
                        to_do="have the sample and the baseline's answers reach this stage",
                    )  # fmt: skip


def metrics(trial: Trial) -> Iterator[Finding]:
    """Every metric says what it is, and what it counts at worst is a number."""
    for name in trial.subject.benchmarks:
        benchmark = trial.subject.plugins.benchmark(name)
        for metric, told in benchmark.metrics.items():
            where = f"metric {metric} of {name}"
            if not told.description.strip():
                yield Finding(
                    check="metrics", where=where, problem="it has no description",
                    to_do="say in one line what the number is: Metric(description=…)",
                )  # fmt: skip
            if told.worst is not None and not math.isfinite(told.worst):
                yield Finding(
                    check="metrics", where=where, problem=f"at worst it counts {told.worst}",
                    to_do="give a finite number, or worst=None where no value is worst",
                )  # fmt: skip


def baseline(trial: Trial) -> Iterator[Finding]:
    """`--model baseline` runs over the sample, raises nothing, and every metric has a value."""
    for tried in trial.tried:
        result = trial.baseline(tried)
        yield from _sound("baseline", result, tried)
        for summary in result.summaries:
            for name, metric in summary.metrics.items():
                if metric.n == 0:
                    yield Finding(
                        check="baseline", where=f"{summary.task}: {name}",
                        problem=f"no unit of the sample has a value; causes: {metric.missing}",
                        to_do="have the baseline give answers that can be read, and the sample "
                        "rows that can be scored",
                    )  # fmt: skip


def repeats(trial: Trial) -> Iterator[Finding]:
    """Another process that asks one call at a time comes to the same scores."""
    for tried in trial.tried:
        first = trial.baseline(tried).folder
        [again] = trial.elsewhere(tried).iterdir()
        for task in tried.names:
            differing = _difference(first, again, task)
            if differing:
                yield Finding(
                    check="repeats", where=task,
                    problem=f"a second run with other concurrency scored otherwise: {differing}",
                    to_do="draw from desk.random or harness.base.seeded_random, sort sets before "
                    "use, and keep nothing between items",
                )  # fmt: skip


def resumes(trial: Trial) -> Iterator[Finding]:
    """A run that was cut off half way goes on, asks nothing twice, and scores the same."""
    for tried in trial.tried:
        whole = trial.baseline(tried)
        calls = sum(
            use.calls
            for summary in whole.summaries
            for stage in summary.stages.values()
            for use in stage.roles.values()
        )
        if calls < 2:
            continue
        try:
            trial.run(tried, "resumed", budget={"calls": calls // 2})
        except BudgetSpent:
            pass
        else:
            yield Finding(
                check="resumes", where=f"benchmark {tried.benchmark.name}",
                problem=f"a run that may make {calls // 2} calls ended, where another made {calls}",
                to_do="ask every item through its desk, in every run alike",
            )  # fmt: skip
            continue
        result = trial.run(tried, "resumed")
        for summary in result.summaries:
            yield from _resumed(result.folder, whole.folder, summary)


def _resumed(folder: Path, whole: Path, summary: TaskSummary) -> Iterator[Finding]:
    for stage, key, file in _journals(folder, summary.task):
        made = sum(1 for _, _, head in scan(file, Head) if head.stage == key and not head.dropped)
        items = summary.stages[stage].items
        if made > items:
            yield Finding(
                check="resumes", where=f"{summary.task}/{stage}",
                problem=f"{made} records were made for {items} items: some were made twice",
                to_do="have `items` yield the same items each time it is called: same ids, same "
                "content, in whatever order",
            )  # fmt: skip
    differing = _difference(whole, folder, summary.task)
    if differing:
        yield Finding(
            check="resumes", where=summary.task,
            problem=f"a run that went on scored otherwise than one in one go: {differing}",
            to_do="let nothing that is kept depend on what else this process did",
        )  # fmt: skip


def records(trial: Trial) -> Iterator[Finding]:
    """Items and values are the same when they are read back from a journal and written again."""
    for tried in trial.tried:
        folder = trial.baseline(tried).folder
        stages = {stage.name: stage for stage in tried.benchmark.stages}
        for task in tried.names:
            for name, key, file in _journals(folder, task):
                stage = stages[name]
                typed: JournalRecords[Any, Any] = JournalRecords(
                    file, key, record_type(stage.item, stage.value)
                )
                plain: JournalRecords[Any, Any] = JournalRecords(file, key, Record[Any, Any])
                for read, raw in zip(typed, plain, strict=True):
                    lost = _lost(read, raw)
                    if lost:
                        yield Finding(
                            check="records", where=f"{task}/{name}, record {raw.id}", problem=lost,
                            to_do="give Stage(item=…, value=…) the types that `items` and `work` "
                            "give, and each field the type that it has",
                        )  # fmt: skip
                        break


def _lost(read: Record[Any, Any], raw: Record[Any, Any]) -> str | None:
    """What reading a record as its stage's types changed."""
    for part in ("item", "outcome"):
        again = json.loads(msgspec.json.encode(getattr(read, part)))
        written = json.loads(msgspec.json.encode(getattr(raw, part)))
        if again != written:
            return f"its {part} was written as {written} and read back as {again}"
    return None


def failures(trial: Trial) -> Iterator[Finding]:
    """What fails is missing, with a cause: it breaks nothing off, and is no number."""
    for tried in trial.tried:
        for called, answer in TROUBLE.items():
            model = ScriptedModel(answer, name="trouble")
            other = ScriptedModel(answer, name="other trouble")
            players = tried.others(judge=other, other=other)
            result = trial.run(tried, called, model=model, roles=players)
            yield from _sound("failures", result, tried, when=called)
            if called != NONSENSE:
                yield from _no_values(trial, tried, result, when=called)
        if tried.judges:
            judge = ScriptedModel(_failing, name="failing judge")
            players = tried.others(judge=judge, other="baseline")
            result = trial.run(tried, "judges fail", roles=players)
            yield from _sound("failures", result, tried, when="judges fail")


def _failing(_: Request) -> Answer:
    return CallError("bad_request", "this call fails in a check of failures")


def _refusing(_: Request) -> Answer:
    return Reply(text="", finish="refused")


def _nonsense(_: Request) -> Answer:
    return 'As to ]}{"0": [NaN, -1, {"": null}] and so on\u2028<<<'


NONSENSE = "replies are nonsense"
TROUBLE: Mapping[str, Callable[[Request], Answer]] = {
    "calls fail": _failing,
    "replies are refused": _refusing,
    NONSENSE: _nonsense,
}


def _no_values(trial: Trial, tried: Tried, bad: RunResult, *, when: str) -> Iterator[Finding]:
    """Metrics that have values though no question was answered, or have lost their units."""
    good = {summary.task: summary for summary in trial.baseline(tried).summaries}
    for summary in bad.summaries:
        for name, metric in summary.metrics.items():
            where = f"{summary.task}: {name}"
            if name in trial.without_answers or tried.benchmark.metrics[name].baseline:
                continue
            if metric.n:
                yield Finding(
                    check="failures", where=where,
                    problem=f"where all {when}, {metric.n} units have a value: {metric.value}",
                    to_do="let units whose records failed be missing, with their cause; name a "
                    "metric that needs no answer in check_plugin(…, without_answers=…)",
                )  # fmt: skip
            elif not metric.missing and good[summary.task].metrics[name].n:
                yield Finding(
                    check="failures", where=where,
                    problem=f"where all {when}, its units vanish instead of being missing",
                    to_do="yield a Score for each unit, with the cause under `missing`",
                )  # fmt: skip


def _sound(check: str, result: RunResult, tried: Tried, *, when: str = "") -> Iterator[Finding]:
    """What must be so in every run: it comes to its end, nothing raised, no score is NaN."""
    manner = f"where all {when}, " if when else ""
    for error in result.errors:
        yield Finding(
            check=check, where=f"benchmark {tried.benchmark.name}", problem=f"{manner}{error}",
            to_do="see that records of every outcome can be scored: Done, and each failure",
        )  # fmt: skip
    for summary in result.summaries:
        for name, key, file in _journals(result.folder, summary.task):
            bare: JournalRecords[Any, Any] = JournalRecords(file, key, _Bare)
            record: Any
            for record in bare:
                if record.outcome.type == BROKEN:
                    yield Finding(
                        check=check, where=f"{summary.task}/{name}, item {record.id}",
                        problem=f"{manner}`work` raised\n{record.outcome.detail.strip()}",
                        to_do="return the failure that was met, as it is",
                    )  # fmt: skip
                    break
        for name, metric in summary.metrics.items():
            if NOT_FINITE in metric.missing:
                yield Finding(
                    check=check, where=f"{summary.task}: {name}",
                    problem=f"{manner}{metric.missing[NOT_FINITE]} scores are NaN or infinite",
                    to_do="name the cause under `missing` where there is nothing to compute from",
                )  # fmt: skip


class _Outcome(msgspec.Struct, frozen=True):
    type: str
    detail: str = ""


class _Bare(msgspec.Struct, frozen=True):
    """A record without what it says."""

    user: str
    id: str
    outcome: _Outcome


def _journals(folder: Path, task: str) -> Iterator[tuple[str, str, Path]]:
    """Name, key and journal of each stage that a task of a run has."""
    entry = RunFolder(folder).manifest().tasks[task]
    for stage in entry.stages:
        yield stage.name, stage.key, folder / entry.folder / stage.file


def _difference(first: Path, second: Path, task: str) -> str | None:
    """The first unit that two runs of a task scored differently."""
    one, other = scores_of(first, task), scores_of(second, task)
    if one == other:
        return None
    by_id = {json.loads(line)["id"]: line.decode() for line in other}
    for line in one:
        unit = json.loads(line)["id"]
        if by_id.get(unit) != line.decode():
            return f"{line.decode()} and {by_id.get(unit, 'no such unit')}"
    return f"the order of the units, or {len(other) - len(one)} more of them"


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (loads, tasks, prompts, metrics, baseline, repeats, resumes, records, failures)
}
"""Every check by name, those first that run nothing."""
