"""In what two nested settings differ, leaf by leaf, in words for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_DIGEST = re.compile(r"[0-9a-f]{32,}")
LONGEST = 80

ABSENT = "nothing"
"""What a leaf is called on the side that does not have it."""


def unlike(first: Any, second: Any) -> dict[str, tuple[str, str]]:
    """Both sides of each leaf that differs, by its dotted path; lists are leaves."""
    ours, theirs = dict(_leaves(first, "")), dict(_leaves(second, ""))
    return {
        path: (_shown(ours, path), _shown(theirs, path))
        for path in dict.fromkeys((*ours, *theirs))
        if path not in ours or path not in theirs or ours[path] != theirs[path]
    }


def told(
    differences: Mapping[str, tuple[str, str]], *, between: str = "against"
) -> tuple[str, ...]:
    """The differences as lines, `window 50 against 100`; those with the same sides share one."""
    paths: dict[str, list[str]] = {}
    for path, (first, second) in differences.items():
        paths.setdefault(f"{first} {between} {second}", []).append(path)
    return tuple(f"{', '.join(names)} {sides}" for sides, names in paths.items())


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _leaves(below, f"{path}.{name}" if path else str(name))
    else:
        yield path, list(value) if isinstance(value, tuple) else value


def _shown(leaves: Mapping[str, Any], path: str) -> str:
    if path not in leaves:
        return ABSENT
    value = leaves[path]
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value[:8]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
