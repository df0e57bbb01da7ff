"""Runs a command, and ends all of its processes when the parent of this script ends.

    python -I keeper.py [--grace SECONDS] [--folder FOLDER] -- COMMAND…

The script is two processes: Ray kills the children of a worker that ends, and an engine may ignore
SIGTERM while it starts. If either one is killed, the other one ends the command. If both
are killed on Linux, the command gets SIGTERM.

The command shares this script's output. When standard input brings data or ends, or when the parent
is gone, every process of the command gets SIGTERM, and SIGKILL after the grace period (15 s). If
the command ends by itself, the processes that it left behind get the same. Then the shared memory
that these processes left and FOLDER are removed. The script ends when no process is left, with the
command's exit code, or 128 + n if signal n ended the command.

The command's processes are all other processes in this script's session, and on Linux also all
descendants, including daemons in sessions of their own. This file is a script that uses only the
standard library, because it must keep running when the harness's own process is dead.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

GRACE = 15.0
"""Seconds from SIGTERM to SIGKILL: an engine that is killed at once leaves shared memory behind."""

LOOK = 0.1
"""Seconds between two checks of parent and children."""

SHARED = Path("/dev/shm")
"""The folder of named shared memory on Linux, which outlives the processes that made it."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

ENGINES = (b"ray::", b"VLLM::")
"""The names of engine processes; on a Ray cluster, these are no descendants of the command."""


def main(arguments: Sequence[str]) -> int:
    """The exit code of the command, when none of its processes is left."""
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    given = dict(zip(options[::2], options[1::2], strict=True))
    grace = float(given.get("--grace", GRACE))
    parent, signals, foreign = os.getppid(), list[int](), segments()
    if os.getsid(0) != os.getpid():
        os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: signals.append(number))
    session = os.getpid()
    second = os.fork()
    # Descendants whose own parent ends become children of this process; on Linux only.
    if call := prctl():
        call(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    kept, code = watch(second, parent, signals) if second else run(command, session, signals)
    code = end(kept, code, grace, session=session, foreign=foreign)
    if "--folder" in given:
        shutil.rmtree(given["--folder"], ignore_errors=True)
    return code


def watch(second: int, parent: int, signals: list[int]) -> tuple[int, int]:
    """The second process, which gets SIGTERM on a signal or without a parent, and its exit code."""
    code, sent = None, False
    while code is None:
        # The parent is checked as well: one of its other children may hold the pipe open.
        if not sent and (signals or os.getppid() != parent):
            send(signal.SIGTERM, [second])
            sent = True  # Python, as it ends, would be killed by another signal
        time.sleep(LOOK)
        code = reap(second)
    return second, code


def run(command: Sequence[str], session: int, signals: list[int]) -> tuple[int, int | None]:
    """The command's process when it is to end, and its exit code if it has ended by itself."""
    try:
        # A group of its own, so that a signal of the command to its group spares this script.
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=end_with(os.getpid()),  # noqa: PLW1509 - this script has no threads
        )
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 0, 127 if isinstance(error, FileNotFoundError) else 126
    code = None
    while code is None and not signals and os.getppid() == session:
        if select.select([0], [], [], LOOK)[0]:
            break
        code = reap(child.pid)
    return child.pid, code


def end(
    command: int,
    code: int | None,
    grace: float,
    *,
    session: int,
    foreign: set[tuple[str, int]],
) -> int:
    """The command's exit code, after all processes ended by SIGTERM or SIGKILL.

    `foreign` is the shared memory that existed before the command.
    """
    deadline = time.monotonic() + grace
    rest = others(session)
    held = segments_of(rest)
    send(signal.SIGTERM, rest)
    held |= segments_of(engines() if rest else ())
    while rest:
        time.sleep(LOOK)
        ended = reap(command)
        code = ended if code is None else code
        rest = others(session)
        if time.monotonic() >= deadline:
            held |= segments_of(rest)
            send(signal.SIGKILL, rest)
    remove(held - foreign)
    return (reap(command) if code is None else code) or 0


