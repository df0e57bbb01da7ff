"""The respondent that stands in for a candidate."""

import json
from random import Random

from harness_gistbench.baselines import frequent_words


def named(*texts, seed=1):
    shown = [(str(n), "explicit positive", text) for n, text in enumerate(texts, start=1)]
    return [one["interest"] for one in json.loads(frequent_words({"lines": shown}, Random(seed)))]


def test_the_twelve_most_frequent_words_come_first_and_equal_ones_by_seed():
    words = [f"word{'abcdefghijklmnop'[n] * 2}" for n in range(15)]
    assert named(*(" ".join(words[: 15 - n]) for n in range(14))) == words[:12]

    texts = "salsa tango polka waltz", "waltz polka tango salsa"
    assert named(*texts) == named(*texts)
    assert len({tuple(named(*texts, seed=seed)) for seed in range(8)}) > 1
