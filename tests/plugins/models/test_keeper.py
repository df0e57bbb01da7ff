"""The keeper with real children: nothing of a command outlives whoever started it."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders.processes import lives, wait_until
from harness_models.server import keeper

LINUX = sys.platform == "linux"
TELL = """
import os, pathlib, signal, subprocess, sys, time
def tell(name):
    new = pathlib.Path(sys.argv[1], name + ".new")
    new.write_text(str(os.getpid()))
    new.rename(new.with_suffix(""))
"""
"""What a child says when it is ready: its process id, in a file of that name."""

STAYS = "time.sleep(600)"
FAMILY = (
    TELL
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    tell("grandchild")
    time.sleep(600)
if os.fork() == 0:
    # Only Linux tells who descends from whom after a parent's end.
    os.setsid() if sys.platform == "linux" else os.setpgid(0, 0)
    if os.fork():
        os._exit(0)
    tell("daemon")
    time.sleep(600)
while not all(pathlib.Path(sys.argv[1], name).exists() for name in ("grandchild", "daemon")):
    time.sleep(0.01)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
tell("child")
exec(sys.argv[2])
"""
)
"""A child, a grandchild, and a daemon of its own; only the child heeds SIGTERM."""


def keeper_of(command, *, grace=60.0):
    options = ["--grace", str(grace), "--", *command]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([sys.executable, "-I", keeper.__file__, *options], text=True, **pipes)


@pytest.fixture
def started(tmp_path):
    """Starts a keeper over a Python program; none is left after the test."""
    keepers = []

    def start(program, *arguments, grace=60.0):
        command = [sys.executable, "-c", program, str(tmp_path), *arguments]
        keepers.append(keeper_of(command, grace=grace))
        return keepers[-1]

    yield start
    for one in keepers:
        one.stdin.close()
        one.wait(timeout=60)
        one.stdout.close()


def pid_in(folder, name):
    file = folder / name
    wait_until(file.exists)
    return int(file.read_text())


def test_a_command_has_nothing_to_read_and_writes_where_the_keeper_does(started):
    loud = started(
        "import sys; print('out', flush=True); print('err', file=sys.stderr)\n"
        "raise SystemExit(len(sys.stdin.read()) + 5)"
    )
    assert loud.wait(timeout=60) == 5
    assert loud.stdout.read() == "out\nerr\n"


ORDERLY = """
def leave(number, frame):
    print("in good order", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, leave)
tell("child")
time.sleep(600)
"""


@pytest.mark.parametrize(
    "end",
    [
        lambda kept: kept.stdin.close(),
        lambda kept: (kept.stdin.write("\n"), kept.stdin.flush()),
        subprocess.Popen.terminate,
    ],
    ids=["closed", "wrote", "terminated"],
)
def test_input_its_end_or_a_signal_ends_the_command_in_good_order(started, tmp_path, end):
    orderly = started(TELL + ORDERLY)
    child = pid_in(tmp_path, "child")
    assert orderly.poll() is None
    end(orderly)
    assert orderly.wait(timeout=60) == 3
    assert orderly.stdout.read() == "in good order\n"
    assert not lives(child)


def test_a_killed_keepers_second_process_kills_a_child_that_ignores_sigterm(started, tmp_path):
    """Ray kills the children of a worker that ends."""
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn = started(f"{TELL}{ignore}; tell('child'); {STAYS}", grace=0.3)
    child = pid_in(tmp_path, "child")
    stubborn.kill()
    wait_until(lambda: not lives(child))


def test_processes_get_sigterm_before_all_others_of_the_machine_are_looked_at(monkeypatch):
    done, left = [], iter(([1], []))
    monkeypatch.setattr(keeper, "others", lambda session: next(left))
    monkeypatch.setattr(keeper, "send", lambda number, pids: done.append(number))
    monkeypatch.setattr(keeper, "engines", lambda: done.append("looked") or [])
    monkeypatch.setattr(keeper, "reap", lambda command: 143)
    assert keeper.end(1, None, 60.0, session=1, foreign=set()) == 143
    assert done == [signal.SIGTERM, "looked"]


HOLDS = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
made = open(f"/dev/shm/harness-test-{os.getpid()}", "w")
others = [open(path) for path in sys.argv[2:]]
tell("child")
time.sleep(600)
"""
"""A child with shared memory of its own and of others', which it gives up only if it is killed."""


@pytest.fixture
def segment():
    """Makes shared memory, named after the text; none is left after the test."""
    made = []

    def make(name):
        path = keeper.SHARED / f"harness-test-{name}-{os.getpid()}"
        path.write_bytes(b"x")
        made.append(path)
        return path

    yield make
    for path in made:
        path.unlink(missing_ok=True)


@pytest.mark.skipif(not LINUX, reason="only Linux keeps shared memory as files")
@pytest.mark.parametrize("used", [False, True])
def test_shared_memory_of_the_killed_goes_unless_older_or_used(started, tmp_path, segment, used):
    before = segment("before")
    holding = started(TELL + HOLDS, str(before), grace=0.3)
    own = keeper.SHARED / f"harness-test-{pid_in(tmp_path, 'child')}"
    user = subprocess.Popen(["sleep", "600"], stdin=(own if used else before).open())
    try:
        holding.stdin.close()
        assert holding.wait(timeout=60) == 137
        assert own.exists() == used
        assert before.exists()
    finally:
        user.kill()
        user.wait(timeout=60)
        own.unlink(missing_ok=True)


