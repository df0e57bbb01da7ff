"""Who is better, by the document of a comparison alone: decisions, and the verdict in words."""

import pytest
from builders.comparisons import make_compared, make_comparison, make_difference
from builders.runs import make_metric

from harness.comparison.document import ComparisonDocument, MeanDifference, rank_intervals
from harness.scoring.means import MeanOverTasks

SURE = {"interval": (0.03, 0.21), "holm": 0.012}
OPEN = {"interval": (-0.04, 0.1), "holm": 0.4}


def a_task(name, pairs, *, higher=True, main=("ptc",), **fields):
    """A task of runs `a`, `b` … with these differences: first, second, value, what is known."""
    labels = sorted({label for first, second, *_ in pairs for label in (first, second)})
    metrics = {each: make_metric(0.5, n=38, higher_is_better=higher) for each in main}
    runs = [make_compared(label, metrics, common=metrics) for label in labels]
    differences = [
        make_difference(
            value, known.pop("interval"), known.pop("holm"),
            first=f"run-{first}", second=f"run-{second}", **known,
        )
        for first, second, value, known in ((*pair[:3], dict(pair[3])) for pair in pairs)
    ]  # fmt: skip
    return make_comparison(name, runs, *differences, main=main, **fields)


def verdict(*tasks, **fields):
    return ComparisonDocument(comparisons=tasks, **fields).verdict()


WON = [("a", "b", 0.12, SURE)]
LOST = [("a", "b", -0.12, {"interval": (-0.21, -0.03), "holm": 0.012})]
EVEN = [("a", "b", 0.03, OPEN)]


def test_a_run_wins_where_no_other_is_left_and_people_can_show_what_is_undecided():
    # The interval of 38 people is 0.14 wide: 0.07 / 1.96 is its error, and 2.80 times that .1.
    least = "38 people can show differences from .1 up"
    assert verdict(a_task("t", WON)) == "a wins on t"
    assert verdict(a_task("t", WON, higher=False)) == "b wins on t"
    assert verdict(a_task("t", EVEN)) == f"undecided on t: {least}"
    tasks = a_task("s", WON), a_task("t", WON), a_task("u", EVEN), a_task("v", EVEN)
    assert verdict(*tasks) == f"a wins on 2 of 4 tasks and is worse on none; 2 undecided: {least}"
    assert verdict(a_task("s", EVEN), a_task("t", EVEN)) == f"undecided on all 2 tasks: {least}"
    found = verdict(*tasks[:2], a_task("v", LOST))
    assert found == "a wins on 2 of 3 tasks and is worse on 1, b wins on 1"


def test_one_of_three_wins_only_where_each_other_is_worse():
    both = a_task("s", [("a", "c", 0.12, SURE), ("b", "c", 0.12, SURE)])
    first = a_task("t", [("b", "a", -0.12, LOST[0][3]), ("c", "a", -0.12, LOST[0][3])])
    near = a_task("u", [("b", "a", -0.02, OPEN), ("c", "a", -0.12, LOST[0][3])])
    assert verdict(both) == "a is better than c on s; b is better than c on s"
    assert verdict(first, near).startswith("a wins on 1 of 2 tasks and is worse on none; 1 undec")
    found = ComparisonDocument(comparisons=(first, near))
    assert [each.winner for each in found.decisions()] == ["run-a", None]
    told = [(each.name, one.winner, one.loser) for each, one in found.established()]
    assert told == [("t", "run-a", "run-b"), ("t", "run-a", "run-c"), ("u", "run-a", "run-c")]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"interval": (0.01, 0.2), "holm": 0.06}, "undecided on t: 38 people can show"),
        ({"interval": (-0.01, 0.2), "holm": 0.03}, "undecided on t: 38 people can show"),
        ({"interval": (0.01, 0.2), "holm": None}, "a wins on t"),
        ({"interval": None, "holm": None}, "no test is possible on t"),
        ({"interval": (0.0, 0.2), "holm": 0.03}, "undecided on t: 38 people can show"),
        ({"interval": (0.0, 0.0), "holm": 1.0}, "undecided on t"),
        ({"interval": (-2.2e-16, 1.1e-16), "holm": 1.0}, "undecided on t"),
    ],
)
def test_a_difference_is_significant_by_interval_and_p_together(known, said):
    found = verdict(a_task("t", [("a", "b", 0.1, known)]))
    assert found.startswith(said) and ("people" in found) is ("people" in said)


def test_ranks_are_between_the_runs_that_are_better_and_those_that_are_worse():
    """Of a 0.75, b 0.6 and c 0.75 only a is shown to be better than b."""
    pairs = [("a", "b", 0.15, SURE), ("a", "c", 0.0, OPEN), ("b", "c", -0.15, OPEN)]
    runs = ["run-a", "run-b", "run-c"]

    def ranks(**which):
        return rank_intervals(runs, a_task("t", pairs).differences, **which)

    assert ranks(higher_is_better=True) == {"run-a": (1, 2), "run-b": (2, 3), "run-c": (1, 3)}
    assert ranks(higher_is_better=False) == {"run-a": (2, 3), "run-b": (1, 2), "run-c": (1, 3)}


def test_further_metrics_make_no_winner_but_say_where_one_is_worse():
    worse = ("a", "b", -0.12, {**LOST[0][3], "metric": "is"})
    better = ("a", "b", 0.12, {**SURE, "metric": "is"})
    main = ("ptc", "is")
    assert verdict(a_task("t", [*WON, worse], main=main)) == "a wins on t and is worse on it too"
    assert verdict(a_task("t", [*WON, worse], main=main), a_task("s", EVEN)).startswith(
        "a wins on 1 of 2 tasks and is worse on 1; 1 undecided"
    )
    assert verdict(a_task("t", [*EVEN, better], main=main)).startswith(
        "a is better than b on t by is; undecided on t: 38 people"
    )


def test_what_people_can_show_names_metrics_and_people_where_they_differ():
    gap = [("a", "b", 0.1, {"interval": (-0.2, 0.4), "holm": 0.5, "metric": "gap", "users": 40})]
    assert verdict(a_task("s", EVEN), a_task("t", gap, main=("gap",))) == (
        "undecided on all 2 tasks: 38 to 40 people can show differences from .1 (ptc) to .43 (gap)"
    )


def test_a_mean_counts_in_place_of_its_tasks():
    tasks = a_task("s", WON), a_task("t", EVEN), a_task("u", EVEN)
    mean = MeanOverTasks(
        name="g", over="tasks", tasks=("s", "t"), metric="ptc", higher_is_better=True, value=0.5,
        interval=None, confidence=0.95,
    )  # fmt: skip
    difference = make_difference(0.1, (0.01, 0.2), 0.04, first="run-a", second="run-b")
    of_mean = MeanDifference(
        name="g", over="tasks", tasks=("s", "t"), higher_is_better=True, difference=difference
    )
    means = {"run-a": (mean,), "run-b": (mean,)}
    assert verdict(*tasks, means=means, mean_differences=(of_mean,)).startswith(
        "a wins on 1 of 2 tasks and is worse on none; 1 undecided"
    )
    alone = {"run-a": (mean,)}
    assert verdict(*tasks, means=alone).startswith("a wins on 1 of 3 tasks")


def test_nothing_is_said_of_runs_that_were_not_compared():
    assert verdict() == ""
    alone = make_compared("a", {"ptc": make_metric(0.5, n=38)})
    assert verdict(make_comparison("t", [alone])) == ""
