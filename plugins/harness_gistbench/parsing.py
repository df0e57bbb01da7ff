"""How the candidate's answer is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from harness import JsonReader, Parsed, Unreadable
from harness.parsing.extract import outermost

NAME, EVIDENCE = "interest", "evidence"

LONGEST_NAME = 200
"""Characters; what is longer is no name of an interest."""

SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            NAME: {"type": "string", "minLength": 1},
            EVIDENCE: {"type": "array", "items": {"type": ["integer", "string"]}},
        },
        "required": [NAME, EVIDENCE],
    },
}

# The possessive quantifiers keep the time linear on whatever a model sends.
BULLET = re.compile(r"(?:[-*•+]|\(?\d{1,4}[.)])\s++(?=\S)")
LEAD = re.compile(r"(?:\s*+(?:supporting|supported|evidence|by|ids?|items?|objects?|numbers?)\b)*+")
LAST_LEAD = re.compile(
    r"[(\[:,–—-]\s*+(?:supporting\s++)?(?:evidence|ids?|items?|objects?|numbers?)$"
)
ID = r"#?(?=[^\s,;]*\d)[^\s,;()\[\]{}:]++"
IDS = re.compile(rf"\s*+{ID}(?:\s*+(?:[,;&]|\band\b)\s*+{ID})*+\s*+")
OPENINGS = ":([–—"
CLOSINGS = " \t)]."
DRESSING = " \t*_`\"'“”:-–—(["
LONGEST_LINE = 4_000


class Named(msgspec.Struct, frozen=True):
    """An interest as it stands in an answer, with the identifiers as they were written."""

    name: str
    ids: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer holds; `malformed` entries have no name or no list of identifiers.

    `single` says that it was one interest without a list around it.
    """

    interests: tuple[Named, ...]
    malformed: int = 0
    single: bool = False


@dataclass(frozen=True)
class InterestReader:
    """Reads a list of interests out of whatever a model wrote around it.

    An object that holds one list is that list, and a single interest a list of one; several single
    interests one after another are a list as well. Entries that are none are left out and counted,
    as at the end of an answer that was cut; an answer of nothing else is no answer. Without any
    JSON the lines of a list are read, such as `- Night trains: 2, 5`.
    """

    @property
    def schema(self) -> dict[str, Any]:
        """What a server may be asked to hold its answer to."""
        return SCHEMA

    def __call__(self, text: str) -> Parsed[Answer] | Unreadable:
        """The interests of an answer, or why it has none that can be read."""
        outcome = JSON(text)
        if isinstance(outcome, Parsed) and outcome.value.single:
            interests = [
                one
                for span in outermost(text)
                if span.kind == "object" and (one := named(span.value)) is not None
            ]
            if len(interests) > 1:
                return Parsed(Answer(interests=tuple(interests)), outcome.rung)
        return outcome


def from_json(value: Any) -> Answer:
    """The answer in a JSON value; ValueError where it holds no list of interests."""
    if isinstance(value, dict):
        alone = named(value)
        if alone is not None:
            return Answer(interests=(alone,), single=True)
        lists = [one for one in value.values() if isinstance(one, list)]
        if len(lists) != 1:
            raise ValueError(f"an object with {len(lists)} lists, where one would be the interests")
        value = lists[0]
    if not isinstance(value, list):
        raise ValueError(f"{type(value).__name__} where a list of interests should be")
    entries = [named(one) for one in value]
    interests = tuple(one for one in entries if one is not None)
    if value and not interests:
        raise ValueError(f"none of its {len(value)} entries is an interest with its evidence")
    return Answer(interests=interests, malformed=len(value) - len(interests))


def named(entry: Any) -> Named | None:
    """The interest in one entry, None where it is none.

    A key of another name will do where nothing else can be meant: the only text beside the only
    list of identifiers.
    """
    if not isinstance(entry, dict):
        return None
    name = entry.get(NAME, only(entry, str))
    ids = entry.get(EVIDENCE, only(entry, list))
    if isinstance(ids, int | str) and not isinstance(ids, bool):
        ids = [ids]
    if not isinstance(name, str) or not isinstance(ids, list):
        return None
    plain = " ".join(name.split())
    if not plain or len(plain) > LONGEST_NAME or any(isinstance(one, dict | list) for one in ids):
        return None
    return Named(plain, tuple(dict.fromkeys(as_id(one) for one in ids)))


def only(entry: dict[str, Any], kind: type) -> Any:
    """The only value of a kind in an entry, None where there is not just one."""
    found = [one for one in entry.values() if isinstance(one, kind)]
    return found[0] if len(found) == 1 else None


def as_id(value: Any) -> str:
    """An identifier as text: 7, 7.0, "7" and " #7" are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().removeprefix("#")


def from_lines(text: str) -> list[dict[str, Any]] | None:
    """The same answer from lines of a list, None where there are none.

    A line without a bullet or a number counts only in an answer that holds nothing but such lines:
    prose has colons too.
    """
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    found = [(BULLET.match(line), from_line(line)) for line in lines]
    interests = [one for bullet, one in found if bullet and one]
    if not interests and len(lines) > 1 and all(one for _, one in found):
        interests = [one for _, one in found if one]
    return interests or None


def from_line(line: str) -> dict[str, Any] | None:
    """The interest in a line: a name, then identifiers behind a colon, a dash or in brackets."""
    if len(line) > LONGEST_LINE:
        return None
    plain = BULLET.sub("", line, count=1).rstrip(CLOSINGS)
    place = max(plain.rfind(one) for one in OPENINGS)
    tail = plain[place + 1 :]
    tail = tail[LEAD.match(tail).end() :]  # type: ignore[union-attr]
    name = LAST_LEAD.sub("", plain[: max(place, 0)].strip(DRESSING)).strip(DRESSING)
    if not name or IDS.fullmatch(tail) is None:
        return None
    return {NAME: name, EVIDENCE: re.findall(ID, tail)}


JSON: JsonReader[Answer] = JsonReader(convert=from_json, fallback=from_lines, kind="any")
read_interests = InterestReader()
