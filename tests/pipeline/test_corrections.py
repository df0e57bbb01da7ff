"""What is said to a model after an answer that could not be read."""

import pytest
from builders.stages import say_stage, words

from harness.contracts.model import Message
from harness.contracts.outcomes import Parsed
from harness.parsing import JsonReader

PLAIN = "name {{ word }}"
BEGUN = "{% block user %}name {{ word }}{% endblock %}{% block assistant %}{ {% endblock %}"


async def insist(item, desk):
    answer = await desk.ask(
        "candidate", "say", {"word": item.word}, read=JsonReader(kind="object"),
        tries=2, corrected=True,
    )  # fmt: skip
    return "read" if isinstance(answer, Parsed) else answer


async def retried(house, model, prompt=PLAIN):
    """The messages of the second try, those of the first left off."""
    house.prompts = {"say.candidate": prompt}
    await house.run([say_stage(words("it"), insist)], {"candidate": model})
    first, second = (request.messages for request in model.asked)
    assert second[: len(first)] == first
    return second[len(first) :]


async def test_a_correction_shows_the_answer_and_why_it_cannot_be_used(house, scripted):
    quoted, told = await retried(house, scripted("m", lambda request: "no idea"))
    assert quoted == Message("assistant", "no idea")
    assert told.role == "user"
    assert told.content.startswith("That cannot be used (no_json: ")


async def test_a_long_answer_is_shown_by_its_beginning_and_end(house, scripted):
    answer = "a" * 1000 + "b" * 1_000_000 + "c" * 1000
    quoted, _ = await retried(house, scripted("m", lambda request: answer))
    assert quoted.content == "a" * 1000 + "\n…\n" + "c" * 1000


@pytest.mark.parametrize(("finish", "prompt"), [("refused", PLAIN), ("stop", BEGUN)])
async def test_what_was_refused_or_begun_by_the_prompt_is_asked_again_as_it_was(
    house, scripted, finish, prompt
):
    model = scripted("m", lambda request: "I would rather", finish=finish)
    assert await retried(house, model, prompt) == ()
