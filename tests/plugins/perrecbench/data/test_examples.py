"""Solved questions before the real one: from whom, from when, and how their answers read."""

import pytest

from harness.base.errors import DataError

LONG = [(f"b{place}", 1.0 + place % 5) for place in range(16)]
PEOPLE = {
    "ann": [*LONG, ("q", 4.0), ("later", 5.0)],
    "bob": [*LONG, ("q", 2.0)],
    "cid": [("a", 2.0), ("x", 4.0), ("y", 3.0), ("z", 2.0)],
    "dan": [("b", 3.0), ("y", 1.0), ("x", 3.0), ("z", 5.0)],
    "eve": [("c", 1.0), ("x", 5.0), ("z", 4.0), ("y", 2.0)],
}
GROUP = [("ann", 16, 1.0), ("bob", 16, -1.0)]
HELD_OUT = {
    "x": [[("cid", 1, 1.2), ("dan", 2, 0.1)]],
    "y": [[("dan", 1, -2.0), ("cid", 2, 0.3)]],
    "z": [[("dan", 3, 2.0), ("eve", 2, 1.0)], [("eve", 2, 1.0), ("cid", 3, -0.7)]],
}


@pytest.fixture
def folder(publish):
    return publish(PEOPLE, groups={"q": [GROUP]}, held_out=HELD_OUT)


def of_places(singles):
    """Of each question the places in the history that its examples ask about."""
    return [[int(one.query.title[1:]) for one in single.examples] for single in singles]


@pytest.mark.parametrize("ask", ["pointwise", "rating"])
def test_examples_of_one_user_are_behaviours_from_the_thirteenth_on_before_the_query(
    folder, load_data, ask
):
    (folder / "sample_behavior.json").write_text(
        '[{"user_id": "ann", "parent_asin": "q", "history_len": 16, "rating": 4.0}]'
    )
    single = load_data(folder, ask=ask, profile="none", shots=4).singles[0]
    assert single.member.id == "ann"
    [places] = of_places([single])
    assert sorted(places) == [12, 13, 14, 15]
    for place, example in zip(places, single.examples, strict=True):
        [user] = example.members
        assert {int(one.title[1:]) for one in user.shown} < set(range(place))
        assert (len(user.shown), len(user.weights)) == (4, 4)
        assert user.rating == 1.0 + place % 5
        assert example.answer == f'{{"predicted_rating": {1 + place % 5}.0}}'
        assert (user.id, user.average) == ("ann", single.member.average)


@pytest.mark.parametrize(
    ("style", "shown"),
    [("corrected", ["song of it"] * 4), ("published", ["b11", "b12", "b13", "b14"])],
)
def test_in_the_published_style_examples_search_with_the_behaviour_not_with_the_question(
    publish, load_data, style, shown
):
    # The question's block holds the word "of", a behaviour does not: all others are equal then.
    folder = publish(PEOPLE, groups={"q": [GROUP]}, items={"b3": {"title": "song of it"}})
    more = {"ask": "pointwise", "profile": "none", "shots": 4, "k": 1}
    single = load_data(folder, shot_style=style, **more).singles[0]
    examples = sorted(single.examples, key=lambda one: int(one.query.title[1:]))
    assert [one.members[0].shown[0].title for one in examples] == shown
    assert single.member.shown[0].title == "song of it"


def test_strict_examples_are_not_of_the_query_nor_show_it(publish, load_data):
    history = [("q", 1.0), *LONG[1:13], ("q", 1.0), *LONG[13:], ("q", 4.0)]
    folder = publish(
        {"ann": history, "bob": history}, groups={"q": [[("ann", 17, 1.0), ("bob", 17, 0.5)]]}
    )
    more = {"ask": "pointwise", "profile": "none", "shots": 4, "k": 16}
    titles = {
        strict: {
            thing.title
            for single in load_data(folder, strict=strict, **more).singles
            for example in single.examples
            for thing in (example.query, *example.members[0].shown)
        }
        for strict in (False, True)
    }
    assert "q" in titles[False]
    assert "q" not in titles[True]


def test_examples_of_lists_are_held_out_groups_with_the_order_of_their_users(folder, load_data):
    [group] = load_data(folder, ask="listwise", profile="none", shots=4).groups
    found = {tuple(user.id for user in one.members): one for one in group.examples}
    assert {users: (one.query.title, one.answer) for users, one in found.items()} == {
        ("cid", "dan"): ("x", '{"predicted_ranking": [1, 2]}'),
        ("dan", "cid"): ("y", '{"predicted_ranking": [2, 1]}'),
        ("dan", "eve"): ("z", '{"predicted_ranking": [1, 2]}'),
        ("eve", "cid"): ("z", '{"predicted_ranking": [1, 2]}'),
    }
    shown = {user.id: {one.title for one in user.shown} for user in found["dan", "cid"].members}
    assert shown == {"dan": {"b"}, "cid": {"a", "x"}}


