"""Files of settings: where they lie, what they say, and on which line."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError

HERE = Path("harness.toml")

_HEADER = re.compile(r"\s*\[\[?\s*(?P<path>.+?)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*(?P<path>(?:[\w.\s-]|"[^"]*"|'[^']*')+?)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """What a file of settings says; `file` as a person would write it."""

    file: str
    values: Mapping[str, Any]
    text: str

    def where(self, path: Sequence[str]) -> str:
        """The file, and the line on which something stands where it is written plainly."""
        line = line_of(self.text, path)
        return f"{self.file}:{line}" if line else self.file


def user_file() -> Path:
    """The settings of this user: in the user's config folder."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "harness" / "config.toml"


def read_settings(file: Path) -> SettingsFile | None:
    """What a file says, None where there is no such file; UsageError where it cannot be read."""
    import tomllib

    named = shown(file)
    try:
        text = file.read_text("utf-8")
        return SettingsFile(file=named, values=_at_home(tomllib.loads(text)), text=text)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError("the settings cannot be read", where=named, found=reason) from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            "the settings are not TOML", where=named, found=str(error),
            expected='lines as `model = "openai"`',
        ) from error  # fmt: skip


def shown(file: Path) -> str:
    """A path with `~` for the user's home."""
    try:
        return f"~/{file.relative_to(Path.home())}"
    except ValueError:
        return str(file)


def line_of(text: str, path: Sequence[str]) -> int | None:
    """The number of the line on which a key or its table begins; None where it cannot be told."""
    header: list[str] = []
    nearest: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _HEADER.fullmatch(line):
            header = _parts(found["path"])
            stands = header
        elif found := _KEY.match(line):
            stands = [*header, *_parts(found["path"])]
        else:
            continue
        if stands[: len(path)] == list(path):
            return number
        if stands and list(path[: len(stands)]) == stands:
            # An inline table, or the header above: the closest that the key is known to be below.
            nearest = number
    return nearest


def _parts(path: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(path)]


def _at_home(value: Any) -> Any:
    """The values with `~/` at the beginning of a text as the user's home: no shell does it here."""
    if isinstance(value, dict):
        return {name: _at_home(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_at_home(one) for one in value]
    return str(Path(value).expanduser()) if str(value).startswith("~/") else value
