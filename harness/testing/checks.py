"""`check_plugin` and its checks: of registrations and texts, then of runs over the samples."""

from __future__ import annotations

import functools
import gzip
import json
import math
import re
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import BudgetSpent, HarnessError, TooManyFailures, one_of
from harness.contracts.benchmark import Benchmark, Metric
from harness.contracts.model import Reply, Request
from harness.contracts.outcomes import Broken
from harness.contracts.records import Record, record_type
from harness.contracts.task import Task
from harness.pipeline.preparation import prompt_folders
from harness.pipeline.run import RunResult
from harness.prompts import Templates
from harness.registry import CHOSEN, BrokenPlugin
from harness.runs.journal import Head, JournalRecords, scan
from harness.runs.run_folder import RunFolder
from harness.scoring.aggregate import NOT_FINITE
from harness.scoring.score_run import score_into
from harness.scoring.summary import TaskSummary
from harness.tasks.load import shown
from harness.testing.scripted import Answer, ScriptedModel
from harness.testing.trial import (
    ANY_MODEL,
    BASELINE,
    DAMAGES,
    NONSENSE,
    Finding,
    SampledTasks,
    SampleRunFailed,
    SampleRuns,
    damaged,
    moved,
    plugin_under_test,
    right_players,
    scores_of,
)

Damage = Callable[[list[bytes]], bytes]
"""The content of a file after the damage; given are its lines."""


def _in_the_middle(change: Callable[[bytes], bytes]) -> Damage:
    def changed(lines: list[bytes]) -> bytes:
        middle = len(lines) // 2
        return b"".join(change(row) if at == middle else row for at, row in enumerate(lines))

    return changed


