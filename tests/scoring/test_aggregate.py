from typing import Any

import numpy as np
import pytest
from builders.runs import make_metric
from msgspec import UNSET

from harness.base.errors import PluginError
from harness.contracts.benchmark import Metric
from harness.contracts.records import Score
from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns, sound
from harness.scoring.summary import MetricResult

INTERVAL = IntervalSpec(draws=200, confidence=0.9)


def results(
    metrics: dict[str, Metric], *scores: Score[Any], seed: int = 0
) -> dict[str, MetricResult]:
    columns = Columns(metrics, map(sound, scores))
    return columns.results(interval=INTERVAL, seed=seed, task="t")


def test_both_policies_n_users_and_causes() -> None:
    metric = Metric(description="share right", worst=-1.0, higher_is_better=False)
    found = results(
        {"right": metric},
        Score(id="1", user="ann", values={"right": 1.0}),
        Score(id="2", user="ann", values={"right": 0.0}),
        Score(id="3", user="bob", values={"right": 0.5}),
        Score(id="4", user="cid", missing={"right": "timeout"}),
        Score(id="5", user="cid", missing={"right": "no_json"}),
        Score(id="6", user="ann", missing={"right": "no_json"}),
    )["right"]
    # (1.0 + 0.0 + 0.5 - 3 · 1.0) / 6
    assert found == make_metric(
        0.5, n=3, users=2, missing={"no_json": 2, "timeout": 1}, counted_as_worst=-0.25,
        interval=(0.5, 0.5), confidence=0.9, missing_share=0.5, higher_is_better=False,
        description="share right",
    )  # fmt: skip


def test_missing_units_may_count_in_the_value_with_the_other_figure_beside() -> None:
    metrics = {
        "tau": Metric(description="", worst=0.0, missing="counted"),
        "whole": Metric(description="", of="sure", missing="counted", baseline=True),
        "none": Metric(description="", missing="counted"),
    }
    found = results(
        metrics,
        Score(id="1", user="a", values={"tau": 1.0, "sure": 0.5}, missing={"none": "timeout"}),
        Score(id="2", user="b", values={"tau": 0.5, "sure": 0.5}, missing={"none": "timeout"}),
        Score(id="3", user="b", missing={"tau": "no_json", "none": "timeout"}),
        Score(id="4", user="c"),
    )
    tau, whole, none = found["tau"], found["whole"], found["none"]
    assert (tau.value, tau.left_out, tau.n, tau.missing) == (0.5, 0.75, 2, {"no_json": 1})
    # Users a (1.0) and b (0.5 and 0.0): the draw of b alone is the lowest there is.
    assert tau.interval == (0.25, 1.0)
    assert (whole.value, whole.left_out, whole.n, whole.baseline) == (0.5, None, 2, True)
    assert (none.value, none.undefined, none.left_out) == (None, "nothing was scored", None)


def test_where_nothing_is_worst_missing_units_count_nowhere() -> None:
    metrics = {"first": Metric(description="", worst=None)}
    found = results(
        metrics,
        Score(id="1", user="a", values={"first": 0.25}),
        Score(id="2", user="b", values={"first": 0.75}),
        Score(id="3", user="c", missing={"first": "no_json"}),
    )["first"]
    assert (found.value, found.n, found.counted_as_worst) == (0.5, 2, None)
    whole = results(metrics, Score(id="1", user="a", values={"first": 0.25}))["first"]
    assert (whole.value, whole.counted_as_worst) == (0.25, 0.25)
    own = results(
        metrics,
        Score(id="1", user="a", values={"first": 0.25}),
        Score(id="2", user="b", missing={"first": "no_json"}, worst={"first": 0.75}),
    )["first"]
    assert (own.value, own.n, own.counted_as_worst) == (0.25, 1, 0.5)
    with pytest.raises(ValueError, match="needs a worst value"):
        Metric(description="", worst=None, missing="counted")


