"""Runs that version 0.1.0 wrote are read by every command that reads runs.

What is expected is counted in their files, line by line, or was counted by hand.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from builders.report_pages import ReportPage
from builders.texts import read_csv, read_json_lines

RUNS = Path(__file__).parents[1] / "recorded" / "of_0_1_0"


KEPT = {
    "behaviour": (9, 9, 9, "behaviour", "prompts", 3),
    "gistbench_on_ray": (99, 8, 4, "gist-failure-modes", "interests", 68),
    "horizon_items": (6, 6, 6, "horizon-next-item", "cases", 6),
    "interests_in_batches": (20, 22, 8, "forest", "missing", 1),
    "perrecbench": (16, 20, 12, "perrec-positions", "answers", 8),
    "usersumbench": (26, 26, 2, "usersum-questions", "users", 2),
}
"""How many records, calls and scores a run has, and an analysis of it with a column and the figure
there in its first row."""


def lines_of(run: Path, files: str) -> list[dict[str, Any]]:
    """The lines of these files of each task, whose order is that of their names."""
    return [line for file in sorted(run.glob(f"*/{files}")) for line in read_json_lines(file)]


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


@pytest.mark.parametrize("name", KEPT)
def test_it_is_shown_exported_reported_and_analysed_whole(house, name):
    *kept, analysis, column, counted = KEPT[name]
    records = lines_of(RUNS / name, "?-*.jsonl")
    document = house.here("show", name, "--json").ok().json
    assert shown(document["summaries"]) == metrics_of(RUNS / name)
    last = records[-1]
    found = house.here("show", name, "--sample", last["id"], "--json").ok().json["records"]
    (record,) = [one["record"] for one in found if one["record"]["key"] == last["key"]]
    assert (record["item"], record["outcome"]) == (last["item"], last["outcome"])

    tables, scores = house.folder / f"tables-{name}", lines_of(RUNS / name, "scores.jsonl")
    house.here("export", name, "--format", "csv", "--out", tables.name).ok()
    rows = {table: read_csv(tables / f"{table}.csv") for table in ("records", "calls", "scores")}
    assert [len(found) for found in rows.values()] == kept
    assert [len(records), len(scores)] == kept[::2]
    assert sorted(row["id"] for row in rows["records"]) == sorted(one["id"] for one in records)

    house.here("report", name, "-o", f"{name}.html", "--samples", "50").ok()
    text = ReportPage((house.folder / f"{name}.html").read_text("utf-8")).texts["samples"]
    replies = {call["text"] for one in records for call in one["calls"]}
    assert {reply for reply in replies if reply[:900] not in text} == set()
    assert {score["id"] for score in scores} <= {*text.split()}

    report = house.here("analyse", analysis, name, "--json").ok().json["report"]
    sheet = report["sheets"][0]
    assert sheet["rows"][0][sheet["columns"].index(column)] == counted


@pytest.mark.parametrize("name", KEPT)
def test_it_is_scored_again_to_what_its_summaries_say(house, tmp_path, name):
    run = shutil.copytree(RUNS / name, tmp_path / name)
    for file in run.glob("*/scores.jsonl"):
        file.unlink()
    (scored,) = house.here("score", str(run), "--json").ok().json["runs"]
    assert shown(scored["summaries"]) == metrics_of(RUNS / name) == metrics_of(run)
    assert len(lines_of(run, "scores.jsonl")) == KEPT[name][2]


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
