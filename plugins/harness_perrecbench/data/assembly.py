"""Questions put together from groups, as the task asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness import DataError
from harness_perrecbench.records import MEMBERS, Example, Group, Single

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.data import Dataset
    from harness_perrecbench.records import Options


def one_by_one(group: Group, shots: Sequence[tuple[Example, ...]] = ()) -> Iterable[Single]:
    """The members of a group as questions of their own, each with its examples."""
    for place, member in enumerate(group.members, 1):
        yield Single(
            id=f"{group.id}/{place}",
            user=group.user,
            query=group.query,
            member=member,
            place=place,
            of=len(group.members),
            examples=shots[place - 1] if shots else (),
            overall_average=group.overall_average,
        )


def wrong_domain(dataset: Dataset, options: Options, found: str) -> DataError:
    """The error for an option that names another domain than the data is of."""
    return DataError(
        "the data is not of the domain that the task's options name",
        where=f"the options of task '{dataset.task}'",
        found=f"domain: {options.domain}, and {found}",
        expected="the domain whose files the task reads; all, where they hold several",
        hint="the folder of one domain with its name, as in --data DIR/beauty --set domain=beauty",
    )


def wrong_size(bad: DataError, users: int, options: Options) -> DataError:
    """The error for a group of another size than the level's, with the task that reads the level's.

    Which files a task reads is settled by its name, whatever level its options name.
    """
    for level, members in MEMBERS.items():
        if members == users and options.ask != "rating":
            bad.hint = (
                f"these are groups of level {level}; perrec_{options.level}_{options.ask} reads "
                f"those of level {options.level}"
            )
    return bad
