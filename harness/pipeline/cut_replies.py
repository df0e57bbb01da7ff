"""Says why a reply ended at its token limit, and what to do about it."""

from __future__ import annotations

from functools import partial

from harness.contracts.model import Model, Reply, Sampling
from harness.contracts.stage import CANDIDATE
from harness.pipeline.stage_context import REASONING_TOKENS

SURE = 0.1
"""The temperature up to which a question that was cut would be cut again."""

SHOWN = 80
"""Characters of an answer in a failure."""


def cut_again(reply: Reply | None, sampling: Sampling) -> bool:
    """Whether the same question would only be cut again."""
    return reply is not None and reply.finish == "length" and sampling.temperature <= SURE


def why_cut(
    reply: Reply, text: str, thought: str | None, *, sampling: Sampling, model: Model, role: str
) -> str:
    """The detail of a cut reply's failure: its end, the limit that cut it, and the cures.

    `text` is the answer without its reasoning, `thought` the reasoning.
    """
    end = f"ends in {shorten(text[-SHOWN:])!r}"
    amount, answered = _amount(reply, thought), bool(text.strip())
    cures = partial(_cures, sampling=sampling, model=model, role=role)
    limit = _limit(sampling)
    if amount is None and answered:
        return f"{end} at {limit}; {cures(thinks=None)}"
    if amount is None:
        spent = f"an empty answer at {limit}: the model may have spent it on thinking unseen"
    elif answered:
        spent = f"{end}, after {amount} of thinking at {limit}"
    else:
        spent = f"{amount} of thinking spent {limit}"
    return f"{spent}; {cures(thinks=amount is not None)}"


def _amount(reply: Reply, thought: str | None) -> str | None:
    """How much was thought, in tokens if the server counts them; None if nothing shows thinking."""
    counted = 0 if reply.usage is None else reply.usage.reasoning_tokens
    if counted:
        return f"{counted:,} tokens"
    return f"{len(thought):,} characters" if thought else None


def _limit(sampling: Sampling) -> str:
    if not sampling.reasoning_tokens:
        return f"the limit of {sampling.max_tokens:,} tokens (max_tokens)"
    return (
        f"the limit of {sampling.limit:,} tokens (max_tokens {sampling.max_tokens:,}, "
        f"reasoning_tokens {sampling.reasoning_tokens:,})"
    )


def _cures(*, sampling: Sampling, model: Model, role: str, thinks: bool | None) -> str:
    """The option for a larger limit, and the arguments that give room to think or end thinking.

    Where the reply shows thinking, the argument for it is better than `max_tokens`, which would be
    one limit for all tasks. `thinks` is None if the reply holds an answer and no sign of thinking.
    """
    if sampling.reasoning_tokens:
        larger = f"reasoning_tokens={2 * sampling.reasoning_tokens}"
    else:
        larger = f"max_tokens={sampling.max_tokens + REASONING_TOKENS}"
    mine = role == CANDIDATE
    place = "among --model_args:" if mine else f"in the SPEC of the role {role}:"
    allow = f"allow more (--gen_kwargs {larger})"
    if not mine:
        allow = f"allow more (--set roles.{role}.sampling.{larger})"
    room = f"{REASONING_TOKENS:,} tokens for thinking ({place} thinking=true)"
    may_have_room = model.asked_if_thinking and not sampling.reasoning_tokens
    if thinks is None:
        return f"{allow}; if it thinks, allow {room}" if may_have_room else allow
    if may_have_room:
        allow = f"allow {room}" if thinks else f"{allow}, or {room}"
    if model.thinking_switch is None:
        return allow
    return f"{allow}, or switch thinking off ({place} {model.thinking_switch})"


def shorten(text: str) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…"
