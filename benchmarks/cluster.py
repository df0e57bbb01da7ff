"""What a run on Ray costs beside the same run in one process, and how it grows with its items.

python benchmarks/cluster.py                        # about four minutes on two quiet cores
python benchmarks/cluster.py --only chat --rounds 5
python benchmarks/cluster.py --only memory --growing 200_000 1_000_000
python benchmarks/cluster.py --only reading --reading 1_000_000
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import messages
import table
from measure import HERE, chat_process, run_measured
from process_tree import COMMAND, OTHERS, SERVER, Looks, watched

PLUGIN = {"PYTHONPATH": str(HERE / "plugin")}
SCRIPTS = HERE / "contenders"
PARTS = ("chat", "items", "memory", "reading")
AT_ONCE = 64
LOCAL, ONE, TWO = "local", "Ray, 1 worker", "Ray, 2 workers"
WORKERS = {LOCAL: 0, ONE: 1, TWO: 2}
KINDS = (COMMAND, "workers", OTHERS)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One run: the seconds between the first questions and its last record, and in them what each
    kind of process computed and the command's peak; what all computed from start to end."""

    asked: float
    cpu: dict[str, float]
    whole: float
    peak: float
    load: float

    @property
    def computed(self) -> float:
        """Seconds of processor time of the run's processes while it asked."""
        return sum(seconds for kind, seconds in self.cpu.items() if kind != SERVER)


def turn(
    command: Sequence[str], folder: Path, *, together: int = 1, server: int | None = None
) -> Turn:
    """Run a contender once, in which so many processes begin to ask together."""
    notes = folder / "notes"
    notes.mkdir(parents=True)
    looks: Looks = watched(
        [sys.executable, *command, "--folder", str(folder)],
        log=folder / "output",
        environment={**PLUGIN, "BENCH_NOTES": str(notes), "BENCH_TOGETHER": str(together)},
        beside=server,
    )
    first = max(float(note.read_text("utf-8")) for note in notes.glob("first-*"))
    last = float((notes / "last").read_text("utf-8"))
    shutil.rmtree(folder)
    return Turn(
        asked=last - first,
        cpu=looks.between(first, last),
        whole=looks.cpu,
        peak=looks.peak(first, last),
        load=os.getloadavg()[0],
    )


def in_turns(
    names: Sequence[str], rounds: int, once: Callable[[str, Path], Turn], scratch: Path
) -> dict[str, list[Turn]]:
    """The turns of contenders, each round beginning with another one."""
    found: dict[str, list[Turn]] = {name: [] for name in names}
    for number in range(rounds):
        start = number % len(names)
        for name in [*names[start:], *names[:start]]:
            done = once(name, scratch / f"{number}-{WORKERS[name]}")
            print(f"  round {number + 1}  {name}: {done.asked:.2f} s, load {done.load:.1f}",
                  file=sys.stderr)  # fmt: skip
            found[name].append(done)
    return found


def chat(arguments: argparse.Namespace, scratch: Path) -> dict[str, list[Turn]]:
    """Messages to the loopback server."""
    data = messages.write(scratch / "messages.jsonl", arguments.requests)
    with chat_process() as (url, server):

        def once(name: str, folder: Path) -> Turn:
            command = [
                str(SCRIPTS / "harness_chat.py"), "--url", url, "--data", str(data),
                "--concurrency", str(AT_ONCE), "--workers", str(WORKERS[name]),
            ]  # fmt: skip
            return turn(command, folder, together=max(1, WORKERS[name]), server=server)

        return in_turns((LOCAL, ONE, TWO), arguments.rounds, once, scratch)


def items(arguments: argparse.Namespace, scratch: Path) -> dict[str, list[Turn]]:
    """Made-up items through the free model."""

    def once(name: str, folder: Path) -> Turn:
        return of_items(name, arguments.items, folder)

    return in_turns((LOCAL, ONE), arguments.rounds, once, scratch)


def growing(count: int, scratch: Path) -> dict[str, list[Turn]]:
    """So many of these items on Ray, for the memory of the command."""
    return {ONE: [of_items(ONE, count, scratch / str(count))]}


def of_items(name: str, count: int, folder: Path) -> Turn:
    """One run of so many made-up items."""
    command = [
        str(SCRIPTS / "harness_items.py"), "--count", str(count), "--workers", str(WORKERS[name]),
    ]  # fmt: skip
    return turn(command, folder)


def shown(count: int, found: dict[str, list[Turn]]) -> str:
    """The medians of contenders."""

    def of(turns: list[Turn], figure: Callable[[Turn], float]) -> float:
        return statistics.median(figure(one) for one in turns)

    def each(turns: list[Turn], kind: str) -> str:
        return f"{1000 * of(turns, lambda one: one.cpu.get(kind, 0.0)) / count:.3f}"

    kinds = (*KINDS, SERVER)
    rows = [
        (
            name,
            f"{of(turns, lambda one: count / one.asked):.0f}",
            f"{1000 * of(turns, lambda one: one.computed) / count:.3f}",
            *(each(turns, kind) for kind in kinds),
            f"{of(turns, lambda one: one.whole):.1f}",
            f"{of(turns, lambda one: one.peak):.0f}",
            f"{of(turns, lambda one: one.load):.1f}",
        )
        for name, turns in found.items()
    ]
    titles = ("contender", "asking n/s", "CPU ms each", *kinds, "CPU s in all", "peak MiB", "load")
    return table.columns(titles, rows)


