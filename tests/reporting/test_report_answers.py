"""What a report says in words about differences, and how it counts them."""

import pytest
from builders.runs import make_metric

from harness.reporting.html.first_screen import FEW_ANSWERS, first_screen
from harness.reporting.html.run_differences import Differences, answers, standing
from harness.scoring.comparison_document import ComparedRun, Comparison, ComparisonDocument
from harness.scoring.paired_differences import Difference


def compared(task, value, interval, holm, *, higher=True):
    """A comparison of the run `new` with the run `old`."""
    runs = tuple(
        ComparedRun(
            run=f"run-{label}", path=f"runs/{label}", label=label, model=label, marks=(), units=40,
            counts={}, metrics={"ptc": make_metric(0.5, n=40, higher_is_better=higher)}, common={},
        )
        for label in ("old", "new")
    )  # fmt: skip
    difference = Difference(
        metric="ptc", first="run-new", second="run-old", value=value, n=40, users=40,
        interval=interval, confidence=0.95, p=holm, p_holm=holm,
    )  # fmt: skip
    return Comparison(
        task=task, version=1, benchmark="b", roles={}, data={}, not_comparable_because=(),
        chosen="all agree", main=("ptc",), runs=runs, refused=(), oracle=None,
        differences=(difference,),
    )  # fmt: skip


def several(*comparisons):
    return Differences(ComparisonDocument(comparisons=comparisons))


SURE = compared("t", 0.2, (0.1, 0.3), 0.01)
SHY = compared("t", 0.2, (0.1, 0.3), 0.06)


@pytest.mark.parametrize(
    ("one", "is_better", "words"),
    [
        (SURE, True, "new is better than old, by 0.200 [0.100, 0.300]"),
        (compared("t", -0.2, (-0.3, -0.1), 0.01), True, "old is better than new, by 0.200"),
        (compared("t", -0.2, (-0.3, -0.1), 0.01, higher=False), True, "new is better than old"),
        (SHY, False, "new is ahead of old, but no difference is established"),
        (compared("t", 0.2, (-0.1, 0.3), 0.01), False, "new is ahead of old, but no difference"),
        (compared("t", 0.0, (0.0, 0.0), 1.0), False, "no difference between new and old is"),
        (compared("t", 0.2, (0.1, 0.3), None), True, "new is better than old, by 0.200"),
        (compared("t", 0.2, None, 0.01), False, "cannot be said"),
    ],
)
def test_a_run_is_better_where_the_interval_and_holm_agree(one, is_better, words):
    better, undecided = answers(several(one))
    (said,) = better if is_better else undecided
    assert words in said
    assert len(better) + len(undecided) == 1


def test_each_run_is_counted_where_it_is_ahead():
    lower = compared("u", 0.1, (-0.1, 0.3), 1.0, higher=False)
    same = compared("v", 0.0, (0.0, 0.0), 1.0)
    assert standing(several(SURE, lower, same)).endswith("new in 1 of its 3, old in 1 of its 3.")


def test_many_comparisons_are_counted_and_those_that_establish_nothing_are_folded():
    page = first_screen([], several(SURE, *[SHY] * FEW_ANSWERS))
    assert "1 of 7 comparisons with the best run of a task establishes a difference." in page
    assert page.index("new is better than old") < page.index("<details>")
    assert page.index("<details>") < page.index("new is ahead of old")
    few = first_screen([], several(SURE, SHY))
    assert "<details>" not in few
    assert "new is ahead of old" in few
