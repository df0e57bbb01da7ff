"""Text that is safe to show in a terminal, and numbers as people read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any, TextIO

NOTHING = "–"
ROUNDING = 1e-12
"""Smaller values are rounding errors of sums, and shown as zero."""

_WITH_BOUNDS = re.compile(r"(\S+) \[(\S+), (\S+)\]")
_ALONE = re.compile(rf"[-+]?[0-9,]*\.[0-9]+(e[-+][0-9]+)?|{NOTHING}")
"""A value with its interval, and one without; counts are neither."""

_BLANKS = re.compile(r" +$", re.MULTILINE)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_WANTED = frozenset("\u200c\u200d")
"""Joiners that some scripts and emoji need."""


def clean_text(text: str, *, lines: bool = False, limit: int | None = None) -> str:
    """The text with control and formatting characters as escapes, safe for a terminal.

    These characters, such as those that change the direction of writing, become `\\x1b` and the
    like. Line ends and tabs stay if `lines` is true and become blanks otherwise. At most `limit`
    characters are kept. The result may contain rich markup: show it as
    `rich.text.Text`, never as a marked-up string.
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    if not lines:
        text = text.replace("\n", " ").replace("\t", " ")
    characters = set(text) - {"\n", "\t"}
    hidden = {ord(char): shown for char in characters if (shown := _visible(char)) != char}
    return text.translate(hidden) if hidden else text


class Trimmed:
    """A stream that writes lines without blanks at their ends, for tables in files and pipes.

    Each text must be whole lines.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the lines."""
        return self._stream.write(_BLANKS.sub("", text))


def causes(counts: Mapping[str, int]) -> str:
    """The total and the count of each cause: `4: no_json 3, timeout 1`."""
    total = sum(counts.values())
    return f"{total:,}: {reasons(counts)}" if total else NOTHING


def reasons(counts: Mapping[str, int]) -> str:
    """The count of each cause, the most frequent first: `no_json 3, timeout 1`."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{clean_text(cause)} {many:,}" for cause, many in ordered if many)


def number(value: float | None) -> str:
    """A measured value with three decimals; tiny values have more and large ones fewer."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 1000:
        return f"{value:,.1f}"
    if size < ROUNDING:
        return "0.000"
    if size < 0.0005:
        return f"{value:.1e}"
    return f"{value:.3f}"


def aligned(cells: Iterable[str]) -> list[str]:
    """Cells of one width: values below values, and bounds below bounds."""
    shown = list(cells)
    found = [_WITH_BOUNDS.fullmatch(cell) for cell in shown]
    low, high = (max((len(one[part]) for one in found if one), default=0) for part in (2, 3))
    blank = " " * len(f" [{'':{low}}, {'':{high}}]") if any(found) else ""
    for place, one in enumerate(found):
        if one is not None:
            shown[place] = f"{one[1]} [{one[2]:>{low}}, {one[3]:>{high}}]"
        elif _ALONE.fullmatch(shown[place]):
            shown[place] += blank
    width = max(map(len, shown), default=0)
    return [cell.rjust(width) for cell in shown]


def wrapped_whole(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of a text in a width; a value stays with its interval, `p` with its number."""
    kept = _WITH_BOUNDS.sub("\\1\xa0[\\2,\xa0\\3]", text)
    kept = re.sub(r"\bp (?=[<0-9])", "p\xa0", kept)
    lines = wrap(kept, width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def signed(value: float | None) -> str:
    """A difference as tables show it: `+0.120`."""
    if value is None:
        return NOTHING
    # Sums of the same numbers in another order differ in the last digits; that is no difference.
    value = round(value, 12) + 0.0
    return number(value) if value <= 0 else f"+{number(value)}"


def count(value: float) -> str:
    """A large count in at most five characters: 999, 12.3k, 4.5M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size * 0.99995:
            scaled = value / size
            return f"{scaled:.0f}{unit}" if scaled >= 99.95 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}"


def counted(number: int, what: str) -> str:
    """A number of things in words: `1 task`, `1,200 tasks`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def share(part: float, whole: float) -> str:
    """A part in percent; only the whole is 100% and only zero is 0%."""
    if not whole:
        return NOTHING
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "<1%"
    if 99 < percent < 100:
        return ">99%"
    return f"{percent:.0f}%"


def duration(seconds: float | None) -> str:
    """A time span: 0:42, 12:05, 3:07:09, 2d 03h."""
    if seconds is None:
        return NOTHING
    whole = round(max(seconds, 0.0))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours:02}h"
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def time_left(seconds: float | None, *, at_least: bool) -> str:
    """How long a run still takes, as far as that is known."""
    if seconds is None:
        return "time left unknown"
    return f"{'at least ' if at_least else ''}{duration(seconds)} left"


def _visible(char: str) -> str:
    code = ord(char)
    # Unicode never assigns some code points, and XML forbids some of them.
    never = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
    if char in _WANTED or (unicodedata.category(char) not in _HIDDEN and not never):
        return char
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
