"""What `transformers serve` must be told with each request, and what its replies are worth.

It keeps to what it is asked less than it seems to: it draws only where the checkpoint's own
settings say so, takes all they say of sampling, reads prompts beyond what the model was made for,
and leaves the words at which it should stop in the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.models import CallError, Reply, Request

PLAIN = {"num_beams": 1, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0}
GREEDY = {**PLAIN, "do_sample": False}
DRAWN = {
    **PLAIN,
    "do_sample": True,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
"""What a request does not say of its sampling is not taken from the checkpoint: stages say how
they are asked."""


def fields(
    request: Request, *, context: int | None, ends: Sequence[int] | None = None
) -> Mapping[str, Any]:
    """What goes along with a request; CallError for one that the server would answer wrongly.

    A server that batches has to be told the tokens that end an answer, `ends`. A prompt that is
    too long is cut one token above what has room, so that it costs no more than one that fits, and
    is known by that.
    """
    sampling = request.sampling
    drawn = sampling.temperature > 0
    if ends is not None and (drawn or sampling.stop):
        raise CallError(
            "bad_request",
            "transformers serve with continuous_batching draws every answer as the first one, and "
            "knows neither a temperature nor stop of a request: continuous_batching=false",
            fatal=True,
        )
    settings: dict[str, Any] = {**(DRAWN if drawn else GREEDY)}
    if ends is not None:
        settings["eos_token_id"] = list(ends)
    more: dict[str, Any] = {"generation_config": json.dumps(settings)}
    if context is not None:
        cut = {"truncation": True, "max_length": room_of(request, context) + 1}
        more["chat_template_kwargs"] = cut
    return more


def checked(request: Request, reply: Reply, *, context: int | None) -> Reply:
    """The reply, ended where it should stop; CallError where its prompt was too long."""
    if reply.usage is None:
        raise CallError("bad_response", "the answer does not tell the length of its prompt")
    if context is not None and reply.usage.prompt_tokens > room_of(request, context):
        raise too_long(request, context)
    ends = [at for at in (reply.text.find(word) for word in request.sampling.stop) if at >= 0]
    if not ends:
        return reply
    return msgspec.structs.replace(reply, text=reply.text[: min(ends)], finish="stop")


def room_of(request: Request, context: int) -> int:
    """The tokens that a prompt may have beside the longest answer; CallError where none is left."""
    room = context - request.sampling.max_tokens
    if room < 1:
        raise too_long(request, context)
    return room


def too_long(request: Request, context: int) -> CallError:
    """The error for a prompt that does not fit."""
    answer = request.sampling.max_tokens
    return CallError(
        "overflow",
        f"the prompt and an answer of {answer} tokens do not fit into a context of {context}",
    )
