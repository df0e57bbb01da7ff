"""Runs that version 0.1.0 wrote are read by every command that reads runs.

What is expected is counted in their files, line by line, or was counted by hand.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from builders.report_pages import ReportPage
from builders.texts import read_csv, read_json_lines

RUNS = Path(__file__).parents[1] / "recorded" / "of_0_1_0"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """How much a run has; in the first row of its analysis, `column` has the figure `counted`."""

    records: int
    calls: int
    scores: int
    analysis: str
    column: str
    counted: int


KEPT = {
    "behaviour": Kept(
        records=9, calls=9, scores=9, analysis="behaviour", column="prompts", counted=3
    ),
    "gistbench_on_ray": Kept(
        records=99, calls=8, scores=4,
        analysis="gist-failure-modes", column="interests", counted=68,
    ),
    "horizon_items": Kept(
        records=6, calls=6, scores=6, analysis="horizon-next-item", column="cases", counted=6
    ),
    "interests_in_batches": Kept(
        records=20, calls=22, scores=8, analysis="forest", column="missing", counted=1
    ),
    "perrecbench": Kept(
        records=16, calls=20, scores=12, analysis="perrec-positions", column="answers", counted=8
    ),
    "usersumbench": Kept(
        records=26, calls=26, scores=2, analysis="usersum-questions", column="users", counted=2
    ),
}  # fmt: skip


def lines_of(run: Path, files: str) -> list[dict[str, Any]]:
    """The lines of these files of each task, whose order is that of their names."""
    return [line for file in sorted(run.glob(f"*/{files}")) for line in read_json_lines(file)]


def records_of(run: Path) -> list[dict[str, Any]]:
    return lines_of(run, "?-*.jsonl")


def metrics_of(run: Path) -> dict[str, dict[str, Any]]:
    """Value, n, interval and causes of each metric, by task, as the summaries have them."""
    return {
        file.parent.name: chosen(json.loads(file.read_text()))
        for file in run.glob("*/summary.json")
    }


def chosen(summary: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [metric[field] for field in ("value", "n", "interval", "missing")]
        for name, metric in summary["metrics"].items()
    }


def shown(summaries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {summary["task"]: chosen(summary) for summary in summaries}


@pytest.fixture(scope="module")
def house(tmp_path_factory, harnesses) -> Any:
    """A harness in a folder that has copies of the runs."""
    house = harnesses(tmp_path_factory.mktemp("house"))
    shutil.copytree(RUNS, house.folder, dirs_exist_ok=True)
    return house


def test_all_runs_are_of_the_first_version_one_in_parts_and_one_with_batches(house):
    runs = {run.name: run for run in RUNS.iterdir() if run.is_dir()}
    assert runs.keys() == KEPT.keys()
    for run in runs.values():
        versions = json.loads((run / "manifest.json").read_text())["versions"]
        assert versions["user-understanding-harness"] == "0.1.0"
    parts = {file.name for file in runs["gistbench_on_ray"].glob("*/1-*.jsonl")}
    assert parts == {"1-predict.0002.jsonl", "1-predict.0003.jsonl"}
    jobs = json.loads((runs["interests_in_batches"] / "batches" / "jobs.json").read_bytes())
    assert [job["ended"]["done"] for job in jobs] == [8, 2, 12]


@pytest.mark.parametrize("name", KEPT)
def test_it_is_shown_exported_reported_and_analysed_whole(house, name):
    kept, records = KEPT[name], records_of(RUNS / name)
    document = house.here("show", name, "--json").ok().json
    assert shown(document["summaries"]) == metrics_of(RUNS / name)
    last = records[-1]
    found = house.here("show", name, "--sample", last["id"], "--json").ok().json["records"]
    (record,) = [one["record"] for one in found if one["record"]["key"] == last["key"]]
    assert (record["item"], record["outcome"]) == (last["item"], last["outcome"])

    tables, scores = house.folder / f"tables-{name}", lines_of(RUNS / name, "scores.jsonl")
    house.here("export", name, "--format", "csv", "--out", tables.name).ok()
    rows = {table: read_csv(tables / f"{table}.csv") for table in ("records", "calls", "scores")}
    assert (len(records), len(scores)) == (kept.records, kept.scores)
    assert [len(found) for found in rows.values()] == [kept.records, kept.calls, kept.scores]
    assert sorted(row["id"] for row in rows["records"]) == sorted(one["id"] for one in records)

    house.here("report", name, "-o", f"{name}.html", "--samples", "50").ok()
    text = ReportPage((house.folder / f"{name}.html").read_text("utf-8")).texts["samples"]
    replies = {call["text"] for one in records for call in one["calls"]}
    assert {reply for reply in replies if reply[:900] not in text} == set()
    assert {score["id"] for score in scores} <= {*text.split()}

    report = house.here("analyse", kept.analysis, name, "--json").ok().json["report"]
    sheet = report["sheets"][0]
    assert sheet["rows"][0][sheet["columns"].index(kept.column)] == kept.counted


@pytest.mark.parametrize("name", KEPT)
def test_it_is_scored_again_to_what_its_summaries_say(house, tmp_path, name):
    run = shutil.copytree(RUNS / name, tmp_path / name)
    for file in run.glob("*/scores.jsonl"):
        file.unlink()
    (scored,) = house.here("score", str(run), "--json").ok().json["runs"]
    assert shown(scored["summaries"]) == metrics_of(RUNS / name) == metrics_of(run)
    assert len(lines_of(run, "scores.jsonl")) == KEPT[name].scores


@pytest.mark.parametrize("name", KEPT)
def test_a_replay_of_it_comes_to_its_metrics_and_is_compared_with_it(house, name):
    asked = json.loads((RUNS / name / "manifest.json").read_text())["asked"]
    judge, metrics = asked["roles"].get("judge", "lexical"), metrics_of(RUNS / name)
    today = house.here(
        "--model", "replay", "--model_args", f"run={name}",
        "--judge", judge if judge == "lexical" else f"replay:run={name},role=judge",
        "--tasks", ",".join(asked["tasks"]), "--data", asked["data"],
        "--limit", str(asked["limit"]), "--num_repeats", str(asked.get("num_repeats", 1)),
        "--max_failures", "1", "--reuse", "run", "--json",
    ).ok().json  # fmt: skip
    assert shown(today["summaries"]) == metrics
    # Judges that differ make runs incomparable, and a recorded judge has another name.
    force = ["--force"] if name == "interests_in_batches" else []
    compared = house.here("compare", name, today["folder"], *force, "--json").ok()
    comparisons = compared.json["comparisons"]
    assert {one["task"] for one in comparisons} == metrics.keys()
    for one in comparisons:
        assert one["differences"]
        for difference in one["differences"]:
            value, n, _, _ = metrics[one["task"]][difference["metric"]]
            assert (difference["value"], difference["n"]) == (0, n)
            assert one["runs"][0]["metrics"][difference["metric"]]["value"] == value
