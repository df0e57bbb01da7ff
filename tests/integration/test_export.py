"""Runs as files for other programs: what is missing is missing there as well, with its cause."""

import json
import math
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import ANY
from uuid import UUID
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest
from builders.runs import write_sealed
from builders.texts import read_csv, read_json_lines
from huggingface_hub import ModelCard

from harness.analysis.exported_runs import in_file_name
from harness.testing import Asked, Fault, FaultyServer, faults

OVERFLOW = faults.status(400, message="maximum context length is 8")


@pytest.fixture(scope="module")
def made(tmp_path_factory, harnesses) -> Path:
    """A run of six people: the first is too long to ask about, the second unread, one reasoned."""
    harness = harnesses(tmp_path_factory.mktemp("made"))

    def answer(body: dict[str, Any]) -> str:
        if body["messages"] == second.setdefault("messages", body["messages"]):
            return "=no idea\x1b[2J"
        return harness.answer(body)

    def fault(asked: Asked) -> Fault | None:
        if asked.number == 3:
            message = {
                "content": harness.answer(asked.body),
                "reasoning_content": "Owls, so birds.",
            }
            return Fault(choice={"message": {"role": "assistant", **message}})
        return OVERFLOW if asked.number == 0 else None

    second: dict[str, Any] = {}
    with FaultyServer(answer, models=("candidate-model", "judge-model"), faults=fault) as server:
        harness.url = server.url
        done = harness.run("--limit", "6", "--concurrency", "1", "--max_failures", "1").ok()
    return harness.folder / done.json["folder"]


@pytest.fixture
def run(harness, made) -> Path:
    """A copy of that run, which a test may damage."""
    return shutil.copytree(made, harness.folder / "runs" / made.name)


@pytest.fixture
def summary(run) -> dict[str, Any]:
    return json.loads((run / "interests" / "summary.json").read_text())


@pytest.fixture
def named(run) -> list[dict[str, Any]]:
    """The records of its first stage."""
    return read_json_lines(run / "interests" / "1-name.jsonl")


def export(harness, run: Path, kind: str, out: str = "out", *more: str):
    return harness.here("export", str(run), "--format", kind, "--out", out, *more)


def test_csv_has_a_row_for_each_unit_record_and_call(harness, run, summary, named):
    done = export(harness, run, "csv").ok()
    out = harness.folder / "out"
    assert done.out.split() == [
        "out/metrics.csv", "out/scores.csv", "out/records.csv", "out/calls.csv",
    ]  # fmt: skip
    metrics = {row["metric"]: row for row in read_csv(out / "metrics.csv")}
    for name, found in summary["metrics"].items():
        assert float(metrics[name]["value"]) == found["value"]
        assert float(metrics[name]["low"]) == found["interval"][0]
        assert json.loads(metrics[name]["causes"]) == found["missing"]
        assert metrics[name]["fell_out"] == "2"
        assert float(metrics[name]["missing_share"]) == 2 / 6

    scores = read_csv(out / "scores.csv")
    assert len(scores) == 6
    missing = sorted(row["support_missing"] for row in scores if row["support"] == "")
    assert "name/overflow" in missing
    assert missing == sorted(summary["metrics"]["support"]["missing"])
    assert all(row["support_missing"] == "" for row in scores if row["support"] != "")

    rows = [row for row in read_csv(out / "records.csv") if row["stage"] == "name"]
    assert {row["id"]: row["cause"] for row in rows} == {
        one["id"]: one["outcome"].get("cause", "") for one in named
    }
    calls = [row for row in read_csv(out / "calls.csv") if row["stage"] == "name"]
    assert len(calls) == sum(len(one["calls"]) for one in named) == 7
    (failed,) = [row for row in calls if row["failure"] == "call_failed"]
    assert (failed["text"], failed["prompt_tokens"], failed["cause"]) == ("", "", "overflow")
    unread = {row["text"] for row in calls if row["failure"] == "unreadable"}
    assert unread == {"'=no idea\\x1b[2J"}, "no formula, and nothing that steers a terminal"


