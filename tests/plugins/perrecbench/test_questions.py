"""What prompts are given, and which prompt is asked."""

import pytest
from harness_perrecbench.questions import (
    COMPARE_OPTIONS,
    COMPARE_PROMPTS,
    RANK_OPTIONS,
    RANK_PROMPTS,
    RATE_OPTIONS,
    RATE_PROMPTS,
    check_prompt_exists,
    compare_variables,
    profile_variables,
    prompt_of,
    rank_variables,
    rate_variables,
)
from harness_perrecbench.records import (
    Behaviour,
    Example,
    Group,
    Member,
    Options,
    Person,
    Single,
    Thing,
)

from harness.base.errors import UsageError

CUP = Behaviour(title="Cup", author="Bo", rating=4)
ANN = Member(id="ann", average=3.5, common=5, profile="Tea.", shown=(CUP,), rating=2, rank=2)
BEN = Member(id="ben", average=4, common=4, profile="Books.", shown=(), rating=5, rank=1)
GROUP = Group(
    id="k",
    user="k",
    query=Thing(title="Kettle"),
    members=(ANN, BEN),
    examples=(Example(query=Thing(title="Lamp"), members=(BEN, ANN), answer="!"),),
)
SINGLE = Single(id="k/1", user="k", query=GROUP.query, member=ANN, place=1, of=2)

ANN_TOLD = {
    "profile": "Tea.",
    "common": 5,
    "average": 3.5,
    "shown": [{"title": "Cup", "author": "Bo", "rating": 4}],
}
BEN_TOLD = {"profile": "Books.", "common": 4, "average": 4, "shown": []}


class Declared:
    """Options of which only those that a stage declares can be read."""

    def __init__(self, names, **values):
        for name in names:
            setattr(self, name, values.get(name, getattr(Options(), name)))


def test_one_user_is_told_without_what_is_true_of_them():
    assert rate_variables(SINGLE, Declared(RATE_OPTIONS)) == {
        "query": {"title": "Kettle", "author": None},
        "member": ANN_TOLD,
        "system": "paper",
        "examples": [],
        "shot_style": "corrected",
    }


def test_a_group_is_told_in_its_order_with_its_examples():
    assert rank_variables(GROUP, Declared(RANK_OPTIONS)) == {
        "query": {"title": "Kettle", "author": None},
        "members": [ANN_TOLD, BEN_TOLD],
        "examples": [
            {
                "query": {"title": "Lamp", "author": None},
                "members": [BEN_TOLD, ANN_TOLD],
                "answer": "!",
            }
        ],
        "shot_style": "corrected",
        "tail": "now",
    }


def test_a_pair_is_told_in_the_order_in_which_it_is_named():
    variables = compare_variables(GROUP, 2, 1, Declared(COMPARE_OPTIONS))

    assert variables["members"] == [BEN_TOLD, ANN_TOLD]


def test_a_history_is_told_as_it_is():
    person = Person(id="a/1", user="a", history=(CUP,))

    assert profile_variables(person) == {"history": ANN_TOLD["shown"]}


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("full", ("Tea.", 5, 3.5)),
        ("no_text", (None, 5, 3.5)),
        ("none", (None, None, None)),
    ],
)
def test_the_profile_option_says_what_is_told_of_a_user(profile, told):
    member = rate_variables(SINGLE, Declared(RATE_OPTIONS, profile=profile))["member"]

    assert (member["profile"], member["common"], member["average"]) == told


def test_published_examples_of_pairs_have_no_profile_where_the_question_has_one():
    variables = compare_variables(GROUP, 1, 2, Declared(COMPARE_OPTIONS, shot_style="published"))

    assert variables["members"] == [ANN_TOLD, BEN_TOLD]
    assert variables["examples"][0]["members"][0] == {
        "profile": None,
        "common": None,
        "average": None,
        "shown": [],
    }


def test_a_profile_that_is_to_be_shown_and_is_not_there_is_no_empty_one():
    nobody = Member(id="cem", average=3, common=3, shown=())
    single = Single(id="k/1", user="k", query=GROUP.query, member=nobody, place=1, of=1)

    with pytest.raises(ValueError, match="user cem has no profile"):
        rate_variables(single, Declared(RATE_OPTIONS))
    assert rate_variables(single, Declared(RATE_OPTIONS, profile="no_text"))


@pytest.mark.parametrize(
    ("stage", "names", "options", "prompt"),
    [
        ("profile", (), {}, "profile"),
        ("rate", RATE_OPTIONS, {}, "rate"),
        ("rate", RATE_OPTIONS, {"thought": True}, "rate_thought"),
        ("rate", RATE_OPTIONS, {"wording": "c"}, "rate_c"),
        ("compare", COMPARE_OPTIONS, {}, "compare"),
        ("compare", COMPARE_OPTIONS, {"thought": True}, "compare_thought"),
        ("rank", RANK_OPTIONS, {}, "rank"),
        ("rank", RANK_OPTIONS, {"thought": True}, "rank_thought"),
    ],
)
def test_a_stage_asks_with_the_prompt_that_its_options_name(stage, names, options, prompt):
    assert prompt_of(stage, Declared(names, **options)) == prompt


def test_every_prompt_that_can_be_named_is_among_those_of_its_stage():
    by_stage = {"rate": RATE_PROMPTS, "compare": COMPARE_PROMPTS, "rank": RANK_PROMPTS}
    for stage, prompts in by_stage.items():
        named = {prompt_of(stage, Options(thought=True))}
        named |= {prompt_of(stage, Options(wording=wording)) for wording in "abcd"}
        assert named == set(prompts)


@pytest.mark.parametrize("other", [{"wording": "b"}, {"tail": "older"}, {"system": "authors"}])
def test_a_thought_prompt_that_nobody_wrote_is_refused(other):
    check_prompt_exists(Options(**other))
    check_prompt_exists(Options(thought=True))
    with pytest.raises(UsageError, match="no chain-of-thought prompt exists"):
        check_prompt_exists(Options(thought=True, **other))


def test_a_wording_of_our_own_is_not_asked_with_the_authors_system_text():
    with pytest.raises(UsageError, match="no prompt exists for this system") as told:
        check_prompt_exists(Options(wording="b", system="authors"))
    assert told.value.found == "system: authors with wording: b"
