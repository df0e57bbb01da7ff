"""Stage 4, first half: which objects of the pool are too near a user's interests."""

import pytest
from builders.gistbench import LIKED, Desk, make_claim, make_histories, recorded
from harness_gistbench.records import (
    Evidence,
    Kept,
    Neighbours,
    Options,
    Overlapping,
    PoolObject,
    PoolSize,
)
from harness_gistbench.stages import overlap
from harness_gistbench.stages.overlap import find_overlap, neighbours
from msgspec.structs import replace

from harness.contracts.judge import Select, Selected
from harness.contracts.outcomes import NoVerdict

WORDING = {"thing": "video", "things": "videos"}
POOL = tuple(PoolObject(name, f"a text about {name}") for name in "edcbaxy")


def claimed(people):
    """The claims of people, by user the objects seen and by interest those cited."""
    return recorded(
        (
            make_claim(n, name, (Evidence(one, one, (LIKED,)) for one in objects), user=user),
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


SIZE = "pool"


def found(people=PEOPLE, **options):
    seen = {user: [(one, one, LIKED) for one in objects] for user, (objects, _) in people.items()}
    data = make_histories(seen, pool=POOL)
    items = neighbours({"verify": claimed(people)}, data, Options(**options))
    return {one.id: one for one in items}


def asked(*args, **options):
    return {id: one for id, one in found(*args, **options).items() if id != SIZE}


def test_a_user_is_asked_once_about_each_interest_that_is_recorded_for_others_objects():
    items = asked()

    assert items == {
        # b and c carry Ada's own interest, and a and b are hers.
        "ada/1": Neighbours(
            id="ada/1", user="ada", interests=("Tea Houses",), keys=("rye bread",)
        ),
        # a carries Ben's interest in tea houses.
        "ben/1": Neighbours(
            id="ben/1", user="ben", interests=("Green Tea", "TEA houses"), keys=("rye bread",)
        ),
        "cem/1": Neighbours(
            # Each is recorded for two objects.
            id="cem/1", user="cem", interests=("Rye Bread",), keys=("tea houses", "green tea")
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("people", "many"),
    [
        (PEOPLE, 4),
        ({"ada": ("a", {"Tea": "a"})}, 1),
        ({"ada": ("q", {"Tea": "q"}), "ben": ("a", {})}, 0),
    ],
)
def test_the_size_of_the_pool_is_recorded_with_how_many_of_it_have_a_recorded_interest(
    people, many
):
    size = Neighbours(id=SIZE, user="*", pool=PoolSize(objects=len(POOL), recorded=many))
    for way in ("users", "interests", "texts"):
        assert found(people, overlap=way)[SIZE] == size


def test_each_distinct_interest_is_asked_once_for_all_who_have_it():
    items = asked(overlap="interests")

    assert {id: set(one.keys) for id, one in items.items()} == {
        "tea houses/1": {"green tea", "rye bread"},
        "green tea/1": {"tea houses", "rye bread"},
        "rye bread/1": {"tea houses", "green tea"},
    }
    assert {one.user for one in items.values()} == {"*"}
    assert not any(one.options for one in items.values())


def test_texts_of_objects_are_cut_and_the_users_own_left_out():
    items = asked(overlap="texts", overlap_text_limit=12)

    assert items["cem/1"].keys == ("c", "b", "a", "x", "y")
    assert items["cem/1"].options[0] == "a text about"
    assert "dea/1" not in items


def test_long_options_are_asked_in_parts(monkeypatch):
    two = len("a text about c") * 2
    for setting, most, parts in (
        ("CHARACTERS_A_QUESTION", two, ["cb", "ax", "y"]),
        ("CHARACTERS_A_QUESTION", 1, ["c", "b", "a", "x", "y"]),
        ("OPTIONS_A_QUESTION", 2, ["cb", "ax", "y"]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(overlap, setting, most)
            texts = asked(overlap="texts")
        of_cem = {id: "".join(one.keys) for id, one in texts.items() if one.user == "cem"}
        assert of_cem == {f"cem/{n}": part for n, part in enumerate(parts, start=1)}
    monkeypatch.setattr(overlap, "CHARACTERS_A_QUESTION", two)
    people = {**PEOPLE, "eda": ("f", {"Long " * 20: "x", "Salt": "x", "Rye": "x"})}

    names = asked(people, overlap="users")

    # An option that is too long by itself is asked about by itself.
    long = " ".join(["long"] * 20)
    keys = [one.keys for one in names.values() if one.user == "cem"]
    assert [one for one in keys if long in one] == [(long,)]


RECORDED = Neighbours(
    id="cem/1", user="cem", interests=("Rye Bread", "Salsa"), keys=("green tea", "salsa dancing")
)
TEXTS = replace(RECORDED, keys=("c", "b"), options=("green tea", "salsa dancing"))


@pytest.mark.parametrize(
    ("way", "item", "key"), [("users", RECORDED, "salsa dancing"), ("texts", TEXTS, "b")]
)
async def test_the_judge_names_options_and_their_keys_are_kept(way, item, key):
    scripted = Desk(Selected(chosen=(1,), rung="text", unknown=1, repeated=2), overlap=way,
                    **WORDING)  # fmt: skip

    assert await find_overlap(item, scripted) == Overlapping(keys=(key,), unknown=1, repeated=2)
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


async def test_of_the_size_of_the_pool_no_judge_is_asked():
    size = Neighbours(id=SIZE, user="*", pool=PoolSize(objects=7, recorded=0))
    scripted = Desk(overlap="users", **WORDING)

    assert await find_overlap(size, scripted) == Overlapping(keys=())
    assert scripted.asked == []
