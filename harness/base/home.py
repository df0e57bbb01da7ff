"""The user's home folder, which a process may lack, and the cache in it."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from harness.base.errors import UsageError


def home() -> Path | None:
    """The user's home folder; None where HOME is unset and the user has no name."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def without_home(text: str) -> str:
    """The text with `~` for the user's home folder, whose name may be that of a person."""
    folder = home()
    if folder is None or str(folder) == folder.anchor:
        return text
    spellings, pattern = _named(str(folder))
    return pattern.sub("~", text) if any(one in text for one in spellings) else text


@lru_cache(maxsize=8)
def _named(folder: str) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """The folder as it is, as JSON and addresses spell it, and the pattern that finds each."""
    spellings = tuple(dict.fromkeys((folder, json.dumps(folder)[1:-1], quote(folder))))
    return spellings, re.compile(rf"(?:{'|'.join(map(re.escape, spellings))})(?![\w.-])")


def expanded(path: str | Path, *, where: str | None = None) -> Path:
    """The path with `~` expanded; UsageError, with `where` it was given, if that is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(
            "this path is in a home folder that cannot be found",
            where=where,
            found=str(path),
            expected="the home folder of a user of this machine",
            hint="write the whole path, or set the variable HOME; for the store of answered calls,"
            " give --store FILE or --reuse run",
        ) from error


def user_cache(*, where: str) -> Path:
    """The harness's folder in the user's cache; `where` says what needs it."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else expanded("~/.cache", where=where)) / "harness"
