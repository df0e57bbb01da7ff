"""A build that is killed continues and ends in the same bytes; another build is refused."""

import os
import shutil
import signal
import subprocess
import sys
from random import Random

import pytest
from builders.horizon import TAU, built, contents, random_log, settings_of, write_log
from harness_horizon.curation import build
from harness_horizon.curation.engine import Engine
from harness_horizon.curation.ledger import read_manifest

from harness.base.errors import DataError, Interrupted, UsageError

KILLER = """
import os, signal, sys
from pathlib import Path
from harness_horizon.curation import build, engine, ledger
from harness_horizon.curation.settings import Settings

folder, moment, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
seen = 0

def kill_at(holder, name):
    real = getattr(holder, name)
    def killing(*given, **named):
        global seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **named)
    setattr(holder, name, killing)

kill_at(*{
    "before a file has its name": (engine, "_keep"),
    "before a part is recorded": (ledger.Ledger, "finish"),
    "before files that are spent are removed": (ledger.Ledger, "forget_files"),
}[moment])
build.run(Settings(reviews=(folder / "reviews",), meta=(folder / "meta",), out=folder / "killed",
                   memory="2GB", least_items=1, partitions=3))
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    write_log(folder, *random_log(Random(3)), packed=True)
    built(folder, partitions=3)
    return folder


@pytest.fixture
def copy(log, tmp_path):
    """A log and its build that a test may change."""
    return shutil.copytree(log, tmp_path / "copy")


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("before a file has its name", 4),
        ("before a part is recorded", 8),
        ("before files that are spent are removed", 4),
    ],
)
def test_a_killed_build_continues_and_ends_in_the_same_bytes(log, moment, number):
    command = [sys.executable, "-c", KILLER, str(log), moment, str(number)]
    out = log / "killed"
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    unfinished = read_manifest(out)
    assert unfinished is not None and not unfinished.complete
    counted, items = len(unfinished.parts), out / "items.parquet"
    finished = items.stat().st_ino if "items" in unfinished.parts else None
    assert (finished is None) <= (moment != "before a part is recorded")
    build.run(settings_of(log, out=out, partitions=3))
    assert finished in (None, items.stat().st_ino), "a finished part was done again"
    assert counted < len(read_manifest(out).parts)
    assert contents(out) == contents(log / "out")
    shutil.rmtree(out)


def test_other_options_are_refused_with_what_differs(log):
    with pytest.raises(UsageError) as error:
        build.run(settings_of(log, partitions=3, seed=1, published=True))
    assert str(error.value).splitlines()[1:5] == [
        "  found:    published: True instead of False",
        "      least_interactions: 5 instead of None",
        "      seed: 1 instead of 0",
        "  expected: the inputs and options of manifest.json, or another folder (--out)",
    ]


def test_another_input_is_refused_and_a_new_date_or_memory_is_not(copy):
    file = sorted((copy / "reviews").iterdir())[0]
    os.utime(file, (1, 1))
    assert build.run(settings_of(copy, partitions=3, memory="3GB")).notes[-1].startswith("nothing")
    other = copy / "reviews" / "Zoo.jsonl"
    other.write_text('{"user_id":"u","parent_asin":"i1","timestamp":1577836800000}\n')
    (copy / "meta" / "meta_Zoo.jsonl").write_text('{"parent_asin":"i1","title":"A thing"}\n')
    file.unlink()
    file.with_suffix("").write_text(other.read_text())
    with pytest.raises(UsageError) as error:
        build.run(settings_of(copy, partitions=3))
    assert error.value.found.splitlines() == [
        f"reviews {file.name}: is gone",
        "      meta meta_Zoo.jsonl: is new",
        f"      reviews {file.stem}: is new",
        "      reviews Zoo.jsonl: is new",
    ]


def test_an_input_with_another_content_is_refused(tmp_path):
    write_log(tmp_path, {"Zoo": [("u", "i1", TAU)]}, {"Zoo": {"i1": "A thing"}})
    with pytest.raises(DataError):
        built(tmp_path, least_items=2)  # begun, and stopped by an error
    write_log(tmp_path, {"Zoo": [("you", "i1", TAU)]}, {})
    with pytest.raises(UsageError) as error:
        built(tmp_path, least_items=2)
    assert error.value.found == (
        "reviews Zoo.jsonl: 83 bytes with another content, instead of 81 bytes"
    )


def test_a_file_that_was_changed_is_found(copy):
    file = copy / "out" / "train.parquet"
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match="a finished file is gone or was changed"):
        build.run(settings_of(copy, partitions=3))


def test_a_folder_with_other_things_is_refused(log, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="the folder for the histories is not empty"):
        build.run(settings_of(log, out=tmp_path))


def test_two_builds_in_one_folder_are_refused(log):
    import fcntl

    with (log / "out" / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process builds in this folder"):
            build.run(settings_of(log, partitions=3))


def test_ctrl_c_says_what_is_kept_and_the_same_command_continues(log, monkeypatch):
    out = log / "interrupted"
    write = Engine.write

    def interrupted(engine, query, file, *options):
        if file.name == "part-001.parquet":
            raise RuntimeError("Query interrupted")
        write(engine, query, file, *options)

    monkeypatch.setattr(Engine, "write", interrupted)
    with pytest.raises(Interrupted) as raised:
        build.run(settings_of(log, out=out, partitions=3))
    assert raised.value.hint == "all finished parts are kept: the same command continues from there"
    monkeypatch.undo()
    build.run(settings_of(log, out=out, partitions=3))
    assert contents(out) == contents(log / "out")
    shutil.rmtree(out)
