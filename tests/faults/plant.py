"""Plants the faults of `faults.toml` in copies of the tree, one at a time, and runs their tests.

    .venv/bin/python tests/faults/plant.py [--jobs N] [NUMBER or WORD…]

Without a number or word all faults are planted. A fault is caught when one of its tests fails.
Exits with 1 unless all are caught. Faults and tests are found by what they say and are called,
never by their files, so that both may move.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CODE = ("harness", "plugins")
COPIED = (*CODE, "task_configs", "prompts", "docs", "tests")
PYTEST = ("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "--timeout=120")
FAILED = 1  # pytest's exit code when tests ran and failed; others say that they did not run
TESTED = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: `find` is replaced, in the function or class `scope` where that is given."""

    number: int
    about: str
    find: str
    replace: str
    tests: Sequence[str]
    scope: str | None = None

    def ids(self, tests: Mapping[str, Sequence[str]]) -> list[str]:
        """The ids of those of its tests that there are."""
        return [each for name in self.tests for each in tests.get(name, ())]

    def places(self, sources: Mapping[Path, str]) -> list[tuple[Path, int]]:
        """Where the code to replace stands: file and offset."""
        return [
            (path, found.start())
            for path, text in sources.items()
            for found in re.finditer(re.escape(self.find), text)
            if _stands_in(self.scope, text, found.start())
        ]


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A copy of the tree in which faults are planted."""

    folder: Path

    def run(
        self, *arguments: str, keep_bytecode: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, on the copy's code."""
        path = os.pathsep.join(str(self.folder / part) for part in ("", "plugins", "tests"))
        env = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **variables}
        env["PYTHONDONTWRITEBYTECODE"] = "" if keep_bytecode else "1"
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=env, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def refuse_foreign_code(self) -> None:
        """Exit where Python in the copy imports another tree's code."""
        names = ["harness", *sorted(one.name for one in (self.folder / "plugins").glob("*_*"))]
        code = f"import importlib as i; [print(i.import_module(n).__file__) for n in {names}]"
        result = self.run("-c", code)
        files = result.stdout.split()
        if result.returncode or not all(Path(one).is_relative_to(self.folder) for one in files):
            sys.exit(f"not the code of {self.folder}:\n{result.stdout}")

    def verdict(self, fault: Fault, place: tuple[Path, int], tests: Sequence[str]) -> str:
        """What became of a fault: caught, or why not. The copy is then as it was before."""
        file = self.folder / place[0]
        text, before = file.read_text("utf-8"), file.stat()
        start, end = place[1], place[1] + len(fault.find)
        file.write_text(text[:start] + fault.replace + text[end:], "utf-8")
        # Bytecode is known by size and second: a time of its own keeps the sound one from use.
        os.utime(file, (before.st_atime, before.st_mtime + 10 * fault.number))
        try:
            result = self.run(*PYTEST, "-x", "-n0", *tests)
        finally:
            file.write_text(text, "utf-8")
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        if result.returncode == 0:
            return "NOT CAUGHT"
        if result.returncode != FAILED or "NameError" in result.stdout:
            return f"NOT CAUGHT, as the tests could not run:\n{result.stdout[-2000:]}"
        return "caught"


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the chosen faults; 0 when all of them are caught."""
    parser = argparse.ArgumentParser(description="Plant faults and see the tests catch them.")
    parser.add_argument("chosen", nargs="*", help="numbers of faults, or words of what they are")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time")
    args = parser.parse_args(arguments)
    faults = [fault for fault in read() if _is_chosen(fault, args.chosen)]
    sources, tests = code(), tests_by_name()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        copies = made(Path(folder).resolve(), faults, tests, jobs=args.jobs)

        def tried(fault: Fault) -> str:
            places = fault.places(sources)
            if len(places) != 1:
                return f"not found once, but {len(places)} times:\n{fault.find}"
            if unknown := [name for name in fault.tests if name not in tests]:
                return f"test not found: {', '.join(unknown)}"
            copy = copies.get()
            try:
                return copy.verdict(fault, places[0], fault.ids(tests))
            finally:
                copies.put(copy)

        caught = 0
        with ThreadPoolExecutor(args.jobs) as pool:
            for fault, verdict in zip(faults, pool.map(tried, faults), strict=True):
                caught += verdict == "caught"
                print(f"{fault.number:3}  {fault.about}: {verdict}", flush=True)
    print(f"{caught} of {len(faults)} faults are caught")
    return 0 if faults and caught == len(faults) else 1


def read() -> Iterator[Fault]:
    """All faults, numbered from 1 in their order."""
    entries = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))["fault"]
    for number, entry in enumerate(entries, start=1):
        known: dict[str, Any] = {name: one for name, one in entry.items() if name != "in"}
        yield Fault(number=number, scope=entry.get("in"), **known)


def code() -> dict[Path, str]:
    """The code in which faults are planted, by file."""
    return {
        path.relative_to(ROOT): path.read_text("utf-8")
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def tests_by_name() -> dict[str, list[str]]:
    """The ids of all tests by the name of their function, by which pytest runs them."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in dict.fromkeys(TESTED.findall(path.read_text("utf-8"))):
            found.setdefault(name, []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def made(
    folder: Path, faults: Sequence[Fault], tests: Mapping[str, Sequence[str]], *, jobs: int
) -> queue.Queue[Copy]:
    """Copies of the tree, once the tests pass in the first; exits where they do not."""
    first = copied(folder / "0")
    wanted = dict.fromkeys(each for fault in faults for each in fault.ids(tests))
    result = first.run(*PYTEST, f"-n{jobs}", *wanted, keep_bytecode=True)
    if wanted and result.returncode:
        sys.exit(f"the tests fail without any fault:\n{result.stdout}")
    copies: queue.Queue[Copy] = queue.Queue()
    copies.put(first)
    for number in range(1, jobs):
        shutil.copytree(first.folder, folder / str(number))
        copies.put(Copy(folder=folder / str(number)))
    return copies


def copied(folder: Path) -> Copy:
    """A copy of the tree; exits where Python would run other code in it."""
    copy = Copy(folder=folder)
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", folder)
    copy.refuse_foreign_code()
    return copy


def _is_chosen(fault: Fault, chosen: Sequence[str]) -> bool:
    words = fault.about.lower()
    return not chosen or any(
        int(one) == fault.number if one.isdecimal() else one.lower() in words for one in chosen
    )


def _stands_in(scope: str | None, text: str, offset: int) -> bool:
    line = text.count("\n", 0, offset) + 1
    return scope is None or any(
        getattr(node, "name", None) == scope and node.lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )


if __name__ == "__main__":
    sys.exit(main())
