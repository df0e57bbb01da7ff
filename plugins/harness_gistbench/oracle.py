"""The categories that a set of runs verified for each user, together or as a file holds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from harness import DataError, Oracle, Score
from harness_gistbench.metrics import scored_against
from harness_gistbench.records import Options, Profile

LAST_CATEGORY = 325
FORMAT = '{"oracle": {"user": [category ids]}}'


class Categories(msgspec.Struct, frozen=True):
    """The verified categories of each user; `others` are the file's keys that mean nothing here."""

    users: dict[str, frozenset[int]]
    others: dict[str, Any] = {}


def gather(scores: Iterable[Score[Profile]], known: Categories | None = None) -> Categories:
    """What the runs verified, united with what a file held.

    The file's users come first and in its order, the others after them in natural order. A user
    for whom nothing was verified is not added.
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
    """The user's score against the oracle; a user whom it does not have has an empty one."""
    return scored_against(score, oracle.users.get(score.user, frozenset()), options)


def read(data: bytes) -> Categories:
    """The oracle that a file holds; DataError where it is none."""
    try:
        content = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise DataError("the oracle is no JSON", found=str(error), expected=FORMAT) from error
    if not isinstance(content, dict) or not isinstance(content.get("oracle"), dict):
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise DataError("the file holds no oracle", found=f"{found}", expected=FORMAT)
    return Categories(
        {user: _ids(user, ids) for user, ids in content["oracle"].items()},
        {key: value for key, value in content.items() if key != "oracle"},
    )


def write(oracle: Categories) -> bytes:
    """The oracle as a file: the other keys first, a line a user, ids ascending."""
    fields = [f"  {_text(key)}: {_text(value)}" for key, value in oracle.others.items()]
    users = [f"    {_text(user)}: {sorted(ids)}" for user, ids in oracle.users.items()]
    fields.append('  "oracle": {\n' + ",\n".join(users) + "\n  }")
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()


def natural(name: str) -> tuple[Any, ...]:
    """A sort key by which user 9 comes before user 10."""
    parts = []
    for part in re.findall(r"[0-9]+|[^0-9]+", name):
        digits = part.lstrip("0") if part[0] in "0123456789" else None
        parts.append((True, 0, part) if digits is None else (False, len(digits), digits))
    return tuple(parts), name


def _ids(user: str, ids: Any) -> frozenset[int]:
    """The category ids of one user, checked."""
    if not isinstance(ids, list):
        raise _refused("no list of categories", user, ids)
    seen: set[int] = set()
    for id in ids:
        if type(id) is not int or not 1 <= id <= LAST_CATEGORY:
            raise _refused("no id of a category", user, id)
        if id in seen:
            raise _refused("a category is named twice", user, id)
        seen.add(id)
    return frozenset(seen)


def _refused(problem: str, user: str, found: Any) -> DataError:
    return DataError(
        problem,
        where=f"oracle of user {user!r}",
        found=json.dumps(found)[:200],
        expected=f"a list of different whole numbers from 1 to {LAST_CATEGORY}",
        hint="name categories by their numbers in the taxonomy",
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


def _text(value: Any) -> str:
    return json.dumps(value)


ORACLE = Oracle(
    gather=gather,
    rescore=rescore,
    read=read,
    write=write,
    metrics=("ig_f1", "ig_r", "hm", "mean_ig_f1", "mean_ig_r"),
)
