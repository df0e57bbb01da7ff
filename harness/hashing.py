"""Hashes and canonical JSON that are the same in every process and on every machine.

The standard library's `json` says which bytes enter a key: other encoders print some numbers
differently (1e-05, 1e16). A faster one makes them where no value is of a kind that could differ.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import numpy as np

KEY_BYTES = 16

_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode
_sorted = msgspec.json.Encoder(order="sorted").encode


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, ASCII; NaN and infinity refused."""
    return _canonical(value).encode("ascii")


def canonical_struct(value: msgspec.Struct) -> bytes:
    """The same of a struct's fields; each must hold what it declares, as what JSON gave back does.

    Several times faster on long texts in ASCII, unless a field's type holds more than text, whole
    numbers, truth, null, and lists and structs of these.
    """
    if not _is_plain(type(value)):
        return canonical(msgspec.to_builtins(value, order="deterministic"))
    return canonical_plain(value)


def canonical_plain(value: Any) -> bytes:
    """The same of text, whole numbers, truth, null, and lists and structs of these."""
    with suppress(UnicodeEncodeError):  # half of a surrogate pair
        data = _sorted(value)
        if data.isascii() and b"\x7f" not in data:
            return data
    return canonical(msgspec.to_builtins(value, order="deterministic"))


@functools.cache
def _is_plain(kind: type[msgspec.Struct]) -> bool:
    """Whether all encoders write the values of a type alike, but for what is not ASCII."""
    from msgspec import inspect

    seen: set[int] = set()
    waiting: list[inspect.Type] = [inspect.type_info(kind)]
    while waiting:
        one = waiting.pop()
        match one:
            case inspect.StructType():
                if id(one) not in seen:  # a type may hold itself
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
    """A 64-bit number drawn from the parts, for seeds, orders and samples."""
    data = "\x1f".join(str(part) for part in parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def stable_ints(last: Iterable[str], *parts: str | int) -> np.ndarray:
    """`stable_int(*parts, one)` of each `one`, as an array of unsigned numbers."""
    import numpy as np

    data = "".join(f"{part}\x1f" for part in parts).encode("utf-8", "surrogatepass")
    start = hashlib.blake2b(data, digest_size=8)
    digests = []
    for one in last:
        hashed = start.copy()
        hashed.update(one.encode("utf-8", "surrogatepass"))
        digests.append(hashed.digest())
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)
