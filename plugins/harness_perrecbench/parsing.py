"""Readers of answers: a rating, an order of users, or the side of a comparison.

Ratings and orders are JSON: the last object of the text counts. Earlier objects are never tried:
the model has replaced them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from harness import Parsed, TextReader, Unreadable
from harness.parsing import KeyReader, number_in
from harness_perrecbench.records import Side

LOWEST, HIGHEST = 1, 5
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

    A text must name exactly one of them, any number of times; a letter alone does not count. After
    a chain of thought (`thought`), only the last name in square brackets counts, since the thought
    names both users; "[User B] rather than [User A]" is `both_named`.
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


def rating_reader(*, thought: bool = False) -> KeyReader[float]:
    """The reader of a rating; with `thought` it has no schema, since the thought is not JSON."""
    rating = {"type": "number", "minimum": LOWEST, "maximum": HIGHEST}
    return KeyReader(
        key="predicted_rating",
        like=("rating", "score"),
        convert=to_rating,
        of_value=None if thought else rating,
    )


def read_order(
    members: int, repeated: bool = False, *, thought: bool = False
) -> KeyReader[tuple[int, ...]]:
    """The reader of an order of `members` users; see `to_order`."""
    number = {"type": "integer", "minimum": 1, "maximum": members}
    numbers = {"type": "array", "items": number, "minItems": members, "maxItems": members}
    return KeyReader(
        key="predicted_ranking",
        like=("rank",),
        convert=partial(to_order, members=members, repeated=repeated),
        of_value=None if thought else numbers,
    )
