"""Printing of commands: errors on standard error, JSON and two-column lists on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

from harness.base.errors import HarnessError, StorageError
from harness.reporting.text import clean_text

Row = tuple[str, str]
"""A name and its text."""


class Forgiving:
    """A stream for messages; once it cannot be written, what follows is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        try:
            self._stream.write(text)
        except OSError:
            to_nowhere(self._stream)
        return len(text)

    def flush(self) -> None:
        """Write what is held back, or drop it."""
        try:
            self._stream.flush()
        except OSError:
            to_nowhere(self._stream)


def prepare_streams() -> None:
    """Make standard output and error fit for printing any text, and for being closed or full.

    A closed output is replaced by one that cannot be written: nobody gets what it is given. Closed
    messages are dropped, as a run does not end because its messages cannot be written. Characters
    that the locale lacks are written as escapes.
    """
    for name, mode in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.fdopen(os.open(os.devnull, mode), "w", encoding="utf-8")
            setattr(sys, name, nowhere)
        elif stream is getattr(sys, f"__{name}__") and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is sys.__stderr__:
        sys.stderr = cast(TextIO, Forgiving(cast(TextIO, sys.stderr)))


def to_nowhere(stream: TextIO) -> None:
    """Drop all that a stream holds and will be given; Python would print an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def unwritable(error: OSError) -> StorageError:
    """The error for standard output that could not be written."""
    return StorageError(
        "the output cannot be written",
        where="standard output",
        found=error.strerror or str(error),
        hint="what was run is kept: `harness runs` lists it, and `harness show RUN` prints it",
    )


def print_error(*errors: object) -> None:
    """Print errors on standard error, without control codes that a server may have sent."""
    for error in errors:
        print(clean_text(f"harness: {error}", lines=True), file=sys.stderr)


@contextmanager
def errors_to(take: Callable[[HarnessError], object]) -> Iterator[None]:
    """Give the error that ends the block to a function, in place of raising it.

    with errors_to(print_error):
        plugins.benchmark(name)
    """
    try:
        yield
    except HarnessError as error:
        take(error)


def print_json(value: Any) -> None:
    """Print a value as a JSON document in ASCII, so that no model's text controls the terminal."""
    import json

    import msgspec

    json.dump(msgspec.to_builtins(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_sections(sections: Iterable[tuple[str, Sequence[Row]]]) -> None:
    """Print rows under their titles; a title without rows is left out."""
    for title, rows in sections:
        if rows:
            print(f"{title}:")
            print_rows(rows)


def print_rows(rows: Sequence[Row]) -> None:
    """Print two columns, the second wrapped to the width of the terminal."""
    import shutil
    import textwrap

    rows = [(clean_text(name), clean_text(text)) for name, text in rows]
    left = max(len(name) for name, _ in rows) + 4
    width = max(shutil.get_terminal_size((100, 24)).columns - left, 30)
    for name, text in rows:
        first, *more = textwrap.wrap(text, width) or [""]
        print(f"  {name.ljust(left - 2)}{first}".rstrip())
        for line in more:
            print(" " * left + line)
