"""A plugin's metric of another plugin's benchmark: computed from its scores, wherever these are."""

import json
import re
from pathlib import Path
from statistics import harmonic_mean, mean

import pytest

from harness import Metric, Score
from harness.base.errors import PluginError
from harness.registry import load_plugins
from harness.scoring.aggregate import with_computed
from harness.testing import check_plugin

PAGE = Path(__file__).parents[2] / "docs" / "add-a-metric.md"
(PLUGIN,) = re.findall(
    r"plugin\.py`\*\*\n\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
)
"""The plugin that the page shows."""

OF_GISTBENCH = """
    from harness import Metric, hookimpl


    def whole(score):
        parts = score.values["ig_f1"], score.values["is"]
        return 2 * parts[0] * parts[1] / sum(parts) if sum(parts) else 0.0


    @hookimpl
    def register_metrics(register):
        metric = Metric(
            description="harmonic mean of ig_f1 and is", statistic="median",
            needs=("ig_f1", "is"), compute=whole,
        )
        register("gistbench", "whole", metric)
"""


@pytest.fixture
def added(site):
    """Both plugins, next to those of the harness."""
    points = {"acme": "acme_metrics", "gist": "gist_metrics"}
    files = {"acme_metrics.py": PLUGIN, "gist_metrics.py": OF_GISTBENCH}
    site.install("acme-metrics", points, files)
    return site


def metrics_of(document):
    """The metrics of the first task in what `harness score --json` printed."""
    return json.loads(document)["runs"][0]["summaries"][0]["metrics"]


def test_a_finished_run_gets_the_metric_without_a_model(added, recorded, printed):
    run = str(recorded / "interests")
    asked = 'metrics=["support","both"]'
    found = metrics_of(printed("score", run, "--set", asked, "--json").out)
    lines = (recorded / "interests/interests/scores.jsonl").read_text("utf-8").splitlines()
    values = [json.loads(line)["values"] for line in lines]
    expected = mean(harmonic_mean([one["support"], one["coverage"]]) for one in values)
    assert 0 < expected < 1
    assert found["both"]["value"] == pytest.approx(expected, abs=1e-12)
    assert found["both"]["description"] == "harmonic mean of support and coverage"
    assert "both" not in metrics_of(printed("score", run, "--json").out)


def test_scores_against_another_oracle_have_it_computed_again(added, recorded, printed, tmp_path):
    run, oracle = str(recorded / "gistbench"), tmp_path / "oracle.json"
    printed("compare", run, "--export_oracle", str(oracle))
    held = json.loads(oracle.read_text("utf-8"))
    for found in held["oracle"].values():
        found.append(min({*range(1, 326)} - {*found}))
    oracle.write_text(json.dumps(held))
    own, against = {}, {}
    for name in ("hm", "whole"):
        changed = ("--set", f'metrics=["{name}"]', "--json")
        own[name] = metrics_of(printed("score", run, *changed).out)[name]["value"]
        document = printed("compare", run, *changed, "--oracle", str(oracle)).out
        (task,) = json.loads(document)["comparisons"]
        assert task["oracle"]["metrics"] == [name]
        against[name] = task["runs"][0]["metrics"][name]["value"]
    assert own["whole"] == own["hm"] > against["hm"] == against["whole"]


def ratio(score):
    return score.values["hits"] / score.values["asked"]


RATIO = Metric(description="hits of those asked", needs=("hits", "asked"), compute=ratio)


def test_what_is_missing_of_its_columns_is_missing_of_it_by_the_same_cause():
    def of(**given):
        score = with_computed(Score(id="1", user="ann", **given), {"ratio": RATIO})
        return score.values.get("ratio"), score.missing.get("ratio"), score.lost or {}

    hits, asked = {"hits": 3.0}, {"asked": 4.0}
    assert of(values=hits | asked) == (0.75, None, {})
    assert of(values=hits, missing={"asked": "truncated"}) == (None, "truncated", {})
    assert of(values=hits | {"ratio": 1.0}, missing={"asked": "no_json"})[:2] == (None, "no_json")
    assert of(values=hits) == (None, None, {})
    shares = {"hits": 0.25, "asked": 0.5}
    assert of(values=hits | asked, lost=shares) == (0.75, None, {**shares, "ratio": 0.5})
    parts = {"hits": (1, 4)}
    assert of(values=hits | asked, parts=parts) == (0.75, None, {"ratio": 0.25})


def test_a_number_that_is_none_is_missing_and_an_exception_names_the_metric():
    infinite = Metric(description="", compute=lambda score: float("inf"))
    score = with_computed(Score(id="1", user="ann"), {"endless": infinite})
    assert (score.values, score.missing) == ({}, {"endless": "not_finite"})
    nobody = Score(id="7", user="ann", values={"hits": 0.0, "asked": 0.0})
    with pytest.raises(PluginError, match="'ratio' cannot be computed") as caught:
        with_computed(nobody, {"ratio": RATIO})
    assert "score of '7'" in str(caught.value) and "ZeroDivisionError" in str(caught.value)


def test_a_column_that_no_score_has_is_named_with_the_nearest(site, recorded, printed):
    files = {"acme_metrics.py": PLUGIN.replace('needs=("support",', 'needs=("suport",')}
    site.install("acme-metrics", {"acme": "acme_metrics"}, files)
    said = printed("score", str(recorded / "interests"), "--set", 'metrics=["both"]', code=1).err
    assert "the metric 'both' needs a column 'suport' that no score has" in said
    assert "did you mean 'support'?" in said


def test_a_metric_that_the_benchmark_has_itself_is_refused(site):
    files = {"acme_metrics.py": PLUGIN.replace('"both", metric', '"support", metric')}
    site.install("acme-metrics", {"acme": "acme_metrics"}, files)
    with pytest.raises(PluginError, match="'interests' has a metric 'support' of its own"):
        load_plugins().benchmark("interests")


def test_what_is_no_metric_breaks_its_plugin_alone(site):
    files = {"acme_metrics.py": PLUGIN.replace('"both", metric', '"both", both')}
    site.install("acme-metrics", {"acme": "acme_metrics"}, files)
    plugins = load_plugins()
    [broken] = [one for one in plugins.broken if one.plugin == "acme"]
    assert "which is no Metric" in broken.error
    assert "both" not in plugins.benchmark("interests").metrics


def test_the_plugin_lists_it_and_its_checks_describe_it(added, printed):
    said = printed("list", "plugins", "acme").out
    assert "interests/both  harmonic mean of support and coverage" in said
    check_plugin("acme")


def test_a_metric_reads_a_column_or_computes_one():
    with pytest.raises(ValueError, match="cannot do both"):
        Metric(description="", of="hits", compute=ratio)
