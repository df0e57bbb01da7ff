"""What a reply to the question whether a model thinks shows."""

import pytest

from harness.contracts.model import Reply, Usage
from harness.pipeline.preflight import shows_thinking


@pytest.mark.parametrize(
    ("reply", "thinks"),
    [
        (Reply(text="391"), False),
        (Reply(text="<think>\n17 times 23\n</think>\n\n391"), True),
        (Reply(text="17 times 23\n</think>\n\n391"), True),
        (Reply(text="391", reasoning="17 times 23"), True),
        (
            Reply(
                text="391", usage=Usage(prompt_tokens=9, completion_tokens=80, reasoning_tokens=77)
            ),
            True,
        ),
        (Reply(text="", finish="length"), True),
        (Reply(text="Okay, so the user wants 17 times 23. Wait", finish="length"), True),
    ],
)
def test_a_number_is_no_thinking_and_a_reply_that_was_cut_is(reply, thinks):
    assert shows_thinking(reply) is thinks
