"""Names with the identifiers that they cite, in lines of a list, and what a citation means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, NamedTuple

# The possessive quantifiers keep the time linear on whatever a model sends.
BULLET = re.compile(r"(?:[-*•+]|\(?\d{1,4}[.)])\s++(?=\S)")
KIND = r"(?:ids?|items?|objects?|numbers?|lines?)"
LEAD = re.compile(rf"(?:\s*+(?:supporting|supported|evidence|by|{KIND})\b)*+[\s:.]*+", re.I)
LAST_LEAD = re.compile(rf"[(\[:,–—-]\s*+(?:supporting\s++)?(?:evidence|{KIND})$", re.I)
RANGE = re.compile(r"(\d{1,9})\s*+(?:[-–—]|to)\s*+(\d{1,9})")
ID = rf"(?:{RANGE.pattern}(?![^\s,;&()\[\]])|#?(?=[^\s,;()\[\]{{}}:]*\d)[^\s,;()\[\]{{}}:]++)"
ONE = rf"[\[(]?\s*+{ID}\s*+[\])]?"
SEPARATOR = r"(?:\s*+(?:[,;&]|\band\b)\s*+|(?<=\])\s*+(?=\[))"
IDS = re.compile(rf"{ONE}(?:{SEPARATOR}{ONE})*+\s*+")
BETWEEN_IDS = re.compile(rf"{SEPARATOR}|(?<=\d)\s++(?=\d)")
OPENING = re.compile(r"[:(\[–—]")
MOST_OPENINGS = 8
CITATION = re.compile(r"\[[#\d\s,;]++\]")
CLOSINGS = " \t)]."
DRESSING = " \t*_`\"'“”:-–—(["
ID_DRESSING = " #[](){}\"'“”‘’`"
LONGEST_LINE = 4_000


class CitedLine(NamedTuple):
    """A line such as `- Night trains: 2, 5`, with the identifiers as they were written."""

    name: str
    ids: list[str]


def as_id(value: Any) -> str:
    """An identifier as text on one line: 7, 7.0, "7", "[7]" and " #7 " are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    plain = " ".join(str(value).split())
    return plain.strip(ID_DRESSING) or plain


def meant(text: str, known: Collection[str], *, are_numbers: bool) -> Iterator[str]:
    """The known identifiers that a citation means; a part of it that means none as it stands.

    "ID 1, [2] and 003" means three. A range means all the numbers in it where both its ends are
    known, and nothing else does: known numbers run through.
    """
    if text in known:
        yield text
        return
    for part in [one for one in BETWEEN_IDS.split(text) if as_id(one)] or [text]:
        bare = as_id(LEAD.sub("", part, count=1))
        spellings = (as_id(part), bare, bare.lstrip("0"))
        span = RANGE.fullmatch(bare) if are_numbers else None
        first, last = (int(span[1]), int(span[2])) if span else (0, 0)
        if span and first <= last and str(first) in known and str(last) in known:
            yield from map(str, range(first, last + 1))
        else:
            yield next((one for one in spellings if one in known), as_id(part))


def cited_lines(text: str) -> list[CitedLine | str] | None:
    """The lines of a list of names with identifiers; None if there are none.

    Lines of a list that cite nothing stay as they are. A line without a bullet or a number counts
    only in a text that holds nothing but such lines: prose has colons too.
    """
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    found = [_cited_line(line) for line in lines]
    listed = [(line, one) for line, one in zip(lines, found, strict=True) if BULLET.match(line)]
    if any(one for _, one in listed):
        return [one or line for line, one in listed]
    whole: list[CitedLine | str] = [one for one in found if one]
    return whole if 1 < len(lines) == len(whole) else None


def _cited_line(line: str) -> CitedLine | None:
    """The name in a line, and the identifiers behind a colon, a dash or in brackets."""
    if len(line) > LONGEST_LINE:
        return None
    plain = BULLET.sub("", line, count=1).rstrip(CLOSINGS)
    for opening in islice(OPENING.finditer(plain), MOST_OPENINGS):
        start = LEAD.match(plain, opening.end()).end()  # type: ignore[union-attr]
        if IDS.fullmatch(plain, start) is None:
            continue
        name = LAST_LEAD.sub("", plain[: opening.start()].strip(DRESSING)).strip(DRESSING)
        if not name or CITATION.search(name):
            return None
        return CitedLine(name, [match[0] for match in re.finditer(ID, plain[start:])])
    return None
