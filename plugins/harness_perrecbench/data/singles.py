"""Behaviours that stand alone: one user before one thing, whose rating is to be foretold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.data.sampling import choose
from harness_perrecbench.data import examples
from harness_perrecbench.data.members import Members, read_members
from harness_perrecbench.data.spots import Spot
from harness_perrecbench.data.tables import Asked, Bought
from harness_perrecbench.records import Loaded, Single

if TYPE_CHECKING:
    from harness.data import Dataset, Table
    from harness_perrecbench.records import Options

MORE_THAN = 20
"""A behaviour is drawn where its user has more earlier ratings than this, as in every group."""


def load(dataset: Dataset, options: Options) -> Loaded:
    """The behaviours that the run keeps: those of the data's own list, or drawn from histories."""
    if dataset.has("behaviours"):
        every = _listed(dataset, dataset.table("behaviours"))
    else:
        every = _drawn(dataset.table("histories"), options.behaviours, seed=dataset.seed)
    asked = {id: every[id] for id in dataset.choose(every, of="behaviours")}
    members = read_members(dataset, options, items={one.item for one in asked.values()})
    singles = tuple(_single(id, one, members, seed=dataset.seed) for id, one in asked.items())
    members.tell(dataset)
    return Loaded(singles=singles, people=tuple(members.people.values()))


def _single(id: str, asked: Asked, members: Members, *, seed: int) -> Single:
    member = members.member(asked)
    return Single(
        id=id,
        user=asked.user,
        query=members.query(asked),
        member=member,
        place=1,
        of=1,
        examples=examples.own_history(members, asked, member, seed=seed),
        overall_average=members.histories.average,
    )


def _listed(dataset: Dataset, table: Table) -> dict[str, Asked]:
    """The behaviours of a list, each user and item once; further ones are noted."""
    listed: dict[str, Asked] = {}
    again = 0
    for row, values in table.rows():
        spot = Spot(table=table, row=row, column="history_len")
        if not 1 <= values["rating"] <= 5:
            raise table.bad(row, "rating", values["rating"], "a rating from 1 to 5")
        if values["history_len"] < 0:
            raise spot.bad(values["history_len"], "0 or more behaviours")
        asked = Asked(
            user=values["user_id"],
            item=values["parent_asin"],
            before=values["history_len"],
            rating=values["rating"],
            spot=spot,
        )
        again += _id(asked.item, asked.user) in listed
        listed.setdefault(_id(asked.item, asked.user), asked)
    if again:
        dataset.note("behaviours left out as their user and item came before", again)
    return listed


def _drawn(table: Table, most: int, *, seed: int) -> dict[str, Asked]:
    """Behaviours drawn from all histories; of several of one user and item the first may be."""
    fit: dict[str, tuple[str, int, Bought, Spot]] = {}
    for row, values in table.rows():
        spot = Spot(table=table, row=row, column="history")
        seen: set[str] = set()
        for place, one in enumerate(spot.read(values["history"], Bought)):
            if place > MORE_THAN and one.parent_asin not in seen:
                fit[_id(one.parent_asin, values["user"])] = values["user"], place, one, spot
            seen.add(one.parent_asin)
    chosen, _ = choose(fit, seed=seed, most=most)
    return {
        id: Asked(user=user, item=one.parent_asin, before=place, rating=one.rating, spot=spot)
        for id in chosen
        for user, place, one, spot in [fit[id]]
    }


def _id(item: str, user: str) -> str:
    return f"{item}/{user}"
