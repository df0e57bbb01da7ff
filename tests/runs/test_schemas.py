import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from builders.runs import make_entry, make_manifest, make_metric, make_summary, make_task
from golden.result_schemas import FILES, schema_file, schema_text

from harness.calls.pricing import Cost
from harness.runs.manifest import RoleEntry, StageEntry, session_started
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import write_summary
from harness.scoring.summary import RoleUse, StageSummary


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_those_of_the_types(name: str) -> None:
    assert schema_file(name).read_text() == schema_text(name), "run `make schemas`"


def validator(name: str) -> Any:
    schema = json.loads(schema_file(name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_a_real_manifest_is_valid_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    stage = StageEntry(name="a", key="k", file="1-a.jsonl", components={"seed": 1}, items=None)
    manifest = make_manifest(
        asked={"a": 1}, roles={"judge": RoleEntry(name="j")},
        tasks={"t": make_entry(make_task(), stage)},
    )  # fmt: skip
    folder = RunFolder(tmp_path)
    folder.write_manifest(session_started(manifest))
    document = json.loads(folder.manifest_file.read_text())
    validator("manifest.schema.json").validate(document)
    document["status"] = "perhaps"
    assert not validator("manifest.schema.json").is_valid(document)


def test_a_real_summary_is_valid_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    metric = make_metric(
        0.5, n=2, interval=(0.0, 1.0), missing={"timeout": 1}, counted_as_worst=0.3
    )
    none = msgspec.structs.replace(metric, value=None, interval=None, counted_as_worst=None)
    cost = Cost(
        model="openai:m", currency="USD", priced=True, asked=1, paid=0.5, paid_unknown=0,
        reused=1, saved=None, saved_unknown=1,
    )  # fmt: skip
    use = RoleUse(
        **dict.fromkeys(RoleUse.__struct_fields__[:-3], 1), rungs={"strict": 1}, cost=cost
    )
    summary = make_summary(
        units=3,
        metrics={"a": metric, "b": none},
        stages={"s": StageSummary(items=3, done=2, failures={"timeout": 1}, roles={"judge": use})},
    )
    write_summary(tmp_path / "summary.json", summary)
    document = json.loads((tmp_path / "summary.json").read_text())
    validator("summary.schema.json").validate(document)
    document["metrics"]["a"]["interval"] = [0.0]
    assert not validator("summary.schema.json").is_valid(document)
