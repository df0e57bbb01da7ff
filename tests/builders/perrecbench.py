"""Users, groups and comparisons of PerRecBench."""

from typing import Any

from harness_perrecbench.records import Comparison, Group, Member, Thing

SIDES = {"A": "A", "B": "B", "-": None}


def make_member(id: str, average: float = 3.0, **more: Any) -> Member:
    """A user of this average, to whom nothing is shown."""
    return Member(id=id, average=average, **{"common": 5.0, "shown": (), **more})


def make_group(*members: Member, item: str = "item", title: str = "A kettle", **more: Any) -> Group:
    """A group of these users, who are asked about a thing of this title."""
    return Group(id=item, user=item, query=Thing(title=title), members=members, **more)


def make_comparisons(*told: str) -> tuple[Comparison, ...]:
    """Comparisons such as "12AB", of users 1 and 2, where - is an answer that cannot be read."""
    return tuple(
        Comparison(first=int(one), second=int(other), forth=SIDES[forth], back=SIDES[back])
        for one, other, forth, back in told
    )
