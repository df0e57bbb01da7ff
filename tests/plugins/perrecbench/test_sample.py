"""In the bundled sample averages tell ratings, and no order."""

import pytest
from harness_perrecbench.analyses.tables import TableOptions, main
from harness_perrecbench.benchmark import PERRECBENCH

import harness
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task

LEVELS = ("easy", "hard")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The run of the baseline on the sample."""
    return harness.evaluate(
        [f"perrec_{level}" for level in LEVELS],
        model="baseline",
        data="sample",
        output_path=tmp_path_factory.mktemp("runs"),
        no_store=True,
        quiet=True,
    )


@pytest.mark.parametrize("ask", ["pointwise", "pairwise", "listwise"])
@pytest.mark.parametrize("level", LEVELS)
def test_taste_tells_the_order_and_averages_do_not(result, level, ask):
    summaries = {summary.task: summary for summary in result.summaries}
    metrics = summaries[f"perrec_{level}_{ask}"].metrics

    assert metrics["ptc"].n == 60
    assert metrics["ptc"].value > 0.3
    for name in ("item_average", "lower_average_first", "higher_average_first"):
        low, high = metrics[name].interval
        assert low < 0 < high, name
        assert metrics[name].value == pytest.approx(0, abs=1e-12), name
    assert metrics["user_average"].value == 0
    assert metrics["user_average"].interval == (0, 0)


def test_the_mean_of_a_group_has_one_interval_in_the_results_and_in_the_analysis(result):
    manifest, folder = result.manifest, RunFolder(result.folder)
    tasks = [
        finished_task(folder, manifest, name, PERRECBENCH, label="rule")
        for name in manifest.tasks
        if "hard" in name
    ]
    [mean] = [one for one in result.means if (one.name, one.metric) == ("perrec_hard", "ptc")]
    assert mean.interval is not None
    [row] = main(tasks, TableOptions()).sheets[0].rows
    assert row[-3:] == (pytest.approx(mean.value), *mean.interval)
