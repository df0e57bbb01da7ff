"""The user's own filter over the rows to be written: sensitive topics, names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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

    The function gives the row back, changed or not, or None to have it left out.
    """

    function: Callable[[dict[str, str]], Any] | None
    rows: int = 0
    dropped: int = 0
    replaced: int = 0

    def through(self, rows: list[Row]) -> list[Row]:
        """The rows that are left of these."""
        self.rows += len(rows)
        return rows if self.function is None else list(self._kept(rows, self.function))

    def _kept(self, rows: list[Row], function: Callable[[dict[str, str]], Any]) -> Iterator[Row]:
        for row in rows:
            given = fields(row)
            answer = function(dict(given))
            if answer is None:
                self.dropped += 1
            elif answer == given:
                yield row
            else:
                self.replaced += 1
                yield _changed(row, given, answer)


def fields(row: Row) -> dict[str, str]:
    """A row in the published layout."""
    return {
        "user_id": str(row.user),
        "object_id": str(row.object),
        "object_text": row.text,
        "interaction_type": row.signal,
        "interaction_time": str(row.time),
    }


def _changed(row: Row, given: Mapping[str, str], answer: Any) -> Row:
    """The row with what may be changed as the filter gave it."""
    if not isinstance(answer, dict) or answer.keys() != given.keys():
        raise _refused(f"a value with {_keys(answer)}", f"the row's own fields: {_keys(given)}")
    closed = [name for name in given if name not in OPEN and answer[name] != given[name]]
    if closed:
        raise _refused(f"another {closed[0]}: {answer[closed[0]]!r}", f"changes of {OPEN} alone")
    text, signal = answer["object_text"], answer["interaction_type"]
    if not isinstance(text, str) or not text.strip():
        raise _refused(f"the object_text {text!r}", "a text, or None in place of the row")
    if signal not in SIGNALS:
        raise _refused(f"the interaction_type {signal!r}", f"one of {', '.join(SIGNALS)}")
    return replace(row, text=text, signal=signal)


def _keys(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, dict) else f"the type {type(value)}"


def _refused(found: str, expected: str) -> UsageError:
    return UsageError(
        "the function that --filter names gives what cannot be written",
        found=found,
        expected=expected,
    )
