"""Ports of this machine, with real listeners in this process and in a child."""

import os
import socket
import subprocess
import sys

import pytest
from harness_models.server import ports
from harness_models.server.ports import HOST, free_port, held_by

LISTENS = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def child():
    with subprocess.Popen(
        [sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


def test_a_free_port_is_one_that_can_be_listened_on():
    port = free_port()
    with socket.create_server((HOST, port)):
        assert held_by(port, [os.getpid()]) is True
    assert held_by(port, [os.getpid()]) is None


def test_a_port_of_another_process_is_told_from_ours_and_not_held_by_its_client(child):
    port = int(child.stdout.readline())
    assert held_by(port, [os.getpid()]) is False
    assert held_by(port, []) is False
    assert held_by(port, [os.getpid(), child.pid]) is True
    with socket.create_connection((HOST, port)):
        assert held_by(port, [os.getpid()]) is False


def test_without_proc_lsof_is_asked(child, monkeypatch, tmp_path):
    port = int(child.stdout.readline())
    program = tmp_path / "lsof"
    program.write_text(f'#!/bin/sh\n[ "$2" = "-iTCP:{port}" ] && echo {child.pid}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(ports, "TABLES", ("/no/such/table",))
    assert held_by(port, [child.pid]) is True
    assert held_by(port, [os.getpid()]) is False
    assert held_by(port + 1, [child.pid]) is None