@pytest.fixture
def medium(publish):
    """A group of three, and twenty held-out ones in which Dan likes a thing most, then Eve."""
    held = {f"x{n}": [[("cid", 1, -1.0), ("dan", 2, 1.0), ("eve", 1, 0.0)]] for n in range(20)}
    groups = {"q": [[*GROUP, ("fay", 16, 0.0)]]}
    people = {**PEOPLE, "fay": PEOPLE["ann"]}
    return publish(people, level="medium", groups=groups, held_out=held)


@pytest.mark.parametrize(
    ("style", "answer"), [("corrected", "[2, 3, 1]"), ("published", "[3, 1, 2]")]
)
def test_the_published_style_tells_ranks_where_an_order_is_asked_for(
    medium, load_data, style, answer
):
    options = {"ask": "listwise", "level": "medium", "profile": "none", "shot_style": style}
    [group] = load_data(medium, shots=1, **options).groups
    assert group.examples[0].answer == f'{{"predicted_ranking": {answer}}}'


def test_examples_of_pairs_show_two_users_and_name_the_stronger_preference(medium, load_data):
    options = {"ask": "pairwise", "level": "medium", "profile": "none"}
    [group] = load_data(medium, shots=20, **options).groups
    strongest_first = ["dan", "eve", "cid"]
    shown = {tuple(user.id for user in one.members): one.answer for one in group.examples}
    assert len(shown) == 6
    for (first, second), answer in shown.items():
        right = strongest_first.index(first) < strongest_first.index(second)
        assert answer == ("[User A]" if right else "[User B]")


def test_no_example_is_about_the_query_or_of_a_user_who_is_asked_about(publish, load_data):
    held = {
        **HELD_OUT,
        "q": [[("cid", 1, 1.0), ("dan", 1, 0.0)]],
        "v": [[("ann", 3, 1.0), ("eve", 1, 0.0)]],
        "w": [[("cid", 1, 1.0), ("dan", 1, 1.0)]],
    }
    folder = publish(PEOPLE, groups={"q": [GROUP]}, held_out=held)
    with pytest.raises(DataError, match="4 of 7 about other things"):
        load_data(folder, ask="listwise", profile="none", shots=5)


def test_a_held_out_group_is_no_example_of_itself(folder, load_data):
    groups = load_data(folder, ask="pairwise", profile="none", split="held_out", limit=1, shots=0)
    with pytest.raises(DataError, match="too few held-out groups"):
        load_data(folder, ask="pairwise", profile="none", split="held_out", shots=4)
    assert len(groups.groups) == 1


def test_examples_are_drawn_anew_for_each_group_and_seed(publish, load_data):
    held = {f"x{number}": [[("cid", 1, 1.2), ("dan", 2, 0.1)]] for number in range(40)}
    folder = publish(PEOPLE, groups={"q": [GROUP], "p": [GROUP]}, held_out=held)

    def things(**more):
        groups = load_data(folder, ask="listwise", profile="none", shots=3, **more).groups
        return {one.id: [example.query.title for example in one.examples] for one in groups}

    assert things() == things()
    assert things()["q"] != things()["p"]
    assert things(seed=1)["q"] != things()["q"]
    assert things(limit=1).items() <= things().items()


def test_no_profile_is_made_for_pairs_as_published_which_show_none(folder, load_data):
    data = load_data(folder, ask="pairwise", shots=1, shot_style="published")
    groups = data.groups
    assert {person.user for person in data.people} == {
        one.id for group in groups for one in group.members
    }
    shown = [one for group in groups for example in group.examples for one in example.members]
    assert shown
    assert {(one.profile, one.profiled) for one in shown} == {(None, None)}


def test_profiles_of_those_in_examples_are_to_be_made_as_well(folder, load_data):
    data = load_data(folder, ask="listwise", shots=4)
    assert {one.id for one in data.people} == {"ann/18", "bob/17", "cid/4", "dan/4", "eve/4"}
    [group] = data.groups
    assert {
        user.profiled for one in group.examples for user in one.members
    } == {"cid/4", "dan/4", "eve/4"}  # fmt: skip
    strict = load_data(folder, ask="listwise", shots=4, strict=True)
    assert {one.id for one in strict.people} == {
        "ann/16", "bob/16", "cid/1", "dan/2", "dan/1", "cid/2", "dan/3", "eve/2", "cid/3",
    }  # fmt: skip


@pytest.mark.real_data
def test_recorded_groups_take_recorded_examples(real_data, load_data):
    groups = load_data(real_data / "perrecbench", ask="pairwise", shots=3, limit=20).groups
    assert {len(one.examples) for one in groups} == {3}
    for group in groups:
        for example in group.examples:
            first, second = example.members
            assert example.answer == ("[User A]" if first.rank < second.rank else "[User B]")
            assert len(first.shown) == len(second.shown) == 4
