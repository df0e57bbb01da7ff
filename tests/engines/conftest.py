"""The real engine on any machine: vLLM for CPUs, and tiny checkpoints made on the spot."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from builders import processes
from builders.commands import Ended

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

WAIT = 900.0
"""Seconds that a start, and whatever else is waited for, may take on a slow machine."""

FRUGAL = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
"""An engine that takes one gigabyte for prompts, and talks to nobody."""

WHOLE_PROMPTS = {"enable_chunked_prefill": "false"}
"""vLLM for CPUs dies of a seed and a prompt that it reads in steps."""


def interpreter_of(engine: str) -> str:
    """The interpreter that has an engine; without one the tests are skipped, and say so."""
    own, asked = ROOT / f".venv-{engine}", f"HARNESS_TEST_{engine.upper()}"
    wanted = os.environ.get(asked, "")
    if wanted not in ("", "1"):
        pytest.skip(f"{asked}={wanted}")
    if not wanted and not (own / ".installed").exists():
        pytest.skip(f"no .venv-{engine}: see `make test-{engine}`")
    return os.environ.get(f"HARNESS_{engine.upper()}_PYTHON") or str(own / "bin" / "python")


@pytest.fixture(scope="session")
def vllm_python() -> str:
    """The interpreter that has vLLM."""
    return interpreter_of("vllm")


@pytest.fixture(scope="session")
def hf_python() -> str:
    """The interpreter that has transformers and what it serves with."""
    return interpreter_of("hf")


@contextmanager
def alone() -> Iterator[None]:
    """Held by one test or module at a time on this machine: two engines would share its cores."""
    with (Path(tempfile.gettempdir()) / "harness-engine-tests.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def engine_alone() -> Iterator[None]:
    """No other test has an engine while this module has one."""
    with alone():
        yield


@dataclass(frozen=True)
class Checkpoints:
    """A model that answers at random, and a judge that answers "1" to everything."""

    candidate: Path
    judge: Path


@pytest.fixture(scope="session")
def checkpoints(vllm_python: str, tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    folder = tmp_path_factory.mktemp("checkpoints")
    made = Checkpoints(folder / "tiny-candidate", folder / "tiny-judge")
    for target, options in ((made.candidate, ["--seed", "0"]), (made.judge, ["--says", "1"])):
        subprocess.run(
            [vllm_python, HERE / "tiny_model.py", target, *options],
            env={**os.environ, **FRUGAL},
            check=True,
        )
    return made


@pytest.fixture(scope="session")
def engine_args(vllm_python: str) -> dict[str, str]:
    """Model arguments for a start that compiles nothing."""
    return {"python": vllm_python, "enforce_eager": "true", "dtype": "float32"}


@pytest.fixture(scope="session")
def frugal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Engines that this process starts take little, and keep nothing."""
    cache = {"VLLM_CACHE_ROOT": str(tmp_path_factory.mktemp("vllm"))}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**FRUGAL, **cache}.items():
            patch.setenv(name, value)
        yield


def processes_in(folder: Path, without: set[int]) -> dict[int, str]:
    """Every process that has a folder as its own, but for these: its id, and its words."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in without:
            try:
                inside = (entry / "cwd").readlink() == folder
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if inside and words:
                found[int(entry.name)] = words
    return found


@dataclass
class Command:
    """A task, usually the worked example, in a folder of its own, asked of real engines.

    Engines inherit that folder as theirs, which tells their processes from all others, whatever
    they call themselves.
    """

    folder: Path
    checkpoints: Checkpoints
    engine_args: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def spec(self, checkpoint: Path, **more: str) -> str:
        args = {"pretrained": str(checkpoint), **self.engine_args, **more}
        return ",".join(f"{name}={value}" for name, value in args.items())

    def arguments(
        self,
        *more: str,
        task: str = "interests",
        data: str = "sample",
        judge: str = "lexical",
        **engine: str,
    ) -> list[str]:
        return [
            sys.executable, "-m", "harness", "--tasks", task, "--data", data,
            "--model", "vllm", "--model_args", self.spec(self.checkpoints.candidate, **engine),
            "--judge", judge, "--structured", "--max_failures", "1", "--json", *more,
        ]  # fmt: skip

    def start(self, *more: str, **options: str) -> subprocess.Popen[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HARNESS_", "VLLM_"))}
        process = subprocess.Popen(
            self.arguments(*more, **options),
            cwd=self.folder,
            env={
                **kept,
                **FRUGAL,
                "HARNESS_CACHE": str(self.folder / "cache"),
                "VLLM_CACHE_ROOT": str(self.folder / "cache"),
                **self.environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    @staticmethod
    def end_of(process: subprocess.Popen[str]) -> Ended:
        out, err = process.communicate(timeout=2 * WAIT)
        return Ended(process.returncode, out, err)

    def run(self, *more: str, **options: str) -> Ended:
        return self.end_of(self.start(*more, **options))

    def engine_processes(self) -> dict[int, str]:
        """Every process that an engine of this folder has: its id, and what it calls itself."""
        return processes_in(self.folder, {process.pid for process in self.processes})

    def server(self) -> int | None:
        """The process id of the server that runs, None where none does."""
        return next(
            (
                pid
                for pid, words in self.engine_processes().items()
                if "api_server" in words and "keeper.py" not in words
            ),
            None,
        )

    def socket(self) -> str:
        """Where the server that runs listens."""
        words = self.engine_processes()[self.server()].split()
        return words[words.index("--uds") + 1]

    @property
    def run_folder(self) -> Path:
        (folder,) = (one for one in (self.folder / "runs").iterdir() if one.is_dir())
        return folder

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.run_folder / "manifest.json").read_text())

    def records(self, stage: str) -> list[dict[str, Any]]:
        """The whole records that a stage has so far."""
        journals = (self.folder / "runs").glob(f"*/*/?-{stage}.jsonl")
        # Lines end where a byte says so: a random answer may hold all that Unicode breaks lines at.
        lines = [line for file in journals for line in file.read_bytes().split(b"\n")[:-1]]
        return [json.loads(line) for line in lines]


@pytest.fixture
def command(
    tmp_path: Path, checkpoints: Checkpoints, engine_args: dict[str, str]
) -> Iterator[Command]:
    made = Command(tmp_path.resolve(), checkpoints, engine_args)
    with alone():
        yield made
        for process in made.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., None]:
    """Returns once a condition holds; a test that waits in vain fails there."""
    return partial(processes.wait_until, seconds=WAIT)
