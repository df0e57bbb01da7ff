"""The bundled sample is what its generator makes, and is as varied as it says."""

import json
from collections import defaultdict

from samples.interests import SAMPLE, sample


def test_the_generator_makes_the_committed_bytes():
    assert SAMPLE.read_bytes() == sample().encode()


def test_forty_people_with_twelve_to_twenty_engagements_each():
    histories = defaultdict(list)
    for line in SAMPLE.read_text().splitlines():
        row = json.loads(line)
        histories[row["user"]].append(row)

    assert len(histories) == 40
    assert all(12 <= len(history) <= 20 for history in histories.values())
    for history in histories.values():
        assert {row["action"] for row in history} == {"liked", "skipped"}
        assert len({row["title"] for row in history}) == len(history)
