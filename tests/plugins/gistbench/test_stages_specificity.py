"""Stage 4, second half: test sets, and what the judge finds in them."""

from types import SimpleNamespace

import pytest
from builders.gistbench import LIKED, Desk, make_claim, make_histories, recorded
from harness_gistbench.analyses.judge_validation import pairs_in
from harness_gistbench.records import (
    Batch,
    Evidence,
    Found,
    Kept,
    Mapped,
    Neighbours,
    Options,
    Overlapping,
    PoolObject,
)
from harness_gistbench.stages import specificity

from harness.contracts.judge import Select, Selected
from harness.contracts.outcomes import NoVerdict

WORDING = {"thing": "video", "things": "videos"}
ASKING = {**WORDING, "test_set": 50, "min_distractors": 0}
POOL = tuple(PoolObject(f"p{n}", f"pool text {n}") for n in range(1, 101))


def claim(user, number, interest, *evidence, part=1):
    objects, kept = evidence
    shown = (Evidence(one, f"text of {one}", (LIKED,)) for one in objects)
    item = make_claim(number, interest, shown, user=user, part=part)
    return item, kept if isinstance(kept, NoVerdict) else Kept(positions=kept)


def mapped(**categories):
    names = {name.replace("_", " "): id for name, id in categories.items()}
    return Batch(id="1", user="*", interests=tuple(names), categories=()), Mapped(categories=names)


def overlapping(user, keys, name=None):
    item = Neighbours(id=f"{name or user}/1", user=user, interests=(), keys=(), options=())
    return item, keys if isinstance(keys, NoVerdict) else Overlapping(keys=tuple(keys))


def drawn(claims, taxonomy, overlap=(), *, own=(), pool=POOL, seed=0, way="users", **options):
    """The test sets of some claims, by id."""
    data = make_histories(
        {"ada": [(one, one, LIKED) for one in own]}, pool=pool, seed=seed, signals=(LIKED,)
    )
    upstreams = {
        "verify": recorded(claims),
        "taxonomy": recorded([taxonomy]),
        "overlap": recorded(overlap),
    }
    found = specificity.retrievals(upstreams, data, Options(overlap=way, **options))
    return {one.id: one for one in found}


def distractors(*given, **more):
    """The objects of the pool among which the evidence of Ada's first interest is found again."""
    return {one.object for one in drawn(*given, **more)["ada/1"].objects if one in POOL}


TEA = claim("ada", 1, "Green Tea", "abcdefg", (0, 1))


def test_five_objects_of_the_evidence_stand_among_distractors_fifty_in_all():
    [item] = drawn([TEA], mapped(green_tea=1), own="abcdefg").values()

    objects = [one.object for one in item.objects]
    backing = {objects[place] for place in item.backing}
    assert (item.id, item.interest, item.number) == ("ada/1", "Green Tea", 1)
    assert (len(objects), len(set(objects)), len(backing)) == (50, 50, 5)
    assert backing <= set("abcdefg")
    assert item.backing != (0, 1, 2, 3, 4)
    assert set(objects) - backing <= {one.object for one in POOL}
    assert {one.text for one in item.objects if one.object in backing} == {
        f"text of {one}" for one in backing
    }
    parts = [
        claim("ada", 1, "Green Tea", "abc", (0, 1), part=1),
        claim("ada", 1, "Green Tea", "d", (), part=2),
    ]

    [item] = drawn(parts, mapped(green_tea=1)).values()

    assert {item.objects[place].object for place in item.backing} == set("abcd")


def test_what_is_of_the_user_or_of_the_same_interest_is_no_distractor():
    own = {f"p{n}" for n in range(1, 91, 2)}
    assert not distractors([TEA], mapped(green_tea=1), own=own) & own

    others = [claim("ben", 1, "green  TEA", ["p1"], (0,)), claim("ben", 2, "Rye", ["p2"], (0,))]
    assert distractors([TEA, *others], mapped(green_tea=1), pool=POOL[:2]) == {"p2"}


def test_where_the_overlap_judge_failed_only_the_users_own_objects_are_taken_out():
    others = [claim("ben", 1, "green tea", ["p1"], ()), claim("ben", 2, "Rye", ["p3"], ())]
    said = [
        overlapping("ada", NoVerdict("schema")),
        (Neighbours(id="ada/2", user="ada", interests=(), keys=(), options=()),
         Overlapping(keys=("rye",))),
    ]  # fmt: skip

    found = distractors([TEA, *others], mapped(green_tea=1), said, own=["p2"], pool=POOL[:4])

    assert found == {"p1", "p3", "p4"}


def test_an_object_is_no_distractor_if_it_or_any_interest_recorded_for_it_was_named():
    others = [
        claim("ben", 1, "Tea Houses", ["p1", "p2"], ()),
        claim("cem", 1, "Rye", ["p2", "p3"], ()),
    ]
    for way, named, left in (("users", "tea houses", {"p3", "p4"}), ("texts", "p1", {"p2", "p3"})):
        said = [overlapping("ada", [named])]
        pool = POOL[: 3 + (way == "users")]

        found = distractors([TEA, *others], mapped(green_tea=1), said, pool=pool, way=way)

        assert found == left


