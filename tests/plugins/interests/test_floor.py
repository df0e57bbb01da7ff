"""The whole method without models: the baseline named, the lexical judge weighed."""

from random import Random
from statistics import fmean

import pytest
from builders.texts import read_json_lines
from harness_interests.baselines import frequent_words
from harness_interests.metrics import METRICS, score
from harness_interests.records import Engagement, Options, Person
from harness_interests.stages import claims, histories, name_interests, weigh_evidence
from harness_judges.lexical import make
from samples.interests import SAMPLE

from harness.contracts.judge import JudgeParts


class RuleDesk:
    """A desk whose candidate is the baseline and whose judge counts words."""

    def __init__(self, options):
        self.options = options

    async def ask(self, role, prompt, variables, *, read, tries):
        return read(frequent_words(variables, Random(0)))

    async def judge(self, question, *, role):
        return await make(JudgeParts()).judge(question, None)


@pytest.fixture
def sample_people():
    rows = read_json_lines(SAMPLE)
    users = dict.fromkeys(row["user"] for row in rows)
    return [
        Person(
            user,
            tuple(
                Engagement(row["title"], row["action"] == "liked")
                for row in rows
                if row["user"] == user
            ),
        )
        for user in users
    ]


async def test_the_floor_is_neither_nothing_nor_everything(sample_people, recorded):
    options = Options()
    desk = RuleDesk(options)
    items = list(histories({}, sample_people, options))
    named = recorded([(item, await name_interests(item, desk)) for item in items])
    questions = list(claims({"name": named}, (), options))
    weighed = recorded([(claim, await weigh_evidence(claim, desk)) for claim in questions])

    scores = list(score({"name": named, "support": weighed}, options))

    assert len(scores) == 40
    assert not any(one.missing for one in scores)
    for metric in METRICS:
        assert 0.3 < fmean(one.values[metric] for one in scores) < 0.95, metric
