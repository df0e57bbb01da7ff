"""The thresholds at their edges, and what the prompt is told of them."""

import itertools

import pytest
from harness_gistbench.records import SIGNALS, Counts, Evidence, Verification
from harness_gistbench.verification import (
    Conditions,
    conditions,
    count,
    meets,
    shortcomings,
)

LIKED, WATCHED, SKIPPED, DISLIKED = SIGNALS
POSITIVE = {
    (LIKED, WATCHED): {(2, 0), (2, 1), (2, 2), (2, 3), (1, 2), (1, 3), (0, 3)},
    (LIKED,): {(2, 0), (2, 1), (2, 2), (2, 3)},
    (WATCHED,): {(0, 3), (1, 3), (2, 3)},
    (): set(),
}
"""The pairs of explicit and implicit positives that are enough, by the signals there are."""

NEGATIVE = {
    (SKIPPED, DISLIKED): {(3, 2)},
    (SKIPPED,): {(3, 2), (3, 3)},
    (DISLIKED,): {(3, 2), (4, 2)},
    (): {(3, 2), (3, 3), (4, 2), (4, 3)},
}
"""The pairs of implicit and explicit negatives that are borne, by the signals there are."""


def counted(numbers):
    """The counts of explicit and implicit positives, and of implicit and explicit negatives."""
    return Counts(**dict(zip(SIGNALS, numbers, strict=True)))


@pytest.mark.parametrize("negative", NEGATIVE)
@pytest.mark.parametrize("positive", POSITIVE)
def test_the_thresholds_hold_at_their_edges_whatever_signals_the_dataset_has(positive, negative):
    for explicit, implicit in itertools.product((2, 1, 0), (3, 2, 1, 0)):
        for skipped, disliked in itertools.product((3, 4), (2, 3)):
            counts = (explicit, implicit, skipped, disliked)
            enough = (explicit, implicit) in POSITIVE[positive]
            borne = (skipped, disliked) in NEGATIVE[negative]
            rules = conditions(Verification(), (*positive, *negative))
            assert meets(counted(counts), rules) == (enough and borne), counts


def test_each_number_is_a_setting():
    rules = Verification(
        min_explicit_positive=4,
        min_implicit_positive=6,
        mixed_explicit_positive=2,
        mixed_implicit_positive=3,
        max_implicit_negative=7,
        max_explicit_negative=0,
    )

    assert conditions(rules, SIGNALS) == Conditions(
        positive=((4, 0), (0, 6), (2, 3)), negative=((SKIPPED, 7), (DISLIKED, 0))
    )
    assert not meets(counted((1, 5, 0, 0)), conditions(rules, SIGNALS))
    assert meets(counted((4, 0, 7, 0)), conditions(rules, SIGNALS))


def test_an_object_counts_once_under_each_of_its_signals():
    kept = (
        Evidence("a", "song", (LIKED, SKIPPED)),
        Evidence("b", "song", (WATCHED,)),
        Evidence("c", "tune", (WATCHED,)),
        Evidence("b", "song", (WATCHED, SKIPPED)),
    )

    assert count(kept) == Counts(explicit_positive=1, implicit_positive=2, implicit_negative=2)
    assert count(()) == Counts()


@pytest.mark.parametrize(
    ("counts", "signals", "expected"),
    [
        ((1, 1, 0, 0), SIGNALS, ("short_of_implicit", "short_of_explicit")),
        ((2, 0, 4, 0), SIGNALS, ("short_of_implicit", "too_negative")),
        ((0, 3, 0, 3), SIGNALS, ("short_of_explicit", "too_negative")),
        ((2, 3, 3, 3), SIGNALS, ("too_negative",)),
        ((1, 0, 0, 0), (LIKED, SKIPPED), ("short_of_explicit",)),
        ((0, 2, 0, 0), (WATCHED,), ("short_of_implicit",)),
        ((2, 0, 4, 0), (LIKED, DISLIKED), ()),
    ],
)
def test_an_unverified_interest_says_what_it_lacks(counts, signals, expected):
    assert shortcomings(counted(counts), Verification(), signals) == expected
