"""What a run on a cluster does, what keeps it from its start, and where keys go."""

from __future__ import annotations

import os
import signal
from base64 import b64encode
from collections import Counter
from pathlib import Path

import pytest
from builders.clusters import NODE, ON_RAY, PATIENCE
from builders.processes import wait_until
from builders.toys import asked, current_lines, outcomes

from harness.base.errors import PluginError
from harness.calls.retry import Patience
from harness.pipeline.executors import sharded
from harness.testing import faults

pytestmark = ON_RAY
ANY_NUMBER = {"calls": 1.0, "parsing": 1.0, "judging": 1.0, "errors": 1.0}
WORDS = [f"w{number % 7} {number}" for number in range(40)]


def check_paid(server, said):
    """So many questions of items were asked, and each one that items share once by a worker."""
    counted = Counter(asked(server))
    judged = [counted.pop(f"judge w{number}") for number in range(7)]
    assert set(judged) <= {1, 2} and counted.total() == said


def of_items(words):
    """What is said of items that all succeed."""
    return {f"{number:03}": word for number, word in enumerate(words)}


def ending_in(number, fault):
    """The fault for each question of stage `say` that ends in this digit."""

    def rule(request):
        question = request.body["messages"][-1]["content"]
        return fault if question.startswith("say") and question.endswith(number) else None

    return rule


def test_only_failed_items_are_asked_again_and_past_the_store(runs, serve):
    server = serve(faults=ending_in("3", faults.TRUNCATED))
    runs.words(*WORDS)
    first = runs.run("ray", max_failures=ANY_NUMBER)
    assert list(outcomes(current_lines(first.folder, "say")).values()).count("truncated") == 4
    asked_before = server.count
    server.faults = ()
    done = runs.run("ray", max_failures=ANY_NUMBER, retry_failures=True, resume=first.folder)
    new = asked(server)[asked_before:]
    assert sorted(new[:4]) == ["say w2 23", "say w3 3", "say w5 33", "say w6 13"]
    assert outcomes(current_lines(done.folder, "say")) == of_items(WORDS)
    assert done.summaries[0].stages["say"].failures == {}


def test_no_worker_opens_for_a_run_of_which_nothing_is_left(runs, serve):
    import ray

    serve()
    runs.words(*WORDS)
    done = runs.run("local")
    before = set(ray._private.state.actors())
    again = runs.run("ray", resume=done.folder)
    assert (again.status, again.folder) == ("done", done.folder)
    assert runs.stages == ["say begins", "say ends", "judge begins", "judge ends"]
    assert again.summaries == done.summaries
    assert set(ray._private.state.actors()) == before


@pytest.mark.parametrize("then", ["local", "ray"])
@pytest.mark.parametrize("first", ["local", "ray"])
def test_what_ended_without_an_answer_is_asked_again_by_the_same_command(runs, serve, first, then):
    server = serve(faults=ending_in("3", faults.status(500)))
    runs.words(*WORDS)
    limits = {"patience": Patience(attempts=1), "max_failures": {"calls": 0.05}}
    begun = runs.run(first, **limits)
    assert (begun.status, server.count) == ("too_many_failures", 40)
    server.faults = ()
    done = runs.run(then, **limits)
    assert (done.status, done.folder) == ("done", begun.folder)
    assert outcomes(current_lines(done.folder, "say")) == of_items(WORDS)
    check_paid(server, 40 + 4)


def test_a_fault_of_the_benchmark_ends_the_run(runs, serve):
    serve()
    runs.words("a", "b", "peek")
    done = runs.run("ray")
    assert (done.status, done.exit_code) == ("failed", 1)
    assert isinstance(done.errors[0], PluginError)
    assert "reads an option it does not declare" in str(done.errors[0])


def test_ctrl_c_lets_calls_in_flight_finish_and_the_same_command_goes_on(runs, serve):
    server = serve(latency=1.0)
    runs.words(*WORDS)
    process = runs.start("ray", "--concurrency", "4")
    wait_until(lambda: server.in_flight >= 4 and server.count >= 4)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, shown
    paid = server.count
    assert paid < 40 and sum(server.answered.values()) == paid
    server.latency = 0.0
    assert runs.run("ray").status == "done"
    check_paid(server, 40)


def test_ctrl_c_twice_waits_for_nothing(runs, serve):
    server = serve(faults=lambda request: faults.SILENCE)
    runs.words(*WORDS)
    arguments = runs.arguments("ray", "--concurrency", "4")
    arguments.remove("--quiet")
    process = runs.started(arguments)
    wait_until(lambda: server.count >= 4)
    process.send_signal(signal.SIGINT)
    assert any("finishing the calls in flight" in line for line in process.stderr)
    assert process.poll() is None  # it waits for them
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, shown
    server.faults = ()
    assert runs.run("ray").status == "done"


