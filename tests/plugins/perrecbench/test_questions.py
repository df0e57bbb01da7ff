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


def test_prompts_that_nobody_wrote_are_refused():
    with pytest.raises(UsageError, match="no prompt exists for this system") as told:
        check_prompt_exists(Options(wording="b", system="authors"))
    assert told.value.found == "system: authors with wording: b"
