"""Record what the harness asks, answers, prints and refuses; or check that it still does so.

    python tests/freeze/record.py            # write tests/freeze/recorded/
    python tests/freeze/record.py --check    # record elsewhere, and print what differs

The harness is driven as a child process and never imported: a mistake in its code cannot hide in
the record. What is recorded stands in `commands.toml`; the differences that are meant stand in
`renames.toml`, and an entry that applies to nothing is a difference too.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from answering import AnsweringServer  # noqa: E402
from stored import baseline_answers, dumps, lines_of_run, sha  # noqa: E402

RECORDED = HERE / "recorded"
WIDE, NARROW = "400", "120"
BY_RULE = {"model": "--model baseline", "judge": "lexical", "profiler": "baseline"}
MASKS = [
    (r"http://127\.0\.0\.1:\d+", "URL"),
    (r"\b\d{8}T\d{6}-[\w.:@+-]*?-[0-9a-f]{8}(-[0-9a-f]{8})?\b", "RUN"),
    (r"(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d([:-]\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?", "TIME"),
    (r"\b[0-9a-f]{32}\b", "KEY"),
    (r"\bin \d+:\d\d\b", "in DURATION"),
    (r"; [\d.]+k? tokens/s", ""),
    (r"tokens, [\d.]+ s\b", "tokens, DURATION"),
    (r'("(?:seconds|duration|pid|bytes_free)": ?)[\d.e-]+', r"\1NUMBER"),
    (r'("(?:python|openai|datasets|json-repair|jinja2)": )"[^"]*"', r'\1"VERSION"'),
    (r"no transformers, (torch, )?accelerate", "no transformers, accelerate"),
    (r"\b\d+\.\d+\.\d+[\w.+-]*", "VERSION"),
    (r"(?<=\w)\n +(?=ENV/)", " "),  # a long path has a line of its own
    (r"[ \t]+$", ""),
]


@dataclass
class World:
    """A folder with a home of its own, where commands run and see nothing of the user's."""

    python: str
    folder: Path
    places: list[tuple[str, str]] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "config", "cache"):
            (self.folder / name).mkdir(parents=True)
        code = "import harness, sys; print(harness.__path__[0]); print(sys.prefix)"
        found = subprocess.run(
            [self.python, "-c", code], cwd=self.folder, env=self.environment("look"),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        package, prefix = found.stdout.split()
        self.places = [
            (str(self.folder), "WORK"),
            (prefix, "ENV"),
            (str(Path(package).parent), "ROOT"),
        ]

    def environment(self, cache: str, columns: str = NARROW) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.folder / "home"),
            "XDG_CONFIG_HOME": str(self.folder / "config"), "LANG": "C.UTF-8", "TZ": "UTC",
            "HARNESS_CACHE": str(self.folder / "cache" / cache), "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(self.folder / "home" / "hub"), "COLUMNS": columns, "NO_COLOR": "1",
        }  # fmt: skip

    def harness(
        self, words: Sequence[str], *, place: str = "", columns: str = NARROW
    ) -> subprocess.CompletedProcess[str]:
        """What a command did in a folder of the world; it has ten minutes."""
        cwd = self.folder / place
        cwd.mkdir(exist_ok=True)
        return subprocess.run(
            [self.python, "-m", "harness", *words], cwd=cwd, timeout=600, check=False,
            env=self.environment(place, columns), capture_output=True, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def masked(self, text: str) -> str:
        """Text without what differs from one machine, folder or hour to the next."""
        for place, name in self.places:
            text = text.replace(place, name)
        for pattern, name in MASKS:
            text = re.sub(pattern, name, text, flags=re.MULTILINE)
        return text


def record_run(world: World, run: Mapping[str, Any]) -> dict[str, str]:
    """The files that record a run, once by rule and once with a server's answers."""
    name, said, files = run["name"], [], {}
    with AnsweringServer() as server:
        served = {
            "model": f"--model openai --concurrency 1 "
            f"--model_args base_url={server.url},model=candidate,revision=1",
            "judge": f"openai:base_url={server.url},model=judge,revision=1",
            "profiler": f"openai:base_url={server.url},model=profiler,revision=1",
        }
        for kind, roles in {"rule": BY_RULE, "served": served}.items():
            place, grid = f"{name}_{kind}", run.get("grid", False)
            done = world.harness(shlex.split(run["words"].format_map(roles)), place=place)
            progress = "\n".join(sorted(done.stderr.splitlines()))
            said.append(f"$ harness {run['words']}  ({kind})\n{done.stdout}")
            said.append(f"--- stderr, sorted\n{progress}\n--- exit {done.returncode}\n")
            if done.returncode not in (0, 3):  # 3: nothing of a cell could be read
                raise SystemExit(f"run {name} by {kind} ended with {done.returncode}\n{progress}")
            (folder,) = (world.folder / place / "runs").iterdir()
            world.runs[place] = f"../{folder.relative_to(world.folder)}"
            if kind == "rule":
                server.answers = baseline_answers(folder)
            if kind == "served" or not grid:
                lines = lines_of_run(folder, keys=kind == "served", short=grid) + server.lines()
                files[f"runs/{name}.{kind}.jsonl"] = "".join(dumps(line) + "\n" for line in lines)
    files[f"output/run-{name}.txt"] = world.masked("".join(said))
    return files


def record_help(world: World, commands: Sequence[str]) -> dict[str, str]:
    """The help of each command, whose lines are not wrapped."""
    files = {}
    for command in commands:
        done = world.harness([*command.split(), "--help"], place="help", columns=WIDE)
        page = world.masked(done.stdout + done.stderr)
        files[f"help/{command.replace(' ', '-') or 'harness'}.txt"] = page
    return files


def record_outputs(world: World, group: Mapping[str, Any]) -> dict[str, str]:
    """One file with what each command of a group prints, then what they wrote below `made/`."""
    name, folder = group["name"], world.folder / group["name"]
    write_files(world, group)
    told = [said(world, group, command) for command in group["commands"]]
    for path in sorted(path for path in (folder / "made").rglob("*") if path.is_file()):
        timed = any(path.match(pattern) for pattern in group.get("timed", ()))
        content = "timed" if timed else sha(world.masked(path.read_text(encoding="utf-8")))
        told.append(f"{world.masked(str(path.relative_to(folder)))} {content}\n")
    return {f"output/{name}.txt": "".join(told)}


def write_files(world: World, group: Mapping[str, Any]) -> None:
    """Write the files that the commands of a group read."""
    for file, content in group.get("files", {}).items():
        path = world.folder / group["name"] / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def said(world: World, group: Mapping[str, Any], command: str) -> str:
    """What a command of a group prints, and its exit code.

    Paths shift columns: where a group is `loose`, lines are long and blanks are one.
    """
    words = shlex.split(command.format_map(world.runs))
    columns = WIDE if group.get("loose") else NARROW
    done = world.harness(words, place=group["name"], columns=columns)
    out, err = world.masked(done.stdout), world.masked(done.stderr)
    if group.get("loose"):
        out = re.sub(r"(?<=\S) +|─+", " ", out)
    if group.get("digest"):
        parts = re.split(r"\n(?=    [{}])", out)
        out = "".join(f"{sha(part)} {part[:80]!r}\n" for part in parts)
    return f"$ harness {command}\n{out}--- stderr\n{err}--- exit {done.returncode}\n"


def needed(table: Mapping[str, Any], only: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The runs that are chosen, and those on which chosen groups of outputs stand."""
    chosen = [str(group["commands"]) for group in table["outputs"] if group["name"] in only]
    for run in table["runs"]:
        marks = [f"{{{run['name']}_{kind}}}" for kind in ("rule", "served")]
        if not only or run["name"] in only or any(m in c for m in marks for c in chosen):
            yield run


def record(world: World, *, only: Sequence[str], jobs: int) -> dict[str, str]:
    """Every file of the record by its path, made in a world that is empty."""
    table = tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))
    files: dict[str, str] = {}
    with ThreadPoolExecutor(jobs) as pool:
        each = map if jobs == 1 else pool.map
        for made in each(lambda run: record_run(world, run), needed(table, only)):
            files |= made
        groups = [group for group in table["outputs"] if not only or group["name"] in only]
        for made in each(lambda group: record_outputs(world, group), groups):
            files |= made
    if not only or "help" in only:
        files |= record_help(world, table["help"])
    return files


def expected() -> tuple[dict[str, str], list[str]]:
    """The record after the renames, and what is wrong with the renames."""
    renames = tomllib.loads((HERE / "renames.toml").read_text(encoding="utf-8")).get("rename", [])
    problems = []
    recorded = {
        str(path.relative_to(RECORDED)): path.read_text(encoding="utf-8")
        for path in sorted(RECORDED.rglob("*"))
        if path.is_file()
    }
    for entry in renames:
        applied = 0
        for path, text in recorded.items():
            if fnmatch.fnmatch(path, entry["files"]) and entry["old"] in text:
                recorded[path] = text.replace(entry["old"], entry["new"])
                applied += 1
        if not applied:
            problems.append(
                f"renames.toml: {entry['old']!r} stands in no recorded {entry['files']}"
            )
        if not entry.get("why"):
            problems.append(f"renames.toml: {entry['old']!r} has no reason (why)")
    return recorded, problems


def differences(found: Mapping[str, str], *, whole: bool) -> Iterator[str]:
    """What the record says otherwise, after the renames; `whole` unless parts were chosen."""
    recorded, problems = expected()
    yield from problems
    for path in sorted(recorded.keys() | found.keys() if whole else found.keys()):
        if path not in recorded or path not in found:
            yield f"{path}: {'not recorded' if path in found else 'no longer made'}"
            continue
        old, new = recorded[path].splitlines(), found[path].splitlines()
        if path.startswith("help/"):  # whose columns may be laid out otherwise
            old, new = ([" ".join(line.split()) for line in lines] for lines in (old, new))
        yield from unified_diff(old, new, f"recorded/{path}", f"now/{path}", lineterm="", n=1)


def main() -> int:
    """Write the record, or compare with it; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter with the harness")
    parser.add_argument("--check", action="store_true", help="write nothing; print what differs")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these runs and groups, help"
    )
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        world = World(given.python, Path(temporary).resolve() / "freeze")
        found = record(world, only=given.only, jobs=given.jobs)
    if given.check:
        differing = list(differences(found, whole=not given.only))
        print("\n".join(differing) or f"the same as recorded: {len(found)} files")
        return 1 if differing else 0
    if not given.only:
        for path in [path for path in RECORDED.rglob("*") if path.is_file()]:
            path.unlink()
    for name, text in found.items():
        (RECORDED / name).parent.mkdir(parents=True, exist_ok=True)
        (RECORDED / name).write_text(text, encoding="utf-8")
    print(f"recorded {len(found)} files, {sum(map(len, found.values())):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
