"""A port of this machine for a server that knows no sockets, and whether it is ours that has it."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
LISTENING = "0A"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def free_port() -> int:
    """A port that nobody listens on now. Somebody may before our server does: see `held_by`."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def held_by(port: int, pids: Collection[int]) -> bool | None:
    """Whether one of these processes listens on a port; None where nobody is seen to listen.

    Asked before every server is trusted: another process may have been faster, and would answer.
    """
    if not Path(TABLES[0]).exists():
        listeners = listeners_of_lsof(port)
        return not listeners.isdisjoint(pids) if listeners else None
    wanted = {f"socket:[{inode}]" for inode in inodes_of_proc(port)}
    return any(wanted & open_files(pid) for pid in pids) if wanted else None


def inodes_of_proc(port: int) -> set[str]:
    """The sockets that listen on a port, whoever holds them."""
    found = set()
    for table in TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def open_files(pid: int) -> set[str]:
    """What a process has open; nothing where it is gone, or not ours."""
    found = set()
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(each.readlink()))
    return found


def listeners_of_lsof(port: int) -> set[int]:
    """The processes that listen, where there is no /proc, as on macOS."""
    listing = ["lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-t"]
    done = subprocess.run(listing, capture_output=True, text=True, check=False)
    return {int(pid) for pid in re.findall(r"^\d+$", done.stdout, re.MULTILINE)}
