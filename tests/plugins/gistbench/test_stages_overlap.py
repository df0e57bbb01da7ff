"""Stage 4, first half: which objects of the pool are too near a user's interests."""

import pytest
from harness_gistbench.records import (
    Claim,
    Evidence,
    Kept,
    Neighbours,
    Options,
    Overlapping,
    PoolObject,
)
from harness_gistbench.stages import overlap
from harness_gistbench.stages.overlap import find_overlap, neighbours

from harness.judging import Select, Selected
from harness.outcomes import NoVerdict

LIKED = "explicit_positive"
WORDING = {"thing": "video", "things": "videos"}
POOL = tuple(PoolObject(name, f"a text about {name}") for name in "edcbaxy")


def claimed(recorded, people):
    """The claims of people, by user the objects seen and by interest those cited."""
    return recorded(
        (
            Claim(
                id=f"{user}/{n}/1",
                user=user,
                interest=name,
                number=n,
                part=1,
                evidence=tuple(Evidence(one, one, (LIKED,)) for one in objects),
            ),
            NoVerdict("schema") if n == 1 else Kept(positions=()),
        )
        for user, (_, interests) in people.items()
        for n, (name, objects) in enumerate(interests.items(), start=1)
    )


PEOPLE = {
    "ada": ("ab", {"Tea Houses": "ab", "Uncited": ""}),
    "ben": ("bc", {"Green Tea": "bc", "TEA houses": "c"}),
    "cem": ("de", {"Rye Bread": "d"}),
    "dea": ("x", {}),
}


def asked(recorded, written_histories, people=PEOPLE, **options):
    seen = {user: [(one, one, LIKED) for one in objects] for user, (objects, _) in people.items()}
    data = written_histories(seen, pool=POOL)
    found = neighbours({"verify": claimed(recorded, people)}, data, Options(**options))
    return {one.id: one for one in found}


def test_a_user_is_asked_about_the_recorded_interests_of_others_objects_in_one_question(
    recorded, written_histories
):
    items = asked(recorded, written_histories)

    assert items == {
        # b and c carry Ada's own interest, and a and b are hers.
        "ada/1": Neighbours(
            id="ada/1", user="ada", interests=("Tea Houses",), keys=("d",), options=("rye bread",)
        ),
        # a carries Ben's interest in tea houses.
        "ben/1": Neighbours(
            id="ben/1", user="ben", interests=("Green Tea", "TEA houses"), keys=("d",),
            options=("rye bread",),
        ),
        "cem/1": Neighbours(
            id="cem/1", user="cem", interests=("Rye Bread",), keys=("c", "b", "a"),
            options=("green tea; tea houses", "green tea; tea houses", "tea houses"),
        ),
    }  # fmt: skip


def test_without_a_recorded_interest_in_the_pool_nothing_is_asked(recorded, written_histories):
    people = {"ada": ("qr", {"Tea": "q"}), "ben": ("a", {})}

    assert asked(recorded, written_histories, people) == {}


def test_each_distinct_interest_is_asked_once_for_all_who_have_it(recorded, written_histories):
    items = asked(recorded, written_histories, overlap="interests")

    assert {id: set(one.keys) for id, one in items.items()} == {
        "tea houses/1": {"green tea", "rye bread"},
        "green tea/1": {"tea houses", "rye bread"},
        "rye bread/1": {"tea houses", "green tea"},
    }
    assert {one.user for one in items.values()} == {"*"}
    assert all(one.keys == one.options for one in items.values())


def test_texts_of_objects_are_cut_and_the_users_own_left_out(recorded, written_histories):
    items = asked(recorded, written_histories, overlap="texts", overlap_text_limit=12)

    assert items["cem/1"].keys == ("c", "b", "a", "x", "y")
    assert items["cem/1"].options[0] == "a text about"
    assert "dea/1" not in items


def test_many_options_are_asked_in_parts(recorded, written_histories, monkeypatch):
    monkeypatch.setattr(overlap, "OPTIONS_A_QUESTION", 2)

    items = asked(recorded, written_histories, overlap="texts")

    assert [items[f"cem/{n}"].keys for n in (1, 2, 3)] == [("c", "b"), ("a", "x"), ("y",)]


ITEM = Neighbours(
    id="cem/1", user="cem", interests=("Rye Bread", "Salsa"), keys=("c", "b"),
    options=("green tea", "salsa dancing"),
)  # fmt: skip


@pytest.mark.parametrize("way", ["users", "texts"])
async def test_the_judge_names_options_and_their_keys_are_kept(desk, way):
    scripted = desk(Selected(chosen=(1,), rung="text", unknown=1, repeated=2), overlap=way,
                    **WORDING)  # fmt: skip

    assert await find_overlap(ITEM, scripted) == Overlapping(keys=("b",), unknown=1, repeated=2)
    assert scripted.asked == [
        (
            "overlap_judge",
            Select(
                prompt="overlap",
                subject="Rye Bread; Salsa",
                options=("green tea", "salsa dancing"),
                variables={
                    "interests": ["Rye Bread", "Salsa"],
                    "texts": way == "texts",
                    **WORDING,
                },
            ),
        )
    ]


async def test_a_judge_that_fails_is_no_verdict(desk):
    failure = NoVerdict("truncated")

    assert await find_overlap(ITEM, desk(failure, overlap="users", **WORDING)) is failure
