"""Runs whose workers do not see the run folder: what they record is sent to where the run began."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from builders.clusters import living_actors, living_workers, ray_folder
from builders.processes import wait_until
from builders.toys import Runs, asked, current_lines, outcomes

from harness.pipeline.executors.ray_keeper import HarnessKeeper
from harness.runs.journal_parts import journal_parts
from harness.testing import faults

RAY = [sys.executable, "-m", "ray.scripts.scripts"]

WORDS = [f"w{number % 7} {number}" for number in range(40)]


def hides(folder):
    """A command after which the rest of the line runs where the folder is an empty one."""
    hide = f'mount -t tmpfs none {folder} && exec "$@"'
    return ["unshare", "--mount", *(["--user", "--map-root-user"] if os.getuid() else []),
            "sh", "-c", hide, "sh"]  # fmt: skip


def can_hide():
    tried = [*hides("/mnt"), "true"]
    return sys.platform == "linux" and not subprocess.call(tried, stderr=subprocess.DEVNULL)


pytestmark = pytest.mark.skipif(not can_hide(), reason="no folder can be hidden from a process")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def nodes_without(folder):
    """The address of a cluster on whose two nodes that work the folder is an empty one.

    The second address is that for a driver outside the cluster.
    """
    port, outside = free_port(), free_port()
    started = []

    def start(*arguments, before=()):
        command = [*before, *RAY, "start", "--block", "--object-store-memory", str(80 * 1024**2)]
        # With it, gRPC may crash in the process that the head forks for a driver outside.
        unforked = {**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"}
        started.append(
            subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL, env=unforked)
        )

    with ray_folder():
        try:
            start(
                "--head",
                "--port",
                str(port),
                "--num-cpus",
                "0",
                "--include-dashboard=false",
                "--node-ip-address=127.0.0.1",
                "--ray-client-server-port",
                str(outside),
            )
            wait_until(lambda: answers(port))
            for number in (1, 2):
                wait_until(lambda number=number: count_nodes(port) == number)
                start("--address", f"127.0.0.1:{port}", "--num-cpus", "1", before=hides(folder))
            wait_until(lambda: count_nodes(port) == 3)
            yield f"127.0.0.1:{port}", f"ray://127.0.0.1:{outside}"
        finally:
            for process in started:
                process.kill()
                process.wait()


def answers(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def count_nodes(port):
    from ray._raylet import GcsClient

    return len(GcsClient(address=f"127.0.0.1:{port}").get_all_node_info())


@pytest.fixture(scope="module")
def hidden(tmp_path_factory):
    return tmp_path_factory.mktemp("hidden")


@pytest.fixture(scope="module")
def cluster(package, hidden):
    with nodes_without(hidden) as addresses:
        yield addresses


@pytest.fixture
def runs(hidden, package, cluster, request) -> Iterator[Runs]:
    folder = hidden / request.node.name
    folder.mkdir()
    yield Runs(folder, package, cluster[0])


def ended(process, code=0):
    _, shown = process.communicate(timeout=120)
    assert process.returncode == code, shown
    return shown


def test_the_scores_are_those_of_one_process(runs, serve):
    server = serve(latency=0.1)
    runs.words(*(f"w{number % 7} {number}" for number in range(100)))
    local = runs.run("local", store=runs.folder / "local.sqlite", output_path=runs.folder / "local")
    count = server.count
    ended(runs.start("ray", "--run_storage", "local", "--concurrency", "4"))
    assert server.count == 2 * count
    assert scores(runs) == (local.folder / "toys" / "scores.jsonl").read_bytes()
    assert len(journal_parts(journal(runs))) > 1  # of both workers
    assert not runs.place.joinpath("engines").exists()


def test_a_folder_that_nodes_do_not_see_is_refused_otherwise(runs, serve):
    serve()
    runs.words(*WORDS)
    said = ended(runs.start("ray"), code=2)
    assert "the run folder cannot be seen from a node" in said
    assert "--run_storage local" in said


def test_an_answer_is_on_disk_while_its_shard_is_worked(runs, serve):
    """A worker that is killed loses nothing that was written: only what was in flight is asked."""
    server = serve(faults=silent_on("say w3 3", "say w4 18"))
    runs.words(*WORDS)
    process = runs.start("ray", "--run_storage", "local", "--no_store")
    wait_until(lambda: len(recorded(runs, "say")) == 38)
    assert process.poll() is None
    for worker in living_workers():
        os.kill(worker, signal.SIGKILL)
    server.faults = ()
    ended(process)
    times = Counter(asked(server))
    assert {text for text in times if times[text] > 1 and text.startswith("say")} == {
        "say w3 3", "say w4 18"
    }  # fmt: skip
    assert outcomes(recorded(runs, "say")) == outcomes_of(WORDS)


def test_the_answers_of_a_broken_item_are_not_asked_again_on_a_node_without_them(runs, serve):
    server = serve()
    words = [f"late {number}" for number in range(6)]
    runs.words(*words)
    command = ("ray", "--run_storage", "local", "--max_failures", "1.0", "--no_store")
    ended(runs.start(*command), code=3)
    assert set(outcomes(recorded(runs, "say")).values()) == {"KeyError"}
    before, count = recorded(runs, "say"), server.count
    assert count == 6
    mended = runs.package / "mended"
    mended.touch()
    try:
        ended(runs.start(*command))
    finally:
        mended.unlink()
    assert outcomes(recorded(runs, "say")) == outcomes_of(words)
    assert not [text for text in asked(server)[count:] if text.startswith("say")]
    calls = [line["calls"][0] for lines in (before, recorded(runs, "say")) for line in lines]
    assert {call["text"] for call in calls[:6]} == {call["text"] for call in calls[6:]} == {*words}
    assert {call["source"] for call in calls[6:]} == {"shared"}


def test_a_keeper_that_dies_ends_the_run_and_the_same_command_goes_on(runs, serve):
    server = serve(latency=0.1)
    runs.words(*WORDS)
    command = ("ray", "--run_storage", "local", "--no_store", "--concurrency", "2")
    process = runs.start(*command)
    wait_until(lambda: len(recorded(runs, "say")) > 5)
    [keeper] = living_actors("HarnessKeeper")
    os.kill(keeper, signal.SIGKILL)
    said = ended(process, code=1)
    assert "the process that keeps records and memos for the workers" in said
    assert "repeat the same command: it continues where it stopped" in said
    # A reply may be on disk a moment before the record of its item.
    before = {*runs.kept(), *(line["item"]["word"] for line in recorded(runs, "say"))}
    count = server.count
    ended(runs.start(*command))
    again = asked(server)[count:]
    assert sorted(text for text in again if text.startswith("say")) == sorted(
        f"say {word}" for word in WORDS if word not in before
    )
    assert outcomes(recorded(runs, "say")) == outcomes_of(WORDS)


def test_a_driver_outside_the_cluster_needs_only_a_head_that_sees_the_folder(runs, serve, cluster):
    serve()
    runs.words(*WORDS)
    runs.address = cluster[1]
    ended(runs.start("ray", "--run_storage", "local"))
    assert outcomes(recorded(runs, "say")) == outcomes_of(WORDS)


def test_a_head_that_does_not_see_the_folder_is_refused(tmp_path):
    keeper = HarnessKeeper()
    for folder in (tmp_path / "none", tmp_path / "other"):
        error = keeper.begin(folder, "lock of another run", None)
        assert "cannot be seen from the head of the cluster" in str(error)
        assert "give the command on a machine of the cluster" in str(error)
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / "lock").write_text("")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["lock"]


def silent_on(*texts):
    """The fault for these questions: no answer."""

    def rule(request):
        return faults.SILENCE if request.body["messages"][-1]["content"] in texts else None

    return rule


def outcomes_of(words):
    return {f"{number:03}": word for number, word in enumerate(words)}


def scores(runs):
    return (journal(runs).parent / "scores.jsonl").read_bytes()


def journal(runs):
    """The journal of stage `say` in the folder of the only run."""
    return runs.only / "toys" / "1-say.jsonl"


def recorded(runs, stage):
    """The current records of a stage of the only run, as they are on disk."""
    found = list(runs.place.glob("*")) if runs.place.exists() else []
    return current_lines(found[0], stage) if found and journal_parts(journal(runs)) else []
