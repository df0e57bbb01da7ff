"""Stage 4, second half: can the judge find an interest's evidence among other users' items?"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from harness import FAILURES, Calls, Failure, Select, Selected, Stage
from harness.base.hashing import stable_int
from harness.base.seeded_random import drawing, drawn, shuffled
from harness_gistbench.interests import claimed, folded
from harness_gistbench.profiles import by_number, kept_evidence, taxonomy_of
from harness_gistbench.records import Found, Interest, Missing, Options, PoolObject, TestSet
from harness_gistbench.stages.overlap import recorded_for
from harness_gistbench.stages.prompt_text import one_line
from harness_gistbench.verification import Conditions, conditions, count, meets

if TYPE_CHECKING:
    from harness import Desk, Record, Records
    from harness_gistbench.histories import Histories


def retrievals(
    upstreams: Mapping[str, Records[Any, Any]], data: Histories, options: Options
) -> Iterator[TestSet]:
    """A test set for each interest that cites anything and whose answer can count.

    What is drawn depends on the seed of the task, the user and the interest alone.
    """
    taxonomy = taxonomy_of(upstreams["taxonomy"])
    rules = conditions(options.verification, data.signals)
    removed = Removed(upstreams, data, options)
    for user, claims in upstreams["verify"].by_user():
        interests = [one for one in claimed(claims) if one.evidence]
        asked = interests
        if not options.ask_all:
            asked = in_verified_categories(interests, claims, taxonomy=taxonomy, rules=rules)
        if asked:
            taken = removed.of_pool(user, {folded(one.name) for one in interests})
            for interest in asked:
                yield draw_test_set(
                    user, interest, data.pool, without=taken, seed=data.seed, options=options
                )


def in_verified_categories(
    interests: list[Interest],
    claims: list[Record[Any, Any]],
    *,
    taxonomy: Mapping[str, int],
    rules: Conditions,
) -> list[Interest]:
    """The interests of the categories in which at least one is verified."""
    category = {one.number: taxonomy.get(folded(one.name)) for one in interests}
    good = {
        category[number]
        for number, parts in by_number(claims).items()
        if not isinstance(kept := kept_evidence(parts), Missing) and meets(count(kept), rules)
    }
    return [one for one in interests if category[one.number] in good - {None}]


class Removed:
    """Knows for each user what of the pool is no distractor, by what the judge said of overlap.

    Where the judge failed on a question that concerns the user, only their own objects are out.
    """

    def __init__(
        self, upstreams: Mapping[str, Records[Any, Any]], data: Histories, options: Options
    ) -> None:
        self._data = data
        self._way = options.overlap
        self._said: dict[str, set[str]] = {}
        self._failed: set[str] = set()
        for record in upstreams["overlap"]:
            about = record.id.rpartition("/")[0] if self._way == "interests" else record.user
            if isinstance(record.outcome, FAILURES):
                self._failed.add(about)
            else:
                self._said.setdefault(about, set()).update(record.outcome.value.keys)
        self._recorded = recorded_for(
            upstreams["verify"], frozenset(one.object for one in data.pool)
        )

    def of_pool(self, user: str, interests: set[str]) -> frozenset[str]:
        """What of the pool is no distractor for a user: their own objects and what overlaps."""
        own = self._data.own_of_pool(user)
        about = sorted(interests) if self._way == "interests" else [user]
        if not self._failed.isdisjoint(about):
            return own
        said = {key for one in about for key in self._said.get(one, ())}
        if self._way == "texts":
            return own | said
        names = said | interests
        overlapping = (name for name, of in self._recorded.items() if not of.isdisjoint(names))
        return own.union(overlapping)


def draw_test_set(
    user: str,
    interest: Interest,
    pool: Sequence[PoolObject],
    *,
    without: Collection[str] = frozenset(),
    seed: int,
    options: Options,
) -> TestSet:
    """Some of the evidence among distractors; smaller than wished where there are too few.

    Distractors are drawn from the whole pool, and passed over where they may be none: when one
    object more overlaps, only the test sets that held it are others, and are asked about again.
    """
    rng = Random(stable_int("test set", seed, user, folded(interest.name)))
    evidence = [PoolObject(one.object, one.text) for one in interest.evidence]
    backing = drawn(rng, evidence, min(options.max_backing, options.test_set))
    others = (one for one in drawing(rng, pool) if one.object not in without)
    distractors = islice(others, options.test_set - len(backing))
    objects = shuffled(rng, [*backing, *distractors])
    names = {one.object for one in backing}
    return TestSet(
        id=f"{user}/{interest.number}",
        user=user,
        interest=interest.name,
        number=interest.number,
        objects=objects,
        backing=tuple(place for place, one in enumerate(objects) if one.object in names),
    )


async def retrieve(item: TestSet, desk: Desk) -> Found | Failure:
    """The objects that the judge takes for the interest's own, as many as back it.

    Among a handful of distractors anything is found again: it is not asked then. A test set that
    is meant to be small has to be whole.
    """
    backing = len(item.backing)
    least = min(desk.options.min_distractors, desk.options.test_set - backing)
    if len(item.objects) - backing < least:
        return Found(positions=(), asked=False)
    question = Select(
        prompt="specificity",
        subject=item.interest,
        options=tuple(one_line(one.text) for one in item.objects),
        labels=labels_of(len(item.objects)),
        at_most=backing,
        variables={"thing": desk.options.thing, "things": desk.options.things},
    )
    verdict = await desk.judge(question, role="retrieval_judge")
    if not isinstance(verdict, Selected):
        return verdict
    return Found(
        positions=verdict.chosen,
        unknown=verdict.unknown,
        repeated=verdict.repeated,
        surplus=verdict.surplus,
    )


@functools.cache
def labels_of(objects: int) -> tuple[str, ...]:
    """What the objects of a test set are called."""
    return tuple(f"item_{place}" for place in range(objects))


SPECIFICITY = Stage(
    name="specificity",
    version=3,
    item=TestSet,
    value=Found,
    items=retrievals,
    work=retrieve,
    judges=("retrieval_judge",),
    options=(
        "verification",
        "test_set",
        "max_backing",
        "min_distractors",
        "overlap",
        "ask_all",
        "thing",
        "things",
    ),
    after=("verify", "taxonomy", "overlap"),
    calls=Calls(least=0, most=1),
)
