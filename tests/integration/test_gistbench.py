"""Several runs of GISTBench, compared as they come: the oracle that they make."""

from pathlib import Path
from typing import Any

import pytest

MODELS = ("alpha", "beta", "gamma")


def values(comparison: dict[str, Any], metric: str) -> dict[str, float]:
    return {
        run["label"].removesuffix("@1"): run["metrics"][metric]["value"]
        for run in comparison["runs"]
    }


def test_recall_of_all_runs_changes_as_the_oracle_grows_and_no_model_is_asked(gist, serve):
    server = serve(gist, models=(*MODELS, "judge"))
    alone, compared, runs = [], [], []
    for model in MODELS:
        done = gist.run(model=model).ok()
        alone.append(done.summary("gist_synthetic"))
        runs.append(str(Path("runs", Path(done.json["folder"]).name)))
        before = server.count
        if len(runs) > 1:
            compared += gist.here("compare", *runs, "--verbose", "--json").ok().json["comparisons"]
        assert server.count == before
    # Against itself; one of eight people has nothing of what the third model has an eye for.
    assert [one["metrics"]["mean_ig_r"]["value"] for one in alone] == [1.0, 1.0, 0.875]
    assert alone[2]["counts"]["users with no verified category to find"] == 1
    first = alone[0]["metrics"]
    two, all_three = compared
    assert first["ig_r"]["value"] == 1.0
    # The first model has an eye for four topics. Of what it names of each of eight people
    # 3 of 4, 2 of 3, 2 of 2, 1 of 1, 1 of 1, 2 of 2, 2 of 3 and 3 of 4 are proven.
    assert first["mean_ig_p"]["value"] == pytest.approx((0.75 + 2 / 3 + 4 + 2 / 3 + 0.75) / 8)
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
    for model, found in zip(MODELS, alone, strict=True):
        for metric in ("ig_p", "is"):
            assert values(all_three, metric)[model] == found["metrics"][metric]["value"]
    few, enough = (one["oracle"]["warning"] for one in compared)
    assert "the oracle is made of 2 runs of 2 models and needs 3 models or more" in few
    assert enough is None
