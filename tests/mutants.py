"""How many random faults the tests notice: `make mutants`, or this script.

A mutant is one changed operator, condition, constant, result or statement in a function of
`harness/` or of a plugin. It runs against the tests that were seen in its line, those that run
least first, and falls at the first failure. Where the tests run is recorded once, into FILE:

    .venv/bin/python tests/mutants.py --record FILE
    .venv/bin/python tests/mutants.py --seen FILE [--seed N] [--count N] [PLUGIN…]
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import queue
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData
from faults.plant import PYTEST, ROOT, Copy, copied

RECORDING = "HARNESS_TEST_LINES"
"""The variable that names the folder into which each process records the lines of its tests."""
CHOSEN = "HARNESS_TEST_CHOSEN"
"""The variable that names the file with the tests to run, in their order."""
PASSED, NONE_RAN = 0, 5
"""Pytest's exit codes without a failure; the others say that tests fell or could not be read."""
SECONDS = 120
"""The processor time after which a mutant's tests are stopped."""
OUT_OF_TIME = "the tests are out of time"

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
DROPPED = (ast.Expr, ast.AugAssign, ast.Continue, ast.Break, ast.Raise)
"""The statements that a mutant leaves out."""


def file_of(test: str) -> str:
    return test.split("::", maxsplit=1)[0]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change: the text from `start` to `end` of a file becomes `text`."""

    file: Path
    lines: tuple[int, ...]
    """The line of what is changed and the first line of its statement."""
    start: int
    end: int
    text: str

    @property
    def room(self) -> str:
        return "/".join(self.file.parts[:-1][:2])

    def described(self) -> str:
        before = " ".join((ROOT / self.file).read_bytes()[self.start : self.end].decode().split())
        return f"{self.file}:{self.lines[0]}: {before[:70]} → {self.text[:70]}"


# As a plugin of pytest (`-p mutants`): records the lines of the tests, or runs the chosen tests.

lines_seen: Coverage | None = None


def pytest_configure() -> None:
    global lines_seen  # noqa: PLW0603
    if folder := os.environ.get(RECORDING):
        lines_seen = Coverage(
            data_file=str(Path(folder, "lines")), data_suffix=True, config_file=False,
            source=[str(ROOT / "harness"), str(ROOT / "plugins")], messages=False,
        )  # fmt: skip
        lines_seen.start()


def pytest_unconfigure() -> None:
    if lines_seen:
        lines_seen.stop()
        lines_seen.save()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What the fixtures of a test run counts for its whole file, since others may share them."""
    if lines_seen:
        lines_seen.switch_context(file_of(item.nodeid))
    elif CHOSEN in os.environ and time.process_time() > SECONDS:
        item.session.shouldstop = OUT_OF_TIME
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if lines_seen:
        lines_seen.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        if lines_seen:
            lines_seen.switch_context(file_of(item.nodeid))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHOSEN in os.environ:
        chosen = json.loads(Path(os.environ[CHOSEN]).read_text())
        place = {name: number for number, name in enumerate(chosen)}

        def known(item: pytest.Item) -> int | None:
            return place.get(item.nodeid, place.get(file_of(item.nodeid)))

        items[:] = [item for item in items if known(item) is not None]
        items.sort(key=lambda item: known(item) or 0)


# Drawing.


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All mutants of the functions of a file."""
    source = (ROOT / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, statement in inside_functions(ast.parse(source)):
        for changed, text in changes(node):
            start = starts[changed.lineno - 1] + changed.col_offset
            end = starts[changed.end_lineno - 1] + changed.end_col_offset
            lines = (changed.lineno, statement.lineno)
            yield Mutant(file=file, lines=lines, start=start, end=end, text=text)


def inside_functions(tree: ast.AST) -> Iterator[tuple[Any, ast.stmt]]:
    """The nodes of function bodies with their statements; no annotations, no text to show."""

    def below(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[Any, ast.stmt]]:
        yield node, statement
        for name, field in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args") and isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign
            ):
                continue
            for child in field if isinstance(field, list) else [field]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from below(child, child if isinstance(child, ast.stmt) else statement)

    def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield child
            else:
                yield from functions(child)

    for function in functions(tree):
        for statement in function.body:
            yield from below(statement, statement)


def changes(node: Any) -> Iterator[tuple[Any, str]]:
    """What of a node is replaced, and by what."""

    def swapped(**fields: Any) -> str:
        return f"({ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), **fields}))})"

    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            yield node, swapped(ops=[SWAPS[type(op)]()])
        case ast.BoolOp():
            yield node, swapped(op=SWAPS[type(node.op)]())
        case ast.BinOp() if type(node.op) in SWAPS and not any(
            isinstance(side, ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        ):
            yield node, swapped(op=SWAPS[type(node.op)]())
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool()):
            yield node, str(not node.value)
        case ast.Constant(value=int() | float()):
            yield node, f"({node.value + 1})"
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, f"(not ({ast.unparse(node.test)}))"
        case ast.Return(value=ast.expr() as value):
            if not (isinstance(value, ast.Constant) and value.value is None):
                yield value, "None"
        case ast.Expr(value=ast.Constant() | ast.Yield() | ast.YieldFrom()):
            pass
        case _ if isinstance(node, DROPPED):
            yield node, "pass"


def draw(seed: int, count: int, plugins: Sequence[str]) -> list[Mutant]:
    """As many mutants, the rooms of the harness and the plugins in turn."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    folders = [ROOT / "harness", *(ROOT / "plugins" / f"harness_{name}" for name in plugins)]
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            for mutant in mutants_of(path.relative_to(ROOT)):
                rooms[mutant.room].append(mutant)
    drawing = random.Random(seed)
    for every in rooms.values():
        drawing.shuffle(every)
    order = [every[n] for n in range(count) for every in rooms.values() if n < len(every)]
    return order[:count]


