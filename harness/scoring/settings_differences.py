"""What differs between two settings, leaf by leaf, as lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.scoring.grouping import grouped

_DIGEST = re.compile(r"[0-9a-f]{32,}")
LONGEST = 80

ABSENT = "nothing"
"""The text for a leaf on the side that lacks it."""


def differences(first: Any, second: Any) -> dict[str, tuple[str, str]]:
    """Both sides of each leaf that differs, by its dotted path; lists are leaves."""
    ours, theirs = dict(_leaves(first, "")), dict(_leaves(second, ""))
    return {
        path: (_leaf_text(ours, path), _leaf_text(theirs, path))
        for path in dict.fromkeys((*ours, *theirs))
        if path not in ours or path not in theirs or ours[path] != theirs[path]
    }


def describe_differences(
    differences: Mapping[str, tuple[str, str]], *, between: str = "against"
) -> tuple[str, ...]:
    """The differences as lines, `window 50 against 100`; equal differences share a line."""
    paths = grouped(
        (f"{first} {between} {second}", path) for path, (first, second) in differences.items()
    )
    return tuple(f"{', '.join(names)} {sides}" for sides, names in paths.items())


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _leaves(below, f"{path}.{name}" if path else str(name))
    else:
        yield path, list(value) if isinstance(value, tuple) else value


def _leaf_text(leaves: Mapping[str, Any], path: str) -> str:
    if path not in leaves:
        return ABSENT
    value = leaves[path]
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value[:8]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