def test_parquet_has_the_same_rows_with_texts_as_they_are(harness, run):
    assert export(harness, run, "parquet").code == 0
    out = harness.folder / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "calls.parquet", "metrics.parquet", "records.parquet", "scores.parquet",
    ]  # fmt: skip
    calls = pq.read_table(out / "calls.parquet").to_pylist()
    assert {row["text"] for row in calls if row["failure"] == "unreadable"} == {"=no idea\x1b[2J"}


def test_lm_eval_files_have_its_names_and_fields(harness, run, summary, named):
    assert export(harness, run, "lm-eval").code == 0
    folder = harness.folder / "out" / "candidate-model"
    (results_file,) = folder.glob("results_*.json")
    (samples_file,) = folder.glob("samples_interests_*.jsonl")
    # Its readers take the time as what follows the last underscore.
    stamp = results_file.stem.rpartition("_")[2]
    assert samples_file.stem.rpartition("_")[2] == stamp

    results = json.loads(results_file.read_text())
    support = summary["metrics"]["support"]
    found = results["results"]["interests"]
    assert found["support,none"] == support["value"]
    # 1.959964 standard errors lie to either side in a normal interval of 95%.
    low, high = support["interval"]
    assert found["support_stderr,none"] == pytest.approx((high - low) / 2 / 1.959964, rel=1e-6)
    assert results["versions"] == {"interests": 1}
    assert results["n-samples"] == {"interests": {"original": 40, "effective": 6}}
    assert results["higher_is_better"]["interests"]["support"] is True
    assert results["config"]["limit"] == 6
    assert results["model_name"] == "candidate-model"
    assert results["harness"]["summaries"]["interests"]["metrics"]["support"] == support

    samples = read_json_lines(samples_file)
    assert [one["doc_id"] for one in samples] == [0, 1, 2, 3, 4, 5]
    calls = {one["id"]: one["calls"] for one in named}
    for one in samples:
        asked = calls[one["doc"]["id"]]
        assert one["resps"] == [[call.get("text")] for call in asked]
        prompts = [
            json.loads(one["arguments"][f"gen_args_{n}"]["arg_0"]) for n in range(len(asked))
        ]
        assert prompts == [call["messages"] for call in asked]
        assert (one["filter"], one["metrics"]) == ("none", ["support", "grounded", "coverage"])
    causes = sorted(one["support_missing"] for one in samples if one["support"] is None)
    assert causes == sorted(support["missing"])
    assert [None] in [one["filtered_resps"] for one in samples], "no answer is no text"


@pytest.fixture
def log(harness, run) -> Path:
    """The log for inspect_ai."""
    (path,) = export(harness, run, "inspect", "out", "--task", "interests").ok().out.split()
    return harness.folder / path


def test_an_inspect_log_has_each_prompt_reply_verdict_and_score(log, run, summary, named):
    stamp, task, _ = log.stem.split("_")
    assert (stamp[10:11], task, log.suffix) == ("T", "interests", ".eval")
    with ZipFile(log) as packed:
        header = json.loads(packed.read("header.json"))
        samples = {
            name: json.loads(packed.read(name))
            for name in packed.namelist()
            if name.startswith("samples/")
        }
        listed = json.loads(packed.read("summaries.json"))
    support = summary["metrics"]["support"]
    assert (header["version"], header["status"], header["eval"]["model"]) == (
        2, "success", "candidate-model",
    )  # fmt: skip
    assert header["eval"]["model_roles"]["judge"] == {"model": "judge-model"}
    found = header["results"]["scores"][0]
    assert (found["name"], found["scored_samples"], found["unscored_samples"]) == ("support", 4, 2)
    assert found["metrics"]["support"]["value"] == support["value"]
    assert found["metadata"]["support"]["interval"] == support["interval"]
    assert header["results"]["headline"] == {"scorer": "support", "metric": "support"}

    scores = {one["id"]: one for one in read_json_lines(run / "interests" / "scores.jsonl")}
    records = {one["id"]: one for one in named}
    assert samples.keys() == {f"samples/{unit}_epoch_1.json" for unit in scores}
    assert [one["id"] for one in listed] == [*scores]
    for one in samples.values():
        unit, record = scores[one["id"]], records[one["id"]]
        assert one["input"] == record["calls"][0]["messages"]
        score = one["scores"]["support"]
        if "support" in unit["values"]:
            assert score["value"] == unit["values"]["support"]
        else:
            assert math.isnan(score["value"]) and score["reason"] == unit["missing"]["support"]
        asked = [event for event in one["events"] if event["event"] == "model"]
        own = [event for event in asked if event["role"] == "candidate"]
        assert [event["input"] for event in own] == [call["messages"] for call in record["calls"]]
        verdicts = [event for event in one["events"] if event.get("source") == "verdict of judge"]
        assert len(verdicts) == len(asked) - len(own)
    reasons = [one["scores"]["support"].get("explanation") for one in samples.values()]
    assert "missing: name/overflow (the prompt is longer than the model allows)" in reasons
    said = [message["content"] for one in samples.values() for message in one["messages"]]
    assert [part for part in said if isinstance(part, list)] == [
        [{"type": "reasoning", "reasoning": "Owls, so birds."}, {"type": "text", "text": ANY}]
    ]


