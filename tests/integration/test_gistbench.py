"""Several runs of GISTBench: the oracle that they make, and their scores under other thresholds."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.testing import FaultyServer

MODELS = ("alpha", "beta", "gamma")
STRICTER = ("--set", "gistbench.verification.min_explicit_positive=3")


@pytest.fixture(scope="module")
def three(tmp_path_factory, gists):
    """Three models run one after the other, all runs compared after each; one is no set."""
    gist = gists(tmp_path_factory.mktemp("three"))
    with FaultyServer(gist.answer, models=(*MODELS, "judge")) as server:
        gist.url = server.url
        alone, compared, asked, runs = [], [], 0, []
        for model in MODELS:
            done = gist.run(model=model).ok()
            alone.append(done.summary("gist_synthetic"))
            runs.append(str(Path("runs", Path(done.json["folder"]).name)))
            before = server.count
            if len(runs) > 1:
                found = gist.here("compare", *runs, "--verbose", "--json").ok()
                compared += found.json["comparisons"]
            asked += server.count - before
        yield SimpleNamespace(
            gist=gist, server=server, runs=runs, alone=alone, compared=compared,
            asked_by_scoring=asked,
        )  # fmt: skip


def values(comparison: dict[str, Any], metric: str) -> dict[str, float]:
    return {
        run["label"].removesuffix("@1"): run["metrics"][metric]["value"]
        for run in comparison["runs"]
    }


def test_recall_of_all_runs_changes_as_the_oracle_grows_and_no_model_is_asked(three):
    # Against itself; one of eight people has nothing of what the third model has an eye for.
    recall = [one["metrics"]["mean_ig_r"]["value"] for one in three.alone]
    assert recall == [1.0, 1.0, 0.875]
    assert three.alone[2]["counts"]["users with no verified category to find"] == 1
    first = three.alone[0]["metrics"]
    two, all_three = three.compared
    assert first["ig_r"]["value"] == 1.0
    # What two and what three models verify of the four proven topics of each of eight people:
    # 3/4, 2/4, 2/3, 1/2, 1/3, 2/3, 1, 1 for the first against two, and so on.
    assert values(two, "ig_r") == pytest.approx({"alpha": 2 / 3, "beta": 7 / 8})
    assert values(two, "mean_ig_r") == pytest.approx({"alpha": 65 / 96, "beta": 27 / 32})
    assert values(all_three, "mean_ig_r") == pytest.approx(
        {"alpha": 16 / 32, "beta": 20 / 32, "gamma": 12 / 32}
    )
    # Medians of 2·P·R / (P + R): with recall 1, then with the oracle of all three.
    assert first["ig_f1"]["value"] == pytest.approx((6 / 7 + 1) / 2)
    assert values(all_three, "ig_f1")["alpha"] == pytest.approx((4 / 7 + 2 / 3) / 2)
    for model, found in zip(MODELS, three.alone, strict=True):
        for metric in ("ig_p", "is"):
            assert values(all_three, metric)[model] == found["metrics"][metric]["value"]
    assert three.asked_by_scoring == 0
    few, enough = (one["oracle"]["warning"] for one in three.compared)
    assert "the oracle is made of 2 runs of 2 models and needs 3 models or more" in few
    assert enough is None


def test_an_oracle_is_written_and_read_and_united(three, tmp_path):
    file, united = tmp_path / "oracle.json", tmp_path / "united.json"
    three.gist.here("compare", *three.runs, "--export_oracle", str(file)).ok()
    oracle = json.loads(file.read_text())
    # The four topics of a person that clips prove, by the numbers of their categories.
    assert oracle["oracle"]["user0"] == [18, 31, 119, 133]
    assert {len(ids) for ids in oracle["oracle"].values()} == {4}

    oracle["oracle"] |= {"user0": [1, 2], "stranger": [325]}
    file.write_text(json.dumps(oracle))
    options = ("--oracle", str(file), "--export_oracle", str(united), "--verbose", "--json")
    (comparison,) = three.gist.here("compare", three.runs[0], *options).ok().json["comparisons"]
    assert comparison["oracle"]["file"] == str(file)
    # Three of five for the first person, who has two more now, and for the others as before.
    assert values(comparison, "mean_ig_r")["alpha"] == pytest.approx((3 / 5 + 13 / 4) / 8)
    written = json.loads(united.read_text())["oracle"]
    assert (written["stranger"], written["user0"]) == ([325], [1, 2, 18, 31, 119])


def test_stored_verdicts_are_scored_under_another_threshold_and_the_run_stays_as_it_is(three):
    gist, asked, kept = three.gist, three.server.count, three.gist.files(three.gist.folder / "runs")
    (run,) = gist.here("score", three.runs[0], *STRICTER, "--json").ok().json["runs"]
    (summary,) = run["summaries"]
    # The first model has an eye for four topics. Of what it names of each of eight people
    # 3 of 4, 2 of 3, 2 of 2, 1 of 1, 1 of 1, 2 of 2, 2 of 3 and 3 of 4 are proven. The second
    # topic of a person, which has two likes and nothing else, is so no longer.
    before = three.alone[0]["metrics"]["mean_ig_p"]["value"]
    assert before == pytest.approx((0.75 + 2 / 3 + 4 + 2 / 3 + 0.75) / 8)
    assert summary["metrics"]["mean_ig_p"]["value"] == pytest.approx(
        (0.5 + 1 / 3 + 0.5 + 1 + 1 + 1 + 2 / 3 + 0.5) / 8
    )
    assert "changed by --set" in str(summary["not_comparable_because"])
    assert three.server.count == asked
    assert gist.files(gist.folder / "runs") == kept
