import pytest

from harness.scoring.stats import Undefined, agreement_of, cohen_kappa, fleiss_kappa


def yes_no(text: str) -> list[bool]:
    return [mark == "y" for mark in text]


ONE_LABEL = Undefined("both gave one label alone, and the same")
NO_YES = Undefined("neither said yes to anything")


@pytest.mark.parametrize(
    ("first", "second", "counted", "kappa", "f1"),
    [
        # Both yes 20, only the first 5, only the second 10, neither 15: they agree on 35 of 50. By
        # chance 25/50 · 30/50 + 25/50 · 20/50 = 1/2, so κ = (7/10 - 1/2) / (1/2) = 2/5.
        # Of 25 named 20 are right, of 30 there are 20 found: 2 · 20 / (25 + 30).
        (yes_no("y" * 25 + "n" * 25), yes_no("y" * 20 + "n" * 5 + "y" * 10 + "n" * 15),
         (50, 35, 0.7), pytest.approx(0.4), pytest.approx(40 / 55)),
        (yes_no("yy"), yes_no("yy"), (2, 2, 1.0), ONE_LABEL, 1.0),
        (yes_no("nnn"), yes_no("nnn"), (3, 3, 1.0), ONE_LABEL, NO_YES),
        ([], [], (0, 0, None), Undefined("nothing was labelled by both"), NO_YES),
        # Classes: alike 2 of 4; by chance 2/4 · 1/4 + 1/4 · 2/4 = 1/4, so κ = (1/2 - 1/4) / (3/4).
        ("aabc", "abbd", (4, 2, 0.5), pytest.approx(1 / 3), NO_YES),
    ],
)  # fmt: skip
def test_labels_agree_by_hand_or_say_why_not(first, second, counted, kappa, f1):
    found = agreement_of(first, second)
    assert (found.n, found.same, found.share) == counted
    assert (found.kappa, found.f1) == (kappa, f1)


def test_weights_cost_by_distance_and_by_its_square_and_need_an_order():
    # Labels 0 1 2. Pairs: (0,0) 2, (0,1) 1, (1,1) 2, (1,2) 1, (2,0) 1, (2,2) 3; rows 3 3 4,
    # columns 3 3 4 of 10. Linear cost found 1 + 1 + 2 = 4, by chance 9 + 24 + 9 + 12 + 24 +
    # 12 = 90 tenths: 1 - 4/9. Squares: found 6, by chance 9 + 48 + 9 + 12 + 48 + 12 = 138
    # tenths: 1 - 60/138. Unweighted: found 3, by chance 9 + 12 + 9 + 12 + 12 + 12 = 66 tenths.
    pairs = [(0, 0)] * 2 + [(0, 1), (1, 1), (1, 1), (1, 2), (2, 0)] + [(2, 2)] * 3
    first, second = zip(*pairs, strict=True)
    assert cohen_kappa(first, second) == pytest.approx(1 - 30 / 66)
    assert cohen_kappa(first, second, weights="linear", order=(0, 1, 2)) == pytest.approx(1 - 4 / 9)
    squared = cohen_kappa(first, second, weights="quadratic", order=(0, 1, 2))
    assert squared == pytest.approx(1 - 60 / 138)
    with pytest.raises(ValueError, match="order"):
        cohen_kappa("ab", "ba", weights="linear")


FLEISS = [
    (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
]  # fmt: skip
"""Fourteen who put ten subjects into five classes: a textbook's worked case, with κ 0.210."""


def test_fleiss_kappa_of_a_textbook_and_by_hand_or_why_there_is_none():
    assert fleiss_kappa(FLEISS) == pytest.approx(0.210, abs=0.0005)
    # Three over four things: 3-0, 3-0, 2-1, 0-3. Pairs that agree: 1, 1, 1/3, 1, in the mean 5/6;
    # by chance (8/12)² + (4/12)² = 5/9. κ = (5/6 - 5/9) / (4/9) = 5/8.
    assert fleiss_kappa([(3, 0), (3, 0), (2, 1), (0, 3)]) == pytest.approx(0.625)
    with pytest.raises(ValueError, match="different numbers of raters"):
        fleiss_kappa([(3, 0), (2, 0)])
    assert fleiss_kappa([]) == Undefined("nothing was labelled by all")
    assert fleiss_kappa([(1, 0), (0, 1)]) == Undefined("fewer than two labelled")
    assert fleiss_kappa([(3, 0), (3, 0)]) == Undefined("all gave one label alone, and the same")
