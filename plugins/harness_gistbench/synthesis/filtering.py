"""The user's own filter over the rows to be written: sensitive topics, names."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import UsageError
from harness_gistbench.records import SIGNALS
from harness_gistbench.synthesis.drawing import Row

OPEN = ("object_text", "interaction_type")
"""The fields that a filter may change."""


@dataclass(kw_only=True)
class Filter:
    """Gives a function each row, as the mapping that would be written. State: its counts.

    The function gives the row back, changed or not, or None to have it left out. `name` is what
    --filter calls it.
    """

    function: Callable[[dict[str, str]], Any] | None
    name: str = ""
    rows: int = 0
    dropped: int = 0
    replaced: int = 0

    def through_all(self, users: Iterable[list[Row]]) -> Iterator[list[Row]]:
        """What is left of the rows of each user; UsageError at the end where that is nothing."""
        for rows in users:
            yield self.through(rows)
        if self.dropped and self.dropped == self.rows:
            raise UsageError(
                "the function that --filter names leaves nothing to write",
                where=self.name,
                found=f"None for each of {self.rows:,} rows",
                expected="rows that it gives back",
            )

    def through(self, rows: list[Row]) -> list[Row]:
        """The rows that are left of these."""
        self.rows += len(rows)
        return rows if self.function is None else list(self._kept(rows, self.function))

    def _kept(self, rows: list[Row], function: Callable[[dict[str, str]], Any]) -> Iterator[Row]:
        for row in rows:
            given = fields(row)
            answer = self._answer(function, given)
            if answer is None:
                self.dropped += 1
            elif answer == given:
                yield row
            else:
                self.replaced += 1
                yield self._changed(row, given, answer)

    def _answer(self, function: Callable[[dict[str, str]], Any], given: dict[str, str]) -> Any:
        try:
            return function(dict(given))
        except Exception as error:
            raise UsageError(
                "the function that --filter names failed",
                where=f"{self.name}, given {given}",
                found=traceback.format_exc(limit=-4).strip(),
                expected="the row, changed or not, or None",
            ) from error

    def _changed(self, row: Row, given: Mapping[str, str], answer: Any) -> Row:
        """The row with what may be changed as the filter gave it."""
        if wrong := _wrong(given, answer):
            found, expected = wrong
            raise UsageError(
                "the function that --filter names gives what cannot be written",
                where=f"{self.name}, given {given}",
                found=found,
                expected=expected,
            )
        return replace(row, text=answer["object_text"], signal=answer["interaction_type"])


def fields(row: Row) -> dict[str, str]:
    """A row in the published layout."""
    return {
        "user_id": str(row.user),
        "object_id": str(row.object),
        "object_text": row.text,
        "interaction_type": row.signal,
        "interaction_time": str(row.time),
    }


def _wrong(given: Mapping[str, str], answer: Any) -> tuple[str, str] | None:
    """What of an answer cannot be written, and what could be."""
    if not isinstance(answer, dict) or answer.keys() != given.keys():
        return f"a value with {_keys(answer)}", f"the row's own fields: {_keys(given)}"
    closed = [name for name in given if name not in OPEN and answer[name] != given[name]]
    if closed:
        return f"another {closed[0]}: {answer[closed[0]]!r}", f"changes of {OPEN} alone"
    text, signal = answer["object_text"], answer["interaction_type"]
    if not isinstance(text, str) or not text.strip():
        return f"the object_text {text!r}", "a text, or None in place of the row"
    if signal not in SIGNALS:
        return f"the interaction_type {signal!r}", f"one of {', '.join(SIGNALS)}"
    return None


def _keys(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, dict) else f"the type {type(value)}"
