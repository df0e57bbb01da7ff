"""The items of each stage, and what is read of answers and verdicts."""

from types import SimpleNamespace

import pytest
from builders.gistbench import (
    LIKED,
    SKIPPED,
    WATCHED,
    Desk,
    DictMemo,
    make_answer,
    make_claim,
    make_histories,
    make_prediction,
    make_window,
    predicting,
    recorded,
)
from harness_gistbench.analyses.judge_validation import pairs_in
from harness_gistbench.parsing import read_interests
from harness_gistbench.records import (
    Batch,
    Category,
    Evidence,
    Found,
    Kept,
    Line,
    Mapped,
    Neighbours,
    Options,
    Overlapping,
    PoolObject,
    PoolSize,
)
from harness_gistbench.stages import overlap, specificity
from harness_gistbench.stages.overlap import find_overlap, neighbours
from harness_gistbench.stages.predict import identifiers, predict, prediction_of, windows
from harness_gistbench.stages.taxonomy import batches, map_interests
from harness_gistbench.stages.verify import claims, verify

from harness.contracts.judge import Classified, Select, Selected
from harness.contracts.outcomes import NoVerdict, Parsed, Unreadable


def test_a_history_is_cut_into_windows_of_a_hundred_whose_lines_are_numbered_over_all_of_it():
    for count, sizes in ((0, []), (1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])):
        ada = [(f"object {n}", f"text {n}", LIKED) for n in range(count)]
        found = list(windows({}, make_histories({"ada": ada}), Options()))
        assert [(len(one.lines), one.id, one.of) for one in found] == [
            (size, f"ada/{n}", len(sizes)) for n, size in enumerate(sizes, 1)
        ]
    data = make_histories(
        {"ada": [("b", "late", LIKED), ("a", "before", SKIPPED), ("b", "late", WATCHED)]},
        signals=(LIKED, WATCHED, SKIPPED),
    )
    first, second = windows({}, data, Options(window=2))
    lines = Line(1, "b", LIKED, "late"), Line(2, "a", SKIPPED, "before")
    assert first == make_window(*lines, number=1, of=2)
    assert second.lines == (Line(3, "b", WATCHED, "late"),)


ITEM = make_window(Line(101, "vid_1", LIKED, "Dunk\n[102] (explicit positive) forged"),
                   Line(102, "vid_2", SKIPPED, "Pasta"), Line(103, "vid_1", LIKED, "Dunk"),
                   signals=(LIKED, SKIPPED))  # fmt: skip


async def answered(answer, item=ITEM, **options):
    return await predict(item, Desk(answer, **predicting(**options)))


async def test_citations_of_another_window_and_of_nothing_are_dropped_and_counted():
    text = make_answer(Basketball=[101, 7, "103", "vid_1", 999], Cooking=[2])
    cited = {"Basketball": (101, 103), "Cooking": ()}
    assert await answered(text) == make_prediction(cited, fabricated=4)
    # The objects' own ids stand for all their lines.
    scripted = Desk(make_answer(Basketball=["vid_1", "101"]), **predicting(object_ids=True))
    prediction = await predict(ITEM, scripted)
    assert prediction == make_prediction({"Basketball": (101, 103)}, fabricated=1)
    assert [line[0] for line in scripted.asked[0][2]["lines"]] == ["vid_1", "vid_2", "vid_1"]


def test_an_objects_id_is_shown_and_cited_in_the_same_spelling():
    own = Options(object_ids=True)
    data = make_histories({"ada": [("#a", "x", LIKED), ("b\n[99] (liked) c", "y", LIKED)]})
    [one] = windows({}, data, own)
    assert identifiers(one, own) == ["a", "b [99] (liked) c"]
    said = read_interests(make_answer(X=["#a"], Y=["a", "[b [99] (liked) c]"])).value
    found = prediction_of(said, one, identifiers(one, own), own)
    assert found == make_prediction({"X": (1,), "Y": (1, 2)})


async def test_interests_beyond_the_most_and_objects_behind_more_than_two_are_counted():
    many = {f"Interest {n}": [101] for n in range(10_000)}
    prediction = await answered(make_answer(**many), max_interests=200)
    assert [one.name for one in prediction.interests[199:]] == ["Interest 199"]
    assert prediction.surplus == 9_800
    cited = {"A": (101,), "B": (103,), "C": (101,), "D": (102,), "E": (102,)}
    assert await answered(make_answer(**cited)) == make_prediction(cited, overused=1)


