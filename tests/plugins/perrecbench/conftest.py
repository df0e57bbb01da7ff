"""Groups written by hand, and the desk at which a stage's work asks a scripted model."""

from typing import Any

import pytest
from builders.stages import Worked, work_at_desk
from harness_perrecbench.records import Behaviour, Group, Member, Options, Single, Thing


@pytest.fixture
def at_desk():
    """Does a stage's work on an item with real prompts and a desk; answers are told in turn.

    `answers` may be a function of the request instead.
    """

    async def work(stage: Any, item: Any, answers: Any, *, seed: int = 0, **options: Any) -> Worked:
        given = Options(**options)
        return await work_at_desk(
            stage, item, answers, benchmark="perrecbench", options=given, seed=seed
        )

    return work


def _member(number: int, **more: Any) -> Member:
    shown = (Behaviour(title=f"taste of {number}", rating=4.0),)
    values = {"id": f"u{number}", "average": 3.5, "common": 4.0, "profile": "Reads.", **more}
    return Member(shown=shown, **values)


@pytest.fixture
def member():
    """A user by number, whose one behaviour is named `taste of <number>`."""
    return _member


@pytest.fixture
def group():
    """A group of so many users."""

    def make(members: int) -> Group:
        users = tuple(_member(number) for number in range(1, members + 1))
        return Group(id="kettle", user="kettle", query=Thing(title="A kettle"), members=users)

    return make


@pytest.fixture
def single():
    """The first of two users, and the thing in question."""
    return Single(
        id="kettle/1",
        user="kettle",
        query=Thing(title="A kettle"),
        member=_member(1),
        place=1,
        of=2,
    )
