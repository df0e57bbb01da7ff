"""Hashes and canonical JSON that are the same in every process and on every machine.

Only the standard library's `json` makes the bytes that enter a key: other encoders print some
numbers differently (1e-05, 1e16).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

KEY_BYTES = 16


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces, ASCII; NaN and infinity refused."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode("ascii")


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
