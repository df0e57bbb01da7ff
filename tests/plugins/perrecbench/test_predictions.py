"""Predictions and rankings by averages, worked out by hand."""

import pytest
from builders.perrecbench import make_member
from harness_perrecbench.baselines import BASELINES, baseline_ranks, guesses
from harness_perrecbench.records import Behaviour


def member(name, average, *, ratings=(), weights=(), item=None):
    shown = tuple(Behaviour(title="rye", rating=rating) for rating in ratings)
    return make_member(name, average, shown=shown, weights=weights, item_average=item)


ADA = member("ada", 4.5, ratings=(5.0, 1.0), weights=(3.0, 1.0), item=3.0)
BEN = member("ben", 2.5, ratings=(2.0, 4.0), weights=(1.0, 1.0), item=3.0)
CLEO = member("cleo", 3.5, ratings=(5.0,), weights=(0.0,), item=3.0)
GROUP = (ADA, BEN, CLEO)


def test_guesses_and_baselines_are_what_their_names_say():
    assert guesses(GROUP, 4.0) == {
        "user_average": (4.5, 2.5, 3.5),
        "item_average": (3.0, 3.0, 3.0),
        "both_averages": (3.5, 1.5, 2.5),
        # (3*5 + 1*1) / 4; (2 + 4) / 2; no weight counts
        "bm25_ratings": (4.0, 3.0, 3.5),
    }
    ranks = baseline_ranks("item", GROUP, 4.0)

    del ranks["random"]
    assert ranks == {
        "user_average": (1, 1, 1),
        "item_average": (3, 1, 2),
        "both_averages": (1, 1, 1),
        # 4.0 - 4.5, 3.0 - 2.5 and 3.5 - 3.5
        "bm25_ratings": (3, 1, 2),
        "higher_average_first": (1, 3, 2),
        "lower_average_first": (3, 1, 2),
    }
    assert list(baseline_ranks("item", GROUP, 4.0)) == list(BASELINES)


def test_what_the_others_rated_does_not_give_a_users_own_rating_away():
    # Ratings 5, 1 and 3 of one item: what the others rated is 2, 4 and 3.
    group = (
        member("ada", 4.1, item=2.0),
        member("ben", 1.7, item=4.0),
        member("cleo", 2.3, item=3.0),
    )

    ranks = baseline_ranks("item", group, 4.4)

    assert ranks["both_averages"] == (1, 1, 1)
    assert ranks["item_average"] == ranks["lower_average_first"] == (3, 1, 2)
    assert guesses(group, 4.4)["item_average"] == (2.0, 4.0, 3.0)


def test_weights_that_are_no_weights():
    weighed = member("dan", 3.0, ratings=(5.0, 1.0), weights=(0.5, -2.0))
    unweighed = member("eve", 3.0, ratings=(5.0, 1.0), weights=(-0.5, -2.0))

    assert guesses((weighed, unweighed), None)["bm25_ratings"] == (5.0, 3.0)
    assert guesses((member("new", 3.25),), None)["bm25_ratings"] == (3.25,)


def test_what_needs_something_unknown_is_absent():
    retrieved = member("dan", 3.0, ratings=(5.0, 1.0))

    assert guesses((retrieved,), None) == {"user_average": (3.0,)}
    assert list(baseline_ranks("item", (retrieved, ADA), None)) == [
        "random",
        "user_average",
        "higher_average_first",
        "lower_average_first",
    ]
    assert "both_averages" not in guesses(GROUP, None)


def test_chance_is_drawn_from_the_item_and_who_is_in_the_group():
    drawn = [baseline_ranks(f"item{n}", GROUP, None)["random"] for n in range(600)]

    # The first draws, as they are on any machine.
    assert drawn[:3] == [(2, 1, 3), (1, 2, 3), (1, 2, 3)]
    assert {ranks: drawn.count(ranks) for ranks in set(drawn)} == pytest.approx(
        dict.fromkeys([(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)], 100),
        abs=35,
    )
    mirrored = baseline_ranks("item0", tuple(reversed(GROUP)), None)["random"]
    assert mirrored == tuple(reversed(drawn[0]))
