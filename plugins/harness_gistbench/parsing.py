"""How the candidate's answer is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from harness import JsonReader, Parsed, Unreadable
from harness.parsing.decode import outermost, repair_json, whole_characters
from harness_gistbench.citations import as_id, cited_lines

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

    A key of another name will do if it can only be meant: one text and one list of identifiers.
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


def from_lines(text: str) -> list[Any] | None:
    """The same answer from lines of a list, None where there are none."""
    lines = cited_lines(text)
    return lines and [
        one if isinstance(one, str) else {NAME: one.name, EVIDENCE: one.ids} for one in lines
    ]


JSON: JsonReader[Answer] = JsonReader(convert=from_json, fallback=from_lines, kind="any")
read_interests = InterestReader()
