"""Stage 4, first half: which objects of the pool a user may be interested in as well.

Such an object is no distractor. Three ways to find out, by the option `overlap`:

`users` asks for each user which interests that are recorded for objects of the pool overlap with
the user's; an interest is recorded for an object when it cites it, whosever interest it is. Each is
offered once, however many objects it is recorded for, and objects that carry one of the user's
interests word for word need no question. `interests` asks the same for each distinct interest by
itself, so that an answer serves all users who have it. `texts` asks about the objects' texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harness import Calls, Failure, Select, Selected, Stage
from harness.base.hashing import stable_int
from harness_gistbench.interests import claimed, folded
from harness_gistbench.records import Neighbours, Options, Overlapping, PoolSize
from harness_gistbench.stages.prompt_text import cut
from harness_gistbench.stages.taxonomy import EVERYBODY

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness_gistbench.histories import Histories

OPTIONS_A_QUESTION = 1000
CHARACTERS_A_QUESTION = 60_000
"""Of the options together: in any script they fit a context of 100,000 tokens then."""

Recorded: TypeAlias = dict[str, set[str]]
"""By object of the pool the folded names of the interests that cite it."""


class Person(NamedTuple):
    """A user's interests that cite anything, by folded name, and the user's objects of the pool.

    An interest that cites nothing is never tested, so that nothing can be mistaken for it.
    """

    user: str
    interests: dict[str, str]
    own: frozenset[str]


def neighbours(
    upstreams: Mapping[str, Records[Any, Any]], data: Histories, options: Options
) -> Iterator[Neighbours]:
    """The size of the pool, and the questions of the chosen way."""
    recorded = recorded_for(upstreams["verify"], frozenset(one.object for one in data.pool))
    size = PoolSize(objects=len(data.pool), recorded=len(recorded))
    yield Neighbours(id="pool", user=EVERYBODY, pool=size)
    people = [
        Person(
            user,
            {folded(one.name): one.name for one in claimed(claims) if one.evidence},
            data.own_of_pool(user),
        )
        for user, claims in upstreams["verify"].by_user()
    ]
    names = in_order({name for found in recorded.values() for name in found})
    if options.overlap == "interests":
        for name in in_order({name for person in people for name in person.interests}):
            options_of = {other: other for other in names if other != name}
            yield from parts(name, EVERYBODY, (name,), options_of)
    elif options.overlap == "texts":
        limit = options.overlap_text_limit
        texts = {one.object: cut(one.text, limit) for one in data.pool}

        def others(person: Person) -> dict[str, str]:
            return {name: text for name, text in texts.items() if name not in person.own}

        yield from by_user(people, others)
    else:
        yield from by_user(people, lambda person: undecided(person, names, recorded))


def recorded_for(claims: Records[Any, Any], pool: frozenset[str]) -> Recorded:
    """The interests that cite each object of the pool, whosever they are."""
    recorded: Recorded = {}
    for record in claims:
        for one in record.item.evidence:
            if one.object in pool:
                recorded.setdefault(one.object, set()).add(folded(record.item.interest))
    return recorded


def undecided(person: Person, names: list[str], recorded: Recorded) -> dict[str, str]:
    """Those of the names that decide about an object.

    The person's own objects are out anyway, and so are those that carry one of their interests.
    """
    deciding: set[str] = set()
    for name, found in recorded.items():
        if name not in person.own and found.isdisjoint(person.interests):
            deciding |= found
    return {name: name for name in names if name in deciding}


def by_user(
    people: list[Person], options: Callable[[Person], Mapping[str, str]]
) -> Iterator[Neighbours]:
    """A user's interests against what may overlap with them."""
    for person in people:
        if person.interests:
            interests = tuple(person.interests.values())
            yield from parts(person.user, person.user, interests, options(person))


def in_order(names: set[str]) -> list[str]:
    """The names in an order that depends on nothing but themselves."""
    return sorted(names, key=lambda name: (stable_int("overlap", name), name))


def parts(
    name: str, user: str, interests: tuple[str, ...], options: Mapping[str, str]
) -> Iterator[Neighbours]:
    """The question about these options, in parts where they are much; none where there is none.

    Options that are shown as they are named stand in an item once.
    """
    for part, keys in enumerate(portions(options), start=1):
        texts = tuple(options[key] for key in keys)
        yield Neighbours(
            id=f"{name}/{part}",
            user=user,
            interests=interests,
            keys=keys,
            options=() if texts == keys else texts,
        )


def portions(options: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The keys of as many options at a time as go into one question."""
    portion: list[str] = []
    size = 0
    for key, text in options.items():
        full = len(portion) == OPTIONS_A_QUESTION or size + len(text) > CHARACTERS_A_QUESTION
        if portion and full:
            yield tuple(portion)
            portion, size = [], 0
        portion.append(key)
        size += len(text)
    if portion:
        yield tuple(portion)


async def find_overlap(item: Neighbours, desk: Desk) -> Overlapping | Failure:
    """The keys of the options that the judge finds to overlap with the interests."""
    if not item.keys:
        return Overlapping(keys=())
    question = Select(
        prompt="overlap",
        subject="; ".join(item.interests),
        options=item.options or item.keys,
        variables={
            "interests": list(item.interests),
            "texts": desk.options.overlap == "texts",
            "thing": desk.options.thing,
            "things": desk.options.things,
        },
    )
    verdict = await desk.judge(question, role="overlap_judge")
    if not isinstance(verdict, Selected):
        return verdict
    return Overlapping(
        keys=tuple(item.keys[position] for position in verdict.chosen),
        unknown=verdict.unknown,
        repeated=verdict.repeated,
    )


OVERLAP = Stage(
    name="overlap",
    version=2,
    item=Neighbours,
    value=Overlapping,
    items=neighbours,
    work=find_overlap,
    judges=("overlap_judge",),
    options=("overlap", "overlap_text_limit", "thing", "things"),
    after=("verify",),
    calls=Calls(least=0, most=1),
)
