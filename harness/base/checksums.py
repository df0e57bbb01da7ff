"""Checksums in JSON files and lines, which find damage such as a flipped bit.

A checksum is the last member of a JSON object, `crc32`, and covers every byte before that member.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32


class Form(NamedTuple):
    """How the last member is written: what it replaces, and what stands around the checksum."""

    end: bytes
    before: bytes
    after: bytes


LINE = Form(b"}\n", b',"crc32":"', b'"}\n')
"""An object on one line, with its newline."""

FILE = Form(b"\n}\n", b',\n  "crc32": "', b'"\n}\n')
"""A file with one object, indented by two."""


def seal(text: bytearray, form: Form, *, start: int = 0) -> None:
    """Add the checksum to the object that begins at `start` and ends the text."""
    end = len(text) - len(form.end)
    with memoryview(text) as view:
        sum_of = crc32(view[start:end])
    text[end:] = b"%b%08x%b" % (form.before, sum_of, form.after)


def sealed(text: bytes, form: Form) -> bytes:
    """The text of an object, with its checksum."""
    sealing = bytearray(text)
    seal(sealing, form)
    return bytes(sealing)


def damage(text: bytes, form: Form) -> str | None:
    """What is wrong with the checksum of an object; None if it is right."""
    before, after = form.before, form.after
    start = len(text) - len(after) - 8
    place = start - len(before)
    if place <= 0 or text[place:start] != before or not text.endswith(after):
        return "no checksum at its end"
    with memoryview(text) as view:
        made = b"%08x" % crc32(view[:place])
    if made != text[start : start + 8]:
        return f"its checksum is {made.decode()}, not the one at its end"
    return None
