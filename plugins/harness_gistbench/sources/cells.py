"""A query that sources share: the texts of objects, made of several columns."""

from __future__ import annotations

from collections.abc import Iterable

from harness.data.database import SPACES


def described(table: str, thing: str, parts: str, *, unknown: Iterable[str] = ()) -> str:
    """A query for objects with the parts that say something of them, on one line.

    `parts` is a list in SQL; `unknown` are marks of what a source does not know.
    """
    nothing = ", ".join(f"'{one}'" for one in ("", *unknown))
    return (
        f"SELECT row, object, array_to_string(list_filter(parts, lambda part, place: "
        f"part NOT IN ({nothing}) AND list_position(parts, part) = place), ' | ') AS text "
        f"FROM (SELECT row, {thing} AS object, list_transform({parts}, lambda part: "
        f"trim(regexp_replace(coalesce(part, ''), '{SPACES}+', ' ', 'g'))) AS parts FROM {table})"
    )
