"""Descriptions of metrics with the values of the options that they name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_OPTION = re.compile(r"`(\w+)`")


def with_values(description: str, options: Mapping[str, Sequence[str]]) -> str:
    """A description with the values of each option in backticks in its place.

    >>> with_values("at least `threshold` of four", {"threshold": ["3"]})
    'at least 3 of four'
    """

    def given(found: re.Match[str]) -> str:
        values = options.get(found[1])
        return " or ".join(values) if values else found[0]

    return _OPTION.sub(given, description)
