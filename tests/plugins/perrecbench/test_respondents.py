"""The respondents that stand in for a candidate and a profiler."""

import json
from random import Random

import pytest
from harness_perrecbench.baselines import compare, liking, profile, rank, rate, words
from harness_perrecbench.plugin import ASKED

KETTLE = {"title": "Brelto Gothic Kettle with Raven Handle", "author": None}


def shown(title, rating):
    return {"title": title, "author": None, "rating": rating}


def member(*behaviours, average=3.0, profile=None):
    return {
        "profile": profile,
        "average": average,
        "common": average,
        "shown": [shown(*one) for one in behaviours],
    }


FOND = member(("A Gothic Raven Lamp", 5.0), ("Plain Socks", 1.0))
INDIFFERENT = member(("Plain Socks", 5.0))


def test_liking_is_of_shared_words_weighed_by_their_ratings():
    assert words("A Raven's raven, for 2 with Zen") == {"raven", "zen"}
    # Two shared words, 2 above the average: 2 * 2 / (2 + 1).
    assert liking(FOND, KETTLE) == pytest.approx(4 / 3)
    # Two shared words 2 above, one shared word 1 below: (2 * 2 - 1 * 1) / (3 + 1).
    both = member(("Gothic Raven Lamp", 5.0), ("Old Kettle", 2.0))
    assert liking(both, KETTLE) == pytest.approx(3 / 4)
    assert liking(INDIFFERENT, KETTLE) == 0
    fond = member(("Plain Socks", 5.0), profile="Likes what says raven, gothic or crypt.")
    assert liking(fond, KETTLE) == 0.5


def test_a_rating_is_the_average_and_the_liking_within_the_scale():
    liked = "brelto gothic kettle raven handle"
    for one, stars in (
        (FOND, 4.33),
        (member(("Gothic Raven Lamp", 1.0), average=1.1), 1.03),
        (member(("Socks", 5.0), average=4.5, profile=liked), 5),
        (member(("Plain Socks", 5.0), average=None), 3),
    ):
        said = rate({"member": one, "query": KETTLE}, Random(1))
        assert json.loads(said) == {"predicted_rating": stars}


def test_equal_likings_are_told_apart_by_chance_alone():
    asked = {"query": KETTLE, "members": [FOND, FOND]}
    assert {compare(asked, Random(seed)) for seed in range(9)} == {"[User A]", "[User B]"}
    orders = {rank(asked, Random(seed)) for seed in range(9)}
    assert orders == {'{"predicted_ranking": [1, 2]}', '{"predicted_ranking": [2, 1]}'}
    assert rank(asked, Random(1)) == rank(asked, Random(1))


def test_a_profile_names_the_words_that_were_rated_above_the_average_the_furthest_first():
    history = [shown("Gothic Raven", 5.0), shown("Gothic Crypt", 4.0), shown("Plain Socks", 1.5)]

    # The average is 3.5, so that gothic is 2, raven 1.5 and crypt 0.5 above it.
    assert profile({"history": history}, Random(1)) == "Prefers what says gothic, raven, crypt."
    same = [shown("Gothic Raven", 4.0), shown("Plain Socks", 4.0)]
    assert profile({"history": same}, Random(1)) == "Prefers nothing in particular."


def test_every_prompt_of_the_benchmark_has_a_respondent():
    from harness_perrecbench.benchmark import PERRECBENCH

    asked = {
        (role, prompt)
        for stage in PERRECBENCH.stages
        for role in stage.roles
        for prompt in stage.templates
    }
    assert {(role, prompt) for role, prompts in ASKED.items() for prompt in prompts} == asked
