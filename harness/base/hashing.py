"""Hashes and canonical JSON that are the same in every process and on every machine.

Keys are made of the bytes that the standard library's `json` writes: other encoders write some
numbers differently (1e-05, 1e16). A faster encoder is used for types that it writes identically.

A checksum finds damage to a JSON file or line, such as a flipped bit. It is the last member of a
JSON object, `crc32`, and covers every byte before that member.
"""

from __future__ import annotations

import functools
import hashlib
import json
from contextlib import suppress
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

KEY_BYTES = 16

_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode
_sorted = msgspec.json.Encoder(order="sorted").encode


def canonical(value: Any) -> bytes:
    """The canonical JSON of a value: sorted keys, no spaces, ASCII; refuses NaN and infinity."""
    return _canonical(value).encode("ascii")


def struct_texts(value: msgspec.Struct) -> tuple[bytes, bytes]:
    """A struct's JSON, and its canonical JSON; each field must hold a value of its type.

    If all fields are strings, integers, booleans, null, or lists and structs of these, and the text
    is ASCII, both are the same bytes and several times faster. Otherwise mappings keep their order
    in the first, so that a reader gets back the value that was written.
    """
    plain = _is_plain(type(value))
    text = _sorted(value) if plain else msgspec.json.encode(value)
    if plain and _is_canonical(text):
        return text, text
    return text, canonical(msgspec.to_builtins(value, order="deterministic"))


def canonical_plain(value: Any) -> bytes:
    """The canonical JSON of strings, integers, booleans, null, and lists and structs of these."""
    with suppress(UnicodeEncodeError):  # half of a surrogate pair
        text = _sorted(value)
        if _is_canonical(text):
            return text
    return canonical(msgspec.to_builtins(value, order="deterministic"))


def _is_canonical(text: bytes) -> bool:
    """Whether the canonical JSON of a plain value needs no further escapes."""
    return text.isascii() and b"\x7f" not in text


@functools.cache
def _is_plain(kind: type[msgspec.Struct]) -> bool:
    """Whether all encoders write the values of a type alike, as long as they are ASCII."""
    from msgspec import inspect

    seen: set[int] = set()
    waiting: list[inspect.Type] = [inspect.type_info(kind)]
    while waiting:
        one = waiting.pop()
        match one:
            case inspect.StructType():
                if id(one) not in seen:  # a type may contain itself
                    seen.add(id(one))
                    waiting.extend(field.type for field in one.fields)
            case inspect.VarTupleType() | inspect.ListType():
                waiting.append(one.item_type)
            case inspect.TupleType():
                waiting.extend(one.item_types)
            case inspect.UnionType():
                waiting.extend(one.types)
            case inspect.StrType() | inspect.IntType() | inspect.BoolType() | inspect.NoneType():
                pass
            case inspect.LiteralType():
                pass
            case _:
                return False
    return True


def digest(value: Any) -> str:
    """A 32-character hexadecimal key of any JSON value."""
    return digest_bytes(canonical(value))


def digest_bytes(data: bytes) -> str:
    """A 32-character hexadecimal key of bytes."""
    return hashlib.blake2b(data, digest_size=KEY_BYTES).hexdigest()


def stable_int(*parts: str | int) -> int:
    """A 64-bit hash of the parts, for seeds, orders and samples."""
    data = "\x1f".join(str(part) for part in parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


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