def test_inspect_ai_reads_the_log(log, summary):
    inspect = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    read = inspect.read_eval_log(str(log))
    assert (read.status, read.eval.task, len(read.samples)) == ("success", "interests", 6)
    assert read.results.scores[0].metrics["support"].value == summary["metrics"]["support"]["value"]
    missing = [one for one in read.samples if one.scores["support"].reason]
    assert [math.isnan(one.scores["support"].value) for one in missing] == [True, True]
    assert len(inspect.read_eval_log_sample_summaries(str(log))) == 6


def test_every_eval_ever_has_each_value_with_its_interval(harness, run, summary):
    (name,) = export(harness, run, "every-eval-ever").ok().out.split()
    folders, file = name.split("/")[:-1], harness.folder / name
    assert folders == ["out", "data", "interests", "local", "candidate-model"]
    assert UUID(file.stem).version == 4
    record = json.loads(file.read_text())
    assert record["model_info"]["id"] == "local/candidate-model"
    found = {one["metric_config"]["metric_id"]: one for one in record["evaluation_results"]}
    assert found.keys() == {f"interests.{metric}" for metric in summary["metrics"]}
    support = summary["metrics"]["support"]
    details = found["interests.support"]["score_details"]
    assert details["score"] == support["value"]
    interval = details["uncertainty"]["confidence_interval"]
    assert [interval["lower"], interval["upper"]] == support["interval"]
    assert (details["uncertainty"]["num_samples"], interval["confidence_level"]) == (4, 0.95)
    assert json.loads(details["details"]["missing"]) == support["missing"]
    reason = "every-eval-ever is not installed"
    checks = pytest.importorskip("every_eval_ever.validator.validation_core", reason=reason)
    path = name.removeprefix("out/")
    report = checks.validate_aggregate(
        file, repo_path=path, available_files={path}, run_semantic_checks=True
    )
    assert (report.valid, report.errors, report.warnings) == (True, [], [])


def test_a_model_card_is_read_back_with_each_value_and_its_doubts(harness, run, summary):
    done = export(harness, run, "hf-eval").ok()
    (path,) = done.out.split()
    card = ModelCard.load(harness.folder / path)
    assert card.data.model_name == "candidate-model"
    found = {one.metric_type: one for one in card.data.eval_results}
    assert found.keys() == summary["metrics"].keys()
    for name, metric in summary["metrics"].items():
        one = found[name]
        assert (one.metric_value, one.metric_name) == (metric["value"], metric["description"])
        assert (one.dataset_type, one.dataset_name) == ("interests", "interests")
        assert one.metric_args["interval"] == metric["interval"]
        assert (one.metric_args["n"], one.metric_args["missing"]) == (4, metric["missing"])
        assert one.dataset_args["not_comparable_because"] == summary["not_comparable_because"]
        assert one.dataset_args["comparable"] is False
        assert one.dataset_args["run"] == run.name


