"""Speed and memory of the harness itself, beside its peers: measured, printed, kept as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import earlier
import engine
import groups
import histories
import messages
import reviews
import table
from measure import HERE, ContenderFailed, Cost, chat_server, run_measured

PLUGIN = {"PYTHONPATH": str(HERE / "plugin")}
AT_ONCE = 64
LATENCY = 0.2
AT_ONCE_WITH_LATENCY = 256
GIST_AT_ONCE = 32
SHORT = 1200
"""Engagements a user where every answer takes its time."""
GIST_ONE_BY_ONE = 20
"""Users whom the contender asks about that makes one call at a time."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One process to measure. `command` gets a fresh folder; `count` is what it works through."""

    name: str
    count: int
    command: Callable[[Path], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Result:
    """Everything that was measured of one contender, a figure a round."""

    name: str
    count: int
    costs: list[Cost]
    asked: list[float]


def measure(contenders: Sequence[Contender], rounds: int, scratch: Path) -> list[Result]:
    """Runs the contenders in turn, round after round; one that fails is told and left out."""
    results = {
        one.name: Result(name=one.name, count=one.count, costs=[], asked=[]) for one in contenders
    }
    failed: set[str] = set()
    for number in range(1, rounds + 1):
        for one in contenders:
            if one.name in failed:
                continue
            folder = scratch / f"{number}-{one.name.replace(' ', '-')}"
            folder.mkdir(parents=True)
            try:
                cost = run_measured(one.command(folder), log=folder / "output", environment=PLUGIN)
            except ContenderFailed as error:
                failed.add(one.name)
                print(f"{one.name} failed and is left out:\n{error}", file=sys.stderr)
                continue
            results[one.name].costs.append(cost)
            results[one.name].asked.extend(asked_seconds(folder))
            print(f"  round {number}  {one.name}: {cost.wall:.2f} s", file=sys.stderr)
            shutil.rmtree(folder)
    return [result for name, result in results.items() if name not in failed]


def asked_seconds(folder: Path) -> Iterator[float]:
    """How long the asking alone took, where the contender left a note of it."""
    for note in folder.rglob("asked.json"):
        yield json.loads(note.read_text("utf-8"))


def startup() -> list[Contender]:
    """The two commands that have to answer in a moment."""
    command = Path(sys.executable).with_name("harness")
    return [
        Contender(name="harness --help", count=1, command=lambda _: [str(command), "--help"]),
        Contender(name="harness tasks", count=1, command=lambda _: [str(command), "tasks"]),
    ]


def items(counts: Sequence[int]) -> list[Contender]:
    """Made-up items through a model that costs nothing."""
    script = str(HERE / "contenders" / "harness_items.py")

    def contender(count: int) -> Contender:
        return Contender(
            name=f"harness {count} items",
            count=count,
            command=lambda folder: [
                sys.executable, script, "--count", str(count), "--folder", str(folder),
            ],
        )  # fmt: skip

    return [contender(count) for count in counts]


def chat(
    name: str, script: str, *, python: str, url: str, at_once: int, data: Path, count: int
) -> Contender:
    """One client of the loopback server."""

    def command(folder: Path) -> Sequence[str]:
        return [
            python, str(HERE / "contenders" / script), "--url", url, "--data", str(data),
            "--concurrency", str(at_once), "--folder", str(folder),
        ]  # fmt: skip

    return Contender(name=name, count=count, command=command)


def chats(
    url: str, scratch: Path, arguments: argparse.Namespace, *, at_once: int, peers: bool
) -> list[Contender]:
    """The harness, the bare client and, where installed, the peers, over the same messages."""
    data = messages.write(scratch / "messages.jsonl", arguments.requests)
    common = {"url": url, "at_once": at_once}
    own = {**common, "python": sys.executable, "data": data, "count": arguments.requests}
    contenders = [
        chat("harness", "harness_chat.py", **own),
        chat("bare openai", "bare_openai.py", **own),
    ]
    if peers and arguments.peers_python:
        fewer = messages.write(scratch / "fewer.jsonl", arguments.inspect_requests)
        other = {**common, "python": arguments.peers_python}
        contenders += [
            chat("lm-eval", "lm_eval_chat.py", **other, data=data, count=arguments.requests),
            chat(
                "inspect_ai", "inspect_chat.py", **other, data=fewer,
                count=arguments.inspect_requests,
            ),
        ]  # fmt: skip
    return contenders


def gist(name: str, *, data: Path, count: int, more: Sequence[str] = ()) -> Contender:
    """GISTBench whole; `count` is how many calls it makes."""
    script = str(HERE / "contenders" / "harness_gist.py")
    return Contender(
        name=name,
        count=count,
        command=lambda folder: [
            sys.executable, script, "--data", str(data), "--folder", str(folder), *more,
        ],
    )  # fmt: skip


def gist_for_nothing(users: int, scratch: Path) -> list[Contender]:
    """So many users with 4,200 engagements each, through a model and judge that cost nothing."""
    data = histories.write(scratch / "full.parquet", users=users, engagements=4200)
    calls = sum(histories.calls(users=users, engagements=4200).values())
    return [gist(f"harness gist {users} users", data=data, count=calls)]


def gist_reading(counts: Sequence[int], scratch: Path, *, before: Path | None) -> list[Contender]:
    """The histories of so many made-up engagements, also by the code of another checkout."""
    script = str(HERE / "contenders" / "harness_histories.py")
    ways = ways_of(before)

    def contender(count: int, data: Path, way: str) -> Contender:
        return Contender(
            name=f"harness gist-reading {count} engagements{way}",
            count=count,
            command=lambda _: [*ways[way], script, "--data", str(data)],
        )

    contenders = []
    for count in counts:
        each = min(count // 50, 4200)
        data = histories.write(scratch / f"{count}.parquet", users=count // each, engagements=each)
        contenders += [contender(count, data, way) for way in ways]
    return contenders


def gist_with_latency(users: int, url: str, scratch: Path) -> list[Contender]:
    """Short histories against the loopback server: many calls at once, and one at a time."""
    data = histories.write(scratch / "short.parquet", users=users, engagements=SHORT)
    few = min(users, GIST_ONE_BY_ONE)
    one = ["--url", url, "--concurrency", "1", "--limit", str(few)]
    many = ["--url", url, "--concurrency", str(GIST_AT_ONCE)]

    def calls(users: int) -> int:
        return sum(histories.calls(users=users, engagements=SHORT).values())

    return [
        gist(f"harness gist {GIST_AT_ONCE} at once", data=data, count=calls(users), more=many),
        gist("harness gist 1 at a time", data=data, count=calls(few), more=one),
    ]


def perrec(scratch: Path, many: int = groups.GROUPS) -> list[Contender]:
    """The nine tasks of PerRecBench with so many groups each; the model costs nothing."""
    data = groups.write(scratch / "data", items=many)
    script = str(HERE / "contenders" / "harness_perrec.py")
    return [
        Contender(
            name="harness perrec",
            count=9 * many,
            command=lambda folder: [
                sys.executable, script, "--data", str(data), "--folder", str(folder),
            ],
        )
    ]  # fmt: skip


def perrec_groups(ratings: Sequence[int], scratch: Path, *, before: Path | None) -> list[Contender]:
    """Groups built from so many made-up ratings, also by the code of another checkout."""

    def builder(many: int, log: Path, way: str) -> Contender:
        return Contender(
            name=f"harness perrec-groups {many} ratings{way}",
            count=many,
            command=lambda folder: [
                *ways_of(before)[way], *reviews.command(log, folder / "groups", ratings=many),
            ],
        )  # fmt: skip

    contenders = []
    for many in ratings:
        log = reviews.write(scratch / str(many), ratings=many)
        contenders += [builder(many, log, way) for way in ways_of(before)]
    return contenders


def compared_with_earlier(arguments: argparse.Namespace, scratch: Path) -> list[earlier.Pair]:
    """Four loads of two to four seconds each, with the code of an earlier commit and with this."""
    installed = earlier.wheels(arguments.since, arguments.results / "earlier")
    scratch.mkdir()
    data = messages.write(scratch / "messages.jsonl", 5_000)
    with chat_server() as url:
        contenders = {
            "items": items([15_000])[0],
            "chat": chat(
                "harness", "harness_chat.py", python=sys.executable, url=url, at_once=AT_ONCE,
                data=data, count=5_000,
            ),
            "gist": gist_for_nothing(20, scratch)[0],
            "perrec": perrec(scratch, 50)[0],
        }  # fmt: skip
        loads = {name: contender.command for name, contender in contenders.items()}
        return earlier.measure(loads, installed, pairs=arguments.pairs, scratch=scratch)


def ways_of(before: Path | None) -> dict[str, list[str]]:
    """What runs Python with the harness of another checkout, if there is one, and with its own."""
    ways = {"": [sys.executable]}
    if before is None:
        return ways
    paths = f"PYTHONPATH={before}:{before}/plugins"
    return {table.BEFORE: ["env", paths, sys.executable], **ways}


def run(arguments: argparse.Namespace, scratch: Path) -> dict[str, list[Result]]:
    """Every part that was asked for, by name."""
    found: dict[str, list[Result]] = {}
    rounds = arguments.rounds
    if "startup" in arguments.only:
        # Files come from the page cache in every round but the first.
        found["startup"] = measure(startup(), max(rounds, 2) * 3, scratch / "startup")
    if "items" in arguments.only:
        found["items"] = measure(items(arguments.items), rounds, scratch / "items")
    if "chat" in arguments.only:
        with chat_server() as url:
            contenders = chats(url, scratch, arguments, at_once=AT_ONCE, peers=True)
            found["chat"] = measure(contenders, rounds, scratch / "chat")
    if "latency" in arguments.only:
        with chat_server(LATENCY) as url:
            contenders = chats(url, scratch, arguments, at_once=AT_ONCE_WITH_LATENCY, peers=False)
            found["latency"] = measure(contenders, rounds, scratch / "latency")
    if "gist" in arguments.only:
        folder = scratch / "gist"
        folder.mkdir()
        found["gist"] = measure(gist_for_nothing(arguments.gist_users, folder), rounds, folder)
    if "gist-reading" in arguments.only:
        folder = scratch / "gist-reading"
        folder.mkdir()
        contenders = gist_reading(arguments.engagements, folder, before=arguments.before)
        found["gist-reading"] = measure(contenders, rounds, folder)
    if "gist-latency" in arguments.only:
        folder = scratch / "gist-latency"
        folder.mkdir()
        with chat_server(LATENCY, by_rule=True) as url:
            contenders = gist_with_latency(arguments.gist_latency_users, url, folder)
            found["gist-latency"] = measure(contenders, 1, folder)
    if "perrec" in arguments.only:
        folder = scratch / "perrec"
        folder.mkdir()
        found["perrec"] = measure(perrec(folder), rounds, folder)
    if "perrec-groups" in arguments.only:
        folder = scratch / "perrec-groups"
        folder.mkdir()
        contenders = perrec_groups(arguments.ratings, folder, before=arguments.before)
        found["perrec-groups"] = measure(contenders, rounds, folder)
    return found


def main() -> None:
    """Measures, prints and keeps the results."""
    arguments = parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as scratch:
        os.environ["HARNESS_CACHE"] = scratch
        found = run(arguments, Path(scratch))
        turns = engine.measure(arguments, Path(scratch)) if "engine" in arguments.only else []
        pairs = (
            compared_with_earlier(arguments, Path(scratch) / "earlier")
            if "earlier" in arguments.only
            else []
        )
    lines = [
        table.Line(
            part=part,
            name=result.name,
            count=result.count,
            wall=statistics.median(cost.wall for cost in result.costs),
            cpu=statistics.median(cost.cpu for cost in result.costs),
            memory=statistics.median(cost.memory for cost in result.costs),
            asked=statistics.median(result.asked) if result.asked else None,
        )
        for part, results in found.items()
        for result in results
    ]
    promises = table.promises(lines, latency=LATENCY, at_once=AT_ONCE_WITH_LATENCY)
    promises += table.gist_promises(
        lines,
        allowed=LATENCY
        * histories.rounds(
            users=arguments.gist_latency_users, engagements=SHORT, at_once=GIST_AT_ONCE
        ),
    )
    promises += table.perrec_promises(lines) + engine.promises(turns) + earlier.promises(pairs)
    tables = [table.render(lines)] if lines else []
    tables += [engine.render(turns)] if turns else []
    tables += [earlier.render(pairs)] if pairs else []
    tables += [table.render_promises(promises)] if promises else []
    print("\n\n".join(tables))
    kept = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "rounds": arguments.rounds,
        "medians": [table.plain(line) for line in lines],
        "promises": [table.plain(promise) for promise in promises],
        "runs": {
            part: {result.name: [table.plain(cost) for cost in result.costs] for result in results}
            for part, results in found.items()
        },
        "engine": [table.plain(turn) for turn in turns],
        "earlier": [table.plain(pair) for pair in pairs],
    }
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    print(f"\nwritten to {path}")


def parser() -> argparse.ArgumentParser:
    """The options of `make bench BENCH="…"`."""
    parts = (
        "startup", "items", "chat", "latency", "gist", "gist-reading", "gist-latency", "perrec",
        "perrec-groups", "engine",
    )  # fmt: skip
    parsed = argparse.ArgumentParser(description=__doc__)
    add = parsed.add_argument
    add("--rounds", type=int, default=5)
    add("--only", nargs="+", choices=(*parts, "earlier"), default=parts, metavar="PART",
        help=f"{', '.join(parts)}; and earlier, which runs only where it is named")  # fmt: skip
    add("--items", nargs="+", type=int, default=[100_000, 1_000_000])
    add("--requests", type=int, default=10_000)
    add("--gist-users", type=int, default=1000)
    add("--gist-latency-users", type=int, default=200)
    add("--engagements", nargs="+", type=int, default=[5_000, 10_000_000])
    add(
        "--before",
        type=Path,
        metavar="DIR",
        help="another checkout, for gist-reading and perrec-groups in turns",
    )
    add("--ratings", nargs="+", type=int, default=[5_000, 10_000_000])
    add("--inspect-requests", type=int, default=3_000, help="it is slow; rates are compared")
    add("--peers-python", default=os.environ.get("BENCH_PEERS_PYTHON"), metavar="PATH",
        help="a Python with lm_eval[api] and inspect_ai; without it they are left out")  # fmt: skip
    engine.add_options(add)
    earlier.add_options(add)
    add("--results", type=Path, default=HERE / "results")
    return parsed


if __name__ == "__main__":
    main()
