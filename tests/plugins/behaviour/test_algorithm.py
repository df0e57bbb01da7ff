"""Prompts follow Algorithm 1, as an independent checker sees it."""

from random import Random

import msgspec
import pytest
from samples.behaviour import MIN_PLAYS, SAMPLE

from .checker import PARTS, faulty, read_movies, read_music
from .reference import FAULTS, build

ENOUGH = 12


@pytest.fixture(scope="module")
def logs():
    """The logs of each domain's sample."""
    return {
        "movies": read_movies(SAMPLE / "movies"),
        "music": read_music(SAMPLE / "music", least=MIN_PLAYS),
    }


def some(logs, fault=""):
    """A few prompts of each cell that is not rare."""
    rng = Random(17)
    return [
        prompt
        for proxy in PARTS[logs.domain]
        for length in (0, 1, 3, 5)
        for prompt in build(logs, proxy, length, rng, kept=ENOUGH if length else 99, fault=fault)
    ]


@pytest.mark.parametrize("domain", PARTS)
def test_right_prompts_pass(logs, domain):
    made = some(logs[domain])
    assert len(made) > 150
    assert faulty(logs[domain], made) == {}


FOUND = {
    "touched": {"not 25 candidates that no user has, or all there are"},
    "threshold": {"another number of users", "probabilities that are not the shares of the users"},
    "demography": {"another number of users", "probabilities that are not the shares of the users"},
    "candidates": {"a candidate of the history"},
    "counts": {"probabilities that are not the shares of the users"},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("domain", PARTS)
def test_a_builder_with_a_fault_fails(logs, domain, fault):
    assert faulty(logs[domain], some(logs[domain], fault)).keys() >= FOUND[fault]


CHANGES = {
    "another setting": {"setting": "b"},
    "of no cell and group": {"group": ("Nobody",)},
    "another number of users": {"users": 2},
    "another popularity": {"popular": (1,) * 50},
    "another popularity in the group": {"popular_in_group": (1,) * 50},
    "not 50 different candidates": {"candidates": ("x",) * 50},
    "things outside the inventory": {"candidates": tuple(map(str, range(50)))},
    "not as many different things in the history as it says": {"length": 5},
    "probabilities that are not the shares of the users": {"probabilities": ()},
}


@pytest.mark.parametrize("fault", CHANGES)
def test_a_prompt_that_was_changed_fails(logs, fault):
    right = next(build(logs["movies"], "age", 3, Random(1), kept=1))
    assert faulty(logs["movies"], [right]) == {}
    changed = msgspec.structs.replace(right, **CHANGES[fault])
    assert fault in faulty(logs["movies"], [changed])


def test_a_group_without_its_own_prompt_fails(logs):
    bare = [one for one in some(logs["movies"]) if not one.length]
    assert faulty(logs["movies"], bare) == {}
    assert faulty(logs["movies"], bare[1:]) == {"not one prompt without history for each group": ""}
