"""Prompts."""

import itertools
import json
from pathlib import Path
from random import Random

from builders.gistbench import Desk, make_window, predicting
from harness_gistbench.baselines import frequent_words
from harness_gistbench.records import SIGNALS, Verification
from harness_gistbench.stages.predict import predict

from harness.prompts import Templates

TEMPLATES = Templates([Path(__file__).resolve().parents[3] / "prompts"])
WORDING = {"thing": "song", "things": "songs"}


def shown(prompt, role, **variables):
    """A prompt as one text."""
    messages = TEMPLATES.need("gistbench", prompt, role).render({**WORDING, **variables})
    return "\n".join(message.content for message in messages)


async def predicted(signals=SIGNALS, **options):
    """What the candidate is shown under some thresholds, for a dataset with some signals."""
    scripted = Desk("[]", **predicting(**WORDING, **options))
    await predict(make_window(signals=signals), scripted)
    return shown("predict", "candidate", **scripted.asked[0][2])


async def test_the_thresholds_of_verification_are_told():
    numbers = Verification(
        min_explicit_positive=11, min_implicit_positive=12, mixed_explicit_positive=13,
        mixed_implicit_positive=14, max_implicit_negative=15, max_explicit_negative=16,
    )  # fmt: skip
    text = await predicted(verification=numbers)
    for number in range(11, 15):
        assert text.count(f"at least {number} different songs") == 1
    assert "at most 15 different songs with an implicit negative" in text
    assert "at most 16 different songs with an explicit negative" in text
    assert "at least 2 " not in text
    assert (
        "- at least 1 different song with an explicit positive engagement together with at least "
        "2 different songs with an implicit positive engagement\n"
    ) in await predicted()


async def test_signals_that_a_dataset_lacks_are_not_spoken_of():
    words = {signal: signal.replace("_", " ") for signal in SIGNALS}
    for many in range(1, 4):
        for signals in itertools.combinations(SIGNALS, many):
            text = await predicted(signals=signals)
            assert {one for one in SIGNALS if words[one] in text} == set(signals)


async def test_the_form_of_the_answer_is_one_that_is_read():
    from harness_gistbench.parsing import read_interests

    form = (await predicted()).splitlines()[-1]
    answer = read_interests(form.replace("ID", "7")).value
    assert [(one.name, one.ids) for one in answer.interests] == [("two to five words", ("7",))]


def test_the_taxonomists_form_is_one_that_is_read():
    from harness_judges.answers import ClassReader

    form = shown("taxonomy", "taxonomist", texts=["rye", "oolong"], labels=["Bread", "Tea"])
    answer = form.splitlines()[-1]
    for blank, name in (("name of a category", "Bread"), ("name of a category", "Tea")):
        answer = answer.replace(blank, name, 1)
    assert ClassReader(labels=("Bread", "Tea"), count=2)(answer).value.labels == ("Bread", "Tea")


async def test_one_condition_alone_is_no_choice():
    only = await predicted(signals=("explicit_positive", "explicit_negative"))
    assert "This is required:\n- at least 2 different songs" in only
    assert "One of these is enough" in await predicted()


def named(*texts, seed=1):
    shown = [(str(n), "explicit positive", text) for n, text in enumerate(texts, start=1)]
    return [one["interest"] for one in json.loads(frequent_words({"lines": shown}, Random(seed)))]


def test_the_twelve_most_frequent_words_come_first_and_equal_ones_by_seed():
    words = [f"word{'abcdefghijklmnop'[n] * 2}" for n in range(15)]
    assert named(*(" ".join(words[: 15 - n]) for n in range(14))) == words[:12]
    texts = "salsa tango polka waltz", "waltz polka tango salsa"
    assert named(*texts) == named(*texts)
    assert len({tuple(named(*texts, seed=seed)) for seed in range(8)}) > 1
