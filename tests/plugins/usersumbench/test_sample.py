"""In the sample, tastes of the past foretell the future, as the README says of it."""

from itertools import pairwise
from random import Random

import numpy as np
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


def compared(folder, plant):
    """The bounds of how much own summaries exceed none, and none another user's, by plant."""
    people = load_people("movielens", write(folder / "made", seed=1, plant=plant))
    asked = options()
    own = {
        one.id: rules.summarise({"user_activities": "\n".join(lines(one.past, asked))}, Random(0))
        for one in people.all
    }
    others = {user: own[other] for user, other in derangement(list(own), people.seed).items()}
    values = [good(people, asked, one) for one in (own, {}, others)]
    for first, second in pairwise(values):
        found = paired_interval(first, second, np.arange(len(first)), seed=0)
        yield found.low, found.high


def test_a_summary_beats_none_and_none_beats_another_users(tmp_path):
    for low, high in compared(tmp_path, plant=0.95):
        assert 0.05 < low < high


def test_a_future_that_follows_nothing_is_foretold_by_nothing(tmp_path):
    for low, high in compared(tmp_path, plant=0):
        assert low <= 0 <= high
        assert high - low < 0.2, "the interval could show an effect"
