"""Readers that turn a model's text into a value; the rung that succeeded is recorded."""

from harness.contracts.outcomes import Reader
from harness.parsing.ladder import (
    LADDER_VERSION,
    JsonReader,
    KeyReader,
    TextReader,
    last_object,
    number_in,
    split_reasoning,
)

__all__ = [
    "LADDER_VERSION", "JsonReader", "KeyReader", "Reader", "TextReader", "last_object",
    "number_in", "split_reasoning",
]  # fmt: skip
