"""The histories of the people chosen, most recent first, and the pool of objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from harness_gistbench.records import SIGNALS, PoolObject, Signal
from harness_gistbench.survey import Rows, Survey, survey
from harness_gistbench.texts import TextIndex

if TYPE_CHECKING:
    import numpy as np

    from harness.data import Dataset
    from harness_gistbench.log import Log
    from harness_gistbench.records import Options


class Engagement(msgspec.Struct, frozen=True, gc=False):
    """One thing that a person did."""

    object: str
    text: str
    signal: Signal


@dataclass(frozen=True, kw_only=True)
class Histories:
    """What people did, of the people chosen, and the objects that may be distractors.

    `signals` and `pool` are those of the whole data, whomever the run chose. The pool is in the
    order of the hashes by which it was chosen, the same by which users are.
    """

    users: Sequence[str]
    signals: tuple[Signal, ...]
    pool: tuple[PoolObject, ...]
    seed: int
    _bounds: Mapping[str, tuple[int, int]] = field(repr=False)
    _objects: np.ndarray = field(repr=False)
    _codes: np.ndarray = field(repr=False)
    _texts: TextIndex = field(repr=False)
    _pooled: Mapping[int, str] = field(repr=False)
    _is_pooled: np.ndarray = field(repr=False)

    def history(self, user: str) -> list[Engagement]:
        """All engagements of a person, most recent first.

        Those of the same time stand in the order of the data, and so do those without a time, which
        come last.
        """
        first, last = self._bounds[user]
        things = self._texts.read(self._objects[first:last])
        codes = self._codes[first:last].tolist()
        return [
            Engagement(thing, text, SIGNALS[code])
            for (thing, text), code in zip(things, codes, strict=True)
        ]

    def own_of_pool(self, user: str) -> frozenset[str]:
        """The objects of the pool that a person engaged with."""
        first, last = self._bounds[user]
        own = self._objects[first:last]
        return frozenset(self._pooled[number] for number in own[self._is_pooled[own]].tolist())

    def count(self, user: str) -> int:
        """How many engagements a person has."""
        first, last = self._bounds[user]
        return last - first


def gather(log: Log, dataset: Dataset, options: Options) -> Histories:
    """The histories in a log, of the users that the run keeps.

    People with fewer engagements than the task asks for are left out before the choice. Texts are
    kept on disk and the rest in arrays, so that millions of engagements can be held.
    """
    import numpy as np

    seen = survey(log, seed=dataset.seed, pool=options.pool)
    counts = dict(zip(seen.users, seen.counts.tolist(), strict=True))
    enough = [user for user, count in counts.items() if count >= options.min_engagements]
    _note(dataset, seen, few=len(counts) - len(enough), least=options.min_engagements)
    users = dataset.choose(enough)
    rows = _rows_of(users, seen)
    order = _order(rows)
    objects, codes = rows.objects, rows.signals
    del rows
    objects, codes = objects[order], codes[order]
    del order
    bounds = {}
    last = 0
    for user in users:
        first, last = last, last + counts[user]
        bounds[user] = first, last
    texts = TextIndex(objects, seen.pool)
    numbers = texts.numbers(objects)
    del objects
    # Hashing millions of objects again is a good part of reading them.
    same_rows = not log.joined and not seen.unrated
    torn = texts.fill(log, seed=dataset.seed, hashed=seen.rows if same_rows else None)
    if torn:
        dataset.note("objects with several texts, of which the first is taken", torn)
    pooled = texts.numbers(seen.pool)
    pool = tuple(PoolObject(thing, text) for thing, text in texts.read(pooled))
    is_pooled = np.zeros(len(texts), dtype=np.bool_)
    is_pooled[pooled] = True
    return Histories(
        users=tuple(users),
        signals=seen.signals,
        pool=pool,
        seed=dataset.seed,
        _bounds=bounds,
        _objects=numbers,
        _codes=codes,
        _texts=texts,
        _pooled=dict(zip(pooled.tolist(), (one.object for one in pool), strict=True)),
        _is_pooled=is_pooled,
    )


def _rows_of(users: Sequence[str], seen: Survey) -> Rows:
    """The rows of these users, who are numbered anew in their order."""
    import numpy as np

    place = {user: number for number, user in enumerate(users)}
    new = np.array([place.get(user, -1) for user in seen.users], dtype=np.int32)
    total = int(seen.counts[new >= 0].sum())
    rows = Rows.blank(total, times=seen.rows.kind_of_times)
    end = 0
    for part in seen.rows.read():
        numbers = new[part.users]
        mine = numbers >= 0
        start, end = end, end + int(mine.sum())
        rows.users[start:end] = numbers[mine]
        rows.objects[start:end] = part.objects[mine]
        rows.signals[start:end] = part.signals[mine]
        rows.times[start:end] = part.times[mine]
        rows.timed[start:end] = part.timed[mine]
    return rows


def _order(rows: Rows) -> np.ndarray:
    """The order by user, a user's most recent first; equal times keep the order of the rows.

    Turns the times round where they stand: copies of millions would be the most that is held.
    """
    import numpy as np

    np.negative(rows.times, out=rows.times)
    np.logical_not(rows.timed, out=rows.timed)
    return np.lexsort((rows.times, rows.timed, rows.users))


def _note(dataset: Dataset, seen: Survey, *, few: int, least: int) -> None:
    """Notes what a reader of the scores should know of the data."""
    ordered = "engagements in the order of the data, as none has a time"
    oldest = "engagements without a time, taken as the oldest"
    facts = {
        "engagements left out for want of a rating": seen.unrated,
        "engagements left out as their object has no text": seen.unknown,
        ordered if seen.untimed == seen.counts.sum() else oldest: seen.untimed,
        f"users left out with fewer than {least} engagements": few,
    }
    for fact, number in facts.items():
        if number:
            dataset.note(fact, number)
