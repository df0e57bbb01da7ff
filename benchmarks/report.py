"""A report over ten runs of 5,000 samples, and how fast a browser opens and scrolls it.

A further one shows five benchmarks: it has few samples and many figures.

python benchmarks/report.py                    # about five minutes on two quiet cores
python benchmarks/report.py --samples 500      # a first look
python benchmarks/report.py --only five        # five benchmarks alone
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import harness
from harness.base.hashing import LINE, sealed
from harness.runs.atomic_files import sealed_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from builders.browser import browser

TEXT = (
    "a an old new quiet loud garden railway chess owl bread sea winter summer long short history "
    "of on with without for beginners experts small large budget stubborn teacher mountain night"
)
WORDS = TEXT.split()
TITLES = 100
"""Titles of a person: a prompt of more than 4 KB."""

FIVE = "gist_synthetic,perrec_easy,usersum_movielens_all,behaviour_movies,horizon_text"
"""Tasks of five benchmarks with bundled samples."""

MODELS = 3
"""The runs of five benchmarks in a report."""

ANSWER = 80
"""Words that each run adds to each answer, so that no two runs answer alike."""

SCROLL = """
new Promise((done) => {
  const list = document.querySelector('.list'), gaps = [];
  let last = performance.now(), step = 0;
  const move = (now) => {
    gaps.push(now - last); last = now;
    list.scrollTop = (list.scrollHeight * (step * 37 % 300)) / 300;
    if (++step < 300) requestAnimationFrame(move); else done(gaps.slice(2));
  };
  requestAnimationFrame(move);
})"""
"""Three hundred jumps through the list, and the time of each frame."""


def make_runs(place: Path, *, runs: int, samples: int) -> list[Path]:
    """A run of the baseline on made-up people, and copies of it whose answers are their own."""
    data = place / "people.csv"
    random = Random(20)
    with data.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("user", "title", "action"))
        for person in range(samples):
            for _ in range(TITLES):
                title = " ".join(random.choices(WORDS, k=7))
                rows.writerow((f"person-{person}", title, random.choice(("liked", "skipped"))))
    first = harness.evaluate(
        "interests", model="baseline", judge="lexical", data=data, output_path=place,
        reuse="run", quiet=True,
    ).folder  # fmt: skip
    return [first, *(copy_of(first, number) for number in range(1, runs))]


def make_five(place: Path) -> list[Path]:
    """A run of the baseline on the samples of five benchmarks, and copies of it."""
    first = harness.evaluate(
        FIVE, model="baseline", judge="lexical", data="sample", output_path=place, reuse="run",
        quiet=True,
    ).folder  # fmt: skip
    return [first, *(renamed(first, number) for number in range(1, MODELS))]


def renamed(first: Path, number: int) -> Path:
    """A copy of a run under another name."""
    run = first.with_name(f"{first.name}-{number}")
    shutil.copytree(first, run)
    manifest = json.loads((first / "manifest.json").read_bytes())
    del manifest["crc32"]
    manifest |= {"run_id": run.name, "name": f"model-{number}"}
    (run / "manifest.json").write_bytes(sealed_file(manifest))
    return run


def copy_of(first: Path, number: int) -> Path:
    """A copy of a run under another name with other answers."""
    run = renamed(first, number)
    random = Random(number)
    answers = Path("interests", "1-name.jsonl")
    with (first / answers).open("rb") as lines, (run / answers).open("wb") as out:
        for text in lines:
            line = msgspec.json.decode(text)
            del line["crc32"]
            for call in line["calls"]:
                call["text"] += " ".join(random.choices(WORDS, k=ANSWER))
            out.write(sealed(msgspec.json.encode(line) + b"\n", LINE))
    return run


def measured(place: Path, runs: list[Path], *more: str) -> tuple[dict[str, Any], Path]:
    """The seconds, processor time and peak memory of the command, and the page."""
    page = place / "report.html"
    before, spent = time.perf_counter(), children_seconds()
    command = [sys.executable, "-m", "harness", "report", *map(str, runs), "-o", str(page), *more]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    size = page.stat().st_size / 1_000_000
    return {
        "seconds": round(seconds, 1), "cpu_s": round(children_seconds() - spent, 1),
        "peak_mib": round(peak), "page_mb": round(size, 1),
    }, page  # fmt: skip


def children_seconds() -> float:
    """The processor time of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def opened(page: Path) -> dict[str, Any]:
    """When a browser painted the page first and listed its samples, and its slowest frames."""
    async with browser() as tab:
        await tab.look(width=1280)
        before = time.perf_counter()
        await tab.open(page)
        samples = await tab.until("document.querySelector('#viewer').dataset.ready")
        seconds = time.perf_counter() - before
        paint = await tab.run(
            "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
        )
        await tab.run("document.querySelector('#samples').scrollIntoView()")
        gaps = sorted(await tab.run(SCROLL))
        before = time.perf_counter()
        await tab.run("document.querySelector('.list li').click()")
        await tab.until("document.querySelector('.detail pre') !== null")
        sample = time.perf_counter() - before
        return {
            "samples": int(samples), "first_paint_ms": paint and round(paint),
            "listed_s": round(seconds, 2), "sample_s": round(sample, 2),
            "frame_ms_median": round(gaps[len(gaps) // 2], 1),
            "frame_ms_slowest": round(gaps[-1], 1),
            "frames_over_50_ms": sum(gap > 50 for gap in gaps), "frames": len(gaps),
        }  # fmt: skip


def main() -> None:
    """Measure the report at its default size, one with every sample, and one of five benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=5_000)
    parser.add_argument("--only", choices=("samples", "five"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cases: list[tuple[str, list[Path], tuple[str, ...]]] = []
        if given.only != "five":
            runs = make_runs(place, runs=given.runs, samples=given.samples)
            every = ("--samples", str(given.runs * given.samples))
            cases += [("default", runs, ()), ("every sample", runs, every)]
        if given.only != "samples":
            cases.append(("five benchmarks", make_five(place / "five"), ()))
        for name, runs, more in cases:
            found, page = measured(place, runs, *more)
            print(name, json.dumps(found | asyncio.run(opened(page))), flush=True)


if __name__ == "__main__":
    main()
