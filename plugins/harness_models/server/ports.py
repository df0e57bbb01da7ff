"""Finds a free port for a server without sockets, and checks which process listens on it."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from harness_models.server.keeper import open_files

HOST = "127.0.0.1"
LISTENING = "0A"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def free_port() -> int:
    """A port that is free now; `held_by` checks that no other process takes it first."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def held_by(port: int, pids: Collection[int]) -> bool | None:
    """True if one of these processes listens on a port; None if no listener is visible.

    Checked before a server is used: another process may have taken the port, and would answer.
    """
    if not Path(TABLES[0]).exists():  # as on macOS
        listing = ["lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-t"]
        done = subprocess.run(listing, capture_output=True, text=True, check=False)
        listeners = {int(pid) for pid in re.findall(r"^\d+$", done.stdout, re.MULTILINE)}
        return not listeners.isdisjoint(pids) if listeners else None
    wanted = set()
    for table in TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    wanted.add(f"socket:[{fields[9]}]")
    return any(wanted & open_files(pid) for pid in pids) if wanted else None
