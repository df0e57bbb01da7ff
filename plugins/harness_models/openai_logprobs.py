"""The probabilities of an answer's tokens, in either form that servers send them."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Any

from harness.models import TokenLogprob


def read_logprobs(found: object) -> tuple[TokenLogprob, ...] | None:
    """The tokens of an answer with their logarithms; None where they are not all there."""
    if not isinstance(found, dict):
        return None
    try:
        if isinstance(found.get("content"), list):
            return tuple(_of_chat(token) for token in found["content"])
        if isinstance(found.get("tokens"), list):
            return _of_completion(found)
    except (KeyError, TypeError, ValueError):
        return None
    return None


def _of_chat(token: dict[str, Any]) -> TokenLogprob:
    top = token.get("top_logprobs") or ()
    return TokenLogprob(
        token=_text(token["token"]),
        logprob=_number(token["logprob"]),
        top=tuple((_text(one["token"]), _number(one["logprob"])) for one in top),
    )


def _of_completion(found: dict[str, Any]) -> tuple[TokenLogprob, ...]:
    # Without alternatives there is null, or an empty object a token.
    tops = found.get("top_logprobs") or ()
    pairs = zip(found["tokens"], found["token_logprobs"], strict=True)
    return tuple(
        TokenLogprob(
            token=_text(token),
            logprob=_number(logprob),
            top=tuple((_text(name), _number(one)) for name, one in (top or {}).items()),
        )
        for (token, logprob), top in zip_longest(pairs, tops)
    )


def _text(token: object) -> str:
    if not isinstance(token, str):
        raise TypeError(token)
    # Halves of characters, which no file can hold.
    return token.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(value)
    return float(value)
