"""Refusals of a request that an argument of the model mends, told by what servers say."""

from __future__ import annotations

import re

SYSTEM_REFUSED = re.compile(
    r"\bsystem['\"]? (role|message|prompt|instruction)s?\b[^.]{0,40}\b(not|isn't|unsupported)\b"
    r"|\bdoes(n't| not) support (the )?['\"]?system\b"
    r"|developer instruction is not enabled"
    r"|only user(,| and) assistant roles",
    re.IGNORECASE,
)
SYSTEM_STATUSES = (400, 422, 500)
"""llama.cpp reports what a chat template raises as 500."""

SYSTEM_HINT = (
    "with system_role=false the user says it, with system_role=auto that is found out by itself"
)

HINTS = (
    (
        re.compile(r"max_tokens\b.*\bmax_completion_tokens", re.DOTALL),
        "max_tokens_field=max_completion_tokens is what this server takes",
    ),
    (
        re.compile(r"chat template", re.IGNORECASE),
        "a model without a chat template is asked with endpoint=completions",
    ),
)
"""What refusals say, and which of `--model_args` mends them."""


def refuses_system(status: int | None, detail: str) -> bool:
    """Whether a server said that it takes no message of the system."""
    return status in SYSTEM_STATUSES and SYSTEM_REFUSED.search(detail) is not None


def hint_for(detail: str) -> str | None:
    """What of `--model_args` mends a refusal; None where nothing is known to."""
    return next((hint for pattern, hint in HINTS if pattern.search(detail)), None)
