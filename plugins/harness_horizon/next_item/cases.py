"""The options of Task 1, its questions, and the loading of its cases from curated data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from harness import Item
from harness.base.errors import DataError
from harness.base.hashing import stable_int
from harness_horizon.curation.ledger import complete_manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness.contracts.dataset import Dataset, Table

Setting = Literal["1a", "1b", "1c", "1d"]
MEANING: dict[Setting, str] = {
    "1a": "trained users, last item before 2020",
    "1b": "users held out, last item before 2020",
    "1c": "trained users, every item from 2020",
    "1d": "users held out, every item from 2020",
}
SETTINGS = tuple(MEANING)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a task file."""

    setting: Annotated[Setting, Meta(description="which users, and which of their items")] = "1a"
    prefix: Annotated[
        Literal["rolling", "frozen"],
        Meta(
            description="the history before each target, with the true items, or only what is "
            "before the first target"
        ),
    ] = "rolling"
    length: Annotated[
        Annotated[int, Meta(ge=1)], Meta(description="the latest items of a history in a question")
    ] = 100
    negatives: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(
            description="rank the target among so many random items; 0 ranks all items, as the "
            "published tables do"
        ),
    ] = 0


class Case(Item, frozen=True, kw_only=True):
    """Item of the stage `next_item`: a history of item numbers, and the item that follows."""

    history: tuple[int, ...]
    target: int
    known: bool
    """Whether the target has a training interaction, so that it can be recommended."""

    among: tuple[int, ...] = ()
    """The items to rank, if not all."""


class Ranked(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value of the stage `next_item`: the target's expected rank, None if it was not listed."""

    rank: float | None
    listed: int
    """The number of items in the answer."""


NOT_TRAINED = "cases whose target has no training interaction: misses"


@dataclass(frozen=True)
class Person:
    """A user with cases: the items up to the last target, the targets from place `first` on."""

    user: str
    items: tuple[int, ...]
    first: int


@dataclass(frozen=True)
class ItemData:
    """The chosen users with cases, the items that were trained on, and the split they are from."""

    people: Sequence[Person]
    trained: NDArray[np.int64]
    split: str
    seed: int

    def cases(self, options: Options) -> Iterator[Case]:
        """The cases, user by user, oldest first."""
        known = set(self.trained.tolist())
        for person in self.people:
            for place in range(person.first, len(person.items)):
                end = place if options.prefix == "rolling" else person.first
                target = person.items[place]
                yield Case(
                    id=f"{person.user}/{place}",
                    user=person.user,
                    history=person.items[max(0, end - options.length) : end],
                    target=target,
                    known=target in known,
                    among=self._among(person.user, place, target, options.negatives),
                )

    def _among(self, user: str, place: int, target: int, negatives: int) -> tuple[int, ...]:
        """The target and random items that were trained on, in random order; empty for all."""
        if not negatives:
            return ()
        rng = Random(stable_int("negatives", self.seed, user, place))
        drawn = rng.sample(range(len(self.trained)), min(negatives + 1, len(self.trained)))
        others = [one for one in self.trained[drawn].tolist() if one != target][:negatives]
        return tuple(rng.sample([target, *others], len(others) + 1))


def load(dataset: Dataset, options: Options) -> ItemData:
    """The chosen users with their cases; DataError if the data has none or is not complete."""
    folder = dataset.path("manifest").parent
    build = complete_manifest(folder)
    if not build.parts[f"splits/{options.setting}"].counts["cases"]:
        raise DataError(
            f"this data has no case of setting {options.setting}",
            where=str(folder),
            expected=MEANING[options.setting],
            hint="leave this task out, or curate more reviews",
        )
    trained = dataset.once("train", read_trained)
    table = dataset.table("cases")
    # The rows of 1d are whole histories, and those of all users held out.
    least = build.options.get("least_interactions") or 1 if options.setting == "1d" else 1
    users = [one.user for one in _people(table) if len(one.items) >= least]
    chosen = set(dataset.choose(users))
    people = [one for one in _people(table) if one.user in chosen]
    targets = np.array([item for one in people for item in one.items[one.first :]], dtype=np.int64)
    dataset.note(NOT_TRAINED, int((~np.isin(targets, trained)).sum()))
    return ItemData(people, trained, build.digest, dataset.seed)


def read_trained(table: Table) -> NDArray[np.int64]:
    """The items of the training histories, in ascending order."""
    lists = (items for batch in table.batches("items") for items in batch.columns["items"])
    found = {item for items in lists for item in items}
    if not found:
        raise DataError("there are no training histories", expected="rows in train.parquet")
    return np.array(sorted(found), dtype=np.int64)


def _people(table: Table) -> Iterator[Person]:
    for batch in table.batches("user_id", "items", "first"):
        columns = (batch.columns[name] for name in ("user_id", "items", "first"))
        for number, (user, items, first) in enumerate(zip(*columns, strict=True), batch.first):
            if not 0 < first < len(items):
                raise table.bad(number, "first", first, "the place of a target behind a history")
            yield Person(user, tuple(items), first)