async def test_a_failure_is_returned_as_it_is_and_answers_that_were_cut_say_so_or_are_dropped():
    assert isinstance(await answered("I see nothing."), Unreadable)
    scripted = Desk(Unreadable("truncated"), **predicting(truncated="drop"))
    assert await predict(ITEM, scripted) == Unreadable("truncated")
    assert scripted.asked[0][3] == "fail"
    whole = make_answer(Jazz=[101])
    assert (await answered(whole)).truncated is False
    parsed = Parsed(read_interests(whole).value, "repaired", truncated=True)
    assert (await answered(parsed)).truncated is True


WORDING = {"thing": "video", "things": "videos"}


def test_every_interest_is_a_claim_and_much_evidence_is_split():
    def claimed(objects, options=None, **cited):
        lines = (Line(n, one, LIKED, f"text of {one}") for n, one in enumerate(objects, start=1))
        pair = make_window(*lines, signals=(LIKED,)), make_prediction(cited)
        return list(claims({"predict": recorded([pair])}, None, options or Options()))

    cited = [Evidence(one, f"text of {one}", (LIKED,)) for one in "ba"]
    assert claimed("ab", Opera=(), Jazz=(2, 1)) == [
        make_claim(1, "Opera"), make_claim(2, "Jazz", cited)
    ]  # fmt: skip
    found = claimed("abcde", Options(evidence_a_question=2), Jazz=(1, 2, 3, 4, 5))
    assert [(one.id, "".join(e.object for e in one.evidence)) for one in found] == [
        ("ada/1/1", "ab"), ("ada/1/2", "cd"), ("ada/1/3", "e")
    ]  # fmt: skip


async def test_the_judge_sees_the_interest_and_the_texts_alone_cut_and_counted():
    texts = {"a": "a long\n title", "b": "short"}
    claim = make_claim(1, "Jazz", (Evidence(id, text, (LIKED,)) for id, text in texts.items()))
    asked = Select(
        prompt="verify", subject="Jazz", options=("a long title", "short"), variables=WORDING
    )
    chosen = Selected(chosen=(1,), rung="text", unknown=2, repeated=1)
    scripted = Desk(chosen, text_limit=None, **WORDING)
    assert await verify(claim, scripted) == Kept(positions=(1,), unknown=2, repeated=1)
    assert scripted.asked == [("judge", asked)]
    scripted = Desk(Selected(chosen=(), rung="text"), text_limit=6, **WORDING)
    assert await verify(claim, scripted) == Kept(positions=(), cut=1)
    assert scripted.asked[0][1].options == ("a long", "short")
    # A claim without evidence needs no judge.
    scripted = Desk(text_limit=None, **WORDING)
    assert await verify(make_claim(1, "Opera"), scripted) == Kept(positions=())
    assert scripted.asked == []


def batches_of(options=None, **people):
    """The batches of what these people's claims name; some claims have no verdict."""
    verdicts = (Kept(positions=()), NoVerdict("schema"))
    pairs = [
        (make_claim(n, name, user=user), verdicts[n % 2])
        for user, names in people.items() for n, name in enumerate(names, start=1)
    ]  # fmt: skip
    return list(batches({"verify": recorded(pairs)}, None, options or Options()))


def test_each_distinct_interest_of_all_users_is_in_one_batch():
    first, second = batches_of(
        Options(interests_a_question=2), ada=["Green tea", "Rye  Bread"],
        ben=["green TEA", "Black tea"],
    )  # fmt: skip
    assert sorted(first.interests + second.interests) == ["black tea", "green tea", "rye bread"]
    assert (len(first.interests), first.id, second.id) == (2, "1", "2")
    assert first.user == second.user == "*"
    assert len(first.categories) == 325
    # Batches depend on the interests alone.
    names = [f"interest {n}" for n in range(40)]
    made = batches_of(ada=names[:25], ben=names[20:])
    assert made == batches_of(cem=[name.upper() for name in reversed(names)])
    assert made[0].interests != tuple(sorted(names)[:25])


def batch(*interests, bread=9):
    categories = Category(4, "Tea"), Category(bread, "Bread")
    return Batch(id="1", user="*", interests=interests, categories=categories)


def labelled(*labels):
    return Classified(labels=labels, rung="strict")


