"""The reader of queries: a list of texts in whatever a model wrote around it, whole or cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness import JsonReader, Parsed, Unreadable
from harness.parsing.decode import NotJson, decode, whole_characters

QUOTED = re.compile(r'"((?:[^"\\\n]++|\\.)*+)"(?!\s*+:)|]')
"""A whole text in quotation marks that is no key, or the end of a list."""

QUOTES = tuple("\"'“‘`")
NOTHING = "no list of texts under the name that was asked for"


@dataclass(frozen=True, kw_only=True)
class QueriesReader:
    """Reads at most `most` texts of the field `field`; none is the field's name or empty.

    JSON counts, then JSON that can be repaired, then the whole texts in quotation marks behind the
    field's name. The last text of a reply that ends inside it is left out.
    """

    field: str
    most: int

    @property
    def schema(self) -> dict[str, Any]:
        """What a server may be asked to hold its answer to."""
        texts = {self.field: {"type": "array", "items": {"type": "string"}}}
        return {"type": "object", "properties": texts, "required": [self.field],
                "additionalProperties": False}  # fmt: skip

    def __call__(self, text: str) -> Parsed[tuple[str, ...]] | Unreadable:
        """The texts of a reply, or why it has none."""
        text = whole_characters(text).strip()
        found = JsonReader(kind="object", convert=self._texts)(text)
        if isinstance(found, Unreadable):
            found = JsonReader(kind="any", convert=self._texts)(text)
        texts, rung = ([], "") if isinstance(found, Unreadable) else (found.value, found.rung)
        if rung == "repaired" and _ends_inside(text, texts[-1]):
            del texts[-1]
        if not texts:
            texts, rung = list(self._quoted(text)), "regex"
        if not texts:
            return Unreadable("no_list" if text else "empty", NOTHING)
        return Parsed(tuple(texts[: self.most]), rung)

    def _texts(self, value: Any) -> list[str]:
        """The texts in JSON; ValueError without any.

        An object gives those of the field, or else those of its only list; a list may hold objects
        with one text each.
        """
        if isinstance(value, dict):
            named = [one for key, one in value.items() if self.field in key.strip().lower()]
            lists = [one for one in value.values() if isinstance(one, list)]
            if not named and len(lists) != 1:
                raise ValueError(NOTHING)
            value = named[-1] if named else lists[0]
        entries = value if isinstance(value, list) else [value]
        texts: list[str] = []
        for entry in entries:
            inside = [*entry.values()] if isinstance(entry, dict) else [entry]
            if len(inside) == 1 and isinstance(inside[0], str):
                texts.append(self._sound(inside[0]))
        if not any(texts):
            raise ValueError(NOTHING)
        return [*filter(None, texts)]

    def _sound(self, text: str) -> str:
        """The text with single blanks; empty where it is the field's name."""
        text = " ".join(text.split())
        return "" if text.lower().strip(":") == self.field else text

    def _quoted(self, text: str) -> Iterator[str]:
        """The whole texts in quotation marks behind the last field's name, up to a list's end."""
        _, name, behind = text.rpartition(self.field)
        if not name:
            return
        for found in QUOTED.finditer(behind.removeprefix('"')):
            if found[0] == "]":
                return
            try:
                value = decode(found[0])
            except NotJson:
                continue
            if text := self._sound(value):
                yield text


def _ends_inside(text: str, last: str) -> bool:
    """Whether a reply ends with its last text, without the quotation mark behind it."""
    end = text.rstrip("`\n ").replace("\\n", " ").replace("\\", "")
    before, found, behind = " ".join(end.split()).rpartition(last.replace("\\", "").strip())
    return bool(found) and not behind and before.rstrip()[-1:] in QUOTES
