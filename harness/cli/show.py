"""`harness show [RUN]`: the runs there are; of one what it found, what failed, or one sample."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import DataError, UsageError

if TYPE_CHECKING:
    from harness.results.folder import RunFolder
    from harness.results.manifest import Manifest, StageEntry


class Place(NamedTuple):
    """One stage of a task and where its records are."""

    task: str
    stage: StageEntry
    journal: Path


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "show",
        help="the runs there are, or what one found; --sample ID for one sample, whole",
        description="List the runs there are. Of a RUN that is named, show the results, what "
        "failed in it (--failures), or everything that was asked and answered about one sample or "
        "user (--sample).",
    )
    parser.add_argument(
        "run", metavar="RUN", nargs="?", help="the folder of a run, or its name; without it all"
    )
    parser.add_argument(
        "--output_path", metavar="DIR", type=Path,
        help="where runs are, if not where the settings or the default have them",
    )  # fmt: skip
    parser.add_argument("--sample", metavar="ID", help="the id of an item or of a user")
    parser.add_argument("--task", metavar="NAME", help="this task only")
    parser.add_argument("--stage", metavar="NAME", help="this stage only")
    parser.add_argument("--failures", action="store_true", help="the records without a value")
    parser.add_argument(
        "--prices", metavar="FILE", type=Path, help="what models cost; else as the run was given"
    )
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Show what the options ask for; the exit code."""
    from harness.cli.kept_runs import open_run, usual_folder

    if args.run is None:
        return _show_runs(args.output_path or usual_folder(), args)
    folder, manifest = open_run(args.run, among=args.output_path)
    places = _places(folder, manifest, args)
    if args.sample is not None:
        return _show_sample(folder, manifest, places, args)
    if args.failures:
        return _show_failures(places, args)
    return _show_results(folder, manifest, args)


def _show_runs(place: Path, args: argparse.Namespace) -> int:
    from harness.results.listing import list_runs

    for option in ("sample", "task", "stage", "failures", "prices"):
        if getattr(args, option):
            raise UsageError(f"--{option} is of one run", expected="harness show RUN")
    if args.output_path is not None and not place.is_dir():
        raise DataError("there is no such folder", where="--output_path", found=str(place))
    listing = list_runs(place)
    if args.json:
        from harness.cli.json_output import print_json

        print_json(listing)
        return 0
    from harness.reporting.listing import listing_lines

    for line in listing_lines(listing):
        print(line)
    return 0


def _places(folder: RunFolder, manifest: Manifest, args: argparse.Namespace) -> list[Place]:
    """The stages that the options choose."""
    from harness.cli.kept_runs import one_of

    tasks = manifest.tasks
    if args.task is not None:
        tasks = {args.task: tasks[one_of(args.task, tasks, "task")]}
    places = [
        Place(name, stage, folder.path / entry.folder / stage.file)
        for name, entry in tasks.items()
        for stage in entry.stages
    ]
    if args.stage is not None:
        one_of(args.stage, dict.fromkeys(place.stage.name for place in places), "stage")
        places = [place for place in places if place.stage.name == args.stage]
    return places


def _show_results(folder: RunFolder, manifest: Manifest, args: argparse.Namespace) -> int:
    import msgspec

    from harness.calls.prices import read_price_file
    from harness.results.costs import sessions_at
    from harness.results.scoring import priced_stages, read_summary, unfinished_stages

    prices = None if args.prices is None else read_price_file(args.prices)
    at = prices or manifest.prices
    if at is not None:
        manifest = sessions_at(manifest, at)
    summaries = []
    unfinished: dict[str, list[str]] = {}
    for name, entry in manifest.tasks.items():
        if args.task not in (None, name):
            continue
        open_stages = unfinished_stages(entry)
        summary = None if open_stages else read_summary(folder.summary(name))
        if summary is None:
            unfinished[name] = list(open_stages)
        else:
            if prices is not None:
                stages = priced_stages(folder, manifest, name, prices)
                summary = msgspec.structs.replace(summary, stages=stages)
            summaries.append(summary)
    if args.json:
        from harness.cli.json_output import print_json
        from harness.results.over_repeats import over_repeats

        print_json(
            {
                "folder": str(folder.path),
                "status": manifest.status,
                "problem": manifest.problem,
                "model": manifest.model,
                "summaries": summaries,
                **({"repeats": repeats} if (repeats := over_repeats(summaries)) else {}),
                "unfinished": unfinished,
                "sessions": [
                    {"started": each.started, "status": each.status, "costs": each.costs}
                    for each in manifest.sessions
                ],
            }
        )
        return 0
    from harness.reporting.tables import print_summaries

    for line in _heading(folder, manifest, unfinished):
        print(line)
    print(flush=True)
    print_summaries(summaries)
    return 0


