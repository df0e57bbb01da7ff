"""Readers of judges' answers: JSON, labels separated by commas, or one label per line.

An answer in any other form is Unreadable: prose may mention a label in order to reject it. Every
pattern takes linear time on hostile text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.contracts.judge import Classified, Selected
from harness.contracts.outcomes import Parsed, Unreadable
from harness.parsing import JsonReader
from harness.parsing.decode import whole_characters

NONE = "none"
QUOTES = " \t\"'“”‘’«»*`_#"
WRAPPING = " \t\r\n[](){}<>\"'“”‘’«»*`_#.,;:!"
BULLET = re.compile(r"^[-*•]\s++")
NUMBERED = re.compile(r"[*_`]{0,2}(\d{1,6})[.:)][*_`]{0,2}\s++(\S.*+)")
ENCLOSED = re.compile(r"[\[(<{]([^\[\]()<>{}]*+)[\])>}]")
STEMMED = re.compile(r"(.*\D)?\d{1,6}", re.DOTALL)
ANSWER_KEYS = frozenset([
    "answer", "chosen", "indices", "items", "labels", "matches", "numbers", "relevant", "result",
    "selected", "selection", "supported", "supporting",
])  # fmt: skip
NUMBER_KEYS = ("number", "text", "id", "index", "item")
LABEL_KEYS = ("label", "class", "category", "answer")


class NoAnswer(ValueError):
    """The text has none of the forms of an answer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectionReader:
    """Reads the labels of the chosen options, or NONE: `SelectionReader(labels=("1", "2"))(text)`.

    JSON is a list of labels (or one label), an object with a list in it, or an object from labels
    to true or false. It must be the whole answer or in a fence; an object may also be within prose.
    Arrays within prose do not count: they may be labels in brackets that the prose rejects.

    A label may be in brackets, quotes or emphasis, in upper or lower case. If labels are a word
    with a number, as in item_3, the number alone is enough. Labels of that form that do not exist
    are left out and counted, as are repeated labels and labels beyond `at_most`.
    """

    labels: Sequence[str]
    at_most: int | None = None

    @property
    def schema(self) -> None:
        """None: the benchmark's prompt asks for a form of its own."""
        return

    def __call__(self, text: str) -> Parsed[Selected] | Unreadable:
        """The chosen options, or why the answer is unreadable."""
        text = whole_characters(text).strip()
        if not text:
            return Unreadable("empty")
        if text[0] in '[{"' or "```" in text:
            whole = JsonReader(convert=self._of_json)(text)
            if isinstance(whole, Parsed) and whole.rung in ("strict", "fenced"):
                return _on_rung(whole)
        try:
            return Parsed(self._of_text(text), "text")
        except NoAnswer as error:
            problem = f"{error}: {' '.join(text[:120].split())}"
        inside = JsonReader(convert=self._of_json, kind="object")(text)
        return _on_rung(inside) if isinstance(inside, Parsed) else Unreadable("schema", problem)

    @functools.cached_property
    def _form(self) -> tuple[Mapping[str, int], str | None]:
        return _form(tuple(self.labels))

    def _of_text(self, text: str) -> Selected:
        lines = [line for line in _lines_of(text) if not line.startswith("```")]
        names = [name for line in lines for name in self._of_line(line)]
        if not names:
            raise NoAnswer("it is blank")
        return self._selected(names)

    def _of_line(self, line: str) -> list[str]:
        places, stem = self._form
        if clean(line) in places:
            return [clean(line)]
        numbered = NUMBERED.fullmatch(line) if stem != "" else None
        line = (numbered[2] if numbered else line).strip(QUOTES).rstrip(".")
        names = [name for part in re.split("[,;]", _inside(line)) for name in self._of_part(part)]
        if numbered and any(name.isdecimal() for name in names):
            raise NoAnswer("the numbers of its list may be labels")
        return names

    def _of_part(self, part: str) -> list[str]:
        if clean(part) in self._form[0]:
            return [clean(part)]
        words = [word for word in part.split() if word != "and"]
        names = [_inside(word) for word in words]
        if len({word == name for word, name in zip(words, names, strict=True)}) > 1:
            raise NoAnswer(f"what is in brackets may be a remark: {part[:40].strip()!r}")
        return [name.strip(QUOTES).casefold() for name in names]

    def _of_json(self, value: Any) -> Selected:
        if isinstance(value, str):
            return self._of_text(value)
        if isinstance(value, dict):
            return self._of_object(value)
        return self._selected(
            [_name(one) for one in (value if isinstance(value, list) else [value])]
        )

    def _of_object(self, value: dict[str, Any]) -> Selected:
        places, _ = self._form
        if value and all(
            isinstance(one, bool) and clean(name) in places for name, one in value.items()
        ):
            return self._selected([clean(name) for name, one in value.items() if one])
        likely = [key for key in value if clean(key) in ANSWER_KEYS]
        lists = [key for key in value if isinstance(value[key], list)]
        for keys in (likely, lists):
            if len(keys) == 1 and not isinstance(value[keys[0]], dict | bool):
                return self._of_json(value[keys[0]])
        raise NoAnswer(f"which of its keys is the answer? {', '.join(value)[:100]}")

    def _selected(self, names: Sequence[str]) -> Selected:
        """The options with these names, in their order.

        NoAnswer if NONE is among labels, or if no label exists: an empty selection would turn a
        failure into a value.
        """
        places, stem = self._form
        if NONE in names and NONE not in places:
            if set(names) != {NONE}:
                raise NoAnswer("it says NONE and names labels")
            names = ()
        if stem and all(name.isdecimal() for name in names):
            names = [stem + name for name in names]
        found = [_place(name, places, stem) for name in names]
        known = [place for place in found if place is not None]
        if found and not known:
            raise NoAnswer("it names labels, none of which exists")
        distinct = tuple(dict.fromkeys(known))
        chosen = distinct[: self.at_most]
        return Selected(
            chosen=chosen,
            rung="text",
            unknown=len(found) - len(known),
            repeated=len(known) - len(distinct),
            surplus=len(distinct) - len(chosen),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassReader:
    """Reads one label for each of `count` texts, which the prompt numbers from 1.

    JSON is a list with a label for every text in order, an object from numbers to labels, or a list
    of objects with a number and a label. Plain text is a numbered line for each text, or a line for
    each text in order. Lists of another length cannot be aligned with the texts and are not read. A
    text gets None if its label does not exist, is missing, or was given twice and differently; if
    all texts get None, there is no answer.
    """

    labels: Sequence[str]
    count: int

    @property
    def schema(self) -> None:
        """None: the benchmark's prompt asks for a form of its own."""
        return

    def __call__(self, text: str) -> Parsed[Classified] | Unreadable:
        """The label of each text, or why the answer is unreadable."""
        found = JsonReader(convert=self._align, fallback=self._lines)(text)
        return found if isinstance(found, Unreadable) else _on_rung(found)

    @functools.cached_property
    def _known(self) -> dict[str, str]:
        return {clean(label): label for label in self.labels}

    def _align(self, value: Any) -> Classified:
        if isinstance(value, str | int):
            value = [value]
        given = _pairs(value) if isinstance(value, dict | list) else None
        if given is None:
            given = list(enumerate(value, start=1)) if isinstance(value, list) else []
            if len(given) != self.count:
                raise NoAnswer(f"{len(given)} labels for {self.count} texts")
        found: dict[int, set[str | None]] = {}
        for number, label in given:
            found.setdefault(number, set()).add(self._label(label))
        labels = tuple(_only(found.get(number, set())) for number in range(1, self.count + 1))
        if not any(labels):
            raise NoAnswer("none of its labels exists")
        return Classified(labels=labels, rung="")

    def _label(self, given: Any) -> str | None:
        plain = str(given) if type(given) in (str, int) else ""
        return self._known.get(clean(plain))

    def _lines(self, text: str) -> list[Any] | None:
        lines = _lines_of(text)
        numbered = [match for line in lines if (match := NUMBERED.fullmatch(line))]
        if not numbered:
            return lines if len(lines) == self.count else None
        if len(numbered) < len(lines):
            return None
        return [{"number": int(match[1]), "label": match[2]} for match in numbered]


def clean(name: str) -> str:
    """A name in lower case, without surrounding brackets, quotes and punctuation."""
    return name.strip(WRAPPING).casefold()


def _lines_of(text: str) -> list[str]:
    """The lines that are not blank, without the bullets of a list."""
    return [BULLET.sub("", plain) for line in text.splitlines() if (plain := line.strip())]


@functools.lru_cache(maxsize=64)
def _form(labels: tuple[str, ...]) -> tuple[Mapping[str, int], str | None]:
    """The position of each label, and their common stem before a number; None without one.

    Cached, because most questions of a benchmark have the same labels.
    """
    places = {clean(label): place for place, label in enumerate(labels)}
    if len(places) != len(labels):
        raise ValueError(f"the labels of a question must differ: {labels!r}")
    stems = {match[1] or "" if (match := STEMMED.fullmatch(label)) else None for label in places}
    return places, stems.pop() if len(stems) == 1 else None


def _place(name: str, places: Mapping[str, int], stem: str | None) -> int | None:
    """The position of a label, None if it does not exist; NoAnswer if the name is no label."""
    place = places.get(name)
    if place is not None:
        return place
    number = name.removeprefix(stem) if stem is not None and name.startswith(stem) else ""
    if not number.isdecimal():
        raise NoAnswer(f"{name[:40]!r} is no label")
    return places.get(f"{stem}{number.lstrip('0') or '0'}")


def _on_rung(found: Parsed[Any]) -> Parsed[Any]:
    return Parsed(msgspec.structs.replace(found.value, rung=found.rung), found.rung)


def _inside(text: str) -> str:
    """The text without brackets around it."""
    enclosed = ENCLOSED.fullmatch(text)
    return enclosed[1] if enclosed else text


def _name(one: Any) -> str:
    if isinstance(one, str):
        return clean(one)
    if isinstance(one, int | float) and not isinstance(one, bool) and one == int(one):
        return str(int(one))
    raise NoAnswer(f"{type(one).__name__} where a label should be")


def _only(labels: set[str | None]) -> str | None:
    return next(iter(labels)) if len(labels) == 1 else None


def _pairs(value: dict[str, Any] | list[Any]) -> list[tuple[int, Any]] | None:
    """Number and label of each text in an object or a list of objects; None for other forms."""
    if isinstance(value, dict):
        if value and all(clean(key).isdecimal() for key in value):
            return [(int(clean(key)), label) for key, label in value.items()]
        inner = [one for one in value.values() if isinstance(one, list | dict)]
        return _pairs(inner[0]) if len(inner) == 1 else None
    if not value or not all(isinstance(one, dict) for one in value):
        return None
    pairs = []
    for one in value:
        number = next((one[key] for key in NUMBER_KEYS if key in one), None)
        label = next((one[key] for key in LABEL_KEYS if key in one), None)
        if not clean(str(number)).isdecimal():
            return None
        pairs.append((int(clean(str(number))), label))
    return pairs
