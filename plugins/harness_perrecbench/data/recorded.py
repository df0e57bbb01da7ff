"""Loads recorded groups: the users as questions showed them, and the known labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from harness import DataError
from harness.base.hashing import digest
from harness_perrecbench.data import layout
from harness_perrecbench.data.members import chosen_groups, solved
from harness_perrecbench.data.table_cell import TableCell
from harness_perrecbench.data.tables import read_rows
from harness_perrecbench.records import MEMBERS, Behaviour, Group, Loaded, Member, Thing

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset
    from harness_perrecbench.records import Options

_LABELS = "recorded_labels"


class _User(msgspec.Struct, frozen=True):
    history: tuple[_Rated, ...]
    avg: layout.Stars
    common: layout.Stars
    profile: str | None = None
    uid: str | None = None


class _Rated(msgspec.Struct, frozen=True):
    title: str
    rating: layout.Stars
    author: str | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedGroup(layout.FoundGroup):
    """A recorded group with its members; only the title of its thing is known."""

    query: Thing
    members: tuple[Member, ...]


def load_recorded(dataset: Dataset, options: Options) -> Loaded:
    """The groups of the run, or their members one by one."""
    _check_options(dataset, options)
    every = _read(dataset, options.split, options)
    kept = [every[id] for id in dataset.choose(every, of="groups")]
    unlabelled = sum(not group.ranks for group in kept)
    dataset.note("groups without a whole true order", unlabelled)
    shots = chosen_groups(
        kept, lambda: _read(dataset, "held_out", options).values(), options, seed=dataset.seed
    )
    groups = [
        Group(
            id=group.id,
            user=group.id,
            query=group.query,
            members=group.members,
            examples=tuple(
                solved(one.query, tuple(one.members[place] for place in places), options)
                for one, places in each
            ),
        )
        for group, each in zip(kept, shots, strict=True)
    ]
    if options.ask == "pointwise":
        return Loaded(
            singles=tuple(single for group in groups for single in layout.one_by_one(group))
        )
    return Loaded(groups=tuple(groups))


def _check_options(dataset: Dataset, options: Options) -> None:
    """Raise DataError for options that need more than recorded groups hold."""
    if options.domain != "all":
        raise layout.wrong_domain(
            dataset, options, "recorded groups, which cover all domains together"
        )
    found = None
    if options.strict:
        found = "strict: true"
    elif options.shots and options.ask == "pointwise":
        found = f"shots: {options.shots}, with ask: pointwise"
    if found:
        raise DataError(
            "recorded groups lack the whole histories that this task's options need",
            where=f"the options of task '{dataset.task}'",
            found=found,
            expected="strict: false, and for pointwise questions shots: 0",
            hint="give the folder of the published files with --data",
        )


def _read(dataset: Dataset, split: str, options: Options) -> dict[str, RecordedGroup]:
    """The first group of each id in a split; the others are noted.

    Recorded held-out groups have no ids: a digest of the whole record is used instead.
    """
    name = layout.RECORDED_GROUPS[split]
    table = dataset.table(name)
    orders = _orders(dataset) if split == "test" else {}
    groups: dict[str, RecordedGroup] = {}
    later = 0
    for row, values in dataset.once(name, read_rows):
        spot = TableCell(table=table, row=row, column="users")
        if split == "test":
            id = values["item"]
            ranks = _ranks(*orders[id], of_order=True) if id in orders else ()
        else:
            id = digest([values["query"], values["users"]])
            ranks = _ranks(spot.beside("rank_vector"), values["rank_vector"], of_order=False)
        later += id in groups
        if id not in groups:
            [query] = spot.beside("query").read([values["query"]], Thing)
            members = _members(values["users"], ranks, spot, options)
            groups[id] = RecordedGroup(
                id=id,
                about=query.title,
                users=frozenset(member.id for member in members),
                ranks=ranks,
                query=query,
                members=members,
            )
    if later:
        dataset.note("groups left out as not the first of their item", later)
    return groups


def _members(
    recorded: list[Any], ranks: tuple[int, ...], spot: TableCell, options: Options
) -> tuple[Member, ...]:
    users = spot.read(recorded, _User, written=True)
    if len(users) != MEMBERS[options.level]:
        expected = f"{MEMBERS[options.level]} users in each group of level {options.level}"
        raise layout.wrong_size(spot.bad(f"{len(users)} users", expected), len(users), options)
    if ranks and len(ranks) != len(users):
        raise spot.bad(f"{len(users)} users", f"{len(ranks)} users, as in the group's true order")
    members = []
    for user, raw, rank in zip(users, recorded, ranks or (None,) * len(users), strict=True):
        if (there := len(user.history)) < options.k:
            expected = f"at least {options.k} behaviours of each user, the task's option `k`"
            bad = spot.bad(f"{there} behaviours", expected)
            bad.hint = (
                f"set a smaller k, as in --set k={there}: recorded groups hold only the retrieved "
                "behaviours"
            )
            raise bad
        profile = user.profile if options.profile == "full" else None
        if options.profile == "full" and not (profile or "").strip():
            expected = "a profile of each user, or the option profile: none"
            raise spot.bad({"profile": profile}, expected)
        shown = (Behaviour(**msgspec.structs.asdict(one)) for one in user.history[: options.k])
        member = Member(
            id=user.uid or digest(raw),  # some records lack the id
            average=user.avg,
            common=user.common,
            shown=tuple(shown),
            profile=profile,
            rank=rank,
        )
        members.append(member)
    ids = [member.id for member in members]
    if len(set(ids)) < len(ids):
        raise spot.bad(ids, "each user of a group once")
    return tuple(members)


def _orders(dataset: Dataset) -> dict[str, tuple[TableCell, list[Any]]]:
    """The complete true orders of groups, strongest preference first."""
    if not dataset.has(_LABELS):
        return {}
    table = dataset.table(_LABELS)
    orders: dict[str, tuple[TableCell, list[Any]]] = {}
    for row, values in dataset.once(_LABELS, read_rows):
        if values["order"] is not None:
            spot = TableCell(table=table, row=row, column="order")
            orders.setdefault(values["item"], (spot, values["order"]))
    return orders


def _ranks(spot: TableCell, numbers: list[Any], *, of_order: bool) -> tuple[int, ...]:
    """The rank of each user, from ranks or (`of_order`) from the users' numbers in order."""
    places = range(1, len(numbers) + 1)
    are_whole = all(type(one) is int for one in numbers)
    if not (numbers and are_whole and sorted(numbers) == list(places)):
        raise spot.bad(numbers, f"the numbers from 1 to {len(numbers) or 'N'}, each once")
    return tuple(numbers.index(user) + 1 for user in places) if of_order else tuple(numbers)
