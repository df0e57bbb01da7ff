"""Loads questions about groups, or about single behaviours, from the published files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.data.dataset import choose
from harness_perrecbench.data import tables
from harness_perrecbench.data.layout import GROUPS, one_by_one, wrong_domain
from harness_perrecbench.data.members import Members, chosen_groups, read_members, solved
from harness_perrecbench.data.table_cell import TableCell
from harness_perrecbench.records import Example, Group, Loaded, Single

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset
    from harness_perrecbench.records import Options


def load_groups(dataset: Dataset, options: Options) -> Loaded:
    """The groups of the run, or their members one by one."""
    folder = dataset.path(GROUPS[options.split]).parent.name
    if folder.endswith("-processed") and folder != f"{options.domain}-processed":
        raise wrong_domain(dataset, options, f"groups in a folder {folder}")
    every = tables.first_groups(dataset, options)
    kept = [every[item] for item in dataset.choose(every, of="groups")]
    tied = sum(len(set(group.ranks)) < len(group.ranks) for group in kept)
    dataset.note("groups in which users share a relative rating", tied)
    shots = chosen_groups(
        kept, lambda: tables.held_out_groups(dataset, options), options, seed=dataset.seed
    )
    members = read_members(dataset, options, items={group.id for group in kept})
    groups = [
        _group(one, members, tuple(_example(*shot, members) for shot in each))
        for one, each in zip(kept, shots, strict=True)
    ]
    singles: list[Single] = []
    if options.ask == "pointwise":
        for one, group in zip(kept, groups, strict=True):
            users = zip(one.asked, group.members, strict=True)
            own = [members.own_examples(*user, seed=dataset.seed) for user in users]
            singles += one_by_one(group, own)
    members.add_notes(dataset)
    return Loaded(
        groups=() if singles else tuple(groups),
        singles=tuple(singles),
        people=tuple(members.people.values()),
    )


def _group(group: tables.AskedGroup, members: Members, shots: tuple[Example, ...]) -> Group:
    users = zip(group.asked, group.ranks, strict=True)
    return Group(
        id=group.id,
        user=group.id,
        query=members.query(group.asked[0]),
        members=tuple(members.member(one, rank=rank) for one, rank in users),
        examples=shots,
        overall_average=members.histories.average,
    )


def _example(group: tables.AskedGroup, places: tuple[int, ...], members: Members) -> Example:
    """A held-out group as an example with the users at these places."""
    options = members.options
    # Examples show profiles like the question; the published pairs do not.
    with_profile = not (options.ask == "pairwise" and options.shot_style == "published")
    shown = (
        members.member(group.asked[place], rank=group.ranks[place], with_profile=with_profile)
        for place in places
    )
    return solved(members.query(group.asked[0]), tuple(shown), options)


MORE_THAN = 20
"""Drawn behaviours have more earlier ratings than this, like the users of every group."""


def load_singles(dataset: Dataset, options: Options) -> Loaded:
    """The behaviours of the run: from the data's own list, or drawn from histories."""
    if dataset.has("behaviours"):
        every = _read_list(dataset)
    else:
        histories = dataset.once("histories", tables.read_histories)
        every = _drawn(histories, options.behaviours, seed=dataset.seed)
    asked = {id: every[id] for id in dataset.choose(every, of="behaviours")}
    members = read_members(dataset, options, items={one.item for one in asked.values()})
    singles = []
    for id, one in asked.items():
        member = members.member(one)
        single = Single(
            id=id,
            user=one.user,
            query=members.query(one),
            member=member,
            place=1,
            of=1,
            examples=members.own_examples(one, member, seed=dataset.seed),
            overall_average=members.histories.average,
        )
        singles.append(single)
    members.add_notes(dataset)
    return Loaded(singles=tuple(singles), people=tuple(members.people.values()))


def _read_list(dataset: Dataset) -> dict[str, tables.Asked]:
    """The first behaviour of each user and item in a list, by id; the others are noted."""
    table, rows = dataset.table("behaviours"), dataset.once("behaviours", tables.read_rows)
    listed: dict[str, tables.Asked] = {}
    for row, values in rows:
        spot = TableCell(table=table, row=row, column="history_len")
        if not 1 <= values["rating"] <= 5:
            raise table.bad(row, "rating", values["rating"], "a rating from 1 to 5")
        if values["history_len"] < 0:
            raise spot.bad(values["history_len"], "0 or more behaviours")
        asked = tables.Asked(
            user=values["user_id"],
            item=values["parent_asin"],
            before=values["history_len"],
            rating=values["rating"],
            spot=spot,
        )
        listed.setdefault(f"{asked.item}/{asked.user}", asked)
    again = len(rows) - len(listed)
    dataset.note("behaviours left out as their user and item came before", again)
    return listed


def _drawn(histories: tables.Histories, most: int, *, seed: int) -> dict[str, tables.Asked]:
    """Behaviours drawn from all histories, by id; a user's later ratings of an item never."""
    fit: dict[str, tuple[str, int]] = {}
    for user, history in histories.of.items():
        seen: set[str] = set()
        for place, one in enumerate(history.bought):
            if place > MORE_THAN and one.parent_asin not in seen:
                fit[f"{one.parent_asin}/{user}"] = user, place
            seen.add(one.parent_asin)
    chosen, _ = choose(fit, seed=seed, most=most)
    drawn = {}
    for id in chosen:
        user, place = fit[id]
        history = histories.of[user]
        one = history.bought[place]
        drawn[id] = tables.Asked(
            user=user, item=one.parent_asin, before=place, rating=one.rating, spot=history.spot
        )
    return drawn
