"""How a judge's answer to "which of these?" is read."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.judging import Selected
from harness.outcomes import Parsed, Unreadable
from harness.parsing import JsonReader
from harness.parsing.decode import whole_characters
from harness_judges.labels import NONE, Labels, NoAnswer, clean, make_labels, selected
from harness_judges.wording import names_in

LONGEST = 20_000
ANSWER_KEYS = frozenset(
    [
        "answer",
        "chosen",
        "indices",
        "items",
        "labels",
        "matches",
        "numbers",
        "relevant",
        "result",
        "selected",
        "selection",
        "supported",
        "supporting",
    ]
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectionReader:
    """Reads labels out of JSON or plain words.

    JSON may be a list of labels (or one label), an object with a list in it, or an object that
    gives each label a true or false. It counts when it is the whole answer or stands in a fence; an
    object also within prose. Arrays within prose do not: they are labels in brackets as often as
    not, and what is said of them may be that they do not fit. Plain words are read as
    `wording.names_in` says.
    """

    labels: Sequence[str]
    options: Sequence[str]
    at_most: int | None = None

    @property
    def schema(self) -> None:
        """None: the prompt is the benchmark's, and so is the form it asks for."""
        return

    def __call__(self, text: str) -> Parsed[Selected] | Unreadable:
        """What was chosen, or why the answer cannot be read."""
        text = whole_characters(text).strip()
        if not text:
            return Unreadable("empty")
        if text[0] in '[{"' or "```" in text:
            whole = JsonReader(convert=self._names)(text)
            if isinstance(whole, Parsed) and whole.rung in ("strict", "fenced"):
                return self._counted(whole.value, whole.rung)
        if len(text) <= LONGEST:
            try:
                names, rung = names_in(text, self._labels)
            except NoAnswer as error:
                problem = str(error)
            else:
                return self._counted(names, rung)
        else:
            problem = f"longer than {LONGEST} characters"
        inside = JsonReader(convert=self._names, kind="object")(text)
        if isinstance(inside, Parsed):
            return self._counted(inside.value, inside.rung)
        return Unreadable("schema", f"{problem}: {' '.join(text[:120].split())}")

    @functools.cached_property
    def _labels(self) -> Labels:
        return make_labels(self.labels, self.options)

    def _counted(self, names: list[str], rung: str) -> Parsed[Selected] | Unreadable:
        try:
            found = selected(names, self._labels, at_most=self.at_most, rung=rung)
        except NoAnswer as error:
            return Unreadable("schema", f"{error}: {', '.join(names)[:120]}")
        return Parsed(found, rung)

    def _names(self, value: Any) -> list[str]:
        """The names in a JSON answer; ValueError where it cannot be told what is meant."""
        if isinstance(value, dict):
            return self._names_in_object(value)
        names = value if isinstance(value, list) else [value]
        if isinstance(value, str):
            return names_in(value, self._labels)[0]
        return [_name(one) for one in names]

    def _names_in_object(self, value: dict[str, Any]) -> list[str]:
        if value and all(
            isinstance(one, bool) and self._labels.exact(name) is not None
            for name, one in value.items()
        ):
            chosen = [name for name, one in value.items() if one]
            return chosen or [NONE]
        likely = [key for key in value if clean(key) in ANSWER_KEYS]
        lists = [key for key in value if isinstance(value[key], list)]
        for keys in (likely, lists):
            if len(keys) == 1 and not isinstance(value[keys[0]], dict | bool):
                return self._names(value[keys[0]])
        raise NoAnswer(f"which of its keys is the answer? {', '.join(value)[:100]}")


def _name(one: Any) -> str:
    if isinstance(one, str):
        return one
    if isinstance(one, int | float) and not isinstance(one, bool) and one == int(one):
        return str(int(one))
    raise NoAnswer(f"{type(one).__name__} where a label should be")
