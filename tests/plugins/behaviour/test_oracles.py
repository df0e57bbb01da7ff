"""Models that know how the samples were made: who knows demography and history predicts best."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from harness_behaviour.records import PROXIES
from samples import behaviour

import harness
from harness.testing import ScriptedModel

from .checker import folded

KNOWLEDGE = ("demography", "history", "both")
FEW = 300


class Oracle:
    """Ranks candidates by how many of the users have them, after what it knows of the generator.

    Before it looks at a prompt, it knows how many people of each demography there are and how
    likely each thing is for those with each pair of own themes.
    """

    def __init__(self, domain):
        world = behaviour.movies() if domain == "movies" else behaviour.music()
        bounds = behaviour.FILMS if domain == "movies" else behaviour.TRACKS
        there = Counter(person.demography for person in world.people if person.kept)
        themes = list(combinations(world.themes, behaviour.OWNS))
        self.kinds = [(who, own) for who in there for own in themes]
        self.before = np.array([there[who] for who, _ in self.kinds], dtype=float)
        count = sum(bounds) / 2
        self.chance = np.array([chances(world.weights(*kind), count) for kind in self.kinds])
        self.places = {folded(thing.title): place for place, thing in enumerate(world.things)}

    def rank(self, variables, knows):
        """The ten candidates that are likeliest for those who are like the prompt says."""
        group, history, candidates = (variables[one] for one in ("group", "history", "candidates"))
        kinds = self.before
        if knows != "history":
            kinds = kinds * [set(group) <= set(who) for who, _ in self.kinds]
        if knows != "demography":
            of_history = self.chance[:, [self.places[folded(title)] for title in history]]
            kinds = kinds * at_least(of_history, -(-6 * len(history) // 10))
        likely = kinds @ self.chance[:, [self.places[folded(title)] for title in candidates]]
        return [candidates[place] for place in np.argsort(-likely, kind="stable")[:10]]


def chances(weights, count):
    """The chance of somebody having each thing, if so many are had altogether."""
    weights = np.array(weights)
    low, high = 0.0, 1e4
    while high - low > 1e-6:
        rate = (low + high) / 2
        low, high = (rate, high) if sum(1 - np.exp(-rate * weights)) < count else (low, rate)
    return 1 - np.exp(-high * weights)


def at_least(chance, needed):
    """By kind of people, the chance of having so many of some things."""
    has = np.zeros((len(chance), chance.shape[1] + 1))
    has[:, 0] = 1
    for one in chance.T[:, :, None]:
        has = has * (1 - one) + np.roll(has, 1, axis=1) * one
    return has[:, needed:].sum(axis=1)


@pytest.fixture(scope="module", params=PROXIES)
def results(request, tmp_path_factory):
    """The runs of the three oracles on the same prompts of setting a."""
    from harness.testing.running import run_tasks

    oracle, folder = Oracle(request.param), tmp_path_factory.mktemp(request.param)

    def answering(knows):
        return ScriptedModel(
            lambda asked: json.dumps(oracle.rank(asked.topic.variables, knows)), name=knows
        )

    task = f"behaviour_{request.param}_a"
    return {
        knows: run_tasks(task, folder=folder, model=answering(knows), limit=FEW, set={"tries": 500})
        for knows in KNOWLEDGE
    }


@pytest.mark.parametrize("part", ["demography", "history"])
def test_who_knows_both_beats_who_knows_one(results, part):
    both = results["both"]
    document = harness.compare([both, results[part]], against=both, metric="gap")
    [difference] = document.comparisons[0].differences
    assert (difference.n, difference.second) == (FEW, both.manifest.run_id)
    low, high = difference.interval
    assert 0 < low < high


def test_who_knows_something_beats_the_popular_and_these_beat_chance(results):
    for result in results.values():
        [summary] = result.summaries
        found = [summary.metrics[name] for name in ("gap", "gap_popular", "gap_random")]
        assert [one.n for one in found] == [FEW] * 3
        own, popular, chance = (one.value for one in found)
        assert 0 < own < popular < chance