def pending(pid, number):
    """Whether a process that stands still has been sent this signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    [held] = re.findall(r"^ShdPnd:\s*(\w+)$", status, re.MULTILINE)
    return int(held, 16) >> (number - 1) & 1


@pytest.mark.skipif(not LINUX, reason="only Linux keeps shared memory as files")
def test_shared_memory_of_engines_that_ray_runs_is_removed_too(started, tmp_path, segment):
    """Ray's workers are its own children, and end when it hears of the server's end."""
    keeper_process = started(f"{TELL}tell('child'); {STAYS}")
    child = pid_in(tmp_path, "child")
    theirs = segment("theirs")
    hold = (
        "import os, sys, time; f = open(sys.argv[1], 'w'); print('up', flush=True); time.sleep(600)"
    )
    worker = subprocess.Popen(
        ["ray::Worker", "-c", hold, str(theirs)], executable=sys.executable, stdout=subprocess.PIPE
    )
    try:
        assert worker.stdout.readline() == b"up\n"
        # The server ends later than the worker, as one does that waits for its workers.
        os.kill(child, signal.SIGSTOP)
        keeper_process.stdin.close()
        wait_until(lambda: pending(child, signal.SIGTERM))
        time.sleep(1)  # the keeper looks at the engines once it has sent the signal
        worker.kill()
        worker.wait(timeout=60)
        os.kill(child, signal.SIGCONT)
        keeper_process.wait(timeout=60)
        assert not theirs.exists()
    finally:
        worker.kill()


@pytest.mark.skipif(not LINUX, reason="only Linux tells what a process has mapped")
def test_shared_memory_is_seen_that_is_mapped_and_no_longer_open(segment):
    path = segment("mapped one")
    program = f"""
import ctypes, time
with open({str(path)!r}) as file:
    ctypes.CDLL(None).mmap(None, 4096, 1, 1, file.fileno(), 0)
print("mapped", flush=True)
{STAYS}
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        assert keeper.segments_of([process.pid]) == {(str(path), path.stat().st_ino)}
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("last", "end", "code"),
    [
        (STAYS, lambda family, child: family.stdin.close(), 143),
        ("os._exit(5)", lambda family, child: None, 5),
        (STAYS, lambda family, child: os.kill(child, signal.SIGKILL), 137),
        pytest.param(
            STAYS,
            lambda family, child: os.kill(keeper.processes_of_proc()[child][0], signal.SIGKILL),
            137,
            marks=pytest.mark.skipif(not LINUX, reason="only Linux gives orphans to the keeper"),
        ),
    ],
    ids=["told", "by itself", "killed", "its second process killed"],
)
def test_grandchildren_and_daemons_end_with_the_command(started, tmp_path, last, end, code):
    family = started(FAMILY, last, grace=0.3)
    pids = [pid_in(tmp_path, name) for name in ("child", "grandchild", "daemon")]
    end(family, pids[0])
    assert family.wait(timeout=60) == code
    assert [pid for pid in pids if lives(pid)] == []


@pytest.mark.skipif(not LINUX, reason="only Linux gives orphans to the keeper")
def test_orphans_leave_no_zombies_while_the_command_runs(started, tmp_path):
    orphaning = """
if os.fork() == 0:
    if os.fork():
        os._exit(0)
    tell("orphan")
    os._exit(0)
os.wait()
time.sleep(600)
"""
    started(TELL + orphaning)
    orphan = pid_in(tmp_path, "orphan")
    wait_until(lambda: not Path(f"/proc/{orphan}").exists())


@pytest.mark.parametrize(
    ("mode", "why", "code"),
    [(0o644, "Permission denied", 126), (0o755, "No such file or directory", 127)],
)
def test_a_file_that_may_not_be_run_or_lacks_its_interpreter_is_named(tmp_path, mode, why, code):
    file = tmp_path / "engine"
    file.write_text("#!/no/such/interpreter\n")
    file.chmod(mode)
    barred = keeper_of([str(file)])
    said, _ = barred.communicate(timeout=60)
    assert said == f"{file} cannot be started: {why}\n"
    assert barred.returncode == code


EXIT_THREAD = {"x86_64": 60, "aarch64": 93}.get(platform.machine(), 0)
"""The number of the system call that ends one thread only."""


@pytest.mark.skipif(not (LINUX and EXIT_THREAD), reason="needs a system call of Linux")
def test_a_process_whose_first_thread_alone_has_ended_is_still_a_member_and_a_zombie_is_not():
    zombie = subprocess.Popen([sys.executable, "-c", "pass"])
    half = f"""
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({EXIT_THREAD}, 0)
"""
    process = subprocess.Popen([sys.executable, "-c", half], start_new_session=True)
    try:
        wait_until(lambda: not lives(process.pid) and not lives(zombie.pid))
        members = keeper.members(os.getpid())
        assert process.pid in members
        assert zombie.pid not in members
    finally:
        process.kill()
        process.wait(timeout=60)
        zombie.wait(timeout=60)


@pytest.mark.skipif(not LINUX or shutil.which("ps") is None, reason="compares /proc with ps")
def test_ps_finds_the_members_of_a_session_that_proc_finds(monkeypatch):
    program = f"import os, time; os.fork(); {STAYS}"
    leader = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    try:
        wait_until(lambda: keeper.members(leader.pid))
        of_proc = keeper.members(leader.pid)
        monkeypatch.setattr(keeper, "processes_of_proc", keeper.processes_of_ps)
        assert len(of_proc) == 1
        assert keeper.members(leader.pid) == of_proc
    finally:
        keeper.send(signal.SIGKILL, [*keeper.members(leader.pid), leader.pid])
        leader.wait(timeout=60)