def test_a_value_that_counts_missing_units_is_not_shown_of_too_few() -> None:
    metrics = {"tau": Metric(description="", worst=0.0, missing="counted")}
    columns = Columns(metrics)
    for number in range(20):
        given = {"values": {"tau": 1.0}} if number < 16 else {"missing": {"tau": "refused"}}
        columns.add(Score(id=str(number), user=str(number), **given))
    shown = columns.results(interval=INTERVAL, seed=0, task="t", least_scored=0.8)["tau"]
    held = columns.results(interval=INTERVAL, seed=0, task="t", least_scored=0.85)["tau"]
    assert (shown.value, shown.left_out) == (0.8, 1.0)
    assert (held.value, held.interval) == (None, None)
    # What those few have is told in words alone, as it is of a value that leaves the others out.
    assert held.undefined == (
        "16 of 20 units have one, less than the required 85%; over those few it is 1.000"
    )
    assert (held.left_out, held.counted_as_worst) == (None, 0.8)


def test_seed_task_and_metric_decide_the_interval() -> None:
    scores = [Score(id=str(n), user=str(n), values={"m": n**1.5, "k": n**1.5}) for n in range(30)]
    metrics = {"m": Metric(description=""), "k": Metric(description="")}
    one, again, other = (results(metrics, *scores, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one["m"].interval != other["m"].interval
    assert one["m"].interval != one["k"].interval


def test_nan_and_infinity_are_missing_and_numpy_numbers_are_plain() -> None:
    found = sound(Score(
        id="1", user="u", missing={"d": "refused", "h": "refused"},
        values={"a": np.nan, "b": np.float64(2.5), "c": True, "d": 1.0, "e": np.inf, "f": 0.5,
                "g": 0.5},
        # What counts at worst is checked as values are.
        worst={"f": np.nan, "g": np.float64(0.25), "h": np.inf, "i": 0.0, "k": np.nan},
    ))  # fmt: skip
    assert (found.values, found.worst) == ({"b": 2.5, "c": 1.0, "g": 0.5}, {"g": 0.25})
    assert {type(one) for one in (*found.values.values(), *found.worst.values())} == {float}
    wrong = dict.fromkeys("aef", "not_finite")
    assert found.missing == {**wrong, "d": "refused", "h": "refused"}
    good = Score(id="1", user="u", values={"a": 1.0})
    assert sound(good) is good


@pytest.mark.parametrize(
    ("higher", "values", "worst"),
    [(True, (-0.5, 0.5), (0.0, 0.25)), (False, (0.5, -0.5), (0.0, -0.25))],
)
def test_what_is_missing_of_a_unit_counts_no_better_than_the_unit(higher, values, worst):
    # Of each unit one half is missing and counts 0: the first unit's -0.5 would become -0.25, and
    # its own figure 0.0 would be better still. Both are replaced by the value.
    first, second = values
    for own in ({}, {"tau": worst[0]}):
        found = results(
            {"tau": Metric(description="", higher_is_better=higher)},
            Score(id="1", user="ann", values={"tau": first}, lost={"tau": 0.5}, worst=own),
            Score(id="2", user="bob", values={"tau": second}, lost={"tau": 0.5}),
        )["tau"]
        assert found.counted_as_worst == (first + worst[1]) / 2


def test_the_parts_that_units_lost_are_a_share_and_count_as_worst_like_missing_units() -> None:
    loss = Metric(description="", worst=4.0, higher_is_better=False)
    found = results(
        {"loss": loss, "known": loss, "none": Metric(description="", worst=None)},
        Score(
            id="1", user="a", values={"loss": 1.0, "known": 1.0, "none": 1.0},
            lost={"loss": 0.5, "known": 0.5, "none": 0.5}, worst={"known": 3.0},
        ),
        Score(id="2", user="b", values={"loss": 2.0, "known": 2.0, "none": 1.0}),
        Score(id="3", user="c", missing={"loss": "no_json", "known": "no_json"}),
    )  # fmt: skip
    # Of three units one is missing and half of another: one half of 1.0 counts as 4.0.
    assert (found["loss"].value, found["loss"].missing_share) == (1.5, 0.5)
    assert found["loss"].counted_as_worst == (2.5 + 2.0 + 4.0) / 3
    assert found["known"].counted_as_worst == (3.0 + 2.0 + 4.0) / 3
    assert (found["none"].missing_share, found["none"].counted_as_worst) == (0.25, None)
    tau = Metric(description="", missing="counted")
    found = results(
        {"tau": tau},
        Score(id="1", user="a", values={"tau": 1.0}, lost={"tau": 0.25}),
        Score(id="2", user="b", values={"tau": 0.5}),
    )["tau"]
    assert (found.value, found.left_out) == ((0.75 + 0.5) / 2, 0.75)


@pytest.mark.parametrize(("lost", "shown"), [(0.25, True), (0.5, False)])
def test_a_metric_that_lost_too_many_parts_has_no_value(lost: float, *, shown: bool) -> None:
    columns = Columns({"tau": Metric(description="")})
    for number in range(4):
        columns.add(Score(id=str(number), user="u", values={"tau": 1.0}, lost={"tau": lost}))
    found = columns.results(interval=INTERVAL, seed=0, task="t", least_scored=0.75)["tau"]
    assert (found.value is not None) is shown
    assert shown or found.undefined == (
        "4 of 4 units have one, and with the parts that are missing inside them 50% is there, "
        "less than the required 75%; over those few it is 1.000"
    )


def test_missing_parts_are_counted_over_the_units_that_have_a_value() -> None:
    metrics = {"tau": Metric(description=""), "other": Metric(description="", of="tau")}
    scores = [
        Score(id="1", user="a", values={"tau": 1.0}, parts={"tau": (0, 6)}),
        Score(id="2", user="b", values={"tau": 0.5}, lost={"tau": 0.3}, parts={"tau": (3, 10)}),
        Score(id="3", user="c", values={"tau": 0.5}, parts={"tau": (1, 2)}),
        Score(id="4", user="d", missing={"tau": "rank/no_json"}, parts={"tau": (6, 6)}),
    ]
    parts, rest = Columns(metrics, scores[:1]), Columns(metrics, scores[1:])
    parts.extend(rest)
    for columns in (parts, Columns(metrics, scores)):
        found = columns.results(interval=INTERVAL, seed=0, task="t")
        assert {name: one.missing_parts for name, one in found.items()} == {
            "tau": (4, 18), "other": (4, 18),
        }  # fmt: skip
        # The third has lost half of its parts: (0 + .3 + .5 + 1) / 4.
        assert found["tau"].missing_share == pytest.approx(1.8 / 4)
    whole = Columns(metrics, scores[:1]).results(interval=INTERVAL, seed=0, task="t")["tau"]
    assert whole.missing_parts is UNSET


def test_what_other_roles_lost_is_not_counted_in_a_value_but_in_the_second_one() -> None:
    metrics = {"tau": Metric(description="", missing="counted")}
    scores = [
        Score(id="1", user="a", values={"tau": 1.0}),
        Score(id="2", user="b", missing={"tau": "rank/no_json"}),
        Score(id="3", user="c", missing={"tau": "profile/empty"}),
        Score(id="4", user="d", missing={"tau": "profile"}),
    ]
    columns = Columns(metrics, scores, of_others={"profile"})
    found = columns.results(interval=INTERVAL, seed=0, task="t")["tau"]
    assert (found.value, found.left_out, found.not_counted) == (1 / 3, 1.0, 1)
    assert (found.counted_as_worst, found.missing_share) == (0.25, 0.75)
    alone = Columns(metrics, [scores[0], scores[2]], of_others={"profile"})
    found = alone.results(interval=INTERVAL, seed=0, task="t")["tau"]
    assert (found.value, found.left_out, found.counted_as_worst) == (1.0, None, 0.5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"worst": {"m": "low"}}, "'7' is not a number"),
        *(({"lost": {"m": share}}, "'7' has lost a share that cannot be")
          for share in (-0.1, 1.5, np.nan)),
    ],
)  # fmt: skip
def test_what_cannot_be_names_unit_and_metric(given, said) -> None:
    with pytest.raises(PluginError, match=said) as caught:
        sound(Score(id="7", user="a", values={"m": 1.0}, **given))
    assert "metric 'm'" in str(caught.value)


def test_a_statistic_without_a_value_is_told() -> None:
    def correlation(column: np.ndarray) -> float:
        return float("nan")

    found = results(
        {"m": Metric(description="", statistic=correlation)},
        Score(id="1", user="u", values={"m": 1.0}),
    )["m"]
    assert (found.value, found.interval, found.counted_as_worst) == (None, None, None)
    assert found.undefined == "the statistic has no value for these scores"
