"""The respondent that stands in for a candidate."""

import json
from random import Random

from harness_gistbench.baselines import frequent_words
from harness_gistbench.parsing import read_interests

LIKED, WATCHED, SKIPPED = "explicit positive", "implicit positive", "implicit negative"


def answered(*lines, seed=1):
    shown = [(str(n), signal, text) for n, (signal, text) in enumerate(lines, start=1)]
    return json.loads(frequent_words({"lines": shown}, Random(seed)))


def test_words_of_several_positive_engagements_are_named_with_every_line_they_stand_in():
    answer = answered(
        (LIKED, "#salsa nights, Salsa shoes"),
        (WATCHED, "SALSA steps"),
        (SKIPPED, "salsa again, with shoes"),
        (WATCHED, "a lone trumpet"),
    )

    assert answer == [{"interest": "salsa", "evidence": ["1", "2", "3"]}]


def test_the_most_frequent_come_first_and_at_most_twelve():
    names = [f"word{'abcdefghijklmnop'[n] * 2}" for n in range(15)]
    lines = [(LIKED, " ".join(names[: 15 - n])) for n in range(14)]

    answer = answered(*lines)

    assert [one["interest"] for one in answer] == names[:12]


def test_the_answer_depends_on_the_seed_alone():
    lines = [(LIKED, "salsa tango polka waltz"), (LIKED, "waltz polka tango salsa")]
    orders = {tuple(one["interest"] for one in answered(*lines, seed=n)) for n in range(8)}

    assert answered(*lines) == answered(*lines)
    assert len(orders) > 1


def test_its_answers_are_read():
    text = json.dumps(answered((LIKED, "salsa"), (WATCHED, "salsa")))

    assert [one.name for one in read_interests(text).value.interests] == ["salsa"]
    assert read_interests(json.dumps(answered())).value.interests == ()
