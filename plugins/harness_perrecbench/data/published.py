"""Groups in the published files: users, their histories, and what they thought of one item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness_perrecbench.data import examples
from harness_perrecbench.data.assembly import one_by_one, wrong_domain
from harness_perrecbench.data.members import Members, read_members
from harness_perrecbench.data.tables import AskedGroup, every_group, first_groups
from harness_perrecbench.records import Example, Group, Loaded

if TYPE_CHECKING:
    from harness.data import Dataset
    from harness_perrecbench.records import Options

TABLES = ("histories", "items")
"""The tables that the layout always has."""

GROUPS = {"test": "groups", "held_out": "held_out"}
"""The table of groups of each split."""


PROCESSED = "-processed"
"""What the names of published folders end in, after the domain."""


def load(dataset: Dataset, options: Options) -> Loaded:
    """The groups that the run keeps, or their members one by one."""
    _refuse_other_domains(dataset, options)
    every = first_groups(dataset, dataset.table(GROUPS[options.split]), options)
    kept = [every[item] for item in dataset.choose(every, of="groups")]
    tied = sum(len(set(group.ranks)) < len(group.ranks) for group in kept)
    if tied:
        dataset.note("groups in which users share a relative rating", tied)
    held = _held_out(dataset, options)
    shots = [examples.chosen_groups(one, held, options, seed=dataset.seed) for one in kept]
    members = read_members(dataset, options, items={group.id for group in kept})
    groups = [
        _group(one, members, tuple(_example(*shot, members) for shot in each))
        for one, each in zip(kept, shots, strict=True)
    ]
    singles = [
        single
        for one, group in zip(kept, groups, strict=True)
        if options.ask == "pointwise"
        for single in one_by_one(group, _own_examples(one, group, members, seed=dataset.seed))
    ]
    members.tell(dataset)
    return Loaded(
        groups=() if singles else tuple(groups),
        singles=tuple(singles),
        people=tuple(members.people.values()),
    )


def _refuse_other_domains(dataset: Dataset, options: Options) -> None:
    """Raise DataError where the option names a domain and the published folder is another one."""
    folder = dataset.path(GROUPS[options.split]).parent.name
    if folder.endswith(PROCESSED) and folder != options.domain + PROCESSED:
        raise wrong_domain(dataset, options, f"groups in a folder {folder}")


def _held_out(dataset: Dataset, options: Options) -> Sequence[AskedGroup]:
    """All held-out groups, where the task takes examples from them."""
    if not examples.come_from_groups(options):
        return ()
    return tuple(every_group(dataset.table(GROUPS["held_out"]), options))


def _group(group: AskedGroup, members: Members, shots: tuple[Example, ...]) -> Group:
    users = zip(group.asked, group.ranks, strict=True)
    return Group(
        id=group.id,
        user=group.id,
        query=members.query(group.asked[0]),
        members=tuple(members.member(one, rank=rank) for one, rank in users),
        examples=shots,
        overall_average=members.histories.average,
    )


def _example(group: AskedGroup, places: tuple[int, ...], members: Members) -> Example:
    """A held-out group of which the users at some places are shown."""
    shown = (
        members.member(
            group.asked[place],
            rank=group.ranks[place],
            with_profile=examples.show_profiles(members.options),
        )
        for place in places
    )
    return examples.solved(members.query(group.asked[0]), tuple(shown), members.options)


def _own_examples(
    group: AskedGroup, made: Group, members: Members, *, seed: int
) -> list[tuple[Example, ...]]:
    """The examples of each member of a group."""
    users = zip(group.asked, made.members, strict=True)
    return [examples.own_history(members, one, member, seed=seed) for one, member in users]