# Running.


def record(file: Path) -> int:
    """Run the lane once and write where its tests run."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, RECORDING: folder, "PYTHONPATH": str(ROOT / "tests")}
        lane = ("-m", "pytest", "-q", "-p", "mutants", "--dist", "worksteal", "-n", "auto")
        command = [sys.executable, *lane, "-m", "not slow", "-o", "timeout=2000"]
        code = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
        every = CoverageData(str(file))
        for part in sorted(Path(folder).iterdir()):
            one = CoverageData(str(part))
            one.read()
            every.update(one)
        every.write()
    return code


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Which tests run a line; a file's name stands for all its tests."""

    data: CoverageData
    root: str
    cost: Counter[str]

    @classmethod
    def read(cls, file: Path) -> Seen:
        data = CoverageData(str(file))
        data.read()
        paths = data.measured_files()
        root = next(path for path in paths if path.endswith("harness/__init__.py"))
        cost: Counter[str] = Counter()
        for path in paths:
            for contexts in data.contexts_by_lineno(path).values():
                cost.update(contexts)
        return cls(data=data, root=root.removesuffix("harness/__init__.py"), cost=cost)

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests in its line, file by file, those that run least code first."""
        by_line = self.data.contexts_by_lineno(self.root + str(mutant.file))
        found = next((by_line[n] for n in mutant.lines if any(by_line.get(n, ()))), ())
        names = {name for name in found if name and (ROOT / file_of(name)).is_file()}
        least: dict[str, int] = {}
        for name in sorted(names, key=self.cost.__getitem__):
            least.setdefault(file_of(name), self.cost[name])
        return sorted(names, key=lambda name: (least[file_of(name)], self.cost[name], name))


def survives(copy: Copy, mutant: Mutant, tests: Sequence[str], serial: int) -> str | None:
    """The last line of the tests on a mutant, None if one fell; the copy is then as before."""
    if not tests:
        return "no test runs the line"
    file = copy.folder / mutant.file
    source, before = file.read_bytes(), file.stat()
    file.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
    os.utime(file, (before.st_atime, before.st_mtime + 10 * (serial + 1)))
    chosen = copy.folder / "chosen.json"
    chosen.write_text(json.dumps(tests))
    files = dict.fromkeys(map(file_of, tests))
    try:
        result = copy.run(*PYTEST, "-p", "mutants", "-x", "-n0", *files, **{CHOSEN: str(chosen)})
    finally:
        file.write_bytes(source)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    lines = result.stdout.strip().splitlines() or ["nothing was printed"]
    summary = result.stdout.partition(" short test summary info ")[2]
    fell = re.search(r"^(FAILED|ERROR) ", summary, re.MULTILINE)
    if fell or (result.returncode not in (PASSED, NONE_RAN) and OUT_OF_TIME not in result.stdout):
        return None
    return lines[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant random mutants and see the tests fall.")
    parser.add_argument("--record", type=Path, metavar="FILE", help="run the tests, note the lines")
    parser.add_argument("--seen", type=Path, metavar="FILE", help="what --record has written")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("plugins", nargs="*", default=["perrecbench", "behaviour"])
    args = parser.parse_args()
    if args.record:
        return record(args.record)
    if not args.seen:
        parser.error("--seen FILE is needed, which --record FILE writes")
    seen = Seen.read(args.seen)
    mutants = draw(args.seed, args.count, args.plugins)
    fell: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: queue.Queue[Copy] = queue.Queue()
        for number in range(args.jobs):
            copies.put(copied(Path(folder).resolve() / str(number)))

        def tried(serial: int) -> str | None:
            copy, mutant = copies.get(), mutants[serial]
            try:
                return survives(copy, mutant, seen.tests(mutant), serial)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(args.jobs) as pool:
            for mutant, said in zip(mutants, pool.map(tried, range(len(mutants))), strict=True):
                fell[mutant.room] += said is None
                if said is not None:
                    print(f"{mutant.described()}: {said}", flush=True)
    for room, of in sorted(Counter(mutant.room for mutant in mutants).items()):
        print(f"{room:32} {fell[room]:3} of {of}")
    print(f"{fell.total()} of {len(mutants)} mutants fall")
    return 0


if __name__ == "__main__":
    sys.exit(main())
