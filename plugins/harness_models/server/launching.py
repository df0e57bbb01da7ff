"""Launches a model server under a keeper, so that none of its processes outlives the harness."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.base.errors import ModelError, StorageError
from harness.base.redaction import names_a_secret
from harness.reporting.text import clean_text
from harness_models.server import keeper

PATIENCE = 30.0
"""Seconds that `stop` waits: the keeper's grace period, and as much for the system."""

LOOK = 0.05
"""Seconds between two checks for the end."""

NEEDED = re.compile(
    r"(HF|HUGGING_FACE|HUGGINGFACE|AWS|S3|RAY_AUTH)_|GOOGLE_APPLICATION_CREDENTIALS$"
    r"|VLLM_\w+_TOKEN_THRESHOLD$"
)
"""Variables that an engine needs although their names look like secrets: to fetch weights from the
hub and from object stores, to join a Ray cluster, and two of vLLM's that count tokens."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def launch(
    command: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
    grace: float = keeper.GRACE,
) -> Launched:
    """A command that runs until it ends, is stopped, or the harness ends in any way.

    Its output is appended to `log`. It gets our environment without secrets, and `environment` in
    addition. `folder` is removed after its end.
    """
    passed = without_secrets(os.environ) | dict(environment)
    options = ["--grace", str(grace), *(("--folder", str(folder)) if folder else ())]
    if shutil.which(command[0], path=passed.get("PATH")) is None:
        raise ModelError(
            "the engine cannot be started",
            found=f"no program {command[0]!r}",
            expected="an executable file, or the name of one on PATH",
        )
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("ab")
    except OSError as error:
        problem = "the engine's log cannot be written"
        raise StorageError(problem, where=str(log), found=error.strerror) from error
    with file:
        start = file.tell()
        kept = subprocess.Popen(
            [sys.executable, "-I", keeper.__file__, *options, "--", *command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=passed,
            # A Ctrl-C in our terminal must not reach the server: `stop` ends it in order.
            start_new_session=True,
        )
    return Launched(kept, program=command[0], log=log, start=start)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for an engine: no secrets, except those that it needs itself.

    Some servers would also require a key that they find there from their clients.
    """
    return {
        name: value
        for name, value in environment.items()
        if NEEDED.match(name) or not names_a_secret(name)
    }


class Launched:
    """A command under its keeper."""

    def __init__(
        self, kept: subprocess.Popen[bytes], *, program: str, log: Path, start: int
    ) -> None:
        self.log = log
        self._program = program
        self._keeper = kept
        self._start = start
        self._read = start
        self._clear = False

    def ended(self) -> int | None:
        """The exit code when no process is left, 128 + n if signal n ended it; None before."""
        code = self._keeper.poll()
        if code is None:
            return None
        # Checked now, while no other process can have the session's number.
        self._clear = self._clear or not keeper.members(self._keeper.pid)
        return code if code >= 0 else 128 - code

    def processes(self) -> list[int]:
        """The ids of its running processes."""
        return [] if self.ended() is not None else keeper.members(self._keeper.pid)

    def new_lines(self) -> list[str]:
        """The new lines of the log since the last call, without terminal control codes."""
        ended = self.ended() is not None
        new = self._log_from(self._read)
        if not ended:
            new = new[: max(new.rfind(b"\n"), new.rfind(b"\r")) + 1]
        self._read += len(new)
        return _lines(new)

    def log_tail(self, lines: int = 40) -> list[str]:
        """The last lines of this start in the log."""
        return _lines(self._log_from(self._start))[-lines:]

    def _log_from(self, position: int) -> bytes:
        # A removed log must not end the run.
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(position)
            return file.read()
        return b""

    async def stop(self, patience: float = PATIENCE) -> None:
        """End it, and return when no process is left; ModelError names those that remain.

        Further calls do no harm. If the call is cancelled, the keeper ends the rest.
        """
        pipe = self._keeper.stdin
        if pipe is not None and not pipe.closed:
            with suppress(BrokenPipeError):
                pipe.write(b"\n")
            # Another child of ours may hold it open: the line itself is the signal.
            pipe.close()
        deadline = time.monotonic() + patience
        while not self._clear:
            if self.ended() is not None and not self._clear:
                # Processes are left only if the keeper itself was killed.
                keeper.send(signal.SIGKILL, keeper.members(self._keeper.pid))
            if time.monotonic() >= deadline:
                rest = [f"{pid} {name_of(pid)}" for pid in keeper.members(self._keeper.pid)]
                raise ModelError(
                    f"the engine has not ended {patience:g} s after the signal to end",
                    where=self._program,
                    found="; ".join(rest) or "its keeper",
                    expected="no process of the engine",
                    hint="end these processes to free their memory; "
                    f"{self.log} may show the reason",
                )
            await asyncio.sleep(LOOK)


def name_of(pid: int) -> str:
    """The command line of a process, shortened for messages."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        listing = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
        words = subprocess.run(listing, capture_output=True, check=False).stdout
    return clean_text(words.decode("utf-8", "replace").strip(), limit=100)


def _lines(content: bytes) -> list[str]:
    """The lines as a terminal shows them, without colours: the last state of a progress bar."""
    text = _COLOUR.sub("", content.decode("utf-8", "replace"))
    visible = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return [clean_text(line) for line in visible if line.strip()]