def test_engines_that_do_not_fit_beside_each_other_open_in_turn(runs):
    runs.words(*WORDS)
    models = {"model": "toy", "model_args": "name=one", "roles": {"referee": "toy:name=two"}}
    done = runs.run("ray", **models, engines=2, workers=None)
    assert done.status == "done", done.errors
    assert outcomes(current_lines(done.folder, "say")) == of_items(WORDS)
    events = [line.split() for line in (runs.package / "engines").read_text().splitlines()]
    by_process = {}
    for process, *event in events:
        by_process.setdefault(process, []).append(" ".join(event))
    assert len(by_process) <= 2
    for found in by_process.values():  # a worker that opens late may find one stage done
        assert found in (
            ["opens one", "closes one", "opens two", "closes two"],
            ["opens two", "closes two"],
            ["opens one", "closes one"],
        )


def test_workers_share_the_concurrency(runs, serve, monkeypatch):
    monkeypatch.setattr(sharded, "ROOM_SECONDS", 300.0)
    server = serve(latency=0.2)
    runs.words(*WORDS)
    assert runs.run("ray", workers=3, concurrency=4).status == "done"
    assert 2 <= server.most_in_flight <= 4


@pytest.mark.parametrize("lacks", ["the plugin", "its version"])
def test_a_node_that_lacks(runs, serve, cluster, tmp_path, lacks):
    server = serve()
    runs.words(*WORDS)
    newer = tmp_path / "acme_toys-2.0.dist-info"
    newer.mkdir()
    for file in runs.package.parent.glob("acme_toys-1.0.dist-info/*"):
        (newer / file.name).write_text(file.read_text().replace("Version: 1.0", "Version: 2.0"))
    variables, found = {
        "the plugin": ({"HARNESS_PLUGINS": "models,judges"}, "nothing"),
        "its version": ({"PYTHONPATH": f"{tmp_path}:{os.environ['PYTHONPATH']}"}, "acme-toys 2.0"),
    }[lacks]
    node = cluster.add_node(**NODE, env_vars=variables)
    try:
        cluster.wait_for_nodes()
        done = runs.run("ray", workers=None)
    finally:
        cluster.remove_node(node)
    assert (done.status, done.exit_code) == ("failed", 2)
    error = done.errors[0]
    assert error.problem == "plugin toys is not what it was where the run was prepared"
    assert (error.found, error.expected) == (found, "acme-toys 1.0")
    assert error.where.startswith("node ") and server.count == 0


KEY = "correct-horse-battery-staple"
FILE_KEY = "sk-proj-Zb81nQ0xkW4tRv7LmP2d"
PASSWORD = "hunter2-of-the-proxy"


def state_of_cluster():
    """What Ray's own tools list: actors, jobs, workers, nodes, tasks, and the key-value store."""
    from ray._private.state import actors, jobs, state
    from ray._private.worker import global_worker

    kept = []
    for namespace in (None, b"fun", b"cls", b"job", b"package", b"tracing", b"session"):
        for key in global_worker.gcs_client.internal_kv_keys(b"", namespace):
            kept.append((key, global_worker.gcs_client.internal_kv_get(key, namespace)))
    listed = [actors(), jobs(), state.workers(), state.node_table(), state.chrome_tracing_dump()]
    return {f"state {number}": repr(one).encode() for number, one in enumerate([*listed, kept])}


def files_below(*folders):
    return {
        str(file): file.read_bytes()
        for folder in folders
        for file in Path(folder).rglob("*")
        if file.is_file() and not file.is_socket()
    }


def echo_the_key(asked):
    """Repeats the key in the message of an error, for some items."""
    if not asked.body["messages"][-1]["content"].endswith("3"):
        return None
    return faults.status(400, message=f"refused: {asked.headers['authorization']}")


@pytest.mark.parametrize("place", ["variable and file", "address"])
def test_no_key_is_written_or_listed_anywhere(runs, serve, place):
    server = serve(faults=echo_the_key, latency=0.02)
    runs.words(*WORDS, "die here")
    (runs.package / "die").touch()
    more = ["--max_failures", "1", "--reuse", "run"]
    if place == "address":
        runs.url = server.url.replace("http://", f"http://someone:{PASSWORD}@")
        token = b64encode(f"someone:{PASSWORD}".encode()).decode()
        sent, secrets = {f"Basic {token}"}, [PASSWORD, token]
    else:
        (runs.folder / "key").write_text(f"{FILE_KEY}\n")
        referee = f"openai:base_url={server.url},model=referee,revision=1,api_key_file=key"
        sent, secrets = {f"Bearer {KEY}", f"Bearer {FILE_KEY}"}, [KEY, FILE_KEY]
    arguments = runs.arguments("ray", *more)
    arguments.remove("--quiet")
    if place != "address":
        arguments[arguments.index("--role") + 1] = f"referee={referee}"
    process = runs.started(arguments, OPENAI_API_KEY=KEY)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert not (runs.package / "die").exists()  # a worker died, and was given its keys again
    assert {one.headers["authorization"] for one in server.asked} == sent
    found = {
        "stdout": out.encode(),
        "stderr": err.encode(),
        **state_of_cluster(),
        **files_below(os.environ["RAY_TMPDIR"], runs.place),
    }
    assert any(b"refused: B" in text for text in found.values())  # the echo without the key
    assert any(b"ShardWorker" in text for name, text in found.items() if "state" in name)
    assert any(name.endswith("raylet.out") for name in found)
    for secret in [*secrets, KEY]:
        assert [name for name, text in found.items() if secret.encode() in text] == []