def test_overlap_that_was_asked_by_interest_holds_for_everybody_who_has_it():
    claims = [
        TEA,
        claim("ben", 1, "Tea Houses", ["p1"], ()),
        claim("ben", 2, "Rye", ["p2"], ()),
        claim("ben", 3, "Green tea", ["p3"], ()),
    ]
    said = [overlapping("*", ["tea houses"], name="green tea")]

    found = distractors(claims, mapped(green_tea=1), said, pool=POOL[:4], way="interests")

    assert found == {"p2", "p4"}


def test_interests_of_categories_without_a_verified_one_are_not_asked():
    claims = [
        TEA,
        claim("ada", 2, "Tea Houses", "h", ()),
        claim("ada", 3, "Rye", "ij", (0,)),
        claim("ada", 4, "Unmapped", "kl", (0, 1)),
        claim("ada", 5, "White Tea", "mn", NoVerdict("timeout")),
    ]
    taxonomy = mapped(green_tea=1, tea_houses=1, rye=2, white_tea=1)

    assert set(drawn(claims, taxonomy)) == {"ada/1", "ada/2", "ada/5"}
    assert set(drawn(claims, taxonomy, ask_all=True)) == {f"ada/{n}" for n in range(1, 6)}


def test_an_interest_draws_the_same_whatever_else_the_user_has():
    other = claim("ada", 1, "Rye", "ab", (0, 1))
    later = claim("ada", 2, "green  tea", "abcdefg", (0, 1))

    alone = drawn([TEA], mapped(green_tea=1))["ada/1"]
    beside = drawn([other, later], mapped(green_tea=1, rye=2))["ada/2"]

    assert (alone.objects, alone.backing) == (beside.objects, beside.backing)


def test_another_seed_draws_another_test_set_for_the_same_interest():
    one, other = (distractors([TEA], mapped(green_tea=1), seed=seed) for seed in (0, 1))
    assert one != other


def test_an_object_that_newly_overlaps_changes_the_test_sets_that_held_it_alone():
    interests = [claim("ada", n, f"Tea {n}", "abcdefg", (0, 1)) for n in range(1, 21)]
    taxonomy = mapped(**{f"tea_{n}": n for n in range(1, 21)})

    before = drawn(interests, taxonomy)
    after = drawn(
        [*interests, claim("ben", 1, "Tea Houses", ["p7"], ())], taxonomy,
        overlap=[overlapping("ada", ["tea houses"])],
    )  # fmt: skip

    held = {id for id, one in before.items() if "p7" in {each.object for each in one.objects}}
    # 45 of 100 are drawn for each of the twenty.
    assert 2 <= len(held) <= 18
    assert {id for id in before if before[id] != after[id]} == held
    for id in held:
        gone = {one.object for one in before[id].objects} - {
            one.object for one in after[id].objects
        }
        assert gone == {"p7"}


async def test_the_judge_gets_the_interest_how_many_and_labelled_texts():
    [item] = drawn([claim("ada", 1, "Green Tea", "ab", (0, 1))], mapped(green_tea=1),
                   pool=POOL[:1]).values()  # fmt: skip
    scripted = Desk(
        Selected(chosen=(2, 0), rung="text", unknown=1, repeated=2, surplus=3), **ASKING
    )

    assert await specificity.retrieve(item, scripted) == Found(
        positions=(2, 0), unknown=1, repeated=2, surplus=3
    )
    assert scripted.asked == [
        (
            "retrieval_judge",
            Select(
                prompt="specificity",
                subject="Green Tea",
                options=tuple(one.text for one in item.objects),
                labels=("item_0", "item_1", "item_2"),
                at_most=2,
                variables=WORDING,
            ),
        )
    ]


@pytest.mark.parametrize(
    ("pool", "options", "asked"),
    [
        (19, {}, False),
        (20, {}, True),
        (4, {"min_distractors": 4}, True),
        (0, {"min_distractors": 0}, True),
        # A test set of ten has five distractors, and needs no more.
        (5, {"test_set": 10}, True),
        (4, {"test_set": 10}, False),
    ],
)
async def test_among_too_few_distractors_the_judge_is_not_asked(pool, options, asked):
    [item] = drawn([TEA], mapped(green_tea=1), pool=POOL[:pool], **options).values()
    settings = Options(**options)
    named = Selected(chosen=(0,), rung="text")
    scripted = Desk(
        *([named] if asked else []), **WORDING,
        test_set=settings.test_set, min_distractors=settings.min_distractors,
    )  # fmt: skip

    found = await specificity.retrieve(item, scripted)

    assert found == (Found(positions=(0,)) if asked else Found(positions=(), asked=False))
    assert len(scripted.asked) == asked


def test_what_no_judge_was_asked_is_no_label_of_the_judge():
    [item] = drawn([TEA], mapped(green_tea=1), pool=POOL[:3]).values()
    run = SimpleNamespace(task=SimpleNamespace(run="r", task=SimpleNamespace(name="t")))
    unasked, asked = recorded(
        [(item, Found(positions=(), asked=False)), (item, Found(positions=()))]
    )

    assert list(pairs_in(run, "retrieval", unasked)) == []
    assert len(list(pairs_in(run, "retrieval", asked))) == 8
