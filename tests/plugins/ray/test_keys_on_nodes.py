"""Keys reach the workers, and are in nothing that Ray, the run or the command writes or says."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path

import pytest
from builders.clusters import ON_RAY, PATIENCE

from harness.testing import faults

pytestmark = ON_RAY

KEY = "correct-horse-battery-staple"
FILE_KEY = "sk-proj-Zb81nQ0xkW4tRv7LmP2d"
PASSWORD = "hunter2-of-the-proxy"
WORDS = [f"w{number % 7} {number}" for number in range(30)]


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
    """Repeats the key in the message of an error, for three items."""
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
