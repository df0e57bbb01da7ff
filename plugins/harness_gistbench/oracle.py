"""The categories that a set of runs verified for each user, together or as a file holds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness import DataError, Oracle, Score
from harness_gistbench.categories import categories
from harness_gistbench.interests import folded
from harness_gistbench.metrics import scored_against
from harness_gistbench.records import Options, Profile

FORMAT = '{"oracle": {"user": [category ids]}}'


class Categories(msgspec.Struct, frozen=True):
    """The verified categories of each user; `others` are the file's keys that mean nothing here."""

    users: dict[str, frozenset[int]]
    others: dict[str, Any] = {}


def gather(scores: Iterable[Score[Profile]], known: Categories | None = None) -> Categories:
    """What the runs verified, united with what a file held.

    The file's users come first and in its order, the others after them in natural order. A user
    without a verified interest is not added.
    """
    users = dict(known.users) if known else {}
    added: dict[str, set[int]] = {}
    for one in scores:
        if one.details is not None and one.details.verified:
            added.setdefault(one.user, set()).update(one.details.verified)
    for user in sorted(added, key=natural):
        users[user] = users.get(user, frozenset()) | added[user]
    return Categories(users, known.others if known else {})


def rescore(score: Score[Profile], oracle: Categories, options: Options) -> Score[Profile]:
    """The user's score against the oracle; for an unknown user against an empty one."""
    return scored_against(score, oracle.users.get(score.user, frozenset()), options)


def doubts(scores: Iterable[Score[Profile]]) -> Iterator[str]:
    """That runs put the same interest into different categories, if they do.

    In one run it is in one. Recall is wrong then: what one run found another seems to have missed.
    """
    mapped: dict[str, set[int]] = {}
    for score in scores:
        for one in score.details.interests if score.details is not None else ():
            if one.category is not None:
                mapped.setdefault(folded(one.name), set()).add(one.category)
    torn = sorted(name for name, ids in mapped.items() if len(ids) > 1)
    if torn:
        ids = " and ".join(str(id) for id in sorted(mapped[torn[0]]))
        yield (
            f"{len(torn):,} of {len(mapped):,} distinct interests are in different categories in "
            f"different runs, such as {torn[0]!r} in {ids}: recall is wrong by them"
        )


def read(data: bytes, options: Options) -> Categories:
    """The oracle that a file holds, of the taxonomy that the options name; else DataError."""
    try:
        content = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise DataError("the oracle is no JSON", found=str(error), expected=FORMAT) from error
    if not isinstance(content, dict) or not isinstance(content.get("oracle"), dict):
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise DataError("the file holds no oracle", found=f"{found}", expected=FORMAT)
    known = frozenset(one.id for one in categories(options.taxonomy))
    return Categories(
        {user: _ids(user, ids, known) for user, ids in content["oracle"].items()},
        {key: value for key, value in content.items() if key != "oracle"},
    )


def write(oracle: Categories) -> bytes:
    """The oracle as a file: the other keys first, a line a user, ids ascending."""
    fields = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in oracle.others.items()]
    users = [f"    {json.dumps(user)}: {sorted(ids)}" for user, ids in oracle.users.items()]
    fields.append('  "oracle": {\n' + ",\n".join(users) + "\n  }")
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()


def natural(name: str) -> tuple[Any, ...]:
    """A sort key by which user 9 comes before user 10."""
    parts = []
    for part in re.findall(r"[0-9]+|[^0-9]+", name):
        digits = part.lstrip("0") if part[0] in "0123456789" else None
        parts.append((True, 0, part) if digits is None else (False, len(digits), digits))
    return tuple(parts), name


def _ids(user: str, ids: Any, known: frozenset[int]) -> frozenset[int]:
    """The category ids of one user, checked against those of the taxonomy."""
    if not isinstance(ids, list):
        raise _refused("no list of categories", user, ids, known)
    seen: set[int] = set()
    for id in ids:
        if type(id) is not int or id not in known:
            raise _refused("no id of a category", user, id, known)
        if id in seen:
            raise _refused("a category is named twice", user, id, known)
        seen.add(id)
    return frozenset(seen)


def _refused(problem: str, user: str, found: Any, known: frozenset[int]) -> DataError:
    return DataError(
        problem,
        where=f"oracle of user {user!r}",
        found=json.dumps(found)[:200],
        expected=f"a list of different ids of the taxonomy's {len(known)} categories, whole "
        f"numbers from {min(known)} to {max(known)}",
        hint="the option `taxonomy` of the runs names the file with the ids",
    )


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return content


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


ORACLE = Oracle(
    gather=gather,
    rescore=rescore,
    read=read,
    write=write,
    doubts=doubts,
    users=lambda known: known.users,
    metrics=("ig_f1", "ig_r", "hm", "mean_ig_f1", "mean_ig_r"),
    main=("ig_f1",),
)
