"""A run over the bundled sample and the analysis of it say the same."""

import pytest
from harness_perrecbench.analyses.tables import TableOptions, main
from harness_perrecbench.benchmark import PERRECBENCH

import harness
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task


def test_averages_tell_no_order_and_a_mean_has_one_interval_in_results_and_analysis(tmp_path):
    result = harness.evaluate(
        "perrec_hard", model="baseline", data="sample", output_path=tmp_path, reuse="run",
        quiet=True,
    )  # fmt: skip
    for summary in result.summaries:
        metrics = summary.metrics
        assert metrics["ptc"].n == 60
        assert metrics["ptc"].value > 0.3
        for name in ("item_average", "lower_average_first", "higher_average_first"):
            low, high = metrics[name].interval
            assert low < 0 < high, name
            assert metrics[name].value == pytest.approx(0, abs=1e-12), name
    folder, manifest = RunFolder(result.folder), result.manifest
    tasks = [
        finished_task(folder, manifest, name, PERRECBENCH, label="rule") for name in manifest.tasks
    ]
    [mean] = [one for one in result.means if one.metric == "ptc"]
    assert mean.interval is not None
    [row] = main(tasks, TableOptions()).sheets[0].rows
    assert row[-3:] == (pytest.approx(mean.value), *mean.interval)
