"""How the candidate's answer is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from harness import JsonReader, Parsed, Unreadable
from harness.parsing.decode import whole_characters
from harness.parsing.extract import outermost
from harness.parsing.repair import repair_json

NAME, EVIDENCE, LIST = "interest", "evidence", "interests"

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


class Named(msgspec.Struct, frozen=True):
    """An interest as it stands in an answer, with the identifiers as they were written."""

    name: str
    ids: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer holds; `malformed` entries have no name or no list of identifiers.

    `single` says that it was one interest without a list around it; `passed_over` other lists with
    interests stood in the text.
    """

    interests: tuple[Named, ...]
    malformed: int = 0
    single: bool = False
    passed_over: int = 0


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
        text = whole_characters(text)
        outcome = JSON(text)
        if isinstance(outcome, Unreadable) or outcome.rung == "strict":
            return outcome
        if outcome.value.single:
            return one_after_another(text, outcome)
        answers = readable(span.value for span in outermost(text) if span.error is None)
        lists = [one for one in answers if one.interests and not one.single]
        others = len(lists) - (outcome.value in lists)
        value = msgspec.structs.replace(outcome.value, passed_over=others)
        return msgspec.structs.replace(outcome, value=value)


def one_after_another(text: str, single: Parsed[Answer]) -> Parsed[Answer]:
    """The interests of all objects in a text, the last one repaired if it was cut.

    `single` is what was read of one of them, and all there is where none of the others can be.
    """
    spans = [span for span in outermost(text) if span.kind == "object"]
    interests: list[Named] = []
    malformed = 0
    for span in spans:
        try:
            is_cut = span.error is not None and span is spans[-1]
            answer = from_json(repair_json(span.text) if is_cut else span.value)
        except ValueError:
            malformed += 1
        else:
            interests += answer.interests
            malformed += answer.malformed
    if len(spans) < 2 or not interests:
        return single
    rung = single.rung if spans[-1].error is None else "repaired"
    return Parsed(Answer(interests=tuple(interests), malformed=malformed), rung)


def from_json(value: Any) -> Answer:
    """The answer in a JSON value; ValueError where it holds no list of interests.

    An object is a single interest only where a key says so. Any other is its list: the one named
    `interests`, its only one, or the only one with interests in it. Lists and objects around the
    answer alone are taken off.
    """
    if isinstance(value, list):
        around = len(value) == 1 and (
            isinstance(value[0], list) or (isinstance(value[0], dict) and LIST in value[0])
        )
        return from_json(value[0]) if around else from_entries(value)
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} where a list of interests should be")
    if LIST in value:
        return from_json(value[LIST])
    if NAME in value or EVIDENCE in value:
        return msgspec.structs.replace(from_entries([value]), single=True)
    inside = [one for one in value.values() if isinstance(one, list | dict)]
    if len(inside) == 1:
        return from_json(inside[0])
    full = [answer for answer in readable(inside) if answer.interests]
    if len(full) != 1:
        raise ValueError(f"an object with {len(full)} lists of interests, where one should be")
    return full[0]


def readable(values: Iterable[Any]) -> list[Answer]:
    """The answers of those JSON values that hold one."""
    answers = []
    for value in values:
        try:
            answers.append(from_json(value))
        except ValueError:
            continue
    return answers


def from_entries(entries: list[Any]) -> Answer:
    """The interests of a list; ValueError where it has entries and none of them is an interest."""
    found = [named(one) for one in entries]
    interests = tuple(one for one in found if one is not None)
    if entries and not interests:
        raise ValueError(f"none of its {len(entries)} entries is an interest with its evidence")
    return Answer(interests=interests, malformed=len(entries) - len(interests))


def named(entry: Any) -> Named | None:
    """The interest in one entry, None where it is none.

    A key of another name will do where nothing else can be meant: the only text beside the only
    list of identifiers.
    """
    if not isinstance(entry, dict) or LIST in entry:
        return None
    name = entry.get(NAME, only(entry, str, but=EVIDENCE))
    ids = entry.get(EVIDENCE, only(entry, list, but=NAME))
    if isinstance(ids, int | str) and not isinstance(ids, bool):
        ids = [ids]
    if not isinstance(name, str) or not isinstance(ids, list):
        return None
    plain = " ".join(name.split())
    if not plain or len(plain) > LONGEST_NAME or any(isinstance(one, dict | list) for one in ids):
        return None
    return Named(plain, tuple(dict.fromkeys(as_id(one) for one in ids)))


def only(entry: dict[str, Any], kind: type, *, but: str) -> Any:
    """The only value of a kind beside one key of an entry, None where there is not just one."""
    found = [one for key, one in entry.items() if isinstance(one, kind) and key != but]
    return found[0] if len(found) == 1 else None


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


def from_lines(text: str) -> list[Any] | None:
    """The same answer from lines of a list, None where there are none.

    Lines of a list that are no interest stay as they are. A line without a bullet or a number
    counts only in an answer that holds nothing but such lines: prose has colons too.
    """
    lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
    found = [from_line(line) for line in lines]
    listed = [(line, one) for line, one in zip(lines, found, strict=True) if BULLET.match(line)]
    if any(one for _, one in listed):
        return [one or line for line, one in listed]
    return found if len(lines) > 1 and all(found) else None


def from_line(line: str) -> dict[str, Any] | None:
    """The interest in a line: a name, then identifiers behind a colon, a dash or in brackets."""
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
        return {NAME: name, EVIDENCE: [match[0] for match in re.finditer(ID, plain[start:])]}
    return None


JSON: JsonReader[Answer] = JsonReader(convert=from_json, fallback=from_lines, kind="any")
read_interests = InterestReader()
