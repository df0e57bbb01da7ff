"""Counts of tokens by a named tokenizer, or of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.base.errors import DataError, UsageError

WORDS = "words between white space"
BATCH = 1000


@dataclass(frozen=True, kw_only=True)
class TokenCounter:
    """A tokenizer's name, and a function that counts the tokens of each of some texts."""

    name: str
    count: Callable[[list[str]], list[int]]

    def lengths(self, texts: Iterable[str]) -> dict[str, int]:
        """The number of tokens of each distinct text."""
        every = list(dict.fromkeys(texts))
        found: dict[str, int] = {}
        for start in range(0, len(every), BATCH):
            part = every[start : start + BATCH]
            found.update(zip(part, self.count(part), strict=True))
        return found


def token_counter(name: str | None) -> TokenCounter:
    """A counter by white space, or by the tokenizer of this name, file or model: `--tokenizer`.

        token_counter("Qwen/Qwen3-8B").lengths(["two words"])["two words"]

    UsageError if no package for tokenizers is installed, DataError if this one cannot be loaded.
    """
    if name is None:
        return TokenCounter(name=WORDS, count=lambda texts: [len(text.split()) for text in texts])
    if find_spec("tokenizers") is not None:
        load = _with_tokenizers
    elif find_spec("transformers") is not None:
        load = _with_transformers
    else:
        raise UsageError(
            "no package for tokenizers is installed",
            where="--tokenizer",
            found=name,
            expected="the package tokenizers or transformers",
            hint="pip install tokenizers; or omit --tokenizer to count words",
        )
    try:
        count = load(name)
    except Exception as error:  # third-party code, which reads files and asks the hub
        raise DataError(
            "the tokenizer cannot be loaded",
            where="--tokenizer",
            found=f"{name}: {error}",
            expected="a tokenizer.json, or the name of a model on the hub that has one",
            hint="omit --tokenizer to count words",
        ) from error
    return TokenCounter(name=name, count=count)


def _with_tokenizers(name: str) -> Callable[[list[str]], list[int]]:
    from tokenizers import Tokenizer  # type: ignore[import-not-found,unused-ignore]

    loaded: Any
    loaded = Tokenizer.from_file(name) if Path(name).is_file() else Tokenizer.from_pretrained(name)
    return lambda texts: [
        len(one.ids) for one in loaded.encode_batch(texts, add_special_tokens=False)
    ]


def _with_transformers(name: str) -> Callable[[list[str]], list[int]]:
    from transformers import AutoTokenizer  # type: ignore[import-not-found,unused-ignore]

    loaded: Any = AutoTokenizer.from_pretrained(name)
    return lambda texts: [len(ids) for ids in loaded(texts, add_special_tokens=False)["input_ids"]]