async def test_what_is_remembered_is_not_asked_and_what_was_written_first_holds():
    memory, both = {"rye": "4"}, {"rye": 4, "oolong": 4}
    scripted = Desk(labelled("Tea"), memory=memory)
    mapped = await map_interests(batch("rye", "oolong"), scripted)
    assert mapped == Mapped(categories=both, remembered=1)
    assert [question.texts for _, question in scripted.asked] == [("oolong",)]
    again = await map_interests(batch("rye", "oolong"), Desk(memory=memory))
    assert again == Mapped(categories=both, remembered=2)
    scripted, raced = Desk(labelled("Tea")), DictMemo({"rye": "9"})
    scripted.memo = lambda name: SimpleNamespace(known=lambda keys: {}, keep=raced.keep)
    assert (await map_interests(batch("rye"), scripted)).categories == {"rye": 9}
    first, second = Desk(labelled("Tea")), Desk(labelled("Tea"))
    await map_interests(batch("rye"), first)
    await map_interests(batch("rye", bread=8), second)
    assert first.memos != second.memos


async def test_what_got_no_category_is_asked_again_up_to_three_times():
    answers = (None, "Tea", None), (None, "Bread"), (None,), ("Tea",)
    scripted = Desk(*(labelled(*one) for one in answers))
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


