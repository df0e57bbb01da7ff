"""What one real engine answers; the tests share it, since it takes half a minute to start."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import jsonschema
import pytest
import pytest_asyncio
from harness_models.vllm import make

from harness import CallError
from harness.contracts.model import Message, ModelSettings, Request, Sampling

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("engine"),
    pytest.mark.timeout(2400),
    pytest.mark.asyncio(loop_scope="module"),
]

CONTEXT = 4096
SCHEMA = {
    "type": "object",
    "properties": {"interest": {"type": "string", "maxLength": 20}, "item": {"type": "integer"}},
    "required": ["interest", "item"],
}


def question(text: str, *, tokens: int = 64, schema=None, temperature: float = 0.0) -> Request:
    return Request(
        messages=(Message("system", "Answer."), Message("user", text)),
        sampling=Sampling(temperature=temperature, max_tokens=tokens),
        seed=7,
        schema=schema,
    )


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(checkpoints, engine_args, frugal, engine_alone, logs):
    """One open engine."""
    args = {"pretrained": str(checkpoints.candidate), **engine_args, "enable_log_requests": "true"}
    model = make(ModelSettings(args=args, structured=True))
    model.attach_log(logs, lambda line: None)
    await model.open()
    yield model
    await model.close()


async def test_greedy_answers_are_the_same_twice(engine):
    asked = [question(f"Item {number} was liked.") for number in range(8)]
    first = [await engine.ask(one) for one in asked]
    again = [await engine.ask(one) for one in asked]
    assert [one.text for one in first] == [one.text for one in again]
    assert len({one.text for one in first}) > 1


async def test_an_answer_is_held_to_its_schema(engine):
    replies = await asyncio.gather(
        *(engine.ask(question(f"Item {n}", tokens=512, schema=SCHEMA)) for n in range(8))
    )
    ended = [json.loads(one.text) for one in replies if one.finish == "stop"]
    assert ended
    for one in ended:
        jsonschema.validate(one, SCHEMA)


async def test_tokens_of_a_shared_beginning_are_counted_as_cached(engine):
    shared = "A long history that two questions share. " * 40
    await engine.ask(question(shared + "one"))
    reply = await engine.ask(question(shared + "two"))
    assert 0 < reply.usage.cached_tokens < reply.usage.prompt_tokens


async def test_an_over_long_prompt_is_an_overflow_and_fails_alone(engine):
    asked = [question("Short."), question("sea " * 2 * CONTEXT), question("Short too.")]
    before, overlong, after = await asyncio.gather(
        *(engine.ask(one) for one in asked), return_exceptions=True
    )
    assert isinstance(overlong, CallError)
    assert (overlong.cause, overlong.retryable, overlong.fatal) == ("overflow", False, False)
    assert before.usage.completion_tokens > 0
    assert after.usage.completion_tokens > 0


async def test_requests_that_are_given_up_are_aborted_in_the_server(engine, logs):
    """Several, since one of a model that answers at random may just have ended by itself."""
    (log,) = logs.iterdir()
    seen = len(log.read_text())
    asking = [
        asyncio.create_task(engine.ask(question(f"Go on with {number}.", tokens=CONTEXT - 200)))
        for number in range(8)
    ]
    await until(lambda: log.read_text()[seen:].count("Added request") == len(asking))
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    given_up = sum(one.cancelled() for one in asking)
    assert given_up > 0
    await until(lambda: log.read_text()[seen:].count("aborted.") == given_up)


async def until(condition) -> None:
    """Return once a condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
