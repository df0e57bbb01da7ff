"""A profile or a prompt that is to be there and is not is refused."""

import pytest
from harness_perrecbench.questions import (
    check_prompt_exists,
    rate_variables,
)
from harness_perrecbench.records import Member, Options, Single, Thing

from harness.base.errors import UsageError


def test_a_profile_that_is_to_be_shown_and_is_not_there_is_no_empty_one():
    nobody = Member(id="cem", average=3, common=3, shown=())
    single = Single(id="k/1", user="k", query=Thing(title="x"), member=nobody, place=1, of=1)

    with pytest.raises(ValueError, match="user cem has no profile"):
        rate_variables(single, Options())
    assert rate_variables(single, Options(profile="no_text"))


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
