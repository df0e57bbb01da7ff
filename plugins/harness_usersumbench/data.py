"""From tables of activities to people with a past, a future and questions about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from harness.base.hashing import stable_int
from harness.base.seeded_random import picked, shuffled
from harness_usersumbench.activity_log import Kept, read_log
from harness_usersumbench.questions import derangement
from harness_usersumbench.records import Activity, Drawn, Person
from harness_usersumbench.segments import segmented
from harness_usersumbench.sources import SOURCES

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset, Table
    from harness_usersumbench.activity_log import Log
    from harness_usersumbench.records import Options

TOGETHER = 1_000
"""How many users are fetched from the database at once."""


@dataclass(frozen=True, kw_only=True)
class People:
    """The users of a run in the order of their choice.

    `seed` decides the order of options. `others` names for each user the one whose summary is shown
    instead; it is empty unless the method shows another's.
    """

    people: tuple[Person, ...]
    seed: int
    others: Mapping[str, str]


def load(dataset: Dataset, options: Options) -> People:
    """The people of the run; what was left out is noted."""
    source, seed = SOURCES[options.source], dataset.seed
    kept = Kept(
        database=dataset.database,
        source=options.source,
        least=options.min_activities,
        most=options.max_activities,
        last=options.last,
        seed=seed,
    )
    tables = (source.activities, source.objects)
    log = dataset.once(tables, read_log, kept)
    published = "" if "sample" in dataset.about else f" ({source.published})"
    dataset.note(f"users with at least {kept.least} activities{published}", log.enough)
    for fact, number in log.notes.items():
        dataset.note(fact, number)
    chosen = tuple(dataset.choose(log.users))
    people = dataset.once(tables, _people, log, chosen, options.distractors, seed)
    if options.method == "hierarchy_critique":
        ways = Counter(segmented(one.past, options).by for one in people)
        dataset.note("users whose past has segments by months", ways["months"])
        dataset.note("users whose past has segments of equal count", ways["count"])
    others = derangement(chosen, seed) if options.method == "other" else {}
    return People(people=people, seed=seed, others=others)


def _people(
    _activities: Table,
    _objects: Table,
    log: Log,
    chosen: Sequence[str],
    distractors: str,
    seed: int,
) -> tuple[Person, ...]:
    """The chosen users with their questions, in the order given."""
    things = _things(log, chosen)
    parts = (chosen[start : start + TOGETHER] for start in range(0, len(chosen), TOGETHER))
    timelines = {one.user: one for part in parts for one in _timelines(log, part)}
    drawn = _draw(log, timelines, things, distractors, seed)
    texts = dict(
        log.database.sql(
            f"SELECT named, min(name) FROM {log.name}_things WHERE named IN (SELECT unnest(?)) "
            "GROUP BY named",
            [sorted({number for numbers, _ in drawn.values() for number in numbers})],
        ).fetchall()
    )
    people = []
    for user in chosen:
        names, categories = drawn[user]
        *past, future = (
            Activity(time=time, name=things[thing].name, categories=things[thing].categories)
            for thing, time in timelines.pop(user).activities
        )
        activity = Drawn(
            options=(future.name, *(texts[number] for number in names[1:])),
            counts=tuple(log.names.counts[number] for number in names),
        )
        category = Drawn(
            options=tuple(log.categories[number] for number in categories),
            counts=tuple(log.category_pool.counts[number] for number in categories),
        )
        people.append(
            Person(id=user, past=tuple(past), future=future, activity=activity, category=category)
        )
    return tuple(people)


class _Thing(NamedTuple):
    """An object: the number of its name, the name, and its categories."""

    named: int
    name: str
    categories: tuple[str, ...]


class _Timeline(NamedTuple):
    """A user's recent activities, the future last, as objects with times.

    `had` are the names of all objects that the user ever had, by number.
    """

    user: str
    activities: list[tuple[int, int]]
    had: frozenset[int]


def _draw(
    log: Log,
    timelines: Mapping[str, _Timeline],
    things: Mapping[int, _Thing],
    distractors: str,
    seed: int,
) -> dict[str, tuple[list[int], list[int]]]:
    """The numbers of the names, and of the categories, in each user's questions.

    By popularity, the categories of all users of the data are drawn, whoever is chosen, so that the
    right one is equally often at each place.
    """
    near: dict[str, list[int]] = {}
    if distractors == "popularity":
        often: Counter[int] = Counter()
        chance = Random(stable_int("usersumbench categories", seed))
        for user in shuffled(chance, sorted(log.users)):
            own = log.users[user]
            near[user] = log.category_pool.by_popularity(chance, own, never=own, often=often)
    drawn = {}
    for user, timeline in timelines.items():
        named, own = things[timeline.activities[-1][0]].named, log.users[user]
        chance = Random(stable_int("usersumbench question", seed, user))
        if near:
            names = log.names.by_popularity(chance, [named], never=timeline.had, often=Counter())
            drawn[user] = names, near[user]
        else:
            category = picked(chance, own)
            names = log.names.by_chance(chance, named, never=timeline.had)
            drawn[user] = names, log.category_pool.by_chance(chance, category, never=own)
    return drawn


def _things(log: Log, users: Sequence[str]) -> dict[int, _Thing]:
    """The objects of these users' recent activities."""
    found = log.database.sql(
        f"SELECT thing, named, name, categories FROM {log.name}_things SEMI JOIN "
        f"(SELECT thing FROM {log.name}_recent WHERE user IN (SELECT unnest(?))) USING (thing)",
        [users],
    )
    known = {category: category for category in log.categories}
    return {
        thing: _Thing(named, name, tuple(known[category] for category in categories))
        for thing, named, name, categories in found.fetchall()
    }


def _timelines(log: Log, users: Sequence[str]) -> Iterator[_Timeline]:
    found = log.database.sql(
        f"""
        SELECT user, any_value(had), list(thing ORDER BY is_future, back DESC),
            list(time ORDER BY is_future, back DESC)
        FROM (
            SELECT user, thing, time, recent.back, recent.back = future.back AS is_future
            FROM {log.name}_recent AS recent JOIN {log.name}_future AS future USING (user)
            WHERE user IN (SELECT unnest($users))
        ) JOIN (
            SELECT user, list(DISTINCT named) AS had FROM {log.name}_log
            WHERE user IN (SELECT unnest($users)) GROUP BY user
        ) USING (user) GROUP BY user
        """,
        {"users": users},
    )
    for user, had, objects, times in found.fetchall():
        yield _Timeline(user, list(zip(objects, times, strict=True)), frozenset(had))
