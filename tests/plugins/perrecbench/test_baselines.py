"""Predictions and rankings by averages, and the respondents that stand in for a model."""

import json
from random import Random

import pytest
from builders.perrecbench import make_member
from harness_perrecbench.baselines import (
    BASELINES,
    baseline_ranks,
    compare,
    guesses,
    liking,
    profile,
    rank,
    rate,
    words,
)
from harness_perrecbench.plugin import ASKED
from harness_perrecbench.records import Behaviour


def member(name, average, *, ratings=(), weights=(), item=None):
    shown = tuple(Behaviour(title="rye", rating=rating) for rating in ratings)
    return make_member(name, average, shown=shown, weights=weights, item_average=item)


ADA = member("ada", 4.5, ratings=(5.0, 1.0), weights=(3.0, 1.0), item=3.0)
BEN = member("ben", 2.5, ratings=(2.0, 4.0), weights=(1.0, 1.0), item=3.0)
CLEO = member("cleo", 3.5, ratings=(5.0,), weights=(0.0,), item=3.0)
GROUP = (ADA, BEN, CLEO)


def test_guesses_and_baselines_say_what_their_names_do_and_give_no_own_rating_away():
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
    # Ratings 5, 1 and 3 of one item: what the others rated is 2, 4 and 3.
    rated = {"ada": (4.1, 2.0), "ben": (1.7, 4.0), "cleo": (2.3, 3.0)}
    group = tuple(member(name, average, item=item) for name, (average, item) in rated.items())
    ranks = baseline_ranks("item", group, 4.4)
    assert ranks["both_averages"] == (1, 1, 1)
    assert ranks["item_average"] == ranks["lower_average_first"] == (3, 1, 2)
    assert guesses(group, 4.4)["item_average"] == (2.0, 4.0, 3.0)


def test_weights_that_are_no_weights_and_what_needs_something_unknown():
    weighed = member("dan", 3.0, ratings=(5.0, 1.0), weights=(0.5, -2.0))
    unweighed = member("eve", 3.0, ratings=(5.0, 1.0), weights=(-0.5, -2.0))
    assert guesses((weighed, unweighed), None)["bm25_ratings"] == (5.0, 3.0)
    assert guesses((member("new", 3.25),), None)["bm25_ratings"] == (3.25,)
    retrieved = member("dan", 3.0, ratings=(5.0, 1.0))
    assert guesses((retrieved,), None) == {"user_average": (3.0,)}
    assert list(baseline_ranks("item", (retrieved, ADA), None)) == [
        "random", "user_average", "higher_average_first", "lower_average_first",
    ]  # fmt: skip
    assert "both_averages" not in guesses(GROUP, None)


def test_chance_is_drawn_from_the_item_and_who_is_in_the_group_and_tells_equal_likings_apart():
    drawn = [baseline_ranks(f"item{n}", GROUP, None)["random"] for n in range(600)]
    # The first draws, as they are on any machine.
    assert drawn[:3] == [(2, 1, 3), (1, 2, 3), (1, 2, 3)]
    assert {ranks: drawn.count(ranks) for ranks in set(drawn)} == pytest.approx(
        dict.fromkeys([(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)], 100),
        abs=35,
    )
    mirrored = baseline_ranks("item0", tuple(reversed(GROUP)), None)["random"]
    assert mirrored == tuple(reversed(drawn[0]))
    asked = {"query": KETTLE, "members": [FOND, FOND]}
    assert {compare(asked, Random(seed)) for seed in range(9)} == {"[User A]", "[User B]"}
    orders = {rank(asked, Random(seed)) for seed in range(9)}
    assert orders == {'{"predicted_ranking": [1, 2]}', '{"predicted_ranking": [2, 1]}'}
    assert rank(asked, Random(1)) == rank(asked, Random(1))


KETTLE = {"title": "Brelto Gothic Kettle with Raven Handle", "author": None}


def shown(title, rating):
    return {"title": title, "author": None, "rating": rating}


def asked_of(*behaviours, average=3.0, profile=None):
    behaviours = [shown(*one) for one in behaviours]
    return {"profile": profile, "average": average, "common": average, "shown": behaviours}


FOND = asked_of(("A Gothic Raven Lamp", 5.0), ("Plain Socks", 1.0))


def test_liking_is_of_shared_words_of_which_ratings_and_profiles_are_made():
    assert words("A Raven's raven, for 2 with Zen") == {"raven", "zen"}
    # Two shared words, 2 above the average: 2 * 2 / (2 + 1).
    assert liking(FOND, KETTLE) == pytest.approx(4 / 3)
    # Two shared words 2 above, one shared word 1 below: (2 * 2 - 1 * 1) / (3 + 1).
    both = asked_of(("Gothic Raven Lamp", 5.0), ("Old Kettle", 2.0))
    assert liking(both, KETTLE) == pytest.approx(3 / 4)
    assert liking(asked_of(("Plain Socks", 5.0)), KETTLE) == 0
    fond = asked_of(("Plain Socks", 5.0), profile="Likes what says raven, gothic or crypt.")
    assert liking(fond, KETTLE) == 0.5
    liked = "brelto gothic kettle raven handle"
    for one, stars in (
        (FOND, 4.33),
        (asked_of(("Gothic Raven Lamp", 1.0), average=1.1), 1.03),
        (asked_of(("Socks", 5.0), average=4.5, profile=liked), 5),
        (asked_of(("Plain Socks", 5.0), average=None), 3),
    ):
        said = rate({"member": one, "query": KETTLE}, Random(1))
        assert json.loads(said) == {"predicted_rating": stars}
    history = [shown("Gothic Raven", 5.0), shown("Gothic Crypt", 4.0), shown("Plain Socks", 1.5)]
    # The average is 3.5, so that gothic is 2, raven 1.5 and crypt 0.5 above it.
    assert profile({"history": history}, Random(1)) == "Prefers what says gothic, raven, crypt."
    same = [shown("Gothic Raven", 4.0), shown("Plain Socks", 4.0)]
    assert profile({"history": same}, Random(1)) == "Prefers nothing in particular."


def test_every_prompt_of_the_benchmark_has_a_respondent():
    from harness_perrecbench.benchmark import PERRECBENCH

    roles = ((role, stage) for stage in PERRECBENCH.stages for role in stage.roles)
    asked = {(role, prompt) for role, stage in roles for prompt in stage.templates}
    assert {(role, prompt) for role, prompts in ASKED.items() for prompt in prompts} == asked
