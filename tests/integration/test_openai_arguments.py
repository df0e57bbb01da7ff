"""What arguments of an `openai` model leave in records, store and manifest."""

import json
from pathlib import Path

import pytest

import harness as package
from harness.testing import Fault
from harness.testing.faults import status

pytestmark = pytest.mark.usefixtures("own_cache")
LOGPROBS = {"content": [{"token": "[", "logprob": -0.25, "top_logprobs": []}]}
KEPT = [{"token": "[", "logprob": -0.25}]


@pytest.fixture
def ask(tmp_path):
    def ask(server, model="openai", **more):
        args = {"base_url": server.url, "model": "m", "revision": "r1"} if server else {}
        return package.evaluate(
            "interests", model=model, model_args={**args, **more}, judge="lexical", data="sample",
            limit=3, output_path=tmp_path / "runs",
        )  # fmt: skip

    return ask


def calls(folder: Path) -> list[dict]:
    lines = (folder / "interests" / "1-name.jsonl").read_text().splitlines()
    return [call for line in lines for call in json.loads(line)["calls"]]


def test_logprobs_stand_in_the_record_from_model_store_and_recording(ask, serve):
    server = serve(faults=lambda asked: Fault(choice={"logprobs": LOGPROBS}))
    plain = ask(server)
    asked = server.count
    first = ask(server, logprobs=True)
    assert server.count == 2 * asked, "answers without logprobs do not stand for those with them"
    again = ask(server, logprobs=True)
    assert server.count == 2 * asked
    replayed = ask(None, model="replay", run=str(first.folder))
    for run, source in ((first, "model"), (again, "store"), (replayed, "model")):
        told = [(call["logprobs"], call.get("source", "model")) for call in calls(run.folder)]
        assert told == [(KEPT, source)] * 3
    # Sent without being asked for, they are kept all the same.
    assert [call["logprobs"] for call in calls(plain.folder)] == [KEPT] * 3


def refuses_system(asked):
    has = any(turn["role"] == "system" for turn in asked.body["messages"])
    return status(400, message="System role not supported") if has else None


def test_what_auto_found_out_stands_in_the_manifest(ask, serve):
    done = ask(serve(faults=refuses_system), system_role="auto")
    assert done.status == "done"
    manifest = json.loads((done.folder / "manifest.json").read_text())
    (session,) = manifest["sessions"]
    assert session["limits"]["openai:m"]["learnt"] == {"system_role": False}
    identity = manifest["roles"]["candidate"]["identity"]["model"]
    assert identity["details"] == {"revision": "r1", "system_role": "auto"}
