"""`harness show RUN`, and the tables of a run that other commands print too."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import msgspec

from harness.base.errors import DataError, HarnessError, UsageError, one_of
from harness.base.redaction import safe_text
from harness.calls.pricing import read_price_file
from harness.cli.command import (
    PATH,
    argument,
    command,
    errors_to,
    json_option,
    option,
    paged,
    print_error,
    print_json,
    print_sections,
)
from harness.cli.run_options import WORDS
from harness.cli.runs import default_folder, folder_option, open_run, tag_option
from harness.contracts.judge import Selected
from harness.contracts.records import Done, JournalLine, Score
from harness.registry import ANY_BENCHMARK, load_plugins, made
from harness.reporting.run_lines import (
    cost_line,
    describe_call,
    laid_out,
    rate_limited,
    session_line,
    status_text,
)
from harness.reporting.text import clean_text, counted
from harness.runs.journal import Head, JournalIndex, JournalRecords, scan
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.contracts.report import Report
    from harness.contracts.task import Group
    from harness.pipeline.run import RunResult
    from harness.runs.manifest import Manifest, StageEntry


Place: TypeAlias = "tuple[str, StageEntry, Path]"
"""A task, one of its stages, and the journal with its records."""

_WIDTH = 88
_INDENT = "    "
_LONG = 1_000
"""So many lines of several records are shown whole."""
_WHOLE, _HEAD, _TAIL = 12, 6, 4
"""Of more, a text of so many lines is shown whole; of a longer one, its head and tail."""


@command(
    "harness show latest",
    "harness show RUN --metrics",
    "harness show RUN --failures --stage name",
    "harness show RUN --sample person-01",
)
@argument(
    "run", metavar="RUN", candidates="runs",
    help="the folder or name of a run, or `latest`; `harness runs` lists the runs",
)  # fmt: skip
@folder_option
@tag_option()
@option("--metrics", is_flag=True, help="every metric of each task, what it means, and analyses")
@option("--costs", is_flag=True, help="what the stages did and asked, and what that cost")
@option("--provenance", is_flag=True, help="the command, models, data, prompts and versions")
@option("--samples", is_flag=True, help="a line for each item")
@option("--failures", is_flag=True, help="a line for each item without a value")
@option("--sample", metavar="ID", help="every question and answer about an item or a user")
@option("--task", metavar="NAME", help="this task only")
@option("--stage", metavar="NAME", help="this stage only, of items")
@option("--prices", metavar="FILE", type=PATH, help="prices of models (those of the run)")
@json_option
def show(**options: Any) -> None:
    """Show one RUN: its main metrics, or a chapter about it by name (--metrics, --costs, …)."""
    args = SimpleNamespace(**options)
    items = [name for name in ("sample", "samples", "failures") if options[name]]
    about = ("metrics", "costs", "provenance", "prices") if items else ("stage",)
    apart = [f"--{name}" for name in (*items, *about) if options[name]]
    if len(apart) > 1 or (args.stage and not items):
        expected = "one of them" if items else "--samples, --failures or --sample ID with it"
        problem = "these options say nothing together"
        raise UsageError(problem, found=" ".join(apart), expected=expected)
    folder, manifest = open_run(args.run, among=args.output_path, tags=args.tag)
    places = _places(folder, manifest, args)
    with paged():
        if args.sample is not None:
            _show_sample(folder, manifest, places, args)
        elif args.failures or args.samples:
            _show_items(places, args)
        else:
            _show_results(folder, manifest, args)


def _places(folder: RunFolder, manifest: Manifest, args: SimpleNamespace) -> list[Place]:
    if args.task is not None:
        problem = f"the run has no task {args.task!r}"
        one_of(args.task, manifest.tasks, problem, none="a run with a task")
    places = [
        (name, stage, folder.path / entry.folder / stage.file)
        for name, entry in manifest.tasks.items()
        if args.task in (None, name)
        for stage in entry.stages
    ]
    if args.stage is not None:
        names = dict.fromkeys(stage.name for _, stage, _ in places)
        one_of(args.stage, names, f"the run has no stage {args.stage!r}", none="a run with a stage")
        places = [place for place in places if place[1].name == args.stage]
    return places


def _show_results(folder: RunFolder, manifest: Manifest, args: SimpleNamespace) -> None:
    from harness.scoring.means import means_of_run
    from harness.scoring.run_costs import sessions_at
    from harness.scoring.score_run import count_stages, read_summary, unfinished_stages

    prices = None if args.prices is None else read_price_file(args.prices)
    at = prices or manifest.prices
    if at is not None:
        manifest = sessions_at(manifest, at)
    if args.task is not None:
        one = {args.task: manifest.tasks[args.task]}
        manifest = msgspec.structs.replace(manifest, tasks=one, groups={})
    summaries = []
    unfinished: dict[str, list[str]] = {}
    for name, entry in manifest.tasks.items():
        open_stages = unfinished_stages(entry)
        summary = None if open_stages else read_summary(folder.summary(name))
        if summary is None:
            unfinished[name] = list(open_stages)
            continue
        if prices is not None:
            stages = count_stages(folder, manifest, name, prices)
            summary = msgspec.structs.replace(summary, stages=stages)
        summaries.append(summary)
    chapters = {name for name in ("metrics", "costs", "provenance") if getattr(args, name)}
    shown = summaries if args.json or not chapters else []
    means = means_of_run(folder, manifest, shown, lambda name: load_plugins().benchmark(name))
    if args.json:
        from harness.scoring.summary import over_repeats

        at_work = folder.at_work() if manifest.status == "running" else False
        without_end = [each for each in manifest.sessions if each.ended is None]
        killed = without_end if at_work is False else without_end[:-1]
        print_json(
            {
                "folder": str(folder.path),
                "status": manifest.status,
                "at_work": at_work,
                "problem": manifest.problem,
                "model": manifest.label,
                "summaries": summaries,
                **({"means": means} if means else {}),
                **({"repeats": repeats} if (repeats := over_repeats(summaries)) else {}),
                "unfinished": unfinished,
                "sessions": [
                    {
                        "started": each.started,
                        "status": "killed" if each in killed else each.status,
                        "costs": each.costs,
                    }
                    for each in manifest.sessions
                ],
            }
        )
        return
    from harness.reporting.tables import print_costs, print_metrics, print_short_table

    print(*_heading(folder, manifest, unfinished), sep="\n", end="\n\n", flush=True)
    if not chapters and args.task is not None:
        chapters = {"metrics", "costs"}
    elif not chapters:
        reports = _group_reports(folder, manifest) if summaries else ()
        print_short_table(manifest, summaries, means, reports=reports)
        print("more: --metrics, --costs, --samples, --failures, --provenance, --sample ID")
    if "metrics" in chapters:
        print_metrics(summaries)
        _print_reports(_group_reports(folder, manifest))
    if "costs" in chapters:
        stages_of = {one.task: one.stages for one in summaries}
        for name, left in unfinished.items():
            found = count_stages(folder, manifest, name, at)
            stages_of[name] = {
                f"{stage} so far" if stage in left else stage: one for stage, one in found.items()
            }
        print_costs(stages_of)
    if "provenance" in chapters:
        _print_provenance(manifest)


def _print_provenance(manifest: Manifest) -> None:
    from harness.reporting.html.provenance import command_of
    from harness.reporting.tables import data_name

    models = [
        (role, clean_text(f"{one.name}; {json.dumps(one.identity)}"))
        for role, one in manifest.roles.items()
    ]
    tasks = [
        (
            name,
            f"version {one.task().version}, content {one.content}; {data_name(one.data)}, "
            f"fingerprint {one.data.get('fingerprint', 'unknown')}",
        )
        for name, one in manifest.tasks.items()
    ]
    prompts = dict.fromkeys(
        (f"{one.task().benchmark}/{prompt}", digest)
        for one in manifest.tasks.values()
        for prompt, digest in one.templates.items()
    )
    print_sections([
        ("command", [("", command_of(manifest))]), ("models", models), ("tasks", tasks),
        ("prompts", [*prompts]), ("versions", [*manifest.versions.items()]),
        ("commits", [*manifest.commits.items()]),
    ])  # fmt: skip


def _heading(
    folder: RunFolder, manifest: Manifest, unfinished: dict[str, list[str]]
) -> Iterator[str]:
    began = "at an unknown time"
    if manifest.sessions:
        began = f"{manifest.sessions[0].started[:19].replace('T', ' ')} UTC"
    status = status_text(manifest.status, folder.at_work())
    yield clean_text(f"run {folder.path}: {manifest.label}, begun {began}, {status}")
    if manifest.problem:
        yield clean_text(manifest.problem, lines=True)
    killed = sum(each.ended is None for each in manifest.sessions)
    cost = session_line((each.costs for each in manifest.sessions), without=killed)
    if cost is not None:
        yield f"in {counted(len(manifest.sessions), 'session')}: {cost}"
    yield from rate_limited(each.limits for each in manifest.sessions)
    for name, stages in unfinished.items():
        left = f"not finished: {', '.join(stages)}"
        why = left if stages else "not scored: use `harness score RUN`"
        yield clean_text(f"task {name}: {why}")


def _records(places: list[Place], args: SimpleNamespace) -> Iterator[tuple[str, str, Any]]:
    """The records that are asked for, each with its task and the name of its stage."""
    record: Any
    for task, stage, journal in places:
        if args.sample is None:
            index = JournalIndex(journal, stage.key, items=stage.items)
        else:
            index = JournalIndex(
                journal, stage.key, wanted=lambda head: args.sample in (head.id, head.user)
            )
        for record in JournalRecords(journal, stage.key, JournalLine[Any, Any], index=index):
            if not (args.failures and isinstance(record.outcome, Done)):
                yield task, stage.name, record


def _show_items(places: list[Place], args: SimpleNamespace) -> None:
    what = "failure" if args.failures else "sample"
    records = _records(places, args)
    if args.json:
        found = [
            {"task": task, "stage": stage, "user": one.user, "id": one.id, "outcome": one.outcome}
            for task, stage, one in records
        ]
        print_json({f"{what}s": found})
        return
    count = 0
    for task, stage, record in records:
        count += 1
        if isinstance(record.outcome, Done):
            ended = f"done: {msgspec.json.encode(record.outcome.value).decode()}"
        else:
            detail = record.outcome.detail
            if detail.startswith("Traceback"):  # its last line has the exception
                detail = detail.strip().rsplit("\n", 1)[-1]
            ended = f"{record.outcome.cause}: {detail}"
        print(
            clean_text(f"{task}/{stage}  {record.id}  user {record.user}  ")
            + clean_text(ended, limit=300 if args.failures else 100)
        )
    said = f"\n{counted(count, what)}; --sample ID shows everything about one"
    print(said if count else f"no {what}s")


def _show_sample(
    folder: RunFolder, manifest: Manifest, places: list[Place], args: SimpleNamespace
) -> None:
    found = [*_records(places, args)]
    if not found:
        raise _no_sample(folder, places, args.sample)
    tasks = dict.fromkeys(task for task, _, _ in found) if args.stage is None else ()
    scores = [(task, one) for task in tasks for one in _scores(folder, task, args.sample)]
    if args.json:
        named = [{"task": task, "stage_name": name, "record": one} for task, name, one in found]
        of_units = [{"task": task, "score": one} for task, one in scores]
        print_json({"records": named, "scores": of_units})
        return
    for cut in (False, True):
        lines = [
            line
            for task, name, record in found
            for line in _record_lines(task, name, record, manifest, cut=cut)
        ]
        if len(found) == 1 or len(lines) <= _LONG:
            break
    sys.stdout.writelines(f"{line}\n" for line in lines)
    for task, score in scores:
        print(_rule(f"{task} / score / {score.id}", "═"))
        told = {name: value for name in ("values", "missing", "slices")
                if (value := getattr(score, name))}  # fmt: skip
        print(*_indented(_json(told)), "", sep="\n")


def _scores(folder: RunFolder, task: str, sample: str) -> Iterator[Score[Any]]:
    """The scores of the units with this id or of this user; none where the task has no scores."""
    decode = msgspec.json.Decoder(Score[Any]).decode
    with suppress(FileNotFoundError), folder.scores(task).open("rb") as lines:
        for score in map(decode, lines):
            if sample in (score.id, score.user):
                yield score


def _no_sample(folder: RunFolder, places: list[Place], sample: str) -> DataError:
    seen: dict[str, None] = {}
    for _, _, journal in places:
        for _, _, head in islice(scan(journal, Head), 5000):
            seen.update({head.id: None, head.user: None})
    near = get_close_matches(sample, seen, 3) or list(seen)[:3]
    return DataError(
        "no item or user with records has this id",
        where=str(folder.path),
        found=sample,
        expected=f"an id, such as {', '.join(near)}" if near else "a run with records",
    )


def _record_lines(
    task: str, stage: str, record: JournalLine[Any, Any], manifest: Manifest, *, cut: bool
) -> Iterator[str]:
    """The lines of one record: its item, each call and its outcome.

    With `cut`, the middle of a long item or message is left out, not of what was answered.
    """
    yield _rule(f"{task} / {stage} / {record.id}  (user {record.user})", "═")
    whole = f"--task {task} --stage {stage} --sample {record.id}" if cut else None
    yield from _block("item", _json(record.item), whole=whole)
    for number, call in enumerate(record.calls, 1):
        description = describe_call(call, manifest, task=task)
        yield _rule(f"call {number} of {len(record.calls)}: {description}", "─")
        for message in call.messages:
            yield from _block(message.role, message.content, whole=whole)
        if call.reasoning is not None:
            yield from _block("reasoning", call.reasoning)
        if call.text is not None:
            yield from _block("answer", call.text)
        if call.failure is not None:
            yield from _block(f"failed: {call.failure.cause}", call.failure.detail)
    for judged in record.judged or ():
        of = f" on {judged.subject}" if judged.subject else ""
        yield _rule(f"verdict of {judged.role}, prompt {judged.prompt}{of}", "─")
        for vote in judged.votes:
            yield from _block(vote.member, _verdict(vote.verdict, judged.labels))
        yield from _indented(_verdict(judged.verdict, judged.labels))
    if isinstance(record.outcome, Done):
        yield _rule("value", "─")
        yield from _indented(_json(record.outcome.value))
    else:
        yield _rule(f"failed: {record.outcome.cause}", "─")
        yield from _indented(record.outcome.detail)
    yield ""


def _verdict(verdict: object, labels: Sequence[str]) -> str:
    if isinstance(verdict, Selected) and labels:
        chosen = [labels[place] for place in verdict.chosen]
        return f"chosen of {len(labels)}: {', '.join(chosen) or 'none'}"
    return _json(verdict)


def _block(title: str, text: str, *, whole: str | None = None) -> Iterator[str]:
    yield f"{clean_text(title)}:"
    lines = [*_indented(text)]
    if whole is not None and len(lines) > _WHOLE:
        left_out = f"{_INDENT}… {len(lines) - _HEAD - _TAIL:,} lines left out: {clean_text(whole)}"
        lines = [*lines[:_HEAD], left_out, *lines[-_TAIL:]]
    yield from lines


def _indented(text: str) -> Iterator[str]:
    for line in clean_text(text, lines=True).split("\n"):
        yield f"{_INDENT}{line}" if line else ""


def _rule(title: str, stroke: str) -> str:
    return f"{stroke * 2} {clean_text(title)} ".ljust(_WIDTH, stroke)


def _json(value: Any) -> str:
    return laid_out(msgspec.to_builtins(value), width=_WIDTH - len(_INDENT))


def print_result(result: RunResult, *, json: bool, verbose: bool) -> None:
    """Print the result of a run, its errors, its cost and its folder."""
    if json:
        sys.stdout.write(result.to_json())
    elif result.summaries or not result.requests:
        _print_tables(result, verbose=verbose)
    if result.requests and not json:
        for path, many in result.requests.items():
            print(f"{path}: {counted(many, 'request')}")
        print(f"when they are answered: {_with_answers()}")
    print_error(*result.errors)
    if not json:
        cost = cost_line(result.costs.values())
        if cost is not None:
            print(f"this time: {cost}", file=sys.stderr)
        print(f"run folder: {result.folder}", file=sys.stderr)
    sys.stdout.flush()


def _with_answers() -> str:
    """The command that was given, without keys and with a file of answers."""
    words, kept = iter(click.get_current_context().meta[WORDS]), []
    for word in words:
        if word == "--answers":
            next(words, None)
        elif not word.startswith("--answers="):
            kept.append(word)
    return f"{safe_text(shlex.join(['harness', *kept]))} --answers FILE"


def _print_tables(result: RunResult, *, verbose: bool) -> None:
    """Print the short table of a run and the first tables of its groups' analyses; with `verbose`
    all that is known of its tasks as well."""
    from harness.reporting.tables import print_costs, print_metrics, print_short_table

    folder = RunFolder(result.folder)
    manifest = folder.manifest()
    reports = _group_reports(folder, manifest) if result.summaries else ()
    table = partial(print_short_table, manifest, result.summaries, result.means)
    if verbose and result.summaries:
        table()
        print()
        print_metrics(result.summaries)
        _print_reports(reports)
        print_costs({one.task: one.stages for one in result.summaries})
    elif result.summaries or len(manifest.tasks) > 1:
        table(run=run_name(folder), reports=reports)


def run_name(folder: RunFolder) -> str:
    """What a command calls a run: its name alone if it is in the folder of runs."""
    with suppress(UsageError):  # wrong settings, which no stored run needs
        if folder.path.parent.resolve() == default_folder().resolve():
            return folder.path.name
    return str(folder.path)


def _print_reports(reports: Iterable[Report]) -> None:
    from harness.reporting.grid import print_report

    for report in reports:
        print_report(report)


def _group_reports(folder: RunFolder, manifest: Manifest) -> Iterator[Report]:
    from harness.registry.task_catalogue import Catalogue

    # Of the groups of a run those whose files are still there.
    folders = [Path(one) for one in manifest.settings.get("include_path") or ()]
    found: dict[str, Group] = {}
    for spec in manifest.settings.get("tasks", ()) if manifest.groups else ():
        with suppress(HarnessError):
            selected = Catalogue(load_plugins(), include_path=folders).select([spec])
            found |= {group.name: group for group in selected.groups}
    for group in (found[name] for name in manifest.groups if name in found):
        if group.analysis is not None:
            yield from _reports_of(group.analysis, group, folder, manifest)


def _reports_of(name: str, group: Group, folder: RunFolder, manifest: Manifest) -> Iterator[Report]:
    """The analysis of a group's tasks that the run has finished; none if there is no such task."""
    from harness.analysis.report_notes import with_notes
    from harness.registry.data_tools import run_tool
    from harness.scoring.finished_task import finished_task

    with errors_to(print_error):
        registration = load_plugins().analysis(name)
        tasks = []
        for task, entry in manifest.tasks.items():
            benchmark = entry.task().benchmark
            fits = registration.benchmark in (ANY_BENCHMARK, benchmark)
            if fits and task in group.members and folder.summary(task).exists():
                found = load_plugins().benchmark(benchmark)
                tasks.append(finished_task(folder, manifest, task, found, label=manifest.label))
        if tasks:
            analysis = made(registration)
            report = run_tool(registration, lambda: analysis.run(tasks, analysis.options()))
            yield with_notes(report, tasks)