def promises(chats: dict[str, list[Turn]], made: dict[str, list[Turn]], count: int) -> list[
    table.Promise
]:  # fmt: skip
    """What is promised: medians over rounds of what two contenders had in the same round."""

    def pairs(
        found: dict[str, list[Turn]], name: str, compare: Callable[[Turn, Turn], float]
    ) -> float:
        both = zip(found[LOCAL], found[name], strict=True)
        return statistics.median(compare(local, other) for local, other in both)

    kept = [
        table.Promise(
            what=f"requests a second of {name} beside local, times",
            promised=promised,
            measured=pairs(chats, name, lambda local, other: local.asked / other.asked),
            at_least=True,
        )
        for name, promised in ((ONE, 0.9), (TWO, 1.3))
        if chats
    ]
    if made:
        more = pairs(made, ONE, lambda local, other: other.computed - local.computed)
        kept.append(
            table.Promise(
                what="CPU of Ray and the workers beyond local, ms an item",
                promised=0.1,
                measured=1000 * more / count,
                at_least=False,
            )
        )
    return kept


def reading(count: int, scratch: Path) -> str:
    """A large run, and what reads all of its records again."""
    folder = scratch / "large"
    notes = folder / "notes"
    notes.mkdir(parents=True)
    log, environment = folder / "output", {**PLUGIN, "BENCH_NOTES": str(notes)}
    shape = ["--count", str(count), "--folder", str(folder)]
    whole = run_measured(
        [sys.executable, str(SCRIPTS / "harness_items.py"), *shape],
        log=log, environment=environment,
    )  # fmt: skip
    [first] = (float(note.read_text("utf-8")) for note in notes.glob("first-*"))
    asked = float((notes / "last").read_text("utf-8")) - first
    rows = [("the whole run", whole.wall, whole.cpu, whole.memory), ("… its asking", asked, 0, 0)]
    steps = {
        "scoring": ["scoring"],
        "… by one process": ["scoring", "--processes", "1"],
        "resuming": ["resuming"],
    }
    for name, step in steps.items():
        cost = run_measured(
            [sys.executable, str(SCRIPTS / "harness_reading.py"), "--folder", str(folder),
             "--step", *step],
            log=log, environment=environment,
        )  # fmt: skip
        rows.append((name, cost.wall, cost.cpu, cost.memory))
    [run] = (folder / "runs").iterdir()
    sizes = {
        "journal": sum(file.stat().st_size for file in run.glob("*/1-answer*.jsonl")),
        "scores": sum(file.stat().st_size for file in run.glob("*/scores*")),
        "run folder": sum(file.stat().st_size for file in run.rglob("*") if file.is_file()),
        "store": sum(file.stat().st_size for file in folder.glob("store.sqlite*")),
    }
    shutil.rmtree(folder)
    lines = [
        table.columns(
            ("step", "wall s", "CPU s", "µs CPU an item", "peak MiB"),
            [
                (name, f"{wall:.1f}", *(
                    (f"{cpu:.1f}", f"{1e6 * cpu / count:.1f}", f"{peak:.0f}") if cpu else ("",) * 3
                ))
                for name, wall, cpu, peak in rows
            ],
        )
    ]  # fmt: skip
    lines += [f"{name}: {size / count:.0f} bytes an item" for name, size in sizes.items()]
    return "\n".join(lines)


def main() -> None:
    """Measure, and print what was found."""
    arguments = parser().parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder:
        os.environ["HARNESS_CACHE"] = folder
        scratch = {name: Path(folder, name) for name in PARTS}
        for place in scratch.values():
            place.mkdir()
        chats = chat(arguments, scratch["chat"]) if "chat" in arguments.only else {}
        made = items(arguments, scratch["items"]) if "items" in arguments.only else {}
        shows = [shown(arguments.requests, chats)] if chats else []
        shows += [shown(arguments.items, made)] if made else []
        if chats or made:
            shows.append(table.render_promises(promises(chats, made, arguments.items)))
        if "memory" in arguments.only:
            shows += [
                shown(count, growing(count, scratch["memory"])) for count in arguments.growing
            ]
        if "reading" in arguments.only:
            shows.append(reading(arguments.reading, scratch["reading"]))
    print("\n\n".join(shows))


def parser() -> argparse.ArgumentParser:
    """The options."""
    parsed = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parsed.add_argument
    add("--rounds", type=int, default=3)
    add("--only", nargs="+", choices=PARTS, default=PARTS)
    add("--requests", type=int, default=10_000)
    add("--items", type=int, default=100_000)
    add("--growing", nargs="+", type=int, default=[200_000, 1_000_000], metavar="ITEMS")
    add("--reading", type=int, default=200_000, metavar="ITEMS")
    return parsed


if __name__ == "__main__":
    main()
