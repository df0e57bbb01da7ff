"""Stage 3: distinct interests, each put into one category once for all runs."""

from types import SimpleNamespace

import pytest
from builders.gistbench import Desk, DictMemo, make_claim, recorded
from harness_gistbench.records import Batch, Category, Kept, Mapped, Options
from harness_gistbench.stages.taxonomy import batches, map_interests

from harness.contracts.judge import Classified
from harness.contracts.outcomes import NoVerdict

TEA, BREAD = Category(4, "Tea"), Category(9, "Bread")


def claimed(people):
    """The records of claims, some without a verdict."""
    claims = [
        make_claim(n, name, user=user)
        for user, names in people.items()
        for n, name in enumerate(names, start=1)
    ]
    verdicts = (Kept(positions=()), NoVerdict("schema"))
    return recorded((claim, verdicts[n % 2]) for n, claim in enumerate(claims))


def test_each_distinct_interest_of_all_users_is_in_one_batch():
    people = {
        "ada": ["Green tea", "Rye  Bread"],
        "ben": ["green TEA", "Black tea"],
    }

    first, second = batches({"verify": claimed(people)}, None, Options(interests_a_question=2))

    assert sorted(first.interests + second.interests) == ["black tea", "green tea", "rye bread"]
    assert (len(first.interests), first.id, second.id) == (2, "1", "2")
    assert first.user == second.user == "*"
    assert len(first.categories) == 325


def test_batches_depend_on_the_interests_alone():
    names = [f"interest {n}" for n in range(40)]
    one = {"ada": names[:25], "ben": names[20:]}
    other = {"cem": [name.upper() for name in reversed(names)]}

    made = [list(batches({"verify": claimed(who)}, None, Options())) for who in
            (one, other)]  # fmt: skip

    assert made[0] == made[1]
    assert made[0][0].interests != tuple(sorted(names)[:25])


def batch(*interests):
    return Batch(id="1", user="*", interests=interests, categories=(TEA, BREAD))


def labelled(*labels):
    return Classified(labels=labels, rung="strict")


async def test_what_is_remembered_is_not_asked_and_what_was_written_first_holds():
    memory = {"rye": "4"}
    scripted = Desk(labelled("Tea"), memory=memory)

    mapped = await map_interests(batch("rye", "oolong"), scripted)

    assert mapped == Mapped(categories={"rye": 4, "oolong": 4}, remembered=1)
    assert [question.texts for _, question in scripted.asked] == [("oolong",)]
    assert await map_interests(batch("rye", "oolong"), Desk(memory=memory)) == Mapped(
        categories={"rye": 4, "oolong": 4}, remembered=2
    )
    scripted = Desk(labelled("Tea"))
    raced = DictMemo({"rye": "9"})
    scripted.memo = lambda name: SimpleNamespace(known=lambda keys: {}, keep=raced.keep)

    assert (await map_interests(batch("rye"), scripted)).categories == {"rye": 9}
    first, second = Desk(labelled("Tea")), Desk(labelled("Tea"))
    await map_interests(batch("rye"), first)
    await map_interests(
        Batch(id="1", user="*", interests=("rye",), categories=(TEA, Category(8, "Bread"))), second
    )

    assert first.memos != second.memos


async def test_what_got_no_category_is_asked_again_up_to_three_times():
    scripted = Desk(
        labelled(None, "Tea", None), labelled(None, "Bread"), labelled(None), labelled("Tea")
    )

    mapped = await map_interests(batch("x", "oolong", "rye"), scripted)

    assert mapped == Mapped(categories={"oolong": 4, "rye": 9}, unmapped=("x",))
    assert [question.texts for _, question in scripted.asked] == [
        ("x", "oolong", "rye"), ("x", "rye"), ("x",),
    ]  # fmt: skip
    assert "x" not in scripted.memory


class Spoiled:
    """A taxonomist that sees tea everywhere, and gives no verdict where it is asked about bombs."""

    def __init__(self, verdict, *bombs):
        self.verdict, self.bombs, self.asked = verdict, set(bombs), []

    async def judge(self, question, *, role):
        self.asked.append(question.texts)
        if self.bombs.isdisjoint(question.texts):
            return labelled(*["Tea"] * len(question.texts))
        return self.verdict

    def memo(self, name):
        return DictMemo({})


def no_quorum(*behind):
    return NoVerdict("no_quorum", behind=behind)


@pytest.mark.parametrize(
    "verdict",
    [
        *map(NoVerdict, ("no_json", "schema", "empty", "truncated", "refused", "tied")),
        no_quorum("no_json", "schema"),
    ],
)
async def test_one_name_that_spoils_an_answer_costs_the_others_nothing(verdict):
    names = tuple(f"tea {n}" for n in range(24))
    taxonomist = Spoiled(verdict, "bomb")

    mapped = await map_interests(batch(*names[:11], "bomb", *names[11:]), taxonomist)

    assert mapped == Mapped(categories=dict.fromkeys(names, 4), unmapped=("bomb",))
    # 25 in one, then halves of what is spoiled: 12 or 13, 6, 3, 1 or 2, 1
    assert len(taxonomist.asked) <= 11
    assert ("bomb",) in taxonomist.asked


async def test_a_taxonomist_who_cannot_be_read_of_whole_or_half_gives_no_verdict():
    names = tuple(f"bomb {n}" for n in range(25))
    taxonomist = Spoiled(NoVerdict("no_json"), *names)

    assert await map_interests(batch(*names), taxonomist) == NoVerdict("no_json")
    assert [len(asked) for asked in taxonomist.asked] == [25, 12, 13]


@pytest.mark.parametrize("verdict", [NoVerdict("schema"), NoVerdict("tied"), no_quorum("schema")])
async def test_a_taxonomist_without_any_category_that_exists_gives_no_verdict(verdict):
    for names in (("bomb 1",), ("bomb 1", "bomb 2", "bomb 3")):
        assert await map_interests(batch(*names), Spoiled(verdict, *names)) == NoVerdict(
            "no_category", f"none of {len(names)} interests has a category"
        )


@pytest.mark.parametrize("verdict", [NoVerdict("timeout"), no_quorum("schema", "timeout")])
async def test_a_call_that_fails_is_a_failure_and_no_mapping(verdict):
    scripted = Desk(labelled("Tea", None), verdict)

    assert await map_interests(batch("oolong", "x"), scripted) == verdict
    assert scripted.memory == {"oolong": "4"}


async def test_nothing_is_remembered_before_the_last_answer_came():
    class Waits(BaseException):
        """What a question raises whose answer comes another day."""

    scripted = Desk(labelled("Tea", None))
    asked = scripted.judge

    async def judge(question, *, role):
        if question.texts == ("x",):
            raise Waits
        return await asked(question, role=role)

    scripted.judge = judge
    with pytest.raises(Waits):
        await map_interests(batch("oolong", "x"), scripted)
    assert scripted.memory == {}
