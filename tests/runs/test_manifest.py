from pathlib import Path

import msgspec
import pytest
from builders.runs import make_entry, make_manifest
from golden.result_schemas import FILES, schema_file, schema_text

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, RoleSpec, TableSpec, Task
from harness.runs.manifest import (
    Manifest,
    RoleEntry,
    StageEntry,
    TaskEntry,
    read_manifest,
    session_ended,
    session_started,
    task_definition,
    write_manifest,
)

TASK = Task(
    name="gist",
    version=2,
    benchmark="gistbench",
    data=DataSpec(tables={"events": TableSpec(files=("a.csv",), columns={"u": Column()})}),
    metrics=("f1",),
    options={"window": 3, "key": "user_id"},
    roles={"judge": RoleSpec(default="openai:model=x")},
    file=Path("/home/someone/gist.yaml"),
)


def manifest() -> Manifest:
    stages = (
        StageEntry(name="extract", key="1" * 32, file="1-extract.jsonl", components={"seed": 0}),
        StageEntry(name="verify", key="2" * 32, file="2-verify.jsonl"),
    )
    return make_manifest(
        run_key="0" * 32,
        status="running",
        seed=7,
        asked={"model": "openai", "model_args": {"model": "m"}, "changes": {"key": "x"}},
        tasks={"gist": make_entry(TASK, *stages)},
    )


def test_a_task_comes_back_from_the_manifest_but_for_where_its_file_was(tmp_path: Path) -> None:
    write_manifest(tmp_path / "manifest.json", manifest())
    entry = read_manifest(tmp_path / "manifest.json").tasks["gist"]
    assert entry.task() == msgspec.structs.replace(TASK, file=None)
    assert entry.definition["file"] == "gist.yaml"
    assert "someone" not in (tmp_path / "manifest.json").read_text()


def test_sessions_record_when_the_run_was_at_work_and_how_it_ended() -> None:
    first = session_ended(session_started(manifest()), "failed", problem="no disk")
    assert (first.status, first.problem) == ("failed", "no disk")
    second = session_started(first)
    assert (second.status, second.problem) == ("running", None)
    assert [session.status for session in second.sessions] == ["failed", "running"]
    assert second.sessions[0].ended is not None
    assert second.sessions[1].ended is None


def test_no_manifest_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run in this folder"):
        read_manifest(tmp_path / "manifest.json")


def test_secrets_do_not_reach_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", "correct-horse-battery")
    asked = {
        "model_args": {"api_key": "s3cret-1", "hf_token": "s3cret-2", "max_tokens": "5"},
        "roles": {"judge": "openai:model=j,api_key=s3cret-3,base_url=http://me:pw@host/v1"},
        "changes": {"key": "x"},
    }
    details = {"engine": {"hf_token": "s3cret-4"}, "outer": [{"token": "s3cret-5"}], "ids": [7]}
    model = {"kind": "vllm", "name": "m", "details": details}
    panel = {"members": {"vllm:token": {"model": model}}, "sampling": {}}
    options, roles = {"key_items": 5}, {"key": {"model": model, "sampling": {}}, "judge": panel}
    components = {"options": options, "roles": roles, "version": 1}
    stage = StageEntry(name="s", key="k", file="f", components=components)
    whole = make_manifest(
        asked=asked, settings=asked, problem="401 for correct-horse-battery",
        tasks={"gist": make_entry(TASK, stage)},
        roles={"judge": RoleEntry(name="vllm:m", identity=panel)},
    )  # fmt: skip
    write_manifest(tmp_path / "manifest.json", whole)
    text = (tmp_path / "manifest.json").read_text()
    assert not [one for one in ("s3cret", "me:pw", "correct-horse-battery") if one in text]
    read = read_manifest(tmp_path / "manifest.json")
    assert read.asked["model_args"]["max_tokens"] == "5"
    assert read.asked["changes"] == {"key": "x"}
    assert read.asked["roles"]["judge"] == (
        "openai:model=j,api_key=[redacted],base_url=http://[redacted]@host/v1"
    )
    found = read.tasks["gist"].stages[0].components
    assert found["options"] == options
    safe = found["roles"]["key"]["model"]
    assert safe["details"] == {
        "engine": {"hf_token": "[redacted]"}, "outer": [{"token": "[redacted]"}], "ids": [7],
    }  # fmt: skip
    assert found["roles"]["judge"]["members"] == {"vllm:token": {"model": safe}}
    assert read.roles["judge"].identity == found["roles"]["judge"]


def test_the_only_source_of_an_older_run_is_read() -> None:
    definition = task_definition(TASK)
    data = {name: value for name, value in definition["data"].items() if name != "sources"}
    for old, kept in ({"hub": {"repo": "a/b"}, "url": None}, 1), ({"hub": None, "url": None}, 0):
        entry = TaskEntry(
            folder="gist", definition={**definition, "data": {**data, **old}}, content="c",
            stages=(),
        )  # fmt: skip
        assert len(entry.task().data.sources) == kept


def test_a_damaged_definition_of_a_task_is_a_data_error() -> None:
    definition = {**task_definition(TASK), "version": "two"}
    entry = TaskEntry(folder="gist", definition=definition, content="c", stages=())
    with pytest.raises(DataError, match="a task that cannot be read") as caught:
        entry.task()
    assert caught.value.where == "gist, in manifest.json"
    assert "version" in str(caught.value.found)


@pytest.mark.parametrize("name", FILES)
def test_the_schema_files_are_those_of_the_types(name: str) -> None:
    assert schema_file(name).read_text() == schema_text(name), "run `make schemas`"