@pytest.mark.parametrize(
    "verdict",
    [
        *map(NoVerdict, ("no_json", "schema", "empty", "truncated", "refused", "tied")),
        NoVerdict("no_quorum", behind=("no_json", "schema")),
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


@pytest.mark.parametrize(
    "verdict", [NoVerdict("schema"), NoVerdict("tied"), NoVerdict("no_quorum", behind=("schema",))]
)
async def test_a_taxonomist_without_any_category_that_exists_gives_no_verdict(verdict):
    for names in (("bomb 1",), ("bomb 1", "bomb 2", "bomb 3")):
        assert await map_interests(batch(*names), Spoiled(verdict, *names)) == NoVerdict(
            "no_category", f"none of {len(names)} interests has a category"
        )


@pytest.mark.parametrize(
    "verdict", [NoVerdict("timeout"), NoVerdict("no_quorum", behind=("schema", "timeout"))]
)
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
    assert asked() == {
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


async def test_the_size_of_the_pool_is_recorded_with_how_many_of_it_have_a_recorded_interest():
    for people, many in (
        (PEOPLE, 4), ({"ada": ("a", {"Tea": "a"})}, 1),
        ({"ada": ("q", {"Tea": "q"}), "ben": ("a", {})}, 0),
    ):  # fmt: skip
        size = Neighbours(id=SIZE, user="*", pool=PoolSize(objects=len(POOL), recorded=many))
        for way in ("users", "interests", "texts"):
            assert found(people, overlap=way)[SIZE] == size
    # Of the size no judge is asked.
    scripted = Desk(overlap="users", **WORDING)
    assert await find_overlap(size, scripted) == Overlapping(keys=())
    assert scripted.asked == []


def test_each_distinct_interest_is_asked_once_for_all_who_have_it():
    items = asked(overlap="interests")
    names = {"tea houses", "green tea", "rye bread"}
    assert {id: set(one.keys) for id, one in items.items()} == {
        f"{name}/1": names - {name} for name in names
    }
    assert {(one.user, one.options) for one in items.values()} == {("*", ())}
    # Texts of objects are cut, and the user's own left out.
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


@pytest.mark.parametrize(
    ("way", "keys", "options"),
    [("users", ("green tea", "salsa"), ()), ("texts", ("c", "b"), ("green tea", "salsa"))],
)
async def test_the_judge_names_options_and_their_keys_are_kept(way, keys, options):
    item = Neighbours(
        id="cem/1", user="cem", interests=("Rye Bread", "Dance"), keys=keys, options=options
    )
    chosen = Selected(chosen=(1,), rung="text", unknown=1, repeated=2)
    scripted = Desk(chosen, overlap=way, **WORDING)
    kept = Overlapping(keys=keys[1:], unknown=1, repeated=2)
    assert await find_overlap(item, scripted) == kept
    variables = {"interests": ["Rye Bread", "Dance"], "texts": way == "texts", **WORDING}
    asked = Select(
        prompt="overlap", subject="Rye Bread; Dance", options=("green tea", "salsa"),
        variables=variables,
    )  # fmt: skip
    assert scripted.asked == [("overlap_judge", asked)]


ASKING = {**WORDING, "test_set": 50, "min_distractors": 0}
HUNDRED = tuple(PoolObject(f"p{n}", f"pool text {n}") for n in range(1, 101))


def claim(user, number, interest, *evidence, part=1):
    objects, kept = evidence
    shown = (Evidence(one, f"text of {one}", (LIKED,)) for one in objects)
    item = make_claim(number, interest, shown, user=user, part=part)
    return item, kept if isinstance(kept, NoVerdict) else Kept(positions=kept)


def mapped(**categories):
    names = {name.replace("_", " "): id for name, id in categories.items()}
    return Batch(id="1", user="*", interests=tuple(names), categories=()), Mapped(categories=names)


def overlapping(id, keys, user="ada"):
    item = Neighbours(id=f"{id}/1", user=user, interests=(), keys=(), options=())
    return item, keys if isinstance(keys, NoVerdict) else Overlapping(keys=tuple(keys))


def drawn(claims, taxonomy, overlap=(), *, own=(), pool=HUNDRED, seed=0, way="users", **options):
    """The test sets of some claims, by id."""
    history = {"ada": [(one, one, LIKED) for one in own]}
    data = make_histories(history, pool=pool, seed=seed, signals=(LIKED,))
    pairs = {"verify": claims, "taxonomy": [taxonomy], "overlap": overlap}
    upstreams = {stage: recorded(of) for stage, of in pairs.items()}
    found = specificity.retrievals(upstreams, data, Options(overlap=way, **options))
    return {one.id: one for one in found}


def distractors(claims=(), *given, **more):
    """The objects of the pool among which the evidence of Ada's green tea is found again."""
    items = drawn([GREEN_TEA, *claims], mapped(green_tea=1), *given, **more)
    return {one.object for one in items["ada/1"].objects if one in HUNDRED}


GREEN_TEA = claim("ada", 1, "Green Tea", "abcdefg", (0, 1))


def test_five_objects_of_the_evidence_stand_among_distractors_fifty_in_all():
    [item] = drawn([GREEN_TEA], mapped(green_tea=1), own="abcdefg").values()
    objects = [one.object for one in item.objects]
    backing = {objects[place] for place in item.backing}
    assert (item.id, item.interest, item.number) == ("ada/1", "Green Tea", 1)
    assert (len(objects), len(set(objects)), len(backing)) == (50, 50, 5)
    assert backing <= set("abcdefg")
    assert item.backing != (0, 1, 2, 3, 4)
    assert set(objects) - backing <= {one.object for one in HUNDRED}
    assert {one.text for one in item.objects if one.object in backing} == {
        f"text of {one}" for one in backing
    }
    parts = [claim("ada", 1, "Green Tea", *given, part=part)
             for part, given in enumerate((("abc", (0, 1)), ("d", ())), 1)]  # fmt: skip
    [item] = drawn(parts, mapped(green_tea=1)).values()
    assert {item.objects[place].object for place in item.backing} == set("abcd")


def test_what_is_of_the_user_or_interest_or_was_named_to_overlap_is_no_distractor():
    own = {f"p{n}" for n in range(1, 91, 2)}
    assert not distractors(own=own) & own
    others = [claim("ben", 1, "green  TEA", ["p1"], (0,)), claim("ben", 2, "Rye", ["p2"], (0,))]
    assert distractors(others, pool=HUNDRED[:2]) == {"p2"}
    # An object is none either if it or any interest recorded for it was named.
    tea_and_rye = [claim("ben", 1, "Tea Houses", ["p1", "p2"], ()),
                   claim("cem", 1, "Rye", ["p2", "p3"], ())]  # fmt: skip
    named = [claim("ben", n, name, [f"p{n}"], ())
             for n, name in enumerate(("Tea Houses", "Rye", "Green tea"), 1)]  # fmt: skip
    failed = [overlapping("ada", NoVerdict("schema")), overlapping("ada/2", ["rye"])]
    for way, others, said, own, left in (
        ("users", tea_and_rye, [overlapping("ada", ["tea houses"])], (), {"p3", "p4"}),
        ("texts", tea_and_rye, [overlapping("ada", ["p1"])], (), {"p2", "p3", "p4"}),
        # Asked by interest, it holds for everybody who has the interest.
        ("interests", named, [overlapping("green tea", ["tea houses"], "*")], (), {"p2", "p4"}),
        # Where the judge failed, only the user's own objects are taken out.
        ("users", named, failed, ["p1"], {"p2", "p3", "p4"}),
    ):
        assert distractors(others, said, own=own, pool=HUNDRED[:4], way=way) == left


def test_interests_of_categories_without_a_verified_one_are_not_asked():
    claims = [
        GREEN_TEA,
        claim("ada", 2, "Tea Houses", "h", ()),
        claim("ada", 3, "Rye", "ij", (0,)),
        claim("ada", 4, "Unmapped", "kl", (0, 1)),
        claim("ada", 5, "White Tea", "mn", NoVerdict("timeout")),
    ]
    taxonomy = mapped(green_tea=1, tea_houses=1, rye=2, white_tea=1)
    assert set(drawn(claims, taxonomy)) == {"ada/1", "ada/2", "ada/5"}
    assert set(drawn(claims, taxonomy, ask_all=True)) == {f"ada/{n}" for n in range(1, 6)}


def test_an_interest_draws_the_same_whatever_else_the_user_has_and_by_seed():
    rye_and_tea = [claim("ada", 1, "Rye", "ab", (0, 1)),
                   claim("ada", 2, "green  tea", "abcdefg", (0, 1))]  # fmt: skip
    alone = drawn([GREEN_TEA], mapped(green_tea=1))["ada/1"]
    beside = drawn(rye_and_tea, mapped(green_tea=1, rye=2))["ada/2"]
    assert (alone.objects, alone.backing) == (beside.objects, beside.backing)
    assert distractors() != distractors(seed=1)


def test_an_object_that_newly_overlaps_changes_the_test_sets_that_held_it_alone():
    interests = [claim("ada", n, f"Tea {n}", "abcdefg", (0, 1)) for n in range(1, 21)]
    taxonomy = mapped(**{f"tea_{n}": n for n in range(1, 21)})
    newly = [*interests, claim("ben", 1, "Tea Houses", ["p7"], ())]
    before = drawn(interests, taxonomy)
    after = drawn(newly, taxonomy, overlap=[overlapping("ada", ["tea houses"])])
    sets = {
        id: [{each.object for each in of[id].objects} for of in (before, after)] for id in before
    }
    held = {id for id, (objects, _) in sets.items() if "p7" in objects}
    # 45 of 100 are drawn for each of the twenty.
    assert 2 <= len(held) <= 18
    assert {id for id in before if before[id] != after[id]} == held
    assert all(sets[id][0] - sets[id][1] == {"p7"} for id in held)


async def test_the_judge_gets_the_interest_how_many_and_labelled_texts():
    claims = [claim("ada", 1, "Green Tea", "ab", (0, 1))]
    [item] = drawn(claims, mapped(green_tea=1), pool=HUNDRED[:1]).values()
    said = {"unknown": 1, "repeated": 2, "surplus": 3}
    scripted = Desk(Selected(chosen=(2, 0), rung="text", **said), **ASKING)
    assert await specificity.retrieve(item, scripted) == Found(positions=(2, 0), **said)
    asked = Select(
        prompt="specificity", subject="Green Tea", options=tuple(one.text for one in item.objects),
        labels=("item_0", "item_1", "item_2"), at_most=2, variables=WORDING,
    )  # fmt: skip
    assert scripted.asked == [("retrieval_judge", asked)]


@pytest.mark.parametrize(
    ("pool", "options", "asked"),
    [
        (19, {}, False), (20, {}, True), (4, {"min_distractors": 4}, True),
        (0, {"min_distractors": 0}, True),
        # A test set of ten has five distractors, and needs no more.
        (5, {"test_set": 10}, True), (4, {"test_set": 10}, False),
    ],
)  # fmt: skip
async def test_among_too_few_distractors_the_judge_is_not_asked(pool, options, asked):
    [item] = drawn([GREEN_TEA], mapped(green_tea=1), pool=HUNDRED[:pool], **options).values()
    given = Options(**options)
    numbers = {name: getattr(given, name) for name in ("test_set", "min_distractors")}
    scripted = Desk(*[Selected(chosen=(0,), rung="text")] * asked, **WORDING, **numbers)
    found = await specificity.retrieve(item, scripted)
    assert found == (Found(positions=(0,)) if asked else Found(positions=(), asked=False))
    assert len(scripted.asked) == asked


def test_what_no_judge_was_asked_is_no_label_of_the_judge():
    [item] = drawn([GREEN_TEA], mapped(green_tea=1), pool=HUNDRED[:3]).values()
    run = SimpleNamespace(task=SimpleNamespace(run="r", task=SimpleNamespace(name="t")))
    for asked, labels in ((False, 0), (True, 8)):
        [record] = recorded([(item, Found(positions=(), asked=asked))])
        assert len(list(pairs_in(run, "retrieval", record))) == labels
