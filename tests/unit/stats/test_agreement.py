import math
import sys

import pytest

from harness.errors import UsageError
from harness.stats import Agreement, Undefined, agreement_of, rank_correlation


def yes_no(text: str) -> list[bool]:
    return [mark == "y" for mark in text]


def test_kappa_of_a_table_worked_out_by_hand():
    # Both yes 20, only the first 5, only the second 10, neither 15: they agree on 35 of 50. By
    # chance 25/50 · 30/50 + 25/50 · 20/50 = 1/2, so κ = (7/10 - 1/2) / (1/2) = 2/5.
    first = yes_no("y" * 20 + "y" * 5 + "n" * 10 + "n" * 15)
    second = yes_no("y" * 20 + "n" * 5 + "y" * 10 + "n" * 15)
    found = agreement_of(first, second)
    assert isinstance(found, Agreement)
    assert (found.n, found.share) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)
    # Of 25 named 20 are right, of 30 there are 20 found: 2 · 20 / (25 + 30).
    assert found.f1 == pytest.approx(40 / 55)


def test_agreement_worse_than_chance_is_below_zero():
    found = agreement_of(yes_no("yn"), yes_no("ny"))
    assert found == Agreement(n=2, share=0.0, kappa=-1.0, f1=0.0)


def test_one_label_alone_from_both_has_no_kappa():
    found = agreement_of(yes_no("yy"), yes_no("yy"))
    assert isinstance(found, Agreement)
    assert found.kappa == Undefined("both gave one label alone, and the same")
    assert found.f1 == 1.0


def test_no_yes_from_either_has_no_f1():
    found = agreement_of(yes_no("nnn"), yes_no("nnn"))
    assert isinstance(found, Agreement)
    assert (found.share, found.f1) == (1.0, Undefined("neither said yes to anything"))


def test_one_label_alone_from_one_of_them_is_agreement_by_chance():
    found = agreement_of(yes_no("yyyy"), yes_no("yyyn"))
    assert isinstance(found, Agreement)
    assert (found.share, found.kappa) == (0.75, 0.0)


def test_nothing_labelled_has_no_agreement():
    assert agreement_of([], []) == Undefined("nothing was labelled by both")


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(UsageError) as told:
        agreement_of([True], [False])
    assert "user-understanding-harness[analysis]" in str(told.value)


def test_ranks_correlate_whatever_the_distances():
    # Ranks 1 2 3 4 against 1 3 2 4: 1 - 6 · 2 / (4 · 15).
    assert rank_correlation([1, 2, 3, 4], [0.1, 70, 5, 900]) == pytest.approx(0.8)


def test_ties_share_the_mean_of_their_ranks():
    # Ranks 1, 2.5, 2.5, 4 against 1 2 3 4: Pearson's r of the ranks is 4.5 / √(4.5 · 5).
    assert rank_correlation([1, 2, 2, 9], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(22.5))


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ([], [], "fewer than two pairs"),
        ([1.0], [2.0], "fewer than two pairs"),
        ([3.0, 3.0], [1.0, 2.0], "all values of one side are the same"),
        ([1.0, 2.0], [3.0, 3.0], "all values of one side are the same"),
    ],
)
def test_a_correlation_that_cannot_be_has_its_reason(x, y, why):
    assert rank_correlation(x, y) == Undefined(why)
