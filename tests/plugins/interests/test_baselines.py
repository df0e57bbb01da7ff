"""The answers without a model."""

import json
from random import Random

from harness_interests.baselines import frequent_words, words

HISTORY = [
    {"number": 1, "title": "Winter swimming", "liked": True},
    {"number": 2, "title": "Swimming at night", "liked": True},
    {"number": 3, "title": "Swimming: a history", "liked": False},
    {"number": 4, "title": "Winter pies", "liked": True},
    {"number": 5, "title": "Railway bridges", "liked": False},
]


def test_the_most_frequent_words_cite_every_title_they_stand_in():
    answer = frequent_words({"history": HISTORY, "max_interests": 2}, Random(0))
    assert sorted(json.loads(answer), key=lambda one: one["interest"]) == [
        {"interest": "swimming", "items": [1, 2, 3]},
        {"interest": "winter", "items": [1, 4]},
    ]


def test_chance_breaks_ties_and_a_seed_repeats_it():
    first = {"history": HISTORY, "max_interests": 1}
    answers = [frequent_words(first, Random(seed)) for seed in range(20)]
    assert len(set(answers)) == 2
    assert answers == [frequent_words(first, Random(seed)) for seed in range(20)]


def test_words_are_long_ones_in_lower_case_each_once():
    assert words("A weekend of rye bread: Bread, BREAD") == ["weekend", "bread"]
