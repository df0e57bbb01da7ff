"""Readers of answers: a rating, an order of users, or the side of a comparison.

Ratings and orders are JSON. The last object of the text counts, in a fence, in a list or within
prose, and in it the last fitting key at the top level, in upper or lower case. Slightly invalid
JSON is repaired ("repaired"), unless it contradicts itself. Earlier objects are never tried: the
model has replaced them.

A number is a JSON number, or a string of a decimal number and nothing else ("quoted"), but not
"4/5", "4.0 stars", "1e0" or "four"; true and false are not numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Generic, TypeVar

from harness import Parsed, TextReader, Unreadable, last_object
from harness_perrecbench.records import Side

T = TypeVar("T")

LOWEST, HIGHEST = 1, 5
RATING, RANKING = "predicted_rating", "predicted_ranking"
"""The keys that the prompts ask for."""

DECIMAL = re.compile(r"\s*+[+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?\s*+")
LONGEST_DETAIL = 80

# Two sides joined, as in "[User A] or [User B]" and "user A or B", are one mention of both. The
# second letter without a "user" is a capital: "user A and a half" names one.
MENTION = re.compile(
    r"""
    (?P<opens>\[\s*+)? (?<!\w)(?i:user)\s*+ (?P<one>[ABab])\b (?:\s*+\])?
    (?:
        \s*+ (?:and|or|vs|/|&) \s*+
        (?: \[?+\s*+(?i:user)\s*+(?P<other>[ABab]) | \[?+\s*+(?P<bare>[AB]) )\b (?:\s*+\])?
    )?
    """,
    re.VERBOSE,
)

AGAINST = re.compile(r"(?=[^.!?\n]*+\Z).*\b(?i:than|over|instead|not|versus|unlike)\b")
"""Matches the text between two users in a sentence that sets one against the other."""


@dataclass(frozen=True, kw_only=True)
class AnswerReader(Generic[T]):
    """Reads the value of one key in the last JSON object of a text.

    `asked`: the key that the prompts ask for, which wins.
    `keys`: without it, the last key counts that contains one of these, in lower case.
    `convert`: makes the answer from the value, or an Unreadable.
    `schema`: the JSON schema that a server may enforce.
    """

    asked: str
    keys: tuple[str, ...]
    convert: Callable[[Any], tuple[T, bool] | Unreadable]
    schema: dict[str, Any] | None

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        """The answer in a reply, or why it is unreadable."""
        found = last_object(text)
        if isinstance(found, Unreadable):
            return found
        fitting = [key for key in found.value if any(one in key.lower() for one in self.keys)]
        if not fitting:
            return Unreadable("schema", f"no key with {' or '.join(self.keys)} in its name")
        asked = [key for key in fitting if key.lower() == self.asked]
        converted = self.convert(found.value[(asked or fitting)[-1]])
        if isinstance(converted, Unreadable):
            return converted
        value, quoted = converted
        return Parsed(value, "quoted" if quoted else found.rung)


def number_in(value: Any) -> tuple[float, bool] | None:
    """The number in a JSON value, and whether it was in a string; None for other values."""
    if isinstance(value, str):
        return (float(value), True) if DECIMAL.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value), False


def to_rating(value: Any) -> tuple[float, bool] | Unreadable:
    """A rating from 1 to 5; `schema` if it is not a number, `out_of_range` for other numbers."""
    found = number_in(value)
    if found is None:
        return Unreadable("schema", f"{_preview(value)} is no number")
    if not LOWEST <= found[0] <= HIGHEST:
        return Unreadable("out_of_range", f"{_preview(value)} is not from {LOWEST} to {HIGHEST}")
    return found


def to_order(
    value: Any, *, members: int, repeated: bool
) -> tuple[tuple[int, ...], bool] | Unreadable:
    """The users' numbers in the order of a list, each from 1 to `members` exactly once.

    Anything but a list of plain numbers is `schema`; repeats, gaps, other numbers and fractions are
    `not_a_permutation`. With `repeated`, lists pass as in the authors' check: `members` whole
    numbers, the smallest 1 and the largest `members`.
    """
    if not isinstance(value, list):
        return Unreadable("schema", f"{_preview(value)} is no list of users' numbers")
    numbers = []
    for one in value:
        found = number_in(one)
        if found is None:
            return Unreadable("schema", f"{_preview(one)} is no user's number")
        numbers.append(found)
    order = tuple(int(number) for number, _ in numbers)
    is_whole = all(number.is_integer() for number, _ in numbers)
    is_complete = sorted(order) == list(range(1, members + 1))
    passes = repeated and len(order) == members and (min(order), max(order)) == (1, members)
    if not is_whole or not (is_complete or passes):
        return Unreadable("not_a_permutation", f"{_preview(value)} does not order 1 to {members}")
    return order, any(quoted for _, quoted in numbers)


@dataclass(frozen=True, kw_only=True)
class SideReader:
    """Reads which of two users a text names: `[User A]`, `User A` or `user b`.

    A text must name exactly one of them, anywhere and any number of times: `both_named` and
    `none_named` are failures, and a letter alone does not count. After a chain of thought
    (`thought`), only the last name in square brackets counts, since the thought names both users;
    set against the other user, as in "[User B] rather than [User A]", it is `both_named`.
    """

    thought: bool = False
    schema: None = None

    def __call__(self, text: str) -> Parsed[Side] | Unreadable:
        """The side in a reply, or why it is unreadable."""
        found = TextReader[str]()(text)
        if isinstance(found, Unreadable):
            return found
        text = found.value
        mentions = list(MENTION.finditer(text))
        if self.thought:
            bracketed = [one for one in mentions if one["opens"] and one[0].endswith("]")]
            between = [text[one.end() : two.start()] for one, two in pairwise(bracketed[-2:])]
            mentions = bracketed[-2 if any(map(AGAINST.match, between)) else -1 :]
        letters = [one.group("one", "other", "bare") for one in mentions]
        sides = {letter.upper() for found in letters for letter in found if letter}
        if not sides:
            where = " in square brackets" if self.thought else ""
            return Unreadable("none_named", f"neither user is named{where}: {_preview(text)}")
        if len(sides) > 1:
            return Unreadable("both_named", f"both users are named: {_preview(text)}")
        side: Side = "A" if "A" in sides else "B"
        return Parsed(side, "text" if mentions[0][0] == text else "regex")


def _preview(value: Any) -> str:
    """The value, formatted for errors: of a long text the end, which holds the answer."""
    text = repr(value)
    return text if len(text) <= LONGEST_DETAIL else f"…{text[1 - LONGEST_DETAIL :]}"


def rating_reader(*, thought: bool = False) -> AnswerReader[float]:
    """The reader of a rating; with `thought` it has no schema, since the thought is not JSON."""
    rating = {"type": "number", "minimum": LOWEST, "maximum": HIGHEST}
    return AnswerReader(
        asked=RATING,
        keys=("rating", "score"),
        convert=to_rating,
        schema=None if thought else _object_with(RATING, rating),
    )


def read_order(
    members: int, repeated: bool = False, *, thought: bool = False
) -> AnswerReader[tuple[int, ...]]:
    """The reader of an order of `members` users; see `to_order`."""
    number = {"type": "integer", "minimum": 1, "maximum": members}
    numbers = {"type": "array", "items": number, "minItems": members, "maxItems": members}
    return AnswerReader(
        asked=RANKING,
        keys=("rank",),
        convert=partial(to_order, members=members, repeated=repeated),
        schema=None if thought else _object_with(RANKING, numbers),
    )


def _object_with(key: str, value: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {key: value},
        "required": [key],
        "additionalProperties": False,
    }