FILE_DAMAGES: dict[str, Damage] = {
    "is empty": lambda lines: b"",
    "ends within a row": lambda lines: b"".join(lines)[: -max(2, len(lines[-1]) // 2)],
    "has a row with words for numbers": _in_the_middle(lambda row: re.sub(rb"\d+", b"many", row)),
    "has a row with half of its values": _in_the_middle(lambda row: row[: len(row) // 2] + b"\n"),
    "has a row that is no text": _in_the_middle(lambda row: row[:1] + b"\xff\xfe\x00" + row[1:]),
}


def rows(trial: SampleRuns) -> Iterator[Finding]:
    """Damaged data is read or is an error that names its file."""
    seen: set[Path] = set()
    for task in trial.tasks:
        sample, folder = trial.sample(task), trial.folder / "rows" / task.name
        if sample in seen:
            continue
        seen.add(sample)
        for file, what in _damaged_copies(sample, folder):
            if problem := _problem_of(trial, task, folder):
                yield Finding(
                    f"{task.name}, where {file.relative_to(folder)} {what}", problem,
                    "declare the types of the columns in the task, and raise DataError for what "
                    "they do not say",
                )  # fmt: skip


def _damaged_copies(sample: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """A copy of a sample in `folder` for each file and damage, in place of the one before."""
    root = sample if sample.is_dir() else sample.parent
    for file in sorted(path for path in sample.rglob("*") if path.is_file()) or [sample]:
        packed = file.suffix == ".gz"
        whole = gzip.decompress(file.read_bytes()) if packed else file.read_bytes()
        for what, damage in FILE_DAMAGES.items():
            shutil.rmtree(folder, ignore_errors=True)
            if sample.is_dir():
                shutil.copytree(sample, folder)
            else:
                folder.mkdir(parents=True)
            damaged = damage(whole.splitlines(keepends=True))
            copy = folder / file.relative_to(root)
            copy.write_bytes(gzip.compress(damaged) if packed else damaged)
            yield copy, what


def _problem_of(trial: SampleRuns, task: Task, folder: Path) -> str | None:
    """What is wrong with how a task's benchmark loads a folder, if anything is."""
    try:
        trial.load(task, data=str(folder))
    except HarnessError as error:
        return None if str(folder) in str(error) else f"an error without a file: {error}"
    except Exception:  # foreign code: the other files are still damaged
        return traceback.format_exc().strip()
    return None


Check = Callable[[SampleRuns], Iterator[Finding]]
"""A function that yields a finding for each problem of the plugin in a trial."""


def loads(trial: SampleRuns) -> Iterator[Finding]:
    """The plugin loads, its hooks exist, its names are unique, its factories work."""
    one = trial.plugin
    where = f"entry point {one.name} = {one.origin.module}"
    if isinstance(one.origin, BrokenPlugin):
        trace = one.origin.traceback.strip()
        yield Finding(where, trace, "correct the error at the end of the traceback")
        return
    if one.loaded is None:
        yield Finding(
            where, f"{CHOSEN} leaves it out",
            f"add it to {CHOSEN}, or run the tests without that variable",
        )  # fmt: skip
        return
    for problem in one.plugins.problems_of(one.loaded):
        yield Finding(
            where, problem,
            "spell hooks as in harness/registry/hookspecs.py; begin names with the "
            "plugin's name",
        )  # fmt: skip
    yield from _factories(trial)


def _factories(trial: SampleRuns) -> Iterator[Finding]:
    plugins = trial.plugin.plugins
    for kind in ("benchmarks", "respondents", "analyses", "data_tools"):
        registry = plugins.by_kind()[kind]
        for one in trial.plugin.registered.get(kind, ()):
            key = one.key if isinstance(one.key, tuple) else (one.key,)
            what = f"{registry.kind} {'/'.join(key)}"
            try:
                made = plugins.benchmark(one.name) if kind == "benchmarks" else one.factory()
            except Exception as error:  # foreign code: the other factories are still checked
                yield Finding(
                    what, f"its factory raised {type(error).__name__}: {error}",
                    "register a function without parameters that returns the object",
                )  # fmt: skip
                continue
            if kind == "respondents" and not callable(made):
                yield Finding(
                    what, f"its factory returned {made!r}, no function",
                    "register a function that returns the respondent: `lambda: respond`",
                )  # fmt: skip


def tasks(trial: SampleRuns) -> Iterator[Finding]:
    """`harness validate` accepts every task, and every benchmark has a task with a sample."""
    from harness.cli.tasks import Checker

    one = trial.plugin
    folder = one.plugins.package_of(one.benchmarks[0]) if one.benchmarks else None
    for problem in one.catalogue.problems:
        if folder is not None and (str(folder) in problem or shown(folder) in problem):
            yield Finding(one.package, problem, "correct the file, or give the task a unique name")
    checker, told = Checker(one.plugins, one.catalogue), set[str]()
    for entry in one.entries:
        for document in checker.documents(entry.name):
            # An error in a base or a rehearsal is that of many tasks.
            for error in map(str, checker.check(document)):
                if error not in told:
                    told.add(error)
                    yield Finding(
                        document.name, error, f"`harness validate {document.name}` shows the line"
                    )
    for name in one.benchmarks:
        if not any(task.benchmark == name for task in trial.tasks):
            yield Finding(
                f"benchmark {name}", "none of its tasks has a sample",
                "put a few rows into the package and name them under data.sample: users need "
                "them to try the benchmark, and the checks to run it",
            )  # fmt: skip


def prompts(trial: SampleRuns) -> Iterator[Finding]:
    """Every prompt belongs to a stage, and uses variables of the stage."""
    one = trial.plugin
    templates = Templates(prompt_folders(one.plugins))
    for name in one.benchmarks:
        asked = {
            f"{prompt}.{role}"
            for stage in one.plugins.benchmark(name).stages
            for prompt in stage.templates
            for role in (*stage.roles, *stage.judges)
        }
        for prompt in templates.names(name):
            where = f"prompts/{name}/{prompt}.j2"
            if prompt not in asked:
                yield Finding(
                    where, "no stage uses this prompt",
                    f"name it as one of {', '.join(sorted(asked))}, or begin its name with _",
                )  # fmt: skip
                continue
            text, _, role = prompt.rpartition(".")
            if not templates.need(name, text, role).variables:
                yield Finding(
                    where, "it uses no variable of the stage",
                    "show the item with the variables that the stage passes to it",
                )  # fmt: skip


def published(trial: SampleRuns) -> Iterator[Finding]:
    """Every published result is of a task and a metric that exist, and says what it compares to."""
    one = trial.plugin
    known = {*one.catalogue.names, *one.catalogue.groups}
    for name in one.benchmarks:
        benchmark = one.plugins.benchmark(name)
        for result in benchmark.published() if benchmark.published else ():
            where = f"published {result.metric} of {result.task}"
            if result.task not in known or result.metric not in benchmark.metrics:
                yield Finding(
                    where, f"{name} has no such task, or no such metric",
                    "name a task or a group, and a metric of the benchmark",
                )  # fmt: skip
            elif not (result.source and result.comparable_if):
                yield Finding(
                    where, "it lacks its source, or what makes a run comparable",
                    "name the table of the paper in `source`, and give `comparable_if`",
                )  # fmt: skip


def options(trial: SampleRuns) -> Iterator[Finding]:
    """An unknown option is an error, in whatever depth it is."""
    for name in trial.plugin.benchmarks:
        options = msgspec.inspect.type_info(trial.plugin.plugins.benchmark(name).options)
        for kind in _structs(options):
            if not kind.forbid_unknown_fields:
                yield Finding(
                    f"options of {name}", f"{kind.cls.__name__} takes any name for an option",
                    f"class {kind.cls.__name__}(msgspec.Struct, forbid_unknown_fields=True)",
                )  # fmt: skip


def _structs(info: Any) -> Iterator[msgspec.inspect.StructType]:
    """The struct types in a type, outermost first."""
    if isinstance(info, msgspec.inspect.StructType):
        yield info
        info = tuple(field.type for field in info.fields)
    elif isinstance(info, msgspec.inspect.Type):
        info = tuple(getattr(info, name) for name in info.__struct_fields__)
    for inner in info if isinstance(info, tuple) else ():
        yield from _structs(inner)


def metrics(trial: SampleRuns) -> Iterator[Finding]:
    """Every metric has a description, and a finite number as its worst value; the main ones are
    named, and every word of the benchmark is explained."""
    for name in trial.plugin.benchmarks:
        benchmark = trial.plugin.plugins.benchmark(name)
        yield from _main_metrics(benchmark)
        for word, meaning in benchmark.words.items():
            if not (word.strip("_ ") and meaning.strip()):
                yield Finding(
                    f"benchmark {name}", f"its word {word!r} has no meaning",
                    'say in a few words what it means: words={"no_list": "…"}',
                )  # fmt: skip
        for name_of_metric, metric in benchmark.metrics.items():
            where = f"metric {name_of_metric} of {name}"
            yield from _described(where, metric)
            if isinstance(metric.baseline, str) and metric.baseline not in benchmark.metrics:
                yield Finding(
                    where, f"it is a baseline of {metric.baseline!r}, which is no metric",
                    f"name one of {', '.join(benchmark.metrics)}, or write baseline=True",
                )  # fmt: skip
    for one in trial.plugin.registered.get("metrics", ()):
        yield from _described(f"metric {one.key[1]} of {one.key[0]}", one.factory)


def _described(where: str, metric: Metric) -> Iterator[Finding]:
    if not metric.description.strip():
        yield Finding(
            where, "it has no description",
            "describe the number in one line: Metric(description=…)",
        )  # fmt: skip
    if metric.worst is not None and not math.isfinite(metric.worst):
        yield Finding(
            where, f"its worst value is {metric.worst}",
            "give a finite number, or worst=None where no value is the worst",
        )  # fmt: skip


def _main_metrics(benchmark: Benchmark) -> Iterator[Finding]:
    own = [name for name, metric in benchmark.metrics.items() if not metric.baseline]
    where = f"benchmark {benchmark.name}"
    if own and not benchmark.main:
        yield Finding(
            where, "it names no main metric",
            f"name the metrics that a short table shows, the main one first: main=({own[0]!r},)",
        )  # fmt: skip
    of_oracle = benchmark.oracle.main if benchmark.oracle else ()
    for main in dict.fromkeys((*benchmark.main, *of_oracle)):
        if main not in own:
            yield Finding(
                where, f"its main metric {main!r} is none of its metrics, or a baseline",
                f"name one of {', '.join(own)}",
            )  # fmt: skip


def baseline(trial: SampleRuns) -> Iterator[Finding]:
    """`--model baseline` runs over the sample without an error, and every metric has a value."""
    for sampled in trial.sampled:
        result = trial.baseline(sampled)
        yield from _sound(result, sampled)
        for summary in result.summaries:
            for name, metric in summary.metrics.items():
                if metric.n == 0:
                    yield Finding(
                        f"{summary.task}: {name}",
                        f"no unit of the sample has a value; causes: {metric.missing}",
                        "make the baseline's answers readable, and give the sample rows that "
                        "can be scored",
                    )


def repeats(trial: SampleRuns) -> Iterator[Finding]:
    """A run in another process, with one call at a time, gives the same scores."""
    for sampled in trial.sampled:
        [again] = trial.elsewhere(sampled).iterdir()
        yield from _others(
            trial.baseline(sampled), again, sampled.names, "a second run with other concurrency",
            "draw from desk.random or harness.base.seeded_random, sort sets before use, and keep "
            "no state between items",
        )  # fmt: skip


def shares(trial: SampleRuns) -> Iterator[Finding]:
    """Scored again, a run has the same scores; scored by user, in two shares of its users too."""
    for sampled in trial.sampled:
        whole, again = trial.baseline(sampled), trial.folder / "shares"
        folder = RunFolder(whole.folder)
        manifest = folder.manifest()
        for name in sampled.names:
            task, into = manifest.tasks[name].task(), RunFolder(again).scores(name)
            into.parent.mkdir(parents=True, exist_ok=True)
            score_into(into, folder, manifest, task, sampled.benchmark, processes=2)
        yield from _others(
            whole, again, sampled.names, "scored again, or by two processes, it",
            "in `scored_by_user`, name only stages of which the scores of a user need that user's "
            "records alone, and yield scores in the order of the records",
        )  # fmt: skip


def resumes(trial: SampleRuns) -> Iterator[Finding]:
    """A run that was interrupted resumes, asks nothing twice, and gives the same scores."""
    for sampled in trial.sampled:
        whole = trial.baseline(sampled)
        stages = (one for summary in whole.summaries for one in summary.stages.values())
        calls = sum(use.calls for stage in stages for use in stage.roles.values())
        if calls < 2:
            continue
        try:
            trial.run(sampled, "resumed", max_calls=calls // 2)
        except BudgetSpent:
            pass
        else:
            yield Finding(
                f"benchmark {sampled.benchmark.name}",
                f"a run limited to {calls // 2} calls finished; the first run made {calls}",
                "ask all questions through the desk, and the same ones in every run",
            )
            continue
        result = trial.run(sampled, "resumed")
        for summary in result.summaries:
            for stage, key, file in _journals(result.folder, summary.task):
                heads = (head for _, _, head in scan(file, Head) if head.stage == key)
                made, items = sum(not one.dropped for one in heads), summary.stages[stage].items
                if made > items:
                    yield Finding(
                        f"{summary.task}/{stage}",
                        f"{made} records were made for {items} items: some were made twice",
                        "let `items` yield the same items at each call: same ids and same content, "
                        "in any order",
                    )
        tasks = [summary.task for summary in result.summaries]
        yield from _others(
            whole, result.folder, tasks, "a resumed run",
            "make records and scores independent of what the process did before",
        )  # fmt: skip


def records(trial: SampleRuns) -> Iterator[Finding]:
    """Items and values do not change when they are read from a journal and written again."""
    for sampled in trial.sampled:
        folder = trial.baseline(sampled).folder
        stages = {stage.name: stage for stage in sampled.benchmark.stages}
        for task in sampled.names:
            for name, key, file in _journals(folder, task):
                stage = stages[name]
                typed: JournalRecords[Any, Any] = JournalRecords(
                    file, key, record_type(stage.item, stage.value)
                )
                plain: JournalRecords[Any, Any] = JournalRecords(file, key, Record[Any, Any])
                for read, raw in zip(typed, plain, strict=True):
                    if lost := _lost(read, raw):
                        yield Finding(
                            f"{task}/{name}, record {raw.id}", lost,
                            "give Stage(item=…, value=…) the types that `items` and `work` "
                            "return, and declare the right type for each field",
                        )  # fmt: skip
                        break


def _lost(read: Record[Any, Any], raw: Record[Any, Any]) -> str | None:
    """The change to a record by reading it as its stage's types; None where nothing changed."""
    for part in ("item", "outcome"):
        again = json.loads(msgspec.json.encode(getattr(read, part)))
        written = json.loads(msgspec.json.encode(getattr(raw, part)))
        if again != written:
            return f"its {part} was written as {written} and read back as {again}"
    return None


def failures(trial: SampleRuns) -> Iterator[Finding]:
    """Failed items are missing with a cause: they end no run, and become no number."""
    for sampled in trial.sampled:
        for called, answer in TROUBLE.items():
            model = ScriptedModel(answer, name="trouble", details=ANY_MODEL)
            other = ScriptedModel(answer, name="other trouble", details=ANY_MODEL)
            players = sampled.others(judge=other, other=other)
            result = trial.run(sampled, called, model=model, roles=players)
            yield from _sound(result, sampled, when=called)
            if answer is not TROUBLE["replies are nonsense"]:
                yield from _no_values(trial, sampled, result, when=called)
        if sampled.judges:
            judge = ScriptedModel(TROUBLE["calls fail"], name="failing judge")
            players = sampled.others(judge=judge, other="baseline")
            result = trial.run(sampled, "judges fail", roles=players)
            yield from _sound(result, sampled, when="judges fail")


def garbage(trial: SampleRuns) -> Iterator[Finding]:
    """Where a third of a role's answers is garbage, whatever score moves says what is missing."""
    for sampled in trial.sampled:
        whole = trial.right(sampled)
        counts = {summary.task: _of_run(whole.folder, summary) for summary in whole.summaries}
        for role in right_players(sampled):
            when = f"answers of the {role} are damaged"
            players = right_players(sampled)
            players[role] = ScriptedModel(damaged, name=role, details=ANY_MODEL)
            result = trial.run(
                sampled, when, model=players.pop("candidate", BASELINE), roles=players
            )
            yield from _sound(result, sampled, when=when)
            for summary in result.summaries:
                if _of_run(result.folder, summary) != counts[summary.task]:
                    continue  # what all users share is another, and is counted
                for what in moved(
                    scores_of(whole.folder, summary.task), scores_of(result.folder, summary.task),
                    names=_that_need_answers(trial, sampled, summary),
                    excused=_who_was_believed(result.folder, summary.task),
                ):  # fmt: skip
                    yield Finding(
                        summary.task, f"where {when}, {what}, and nothing is missing",
                        "return the failure that the desk gave, and name its cause under `missing`",
                    )  # fmt: skip


def batches(trial: SampleRuns) -> Iterator[Finding]:
    """A run whose candidate is asked in batches scores the same; not where it asks in sequence."""
    to_do = "let `work` pass on what the desk raises, and ask the same when called again"
    for sampled in trial.sampled:
        if any(stage.sequential for stage in sampled.benchmark.stages):
            continue
        result = trial.in_batches(sampled)
        for error in result.errors:
            yield Finding(f"benchmark {sampled.benchmark.name}", f"in batches, {error}", to_do)
        whole, tasks = trial.right(sampled), [summary.task for summary in result.summaries]
        yield from _others(whole, result.folder, tasks, "in batches, it", to_do)


def _of_run(folder: Path, summary: TaskSummary) -> Counter[str]:
    """The counts of a task that are not those of its units."""
    counts = Counter(summary.counts)
    for line in scores_of(folder, summary.task):
        counts.subtract(json.loads(line)["counts"])
    return +counts


def _who_was_believed(folder: Path, task: str) -> set[str]:
    """The users about whom nonsense could be read."""
    files = (file for _, _, file in _journals(folder, task) if file.exists())
    lines = (json.loads(line) for file in files for line in file.read_bytes().splitlines())
    return {
        line["user"]
        for line in lines
        if line["outcome"]["type"] == "done"
        and any(call.get("text") == NONSENSE for call in line["calls"])
    }


TROUBLE: Mapping[str, Callable[[Request], Answer]] = {
    "calls fail": lambda _: DAMAGES[0](""),
    "replies are refused": lambda _: Reply(text="", finish="refused"),
    "replies are nonsense": lambda _: NONSENSE,
}


def _that_need_answers(trial: SampleRuns, sampled: SampledTasks, summary: TaskSummary) -> list[str]:
    """The metrics of a task that have no value unless questions were answered."""
    metrics = sampled.benchmark.metrics
    spared = trial.without_answers
    return [one for one in summary.metrics if one not in spared and not metrics[one].baseline]


def _no_values(
    trial: SampleRuns, sampled: SampledTasks, bad: RunResult, *, when: str
) -> Iterator[Finding]:
    """Findings for metrics with values although no question was answered, or without units."""
    good = {summary.task: summary for summary in trial.baseline(sampled).summaries}
    for summary in bad.summaries:
        for name in _that_need_answers(trial, sampled, summary):
            where, metric = f"{summary.task}: {name}", summary.metrics[name]
            if metric.n:
                yield Finding(
                    where, f"where all {when}, {metric.n} units have a value: {metric.value}",
                    "name the causes of failed records under `missing`; if the metric needs "
                    "no answer, name it in check_plugin(…, without_answers=…)",
                )  # fmt: skip
            elif not metric.missing and good[summary.task].metrics[name].n:
                yield Finding(
                    where, f"where all {when}, its units disappear instead of being missing",
                    "yield a Score for each unit, with the cause under `missing`",
                )  # fmt: skip


def _sound(result: RunResult, sampled: SampledTasks, *, when: str = "") -> Iterator[Finding]:
    """Findings for a run with an error, an item that raised, or a score that is not finite."""
    manner = f"where all {when}, " if when else ""
    for error in result.errors:
        if isinstance(error, TooManyFailures):
            continue
        yield Finding(
            f"benchmark {sampled.benchmark.name}", f"{manner}{error}",
            "make `score` handle records of every outcome: Done, and each failure",
        )  # fmt: skip
    for summary in result.summaries:
        for name, key, file in _journals(result.folder, summary.task):
            made: JournalRecords[Any, Any] = JournalRecords(file, key, Record[Any, Any])
            for record in made:
                if isinstance(record.outcome, Broken):
                    yield Finding(
                        f"{summary.task}/{name}, item {record.id}",
                        f"{manner}`work` raised\n{record.outcome.detail.strip()}",
                        "return the failure that the desk gave, unchanged",
                    )
                    break
        for name, metric in summary.metrics.items():
            if NOT_FINITE in metric.missing:
                yield Finding(
                    f"{summary.task}: {name}",
                    f"{manner}{metric.missing[NOT_FINITE]} scores are NaN or infinite",
                    "name the cause under `missing` where a score cannot be computed",
                )


def _journals(folder: Path, task: str) -> Iterator[tuple[str, str, Path]]:
    entry = RunFolder(folder).manifest().tasks[task]
    for stage in entry.stages:
        yield stage.name, stage.key, folder / entry.folder / stage.file


def _others(
    whole: RunResult, other: Path, tasks: Iterable[str], what: str, to_do: str
) -> Iterator[Finding]:
    """A finding for each of these tasks that another run scored otherwise."""
    for task in tasks:
        one, again = scores_of(whole.folder, task), scores_of(other, task)
        if one != again:
            by_id = {json.loads(line)["id"]: line for line in again}
            pairs = ((line, by_id.get(json.loads(line)["id"], b"no such unit")) for line in one)
            order = f"another order of the units, or {len(again) - len(one)} more units"
            texts = (f"{a.decode()} and {b.decode()}" for a, b in pairs if a != b)
            yield Finding(task, f"{what} has other scores: {next(texts, order)}", to_do)


_ALL = (
    loads, tasks, prompts, published, options, rows, metrics,
    baseline, repeats, shares, resumes, records, failures, garbage, batches,
)  # fmt: skip

CHECKS: dict[str, Check] = {check.__name__: check for check in _ALL}
"""Every check by name; the checks that run no task come first."""


class NotConforming(AssertionError):
    """A plugin has problems; `findings` holds all of them."""

    def __init__(self, plugin: str, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        count = f"{len(findings)} finding{'' if len(findings) == 1 else 's'}"
        lines = "\n\n".join(str(finding) for finding in findings)
        super().__init__(f"the plugin {plugin!r} has {count}:\n\n{lines}")


def check_plugin(
    name: str,
    *,
    tasks: Sequence[str] = (),
    checks: Sequence[str] = (),
    without_answers: Sequence[str] = (),
    limit: int | None = None,
    data: str = "sample",
    folder: Path | None = None,
    versions: str | Path | None = None,
) -> None:
    """Raise NotConforming with all problems of an installed plugin.

        def test_the_plugin_conforms():
            check_plugin("films", versions="tests/versions.json")

    `name` is the name of its entry point or package. `tasks` are the tasks to run, by default all
    tasks with a sample. `checks` are names in `CHECKS`, by default all. `without_answers` names
    metrics that have a value even if no question was answered, such as a share of unreadable
    replies. `limit` is how many users of a large sample are asked about, by default all; `data` is
    a folder that is asked about in place of the sample. Calls with the same `folder` share their
    runs: the pytest fixture `harness_checks` has one for all tests. `versions` is the file that
    pins the versions of stages; `python -m harness.testing.versions` writes it.
    """
    for check in checks:
        one_of(check, CHECKS, f"no check is named {check!r}")
    chosen = {check: CHECKS[check] for check in CHECKS if check in (checks or CHECKS)}
    with tempfile.TemporaryDirectory(prefix="harness-check-") as temporary:
        trial = _trial(
            name, folder or Path(temporary), tasks=tuple(tasks),
            without_answers=tuple(without_answers), limit=limit, data=data,
        )  # fmt: skip
        if trial.plugin.loaded is None:
            chosen = {"loads": CHECKS["loads"]}  # without a plugin, all other checks would pass
        elif versions is not None:
            chosen["versions"] = functools.partial(_unpinned, file=Path(versions))
        findings = [
            finding for check, found in chosen.items() for finding in _made(check, found, trial)
        ]
    if findings:
        raise NotConforming(name, findings)


@functools.lru_cache(maxsize=8)
def _trial(name: str, folder: Path, **asked: Any) -> SampleRuns:
    return SampleRuns(plugin_under_test(name), folder / name, **asked)


def _made(name: str, check: Check, trial: SampleRuns) -> Iterator[Finding]:
    """The findings of one check; an error of the check is a finding as well."""
    try:
        for finding in check(trial):
            yield replace(finding, check=name)
    except SampleRunFailed as reason:
        problem, to_do = f"this check cannot run: {reason}", "correct that first"
    except HarnessError as error:
        problem, to_do = str(error), "correct the cause of the error"
    except Exception:  # foreign code: the other checks still run
        problem = traceback.format_exc().strip()
        to_do = "correct the error at the end of the traceback"
    else:
        return
    yield Finding(f"plugin {trial.plugin.name}", problem, to_do, check=name)


def _unpinned(trial: SampleRuns, file: Path) -> Iterator[Finding]:
    from harness.testing.versions import command_for, pin_problems, pins_of, read_pins

    place = shown(file)
    command = command_for(trial.plugin.name, place)
    pinned, now = read_pins(file), pins_of(trial.plugin)
    for line in pin_problems(pinned, now, command=command):
        problem, _, to_do = line.partition(": ")
        yield Finding(place, problem, to_do)