def reap(command: int) -> int | None:
    """The command's exit code if it has just ended; collects all ended children."""
    code = None
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == command:
                code = os.waitstatus_to_exitcode(found[1])
    return code if code is None or code >= 0 else 128 - code


def send(number: int, pids: Iterable[int]) -> None:
    """Send a signal to those of the processes that still exist and that we may signal."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def others(session: int) -> list[int]:
    """The processes of a session and the descendants of its leader, without the script's own."""
    return [pid for pid in members(session) if pid != os.getpid()]


def members(session: int) -> list[int]:
    """The processes of a session and the descendants of its leader, without the leader."""
    table = processes_of_proc() if Path("/proc/self/stat").exists() else processes_of_ps()
    ours = {session}
    while (
        more := {pid for pid, (parent, of) in table.items() if of == session or parent in ours}
        - ours
    ):
        ours |= more
    return sorted(ours - {session})


def segments() -> set[tuple[str, int]]:
    """The path and inode of all named shared memory, of all users."""
    found = set()
    with suppress(OSError):
        for path in SHARED.iterdir():
            with suppress(OSError):
                found.add((str(path), path.stat().st_ino))
    return found


def segments_of(pids: Iterable[int]) -> set[tuple[str, int]]:
    """The path and inode of the shared memory that these processes use, as far as is visible."""
    named = {str(path): (str(path), inode) for path, inode in segments()}
    held = set()
    for pid in pids:
        if named:
            with suppress(OSError):
                # Five fields precede the path, which may contain blanks.
                lines = Path(f"/proc/{pid}/maps").read_text("utf-8", "replace").splitlines()
                held |= {line.split(None, 5)[5] for line in lines if f" {SHARED}/" in line}
            held |= open_files(pid)
    return {named[path] for path in held if path in named}


def open_files(pid: int) -> set[str]:
    """The open files of a process; none if it has ended, or belongs to another user."""
    found = set()
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(each.readlink()))
    return found


def engines() -> list[int]:
    """The engine processes of this machine, whoever started them."""
    found = []
    for pid in processes_of_proc() if Path("/proc/self/stat").exists() else ():
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(ENGINES):
                found.append(pid)
    return found


def remove(left: set[tuple[str, int]]) -> None:
    """Remove the shared memory that dead processes left and no living process uses."""
    left &= segments()
    if left:
        for path, _ in left - segments_of(processes_of_proc()):
            with suppress(OSError):
                if Path(path).stat().st_uid == os.getuid():
                    Path(path).unlink()


def processes_of_proc() -> dict[int, tuple[int, int]]:
    """Parent and session of every living process, by its id."""
    table = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                # A command's name may contain blanks and brackets: fields begin after the last one.
                stat = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                # A zombie with living threads still holds its memory.
                if stat[0] not in "ZX" or int(stat[17]) > 1:
                    table[int(folder.name)] = (int(stat[1]), int(stat[3]))
    return table


def processes_of_ps() -> dict[int, tuple[int, int]]:
    """Parent and session of every living process without /proc, as on macOS."""
    listing = ["ps", "-axo", "pid=,ppid=,stat="]
    lines = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines()
    table = {}
    for pid, parent, state in (line.split(None, 2) for line in lines):
        with suppress(ProcessLookupError, PermissionError):
            if not state.startswith("Z"):
                table[int(pid)] = (int(parent), os.getsid(int(pid)))
    return table


def end_with(parent: int) -> Callable[[], None] | None:
    """What a child does before it becomes a command that gets SIGTERM when its parent is killed.

    None except on Linux.
    """
    call = prctl()
    if call is None:
        return None

    def bind() -> None:
        call(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def prctl() -> Callable[..., int] | None:
    """The system call that sets attributes of a process; None except on Linux."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            call: Callable[..., int] = ctypes.CDLL(None).prctl
            return call
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
