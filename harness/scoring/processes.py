"""One file written by several processes of this machine, each of which is a new Python."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, TypeVar

from harness.runs.atomic_files import UNFINISHED

_log = logging.getLogger(__name__)

ShareT = TypeVar("ShareT")
FoundT = TypeVar("FoundT")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def write_shares(
    write: Callable[[ShareT, BinaryIO], FoundT],
    shares: Sequence[ShareT],
    file: BinaryIO,
    folder: Path,
) -> list[FoundT]:
    """What `write(share, file)` returns for each share; `file` has them in their order.

    The first is written here, each other one by a process that ends with this one. What a process
    fails at is done here, with a warning, so that errors are those of one process. `folder` is for
    their files.
    """
    first, *others = shares
    if not others:
        return [write(first, file)]
    with (
        TemporaryDirectory(dir=folder, prefix=".", suffix=UNFINISHED) as place,
        ExitStack() as stack,
    ):
        jobs = [Path(place, str(number)) for number, _ in enumerate(others)]
        processes = [
            stack.enter_context(_process((write, share), job))
            for share, job in zip(others, jobs, strict=True)
        ]
        found = [write(first, file)]
        for share, job, process in zip(others, jobs, processes, strict=True):
            if process is not None and process.wait() == 0:
                with Path(f"{job}.written").open("rb") as written:
                    shutil.copyfileobj(written, file)
                found.append(pickle.loads(job.read_bytes()))
            else:
                ended = "could not start" if process is None else f"ended with {process.returncode}"
                _log.warning("a process that was to score a part %s: this one scores it", ended)
                found.append(write(share, file))
    return found


@contextmanager
def _process(work: Any, job: Path) -> Iterator[subprocess.Popen[bytes] | None]:
    """A process that writes a share; None if there can be none.

    Unlike those of `multiprocessing`, it never begins with the script that uses the harness.
    """
    path = os.pathsep.join(path for path in sys.path if path)
    try:
        job.write_bytes(pickle.dumps(work))
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(job)],
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # so that Ctrl-C reaches the command alone
        )
    except (pickle.PicklingError, AttributeError, TypeError, OSError):
        yield None
        return
    with process:
        try:
            yield process
        finally:
            process.kill()


def main(job: Path) -> None:
    """Write the share of a job, and replace the job by what was found."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        write, share = pickle.loads(job.read_bytes())
        with Path(f"{job}.written").open("wb") as file:
            found = write(share, file)
        job.write_bytes(pickle.dumps(found))
    except Exception:
        sys.exit(1)  # the parent does the same again, and says what is wrong


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
