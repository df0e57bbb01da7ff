"""What repeats come to together; the numbers were worked out by hand."""

import msgspec
import pytest
from builders.runs import make_metric, make_summary

from harness.base.errors import DataError
from harness.scoring.summary import ALONE, TaskSummary, main_metrics, over_repeats


def summary(task: str, repeat: int, value: float | None) -> TaskSummary:
    why = None if value is not None else "nothing was scored"
    return make_summary(
        task, repeat=repeat, units=2, metrics={"a": make_metric(value, n=2, undefined=why)}
    )


def test_mean_deviation_and_standard_error():
    (task,) = over_repeats([summary("t@3", 3, 7.0), summary("t", 1, 3.0), summary("t@2", 2, 5.0)])
    assert task.task == "t"
    assert task.repeats == ("t", "t@2", "t@3")
    spread = task.metrics["a"]
    assert spread.values == (3.0, 5.0, 7.0)
    assert (spread.mean, spread.sd, spread.n) == (5.0, 2.0, 3)
    assert spread.stderr == pytest.approx(1.1547005383792517)  # 2 / sqrt 3


def test_repeats_without_a_value_are_counted_and_not_averaged():
    (task,) = over_repeats([summary("t", 1, 0.5), summary("t@2", 2, None)])
    spread = task.metrics["a"]
    assert (spread.mean, spread.n, spread.without) == (0.5, 1, 1)
    assert (spread.sd, spread.stderr, spread.undefined) == (None, None, ALONE)
    (task,) = over_repeats([summary("t", 1, None), summary("t@2", 2, None)])
    spread = task.metrics["a"]
    assert (spread.mean, spread.undefined) == (None, "nothing was scored")
    assert over_repeats([summary("t", 1, 0.5), summary("u", 1, 0.5)]) == ()


def test_repeats_that_hold_different_metrics_are_an_error_that_names_them():
    first, second = summary("t", 1, 0.5), summary("t@2", 2, 0.5)
    later = msgspec.structs.replace(second, metrics={**second.metrics, "b": second.metrics["a"]})
    for summaries in ([first, later], [later, first]):
        with pytest.raises(DataError, match="not scored by the same metrics") as caught:
            over_repeats(summaries)
        assert caught.value.found == "not in all of them: b"


@pytest.mark.parametrize(
    ("named", "main"), [(("b", "a"), ("b", "a")), (("gone", "a"), ("a",)), (("gone",), ("b",))]
)
def test_the_main_metrics_are_those_named_that_the_task_has_or_its_first_own_one(named, main):
    chance = make_metric(0.5, n=2, baseline=True)
    own = make_metric(0.5, n=2)
    assert main_metrics(named, {"chance": chance, "b": own, "a": own}) == main