def _heading(
    folder: RunFolder, manifest: Manifest, unfinished: dict[str, list[str]]
) -> Iterator[str]:
    from harness.reporting.amounts import session_line
    from harness.reporting.slowing import rate_limited
    from harness.reporting.text import clean_text

    began = manifest.sessions[0].started if manifest.sessions else "at an unknown time"
    yield clean_text(f"run {folder.path}: {manifest.model}, begun {began}, {manifest.status}")
    if manifest.problem:
        yield clean_text(manifest.problem, lines=True)
    killed = sum(each.ended is None for each in manifest.sessions)
    cost = session_line((each.costs for each in manifest.sessions), without=killed)
    if cost is not None:
        many = len(manifest.sessions)
        yield f"in {many} {'session' if many == 1 else 'sessions'}: {cost}"
    yield from rate_limited(each.limits for each in manifest.sessions)
    for name, stages in unfinished.items():
        why = f"not finished: {', '.join(stages)}" if stages else "not scored: `harness score` does"
        yield clean_text(f"task {name}: {why}")


def _show_failures(places: list[Place], args: argparse.Namespace) -> int:
    from harness.reporting.text import clean_text
    from harness.results.records import Done, JournalLine
    from harness.results.stored import JournalRecords

    found = []
    many = 0
    record: Any
    for task, stage, journal in places:
        for record in JournalRecords(journal, stage.key, JournalLine[Any, Any]):
            outcome: Any = record.outcome
            if isinstance(outcome, Done):
                continue
            many += 1
            if args.json:
                found.append(
                    {"task": task, "stage": stage.name, "user": record.user, "id": record.id}
                    | {"outcome": outcome}
                )
                continue
            print(
                clean_text(f"{task}/{stage.name}  {record.id}  user {record.user}  ")
                + clean_text(f"{outcome.cause}: {_gist(outcome.detail)}", limit=300)
            )
    if args.json:
        from harness.cli.json_output import print_json

        print_json({"failures": found})
    elif many:
        print(f"\n{many:,} failures; --sample ID shows one whole")
    else:
        print("no failures")
    return 0


def _show_sample(
    folder: RunFolder, manifest: Manifest, places: list[Place], args: argparse.Namespace
) -> int:
    from harness.cli.record_text import record_lines
    from harness.results.records import Done

    found = []
    for place in places:
        for record in _records_of(place, args.sample):
            if not (args.failures and isinstance(record.outcome, Done)):
                found.append((place.task, place.stage.name, record))
    if not found:
        raise _no_sample(folder, places, args.sample)
    if args.json:
        from harness.cli.json_output import print_json

        print_json(
            {
                "records": [
                    {"task": task, "stage_name": stage, "record": record}
                    for task, stage, record in found
                ]
            }
        )
        return 0
    for task, name, record in found:
        sys.stdout.writelines(f"{line}\n" for line in record_lines(task, name, record, manifest))
    return 0


def _records_of(place: Place, sample: str) -> Iterator[Any]:
    """The current records of an item or a user in one stage."""
    from harness.results.records import JournalLine
    from harness.results.stored import JournalIndex, JournalRecords

    key = place.stage.key
    index = JournalIndex(place.journal, key, wanted=lambda head: sample in (head.id, head.user))
    return iter(JournalRecords(place.journal, key, JournalLine[Any, Any], index=index))


def _gist(detail: str) -> str:
    """The detail of a failure; of a traceback its last line, which says what was raised."""
    return detail.strip().rsplit("\n", 1)[-1] if detail.startswith("Traceback") else detail


def _no_sample(folder: RunFolder, places: list[Place], sample: str) -> DataError:
    from difflib import get_close_matches
    from itertools import islice

    from harness.results.lines import Head, scan

    seen: dict[str, None] = {}
    for place in places:
        for _, _, head in islice(scan(place.journal, Head), 5000):
            seen.update({head.id: None, head.user: None})
    near = get_close_matches(sample, seen, 3) or list(seen)[:3]
    return DataError(
        "no record of an item or user of that name",
        where=str(folder.path),
        found=sample,
        expected=f"an id, as {', '.join(near)}" if near else "a run with records",
    )
