"""Stage 4, first half: which objects of the pool a user may be interested in as well.

Such an object is no distractor. Three ways to find out, by the option `overlap`:

`users` asks for each user which objects of the pool have a recorded interest that overlaps with the
user's; an interest is recorded for an object when it cites it, whosever interest it is. Objects
without any need no question, nor do those that carry one of the user's interests word for word.
`interests` asks for each distinct interest which other recorded interests overlap with it, so that
an answer serves every user who has it. `texts` asks for each user about the texts of the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harness import Calls, Failure, Select, Selected, Stage
from harness.hashing import stable_int
from harness_gistbench.interests import claimed, folded
from harness_gistbench.records import Neighbours, Options, Overlapping
from harness_gistbench.stages.shown import cut
from harness_gistbench.stages.taxonomy import EVERYBODY

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness_gistbench.histories import Histories

OPTIONS_A_QUESTION = 1000

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
    """The questions of the chosen way."""
    pool = [one.object for one in data.pool]
    recorded = recorded_for(upstreams["verify"], frozenset(pool))
    people = [
        Person(
            user,
            {folded(one.name): one.name for one in claimed(claims) if one.evidence},
            data.own_of_pool(user),
        )
        for user, claims in upstreams["verify"].by_user()
    ]
    if options.overlap == "interests":
        yield from by_interest(people, recorded)
    elif options.overlap == "texts":
        limit = options.overlap_text_limit
        texts = {one.object: cut(one.text, limit) for one in data.pool}
        yield from by_user(people, lambda _: texts)
    else:
        yield from by_user(people, lambda person: undecided(person, pool, recorded))


def recorded_for(claims: Records[Any, Any], pool: frozenset[str]) -> Recorded:
    """The interests that cite each object of the pool, whosever they are."""
    recorded: Recorded = {}
    for record in claims:
        for one in record.item.evidence:
            if one.object in pool:
                recorded.setdefault(one.object, set()).add(folded(record.item.interest))
    return recorded


def undecided(person: Person, pool: list[str], recorded: Recorded) -> dict[str, str]:
    """The recorded interests of each object that has some, none of them the person's own."""
    return {
        name: "; ".join(sorted(found))
        for name in pool
        if (found := recorded.get(name)) and found.isdisjoint(person.interests)
    }


def by_user(
    people: list[Person], options: Callable[[Person], Mapping[str, str]]
) -> Iterator[Neighbours]:
    """A user's interests against what may overlap with them, the user's own objects left out."""
    for person in people:
        if person.interests:
            others = {key: text for key, text in options(person).items() if key not in person.own}
            yield from parts(person.user, person.user, tuple(person.interests.values()), others)


def by_interest(people: list[Person], recorded: Recorded) -> Iterator[Neighbours]:
    """Each distinct interest against every other one that is recorded."""
    options = in_order({name for found in recorded.values() for name in found})
    for name in in_order({name for person in people for name in person.interests}):
        others = {other: other for other in options if other != name}
        yield from parts(name, EVERYBODY, (name,), others)


def in_order(names: set[str]) -> list[str]:
    """The names in an order that depends on nothing but themselves."""
    return sorted(names, key=lambda name: (stable_int("overlap", name), name))


def parts(
    name: str, user: str, interests: tuple[str, ...], options: Mapping[str, str]
) -> Iterator[Neighbours]:
    """The question about these options, in parts where they are many; none where there is none."""
    keys, texts = tuple(options), tuple(options.values())
    for part, start in enumerate(range(0, len(keys), OPTIONS_A_QUESTION), start=1):
        stop = start + OPTIONS_A_QUESTION
        yield Neighbours(
            id=f"{name}/{part}",
            user=user,
            interests=interests,
            keys=keys[start:stop],
            options=texts[start:stop],
        )


async def find_overlap(item: Neighbours, desk: Desk) -> Overlapping | Failure:
    """The keys of the options that the judge finds to overlap with the interests."""
    question = Select(
        prompt="overlap",
        subject="; ".join(item.interests),
        options=item.options,
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
    version=1,
    item=Neighbours,
    value=Overlapping,
    items=neighbours,
    work=find_overlap,
    judges=("overlap_judge",),
    options=("overlap", "overlap_text_limit", "thing", "things"),
    after=("verify",),
    calls=Calls(least=1, most=1),
)
