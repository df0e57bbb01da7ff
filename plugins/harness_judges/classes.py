"""How a judge's answer to "which label has each of these texts?" is read."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.judging import Classified
from harness.outcomes import Parsed, Unreadable
from harness.parsing import JsonReader
from harness_judges.labels import clean

NUMBERED = re.compile(
    r"[-*•]?\s*+[*_`\[(]{0,3}(?:text\s)?#?(\d{1,6})[*_`\])]{0,3}[.:)]?\s*+(?:[-–—=]\s*+)?(\S.*+)",
    re.IGNORECASE,
)
LEAD = re.compile(
    r"[*_]{0,2}(?:the\s)?(?:label|class|category|answer)(?:\sis|[*_]{0,2}:)", re.IGNORECASE
)
NUMBER_KEYS = ("number", "text", "id", "index", "item")
LABEL_KEYS = ("label", "class", "category", "answer")


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassReader:
    """Reads one label for each of `count` texts, which the prompt numbers from 1.

    JSON: a list with a label for every text in order, an object from numbers to labels, or a list
    of objects with a number and a label. Plain: a numbered line for each text, or a line for each
    text in order. A list of another length cannot be lined up with the texts and is not read. A
    text gets None where its label does not exist, is missing, or was given twice and differently;
    when that is so of all texts, there is no answer.
    """

    labels: Sequence[str]
    count: int

    @property
    def schema(self) -> None:
        """None: the prompt is the benchmark's, and so is the form it asks for."""
        return

    def __call__(self, text: str) -> Parsed[Classified] | Unreadable:
        """The label of each text, or why the answer cannot be read."""
        outcome = self._json(text)
        if isinstance(outcome, Unreadable):
            return outcome
        return Parsed(Classified(labels=outcome.value, rung=outcome.rung), outcome.rung)

    @functools.cached_property
    def _json(self) -> JsonReader[tuple[str | None, ...]]:
        return JsonReader(convert=self._align, fallback=self._lines)

    @functools.cached_property
    def _known(self) -> dict[str, str]:
        return {clean(label): label for label in self.labels}

    def _align(self, value: Any) -> tuple[str | None, ...]:
        if isinstance(value, str | int):
            value = [value]
        given = _pairs(value) if isinstance(value, dict | list) else None
        if given is None:
            given = list(enumerate(value, start=1)) if isinstance(value, list) else []
            if len(given) != self.count:
                raise ValueError(f"{len(given)} labels for {self.count} texts")
        found: dict[int, set[str | None]] = {}
        for number, label in given:
            found.setdefault(number, set()).add(self._label(label))
        labels = tuple(_only(found.get(number, set())) for number in range(1, self.count + 1))
        if not any(labels):
            raise ValueError("none of its labels exists")
        return labels

    def _label(self, given: Any) -> str | None:
        plain = str(given) if type(given) in (str, int) else ""
        return self._known.get(clean(plain))

    def _lines(self, text: str) -> list[Any] | dict[str, Any] | None:
        lines = [stripped for line in text.splitlines() if (stripped := line.strip())]
        if not lines or len(lines) > 4 * self.count:
            return None
        numbered = [match for line in lines if (match := NUMBERED.fullmatch(line))]
        if numbered:
            return [{"number": int(match[1]), "label": match[2]} for match in numbered]
        if len(lines) != self.count:
            return None
        return [LEAD.sub("", line, count=1) for line in lines]


def _only(labels: set[str | None]) -> str | None:
    return next(iter(labels)) if len(labels) == 1 else None


def _pairs(value: dict[str, Any] | list[Any]) -> list[tuple[int, Any]] | None:
    """Number and label of each text in an object or a list of objects, None for other forms."""
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
