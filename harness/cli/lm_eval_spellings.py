"""The names that lm-evaluation-harness has for options and arguments, and ours for them."""

from __future__ import annotations

import re
from collections.abc import Sequence

OPTIONS = {
    "-t": "--tasks", "-M": "--model", "-m": "--model", "-a": "--model_args", "-L": "--limit",
    "-o": "--output_path", "-c": "--store", "--use_cache": "--store",
}  # fmt: skip

KINDS = {"local-chat-completions": "openai", "openai-chat-completions": "openai"}

ARGUMENTS = {
    "--model_args": {"num_concurrent": "concurrency"},
    "--gen_kwargs": {"max_gen_toks": "max_tokens", "until": "stop"},
}
"""Names inside the values of options."""


def with_our_names(words: Sequence[str]) -> list[str]:
    """The options of a run with our names.

    >>> with_our_names(["-t", "a", "--model=local-chat-completions"])
    ['--tasks', 'a', '--model=openai']
    """
    ours, option = [], ""
    for word in words:
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            option = OPTIONS.get(name, name)
            ours.append(option + equals + _renamed(option, value))
        else:
            ours.append(_renamed(option, word))
    return ours


def _renamed(option: str, value: str) -> str:
    for theirs, ours in ARGUMENTS.get(option, {}).items():
        value = re.sub(rf'((?:^|,|{{)\s*"?){theirs}(?="?\s*[=:])', rf"\1{ours}", value)
    return KINDS.get(value, value) if option == "--model" else value
