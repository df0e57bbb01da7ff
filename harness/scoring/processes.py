"""Writing of one file by several processes of this machine: each a new Python."""

from __future__ import annotations

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
from typing import BinaryIO, Protocol, Self, TypeVar


class Extendable(Protocol):
    """What a share gives; `extend` adds that of the next one."""

    def extend(self, other: Self) -> None: ...


ShareT = TypeVar("ShareT")
FoundT = TypeVar("FoundT", bound=Extendable)


def cores() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def write_shares(
    write: Callable[[ShareT, BinaryIO], FoundT],
    shares: Sequence[ShareT],
    file: BinaryIO,
    folder: Path,
) -> FoundT:
    """What `write(share, file)` returns for all shares, which are in the file in their order.

    The first is written here, each other one by a process that ends with this one. What a process
    cannot do is done here, so that errors are those of one process. `folder` is for their files.
    """
    first, *others = shares
    if not others:
        return write(first, file)
    with TemporaryDirectory(dir=folder, prefix=".") as place, ExitStack() as stack:
        processes = [
            stack.enter_context(_process(write, share, Path(place, str(number))))
            for number, share in enumerate(others)
        ]
        found = write(first, file)
        for number, (share, process) in enumerate(zip(others, processes, strict=True)):
            if process is not None and process.wait() == 0:
                with Path(place, f"{number}.written").open("rb") as written:
                    shutil.copyfileobj(written, file)
                found.extend(pickle.loads(Path(place, f"{number}.found").read_bytes()))
            else:
                found.extend(write(share, file))
    return found


@contextmanager
def _process(
    write: Callable[[ShareT, BinaryIO], FoundT], share: ShareT, job: Path
) -> Iterator[subprocess.Popen[bytes] | None]:
    """A process that writes a share; None if there can be none."""
    command = [sys.executable, "-P", "-m", __name__, str(job)]
    # Unlike `multiprocessing`, this never runs the user's own script once more.
    path = os.pathsep.join(path for path in sys.path if path)
    try:
        job.write_bytes(pickle.dumps((write, share)))
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the command, which ends its processes
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
    """Write the share of a job."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        write, share = pickle.loads(job.read_bytes())
        with Path(f"{job}.written").open("wb") as file:
            found = write(share, file)
        Path(f"{job}.found").write_bytes(pickle.dumps(found))
    except Exception:
        sys.exit(1)  # the process that waits for it does the same, and says what is wrong


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
