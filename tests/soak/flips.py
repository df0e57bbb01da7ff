"""Flipped bits in a finished run and in an unfinished one: said, or without effect."""

from __future__ import annotations

import shutil
from random import Random

import pytest
from builders.runs import write_sealed

FLIPS = 100
FILES = ("manifest.json", "interests/summary.json", "interests/1-name.jsonl",
         "interests/2-support.jsonl")  # fmt: skip
LIMIT = ("--limit", "10")


def flip(file, draw):
    changed = bytearray(file.read_bytes())
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    file.write_bytes(changed)


def sound(ended, wanted):
    """Whether a command gave what it gives without the flip, or said what is wrong."""
    return ended.out == wanted or (ended.code != 0 and "Traceback" not in ended.err)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FILES)
def test_flips_of_a_finished_run(harness, serve, name):
    serve(harness)
    harness.run(*LIMIT).ok()
    (run,) = harness.folders
    shutil.copytree(run, harness.folder / "sound")
    commands = (
        ["show", "RUN", "--json"],
        ["show", "RUN", "--failures"],
        ["score", "RUN", "--json"],
    )

    def said(words):
        return harness.here(*(str(run) if word == "RUN" else word for word in words))

    wanted = [said(words).out for words in commands]
    for number in range(FLIPS):
        shutil.rmtree(run)
        shutil.copytree(harness.folder / "sound", run)
        flip(run / name, Random(f"{name} {number}"))
        for words, whole in zip(commands, wanted, strict=True):
            assert sound(said(words), whole), (name, number, words)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["1-name.jsonl", "2-support.jsonl", "answers.sqlite"])
def test_flips_of_a_run_that_goes_on(harness, serve, name):
    server = serve(harness)
    harness.run(*LIMIT, "--output_path", "whole", "--reuse", "run").ok()
    wanted = next((harness.folder / "whole").glob("*/interests/scores.jsonl")).read_bytes()
    for number in range(FLIPS // 5):
        draw = Random(f"{name} {number}")
        place = ("--output_path", str(number), "--reuse", "run", *LIMIT, "--concurrency", "2")
        before = server.count
        process = harness.start(*place)
        harness.wait_until(lambda least=before: server.count >= least + 16)
        harness.kill(process)
        (run,) = (harness.folder / str(number)).iterdir()
        for file in run.rglob(name):
            if file.stat().st_size:
                flip(file, draw)
        done = harness.run(*place)
        if done.code == 0:
            assert next(run.glob("interests/scores.jsonl")).read_bytes() == wanted
        else:
            assert "Traceback" not in done.err, (name, number)
            assert "to do:" in done.err


def test_a_checksum_that_is_right_changes_nothing(harness, serve):
    serve(harness)
    harness.run(*LIMIT).ok()
    (run,) = harness.folders
    whole = harness.here("show", str(run), "--json").out
    write_sealed(run / "manifest.json", harness.manifest())
    assert harness.here("show", str(run), "--json").out == whole
