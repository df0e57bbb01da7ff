"""What the stages of GISTBench hand on, for a user called ada unless it is said otherwise."""

import json
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from builders.records import WrittenRecords, make_records
from harness_gistbench.histories import Engagement
from harness_gistbench.records import (
    Cited,
    Claim,
    Counts,
    Evidence,
    Judged,
    Line,
    PoolObject,
    Prediction,
    TestSet,
    Verification,
    Window,
)

from harness.base.hashing import stable_int

LIKED, WATCHED, SKIPPED = "explicit_positive", "implicit_positive", "implicit_negative"


def make_window(
    *lines: Line,
    user: str = "ada",
    number: int = 1,
    of: int = 1,
    signals: tuple[str, ...] = (LIKED, WATCHED, SKIPPED),
) -> Window:
    """A window of these lines."""
    return Window(
        id=f"{user}/{number}", user=user, number=number, of=of, signals=signals, lines=lines
    )


def predicting(**changed: Any) -> dict[str, Any]:
    """The options of the first stage."""
    return {
        "window": 100, "object_ids": False, "truncated": "read", "max_interests": 200,
        "verification": Verification(), "thing": "video", "things": "videos", **changed,
    }  # fmt: skip


def make_answer(**cited: Iterable[Any]) -> str:
    """What a candidate says that names interests and cites this of each."""
    return json.dumps([{"interest": name, "evidence": ids} for name, ids in cited.items()])


def make_prediction(interests: Mapping[str, tuple[int, ...]], **happened: Any) -> Prediction:
    """The interests of an answer with the numbers that each cites."""
    cited = tuple(Cited(name, numbers) for name, numbers in interests.items())
    return Prediction(interests=cited, **happened)


def make_claim(
    number: int, name: str, evidence: Iterable[Evidence] = (), *, user: str = "ada", part: int = 1
) -> Claim:
    """A part of the claim of an interest."""
    return Claim(
        id=f"{user}/{number}/{part}", user=user, interest=name, number=number, part=part,
        evidence=tuple(evidence),
    )  # fmt: skip


def make_test_set(
    number: int, backing: tuple[int, ...], *, size: int = 50, user: str = "ada"
) -> TestSet:
    """A test set of that many objects, of which those at these places back the interest."""
    objects = tuple(PoolObject(str(place), "") for place in range(size))
    return TestSet(
        id=f"{user}/{number}", user=user, interest="", number=number, objects=objects,
        backing=backing,
    )  # fmt: skip


def judged(
    name: str, category: int | None, *, found: tuple[int, int] | None = None, liked: int = 0,
    watched: int = 0, skipped: int = 0,
) -> Judged:  # fmt: skip
    """An interest, from its category and the numbers of its evidence by signal.

    `found` is how many backing objects were found again, of how many; None where nobody was asked.
    """
    counts = Counts(explicit_positive=liked, implicit_positive=watched, implicit_negative=skipped)
    correct, backing = found or (None, None)
    return Judged(
        name=name, cited=liked + watched + skipped, category=category, counts=counts,
        correct=correct, backing=backing,
    )  # fmt: skip


def recorded(pairs: Iterable[tuple[Any, Any]] = ()) -> WrittenRecords:
    """The records of a stage from pairs of an item and its value or failure."""
    in_order = sorted(make_records(pairs), key=lambda one: (stable_int(one.user), one.id))
    return WrittenRecords(in_order)


class DictMemo:
    """A memo in a dictionary: the first write of a key holds."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        return {key: self.values[key] for key in keys if key in self.values}

    def keep(self, values: dict[str, str]) -> dict[str, str]:
        return {key: self.values.setdefault(key, value) for key, value in values.items()}


class Desk:
    """A desk that gives prepared outcomes one after the other and remembers what it was asked."""

    def __init__(self, *outcomes: Any, memory: dict[str, str] | None = None, **options: Any):
        self.outcomes = list(outcomes)
        self.options = SimpleNamespace(**options)
        self.memory: dict[str, str] = {} if memory is None else memory
        self.memos: list[str] = []
        self.asked: list[Any] = []

    async def ask(
        self, role: str, prompt: str, variables: Any, *, read: Any, truncated: str
    ) -> Any:
        self.asked.append((role, prompt, variables, truncated))
        outcome = self.outcomes.pop(0)
        return read(outcome) if isinstance(outcome, str) else outcome

    async def judge(self, question: Any, *, role: str) -> Any:
        self.asked.append((role, question))
        return self.outcomes.pop(0)

    def memo(self, name: str) -> Any:
        self.memos.append(name)
        return DictMemo(self.memory)


class Histories(SimpleNamespace):
    """Histories of a few people: `users`, `signals`, `pool` and `seed` as given."""

    def history(self, user: str) -> list[Any]:
        return list(self.histories[user])

    def own_of_pool(self, user: str) -> frozenset[str]:
        own = {one.object for one in self.histories[user]}
        return frozenset(one.object for one in self.pool if one.object in own)


def make_histories(
    people: Mapping[str, Iterable[tuple[str, str, str]]],
    *,
    signals: tuple[str, ...] = (LIKED,),
    pool: tuple[PoolObject, ...] = (),
    seed: int = 0,
) -> Histories:
    """Histories by user, each engagement as (object, text, signal)."""
    written = {
        user: [Engagement(*one) for one in engagements] for user, engagements in people.items()
    }
    return Histories(users=list(written), histories=written, signals=signals, pool=pool, seed=seed)
