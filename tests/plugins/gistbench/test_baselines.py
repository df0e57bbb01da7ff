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


def test_the_most_frequent_words_come_first_by_seed_and_are_read():
    names = [f"word{'abcdefghijklmnop'[n] * 2}" for n in range(15)]
    lines = [(LIKED, " ".join(names[: 15 - n])) for n in range(14)]

    assert [one["interest"] for one in answered(*lines)] == names[:12]
    lines = [(LIKED, "salsa tango polka waltz"), (LIKED, "waltz polka tango salsa")]
    orders = {tuple(one["interest"] for one in answered(*lines, seed=n)) for n in range(8)}

    assert answered(*lines) == answered(*lines)
    assert len(orders) > 1
    text = json.dumps(answered((LIKED, "salsa"), (WATCHED, "salsa")))

    assert [one.name for one in read_interests(text).value.interests] == ["salsa"]
    assert read_interests(json.dumps(answered())).value.interests == ()
