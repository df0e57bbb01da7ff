"""Interests that people stated themselves, as categories of the taxonomy.

The paper does not say how its survey's labels were matched, so the matching is ours: the mapping
file where one is given, else the exact id or name of a category, else the category that the runs'
own taxonomist gave to the very same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.results.beside import table
from harness_gistbench.interests import folded

if TYPE_CHECKING:
    from harness_gistbench.analyses.comparing import Run
    from harness_gistbench.records import Category

MAPPING = "the mapping file"
TAXONOMY = "the taxonomy"
RUNS = "the runs' mapping"
UNMAPPED = "nothing"


@dataclass(frozen=True, kw_only=True)
class Stated:
    """The stated categories of each user who has any, and how the interests came to theirs."""

    categories: dict[str, frozenset[int]]
    matched: Counter[str]
    unmapped: tuple[str, ...]


def read_stated(path: str) -> dict[str, tuple[str, ...]]:
    """What each user stated, each interest once."""
    from harness.tasks.task import Column

    users: dict[str, dict[str, str]] = {}
    for _, row in table(path, "stated", {"user": Column(), "interest": Column()}).rows():
        users.setdefault(row["user"], {}).setdefault(folded(row["interest"]), row["interest"])
    return {user: tuple(interests.values()) for user, interests in users.items()}


def read_mapping(path: str, taxonomy: Iterable[Category]) -> dict[str, int]:
    """The category of each interest that a mapping file names, by folded interest."""
    from harness.tasks.task import Column

    known = names_of(taxonomy)
    mapping: dict[str, int] = {}
    rows = table(path, "mapping", {"interest": Column(), "category": Column()})
    for number, row in rows.rows():
        category = known.get(folded(row["category"]))
        if category is None:
            raise rows.bad(number, "category", row["category"], "the id or name of a category")
        if mapping.setdefault(folded(row["interest"]), category) != category:
            raise rows.bad(number, "interest", row["interest"], "one category an interest")
    return mapping


def names_of(taxonomy: Iterable[Category]) -> dict[str, int]:
    """Each category by its id as text and by its folded name."""
    names: dict[str, int] = {}
    for category in taxonomy:
        names[str(category.id)] = names[folded(category.name)] = category.id
    return names


def named_in(runs: Iterable[Run]) -> dict[str, int]:
    """The category that the runs' taxonomist gave to each interest, by folded interest.

    Where runs differ, the first one counts.
    """
    mapping: dict[str, int] = {}
    for run in runs:
        for _, profile in run.profiles():
            for interest in profile.interests:
                if interest.category is not None:
                    mapping.setdefault(folded(interest.name), interest.category)
    return mapping


def mapped(
    users: Mapping[str, Iterable[str]], sources: Iterable[tuple[str, Mapping[str, int]]]
) -> Stated:
    """The stated interests as categories; the first source that knows an interest decides."""
    sources = list(sources)
    matched: Counter[str] = Counter()
    unmapped: dict[str, None] = {}
    categories: dict[str, frozenset[int]] = {}
    for user, interests in users.items():
        found = set()
        for interest in interests:
            key = folded(interest)
            source, known = next(
                ((name, known) for name, known in sources if key in known), (UNMAPPED, {})
            )
            matched[source] += 1
            if source == UNMAPPED:
                unmapped[interest] = None
            else:
                found.add(known[key])
        if found:
            categories[user] = frozenset(found)
    return Stated(categories=categories, matched=matched, unmapped=tuple(unmapped))