def test_model_cards_of_runs_of_one_model_stand_apart_without_baselines(harness, recorded):
    one = recorded / "perrecbench"
    other = shutil.copytree(one, harness.folder / "other")
    manifest = json.loads((one / "manifest.json").read_text())
    write_sealed(other / "manifest.json", {**manifest, "run_id": "other"})
    done = harness.here("export", str(one), "other", "--format", "hf-eval", "--out", "out").ok()
    cards = [ModelCard.load(harness.folder / path) for path in done.out.splitlines()]
    assert len(cards) == 2
    for card in cards:
        results = card.data.eval_results
        assert {one.dataset_config for one in results} == {
            f"perrec_easy_{ask}" for ask in ("pointwise", "pairwise", "listwise")
        }
        assert "user_average" not in {one.metric_type for one in results}


def test_samples_of_groups_have_the_calls_about_their_members(harness, recorded):
    assert export(harness, recorded / "perrecbench", "lm-eval").code == 0
    (file,) = (harness.folder / "out").glob("*/samples_*pointwise*.jsonl")
    samples = read_json_lines(file)
    assert len(samples) == 12
    for one in samples:
        members = [item["id"] for item in one["doc"]["items"]]
        assert len(members) > 1
        assert {name.rpartition("/")[0] for name in members} == {one["doc"]["id"]}
        assert len(one["resps"]) >= len(members)


def test_an_export_overwrites_nothing_and_leaves_nothing_half(harness, run):
    out = harness.folder / "out"
    out.mkdir()
    assert export(harness, run, "csv").code == 0, "an empty folder is free"
    before = harness.files(out)
    again = export(harness, run, "parquet")
    assert again.code == 2
    assert "the folder of an export must be new or empty" in again.err
    assert harness.files(out) == before
    (run / "interests" / "scores.jsonl").write_text('{"id": "x"\n')
    torn = export(harness, run, "csv", "other")
    assert torn.code == 1
    assert "a score cannot be read" in torn.err
    assert [path.name for path in harness.folder.iterdir() if "other" in path.name] == []


def test_a_link_to_an_empty_folder_and_the_folder_one_stands_in_are_taken(harness, run):
    real = harness.folder / "real"
    real.mkdir()
    (harness.folder / "link").symlink_to(real)
    before = real.stat().st_ino
    linked = export(harness, run, "csv", "link")
    assert (linked.code, linked.out.split()[0]) == (0, "link/metrics.csv"), linked.err
    assert (harness.folder / "link").is_symlink() and real.stat().st_ino == before
    assert sorted(path.name for path in real.iterdir()) == [
        "calls.csv", "metrics.csv", "records.csv", "scores.csv",
    ]  # fmt: skip
    here = harness.folder / "here"
    here.mkdir()
    harness.folder = here
    stood_in = export(harness, run, "lm-eval", ".").ok()
    assert all((here / line).is_file() for line in stood_in.out.split())


def test_an_unfinished_task_is_left_out_and_named(harness, run):
    (run / "interests" / "summary.json").unlink()
    refused = export(harness, run, "csv")
    assert refused.code == 1
    assert "not exported, as it is not scored: interests" in refused.err
    unknown = export(harness, run, "csv", "out", "--task", "interest")
    assert "did you mean 'interests'?" in unknown.err


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("model\u202egpj.\x9b31m", "model__gpj.__31m"),
        ("a\u2028\x1b[2Jb", "a__2Jb"),
        ("Qwen/Qwen3-8B", "Qwen__Qwen3-8B"),
        ("modèle 模型", "modèle 模型"),
    ],
)
def test_no_folder_is_named_with_characters_that_control_a_terminal(name, plain):
    assert in_file_name(name) == plain


def test_a_printed_path_controls_no_terminal(harness, run):
    done = export(harness, run, "lm-eval", "out\u202e").ok()
    assert "\u202e" not in done.out
    assert done.out.count("out\\u202e/") == 2
