"""Rows inside one JSON object, which may be larger than memory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness.base.errors import DataError
from harness.data.json_rows import Rows
from harness.data.opening import BOM, CHUNK, check_start, empty_file, unpacked
from harness.data.wording import join_names, kind_of, nearest, place

MOST_KEYS = 100
"""How many keys of the object are kept for an error."""

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_LONGEST_ESCAPE = 12
_STARTS = {"start_map", "start_array"}
_ENDS = {"end_map", "end_array"}


def read_inside(path: Path, *, keys: tuple[str, ...]) -> Rows:
    """Line number and object of each row that a file's object holds under these keys, from the
    outermost inwards.

    They lead to a list of objects, or to an object that is the only row; without keys, that is the
    whole object of the file.
    """
    return _Inside(path, keys).rows()


class _Inside:
    """The walk to the rows and over them.

    `_trail` is the key inside each open object, None inside a list; `_inside` is true in a row.
    """

    def __init__(self, path: Path, keys: tuple[str, ...]) -> None:
        self._path = path
        self._keys = list(keys)
        self._in_list = [*keys, None]
        self._trail: list[str | None] = []
        self._first_keys: list[str] = []
        self._found = False
        self._inside = False
        self._row = 0
        self._line = 1

    def rows(self) -> Rows:
        import ijson  # type: ignore[import-untyped]

        events = ijson.sendable_list()
        parser = ijson.basic_parse_coro(events)
        builder, begun, level = None, 0, 0
        for piece in self._pieces():
            escapes = _ESCAPE.finditer(piece) if b"\\u" in piece else ()
            # The parser would replace half of a surrogate pair.
            half = next((one.start() for one in escapes if one["half"]), None)
            wrong = self._send(parser, piece if half is None else piece[:half])
            for event, value in events:
                if builder is None:
                    if not self._begins_row(event, value):
                        continue
                    builder, begun = ijson.ObjectBuilder(), self._line
                builder.event(event, self._plain(value) if event == "number" else value)
                level += (event in _STARTS) - (event in _ENDS)
                if level == 0:
                    yield begun, builder.value
                    builder, self._inside = None, False
            del events[:]
            if wrong is not None or half is not None:
                raise self._error(
                    "malformed JSON",
                    wrong or "half of a surrogate pair",
                    "one whole JSON object, in UTF-8",
                )
            self._line += piece.endswith(b"\n")
        wrong = self._send(parser, b"")
        if wrong is not None:
            raise self._error("malformed JSON", wrong, "one whole JSON object, in UTF-8")
        if not self._found:
            near = nearest(self._keys[0], self._first_keys) if self._keys else None
            raise DataError(
                f"the file has no {self._name}, under which the task expects the rows",
                where=str(self._path),
                found=f"an object with {join_names(self._first_keys)}"
                if self._first_keys
                else None,
                expected="one JSON object with a list of objects there, or one object",
                hint=f"'{near}' is the nearest name" if near and near != self._keys[0] else None,
            )

    def _begins_row(self, event: str, value: Any) -> bool:
        """Whether a row begins with this event; otherwise it is a step on the way to one."""
        if event == "map_key":
            self._trail[-1] = value
            if len(self._trail) == 1 and len(self._first_keys) < MOST_KEYS:
                self._first_keys.append(value)
            return False
        if event in _ENDS:
            self._trail.pop()
            return False
        at_rows = self._trail == self._keys
        if at_rows and self._found:
            raise self._error("the rows are there twice", f"{self._name} again", "each key once")
        self._found = self._found or at_rows
        if at_rows and self._keys and event == "start_array":
            self._trail.append(None)
            return False
        if at_rows or self._trail == self._in_list:
            self._row += 1
            self._inside = True
            if event != "start_map":
                kind = "list" if event == "start_array" else kind_of(self._plain(value))
                raise self._error("the row is not an object", f"a JSON {kind}", "an object")
            return True
        if event in _STARTS:
            self._trail.append("" if event == "start_map" else None)
        return False

    def _pieces(self) -> Iterator[bytes]:
        """The bytes of the file, each piece within one line and with whole escapes."""
        with unpacked(self._path) as stream:
            piece = stream.readline(CHUNK)
            check_start(self._path, piece)
            if not piece:
                raise empty_file(self._path)
            piece = piece.removeprefix(BOM)
            while piece:
                while b"\\" in piece[-_LONGEST_ESCAPE:] and not piece.endswith(b"\n"):
                    more = stream.readline(64)
                    if not more:
                        break
                    piece += more
                yield piece
                piece = stream.readline(CHUNK)

    def _send(self, parser: Any, piece: bytes) -> str | None:
        """What is wrong with a piece for the parser; the events before that are there."""
        import ijson

        try:
            parser.send(piece)
        except StopIteration:
            pass
        except ijson.JSONError as error:
            message = error.args[0]
            text = message.decode("utf-8", "replace") if isinstance(message, bytes) else message
            return str(text).partition("\n")[0]
        return None

    def _plain(self, value: Any) -> Any:
        """The number as other JSON files give it."""
        if not isinstance(value, Decimal):
            return value
        number = float(value)
        if math.isinf(number):
            raise self._error("malformed JSON", f"{value}", "a number that fits a float")
        return number

    @property
    def _name(self) -> str:
        return ".".join(self._keys) or "the object"

    def _error(self, problem: str, found: str, expected: str) -> DataError:
        row = self._row if self._inside else None
        return DataError(
            problem,
            where=place(str(self._path), row=row, line=self._line),
            found=found,
            expected=expected,
        )
