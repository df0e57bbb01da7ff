"""Readers that turn a model's text into a value; the rung that succeeded is recorded."""

from harness.contracts.reader import Reader
from harness.parsing.ladder import LADDER_VERSION, JsonReader, TextReader, last_object
from harness.parsing.reasoning import split_reasoning

__all__ = [
    "LADDER_VERSION", "JsonReader", "Reader", "TextReader", "last_object", "split_reasoning",
]  # fmt: skip
