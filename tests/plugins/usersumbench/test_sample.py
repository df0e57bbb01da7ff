"""In the sample, tastes of the past foretell the future, as the README says of it."""

from random import Random

import numpy as np
import pytest
from builders.usersumbench import options
from harness_usersumbench import rules
from harness_usersumbench.questions import derangement, ordered
from harness_usersumbench.records import TASKS
from harness_usersumbench.rendering import lines
from samples.usersumbench import write

from harness.scoring.stats import paired_interval

from .conftest import load_people


def good(people, options, summaries):
    """For each user whether three of four are right; the rule answers alike in each run."""
    values = []
    for person in people.all:
        right = 0
        for task in TASKS:
            drawn = person.activity if task in ("t1", "t2") else person.category
            shown = person.past[-options.recent :] if task in ("t2", "t4") else ()
            asked = ordered(drawn, seed=people.seed, user=person.id, task=task, run=0)
            variables = {
                "summary": summaries.get(person.id),
                "user_activities": "\n".join(lines(shown, options)),
                "options": list(zip("ABCDE", asked.options, strict=True)),
            }
            right += "ABCDE".index(rules.predict(variables, Random(0))) == asked.right
        values.append(float(right >= 3))
    return np.array(values)


def interval(first, second):
    """The bounds of the mean difference of the same users, as comparisons of runs compute them."""
    found = paired_interval(first, second, np.arange(len(first)), seed=0)
    return found.low, found.high


@pytest.fixture
def compared(tmp_path):
    """The intervals by which own summaries exceed none, and none exceeds another user's."""

    def compare(seed, plant):
        people = load_people("movielens", write(tmp_path / "made", seed=seed, plant=plant))
        asked = options()
        own = {
            one.id: rules.summarise(
                {"user_activities": "\n".join(lines(one.past, asked))}, Random(0)
            )
            for one in people.all
        }
        others = {user: own[other] for user, other in derangement(list(own), people.seed).items()}
        of_own, of_none, of_other = (good(people, asked, one) for one in (own, {}, others))
        return interval(of_own, of_none), interval(of_none, of_other)

    return compare


def test_a_summary_beats_none_and_none_beats_another_users(compared):
    for low, high in compared(1, plant=0.95):
        assert 0.05 < low < high


def test_a_future_that_follows_nothing_is_foretold_by_nothing(compared):
    for low, high in compared(1, plant=0):
        assert low <= 0 <= high
        assert high - low < 0.2, "the interval could show an effect"
