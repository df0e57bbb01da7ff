"""The data: published files, recorded groups, single behaviours, and solved examples."""

import json
import shutil
from collections import Counter

import pytest
from builders.texts import write_json_lines
from harness_perrecbench.records import Behaviour, Thing

from harness.base.errors import DataError

ANN = [("a", 5.0), ("b", 2.0), ("q", 1.0), ("c_by", 2.0), ("q", 4.0), ("d", 5.0)]
BOB = [("e", 1.0), ("b", 3.0), ("q", 2.0), ("f", 1.0)]
CID = [("q", 5.0), ("e", 4.0)]
PEOPLE = {"ann": ANN, "bob": BOB, "cid": CID}
GROUP = [("ann", 4, 4 - 19 / 6), ("bob", 2, 2 - 7 / 4)]
"""Ann's ratings average 19/6 and Bob's 7/4, so that Ann, at +5/6, comes before Bob, at +1/4."""


@pytest.fixture
def folder(publish):
    return publish(PEOPLE, groups={"q": [GROUP]})


def test_a_group_has_the_truth_of_its_users_and_authors_names_if_any(publish, load_data):
    items = {"q": {"title": "Q", "author": {"name": "Ann"}}, "e": {"title": "E", "author": {}}}
    folder = publish(PEOPLE, groups={"q": [GROUP]}, items={**items, "b": {"title": "B"}})
    [group] = load_data(folder, ask="listwise", profile="none").groups
    ann, bob = group.members
    assert (group.id, group.user, group.query) == ("q", "q", Thing(title="Q", author="Ann"))
    told = [(one.id, one.rating, one.rank) for one in (ann, bob)]
    assert told == [("ann", 4.0, 1), ("bob", 2.0, 2)]
    assert group.overall_average == pytest.approx(35 / 12)
    # Others than Ann rated q with 2 and 5, others than Bob with 1, 4 and 5.
    assert (ann.item_average, bob.item_average) == (3.5, pytest.approx(10 / 3))


def test_averages_are_of_the_whole_history_and_strictly_of_what_was_before(folder, load_data):
    def averages(**options):
        [group] = load_data(folder, ask="listwise", profile="no_text", **options).groups
        return [(one.average, one.common) for one in group.members]

    # 5, 2, 1, 2, 4, 5: as many fives as twos, and five came first.
    assert averages() == [(pytest.approx(19 / 6), 5.0), (1.75, 1.0)]
    # 5, 2, 1, 2 before Ann's second q; 1, 3 before Bob's.
    assert averages(strict=True) == [(2.5, 2.0), (2.0, 1.0)]


def test_a_published_folder_of_another_domain_is_refused(folder, load_data, tmp_path_factory):
    books = tmp_path_factory.mktemp("data") / "book-processed"
    shutil.copytree(folder, books)
    assert load_data(books, ask="listwise", profile="none", domain="book").groups
    for domain in ("all", "kitchen"):
        with pytest.raises(DataError, match=f"domain: {domain}, and groups in a folder book-pro"):
            load_data(books, ask="listwise", profile="none", domain=domain)


def test_behaviours_before_the_query_are_shown_and_strict_retrieval_is_by_words(folder, load_data):
    def shown(**options):
        [group] = load_data(folder, ask="listwise", profile="none", **options).groups
        return [[one.title for one in member.shown] for member in group.members], group.members[0]

    titles, ann = shown(k=16)
    assert [set(one) for one in titles] == [{"a", "b", "q", "c_by"}, {"e", "b"}]
    assert Behaviour(title="c_by", author="Someone", rating=2.0) in ann.shown
    assert len(ann.weights) == 4
    # Neither "e" nor "b" has to do with "q": by words, earlier behaviours come first.
    assert titles[1] == ["b", "e"]
    assert shown(tokens="words")[0][1] == shown(strict=True)[0][1] == ["e", "b"]


def test_profiles_are_the_data_s_or_to_be_made_strictly_of_what_was_before(publish, load_data):
    folder = publish(PEOPLE, groups={"q": [GROUP]}, profiles={"ann": "Likes it.", "bob": "  "})

    def made(**options):
        data = load_data(folder, ask="listwise", **options)
        told = {one.id: [(of.title, of.rating) for of in one.history] for one in data.people}
        of = {one.id: (one.user, told[one.id]) for one in data.people}
        return [(one.profile, one.profiled) for one in data.groups[0].members], of

    assert made() == ([("Likes it.", None), (None, "bob/4")], {"bob/4": ("bob", BOB)})
    assert made(strict=True) == (
        [(None, "ann/4"), (None, "bob/2")], {"ann/4": ("ann", ANN[:4]), "bob/2": ("bob", BOB[:2])},
    )  # fmt: skip


def test_a_long_history_is_cut_to_the_newest_that_fit_and_one_always(folder, load_data):
    # "### Item Title\nb\n### User Rating\n3.0" has 36 characters, and so have Bob's others.
    data = load_data(folder, ask="listwise", k=2, profile_characters=36 * 3 + 35)
    bob = next(one for one in data.people if one.user == "bob")
    assert [one.title for one in bob.history] == ["b", "q", "f"]
    assert bob.id == "bob/4"
    assert load_data.notes == {"users whose history was cut to the newest for their profile": 2}
    data = load_data(folder, ask="listwise", profile_characters=1)
    assert [[one.title for one in person.history] for person in data.people] == [["d"], ["f"]]


@pytest.mark.parametrize("right", [4 - 19 / 6, 4 - 5 / 2, 0.84])
def test_a_relative_rating_that_contradicts_the_history_is_noted(publish, load_data, right):
    # Ann rated q 4; she averages 19/6, and 5/2 before it. Bob rated it 2, and averages 7/4 and 2.
    folder = publish(PEOPLE, groups={"q": [[("ann", 4, right), ("bob", 2, 0.9)]]})
    [group] = load_data(folder, ask="listwise", profile="none", k=2).groups
    assert load_data.notes == {"users whose relative rating contradicts their history": 1}
    assert [one.rating for one in group.members] == [4.0, 2.0]


def test_each_member_is_a_question_rated_as_the_group_says(publish, load_data):
    members = [("bob", 2, 0.25), ("ann", 4, 5 / 6), ("cid", 1, -0.5)]
    folder = publish(PEOPLE, level="medium", groups={"q": [members]})
    data = load_data(folder, ask="pointwise", level="medium", profile="none")
    assert data.groups == ()
    assert [
        (one.id, one.user, one.place, one.of, one.member.id, one.member.rank)
        for one in data.singles
    ] == [("q/1", "q", 1, 3, "bob", 2), ("q/2", "q", 2, 3, "ann", 1), ("q/3", "q", 3, 3, "cid", 3)]
    assert [one.overall_average for one in data.singles] == pytest.approx([35 / 12] * 3)
    # Ann's third behaviour is of c_by, and Bob's history ends before his.
    folder = publish(PEOPLE, groups={"q": [[("ann", 3, 4 - 19 / 6), ("bob", 4, 2 - 7 / 4)]]})
    [found] = load_data(folder, ask="listwise", profile="none", k=3).groups
    assert [one.rating for one in found.members] == [4.0, 2.0]
    noted = "users with another item in their history where the query should stand"
    assert load_data.notes == {noted: 2}


def test_what_is_left_out_short_or_equal_is_noted(publish, load_data):
    # 1 - 1.3 and 2 - 2.3 differ by 6e-17 as floating numbers.
    members = [("ann", 4, 1 - 1.3), ("bob", 2, 2 - 2.3), ("cid", 1, -0.5)]
    folder = publish(PEOPLE, level="medium", groups={"q": [members]})
    [group] = load_data(folder, ask="listwise", level="medium", profile="none").groups
    assert [one.rank for one in group.members] == [1, 1, 3]
    assert load_data.notes["groups in which users share a relative rating"] == 1
    # Before the query Ann has four behaviours and Bob two.
    second = [("cid", 0, 0.5), ("ann", 4, 5 / 6)]
    folder = publish(PEOPLE, groups={"a": [], "q": [GROUP, second, second], "e": []})
    [group] = load_data(folder, ask="listwise", profile="none", k=4).groups
    assert (group.id, [one.id for one in group.members]) == ("q", ["ann", "bob"])
    assert load_data.notes == {
        "groups left out as not the first of their item": 2,
        "items left out as they have no group": 2,
        "users with fewer behaviours before the query than k": 1,
    }


def user(name, *, behaviours=4, **more):
    history = [{"title": f"{name}{number}", "rating": "4.0"} for number in range(behaviours)]
    return {
        "uid": name, "profile": f"Profile of {name}.", "avg": "3.2", "common": "5.0",
        "history": history, **more,
    }  # fmt: skip


def recorded(item, *users):
    return {"level": "easy", "item": item, "query": {"title": item}, "users": users}


def held_out(title, *users, ranks):
    users = [{key: value for key, value in one.items() if key != "uid"} for one in users]
    return {"query": {"title": title}, "users": users, "rank_vector": ranks, "k": 4}


def test_printed_numbers_are_numbers_and_only_whole_orders_are_the_truth(load_data, tmp_path):
    ann = user("ann")
    ann["history"][0] = {"title": "Emma", "author": "Jane Austen", "rating": "2.0"}
    write_json_lines(tmp_path / "groups-easy.jsonl", [recorded("i", ann, user("bob"))])
    [group] = load_data(tmp_path, ask="listwise").groups
    assert (group.id, group.user, group.query) == ("i", "i", Thing(title="i"))
    first = group.members[0]
    assert (first.id, first.average, first.common) == ("ann", 3.2, 5.0)
    assert first.profile == "Profile of ann."
    assert first.shown[0] == Behaviour(title="Emma", author="Jane Austen", rating=2.0)
    assert first.shown[3] == Behaviour(title="ann3", rating=4.0)
    assert (first.weights, first.rating, first.item_average) == ((), None, None)
    assert group.overall_average is None
    users = user("ann"), user("bob"), user("cid")
    labels = [{"item": "i", "order": [2, 3, 1]}, {"item": "j", "pairs_prefer": [[1, 2]]}]
    groups = [recorded("i", *users), recorded("j", *users)]
    write_json_lines(tmp_path / "groups-medium.jsonl", groups)
    write_json_lines(tmp_path / "labels/labels-medium.jsonl", labels)
    data = load_data(tmp_path, ask="pointwise", level="medium")
    assert {one.id: (one.member.id, one.member.rank) for one in data.singles} == {
        "i/1": ("ann", 3), "i/2": ("bob", 1), "i/3": ("cid", 2),
        "j/1": ("ann", None), "j/2": ("bob", None), "j/3": ("cid", None),
    }  # fmt: skip
    assert load_data.notes == {"groups without a whole true order": 1}


def test_held_out_groups_have_ranks_and_lasting_ids(load_data, tmp_path):
    first = held_out("i", user("ann"), user("bob"), ranks=[2, 1])
    rows = [first, held_out("i", user("cid"), user("dan"), ranks=[1, 2])]

    def told(rows, **options):
        write_json_lines(tmp_path / "heldout-easy.jsonl", rows)
        data = load_data(tmp_path, ask="listwise", split="held_out", **options)
        return {
            (one.id, *(member.id for member in one.members)): [
                (member.shown[0].title, member.rank) for member in one.members
            ]
            for one in data.groups
        }

    found = told(rows)
    ranks = [[("ann0", 2), ("bob0", 1)], [("cid0", 1), ("dan0", 2)]]
    assert sorted(found.values()) == ranks
    assert len({id for ids in found for id in ids}) == 6
    assert told(rows[::-1], k=1, profile="none") == found


@pytest.mark.real_data
def test_the_recorded_groups_load(real_data, load_data):
    folder = real_data / "perrecbench"
    for level, members, labelled in (("easy", 2, 130), ("medium", 3, 8)):
        groups = load_data(folder, ask="listwise", level=level).groups
        assert len(groups) == len({one.id for one in groups}) == 200
        assert {len(one.members) for one in groups} == {members}
        assert {len(member.shown) for one in groups for member in one.members} == {4}
        assert load_data.notes == {"groups without a whole true order": 200 - labelled}
    groups = load_data(folder, ask="listwise", split="held_out").groups
    assert len({one.id for one in groups}) == 463
    ranks = Counter(tuple(member.rank for member in one.members) for one in groups)
    assert ranks == {(2, 1): 241, (1, 2): 222}


EARLIER = [(f"b{place}", 4.0) for place in range(20)]
RATERS = {"ann": [*EARLIER, ("p", 4.0), ("q", 1.0), ("b3", 2.0), ("r", 3.0)]}
RATERS["bob"] = [*EARLIER, ("q", 5.0)]
"""Twenty ratings stand before p and Bob's q, and more before Ann's q, b3 and r."""


@pytest.fixture
def listed(publish):
    """Writes the published files with a list of behaviours: user, item, ratings before, rating."""

    def write(*behaviours):
        names = ("user_id", "parent_asin", "history_len", "rating")
        rows = [dict(zip(names, one, strict=True), timestamp=1) for one in behaviours]
        folder = publish(RATERS)
        (folder / "sample_behavior.json").write_text(json.dumps(rows))
        return folder

    return write


def test_each_behaviour_of_the_published_list_is_asked_about_once(listed, load_data):
    folder = listed(("ann", "q", 21, 1.0), *[("bob", "q", 20, 5.0)] * 2)
    data = load_data(folder, ask="rating", profile="none")
    ann, bob = sorted(data.singles, key=lambda one: one.id)
    assert (ann.id, ann.user, ann.place, ann.of) == ("q/ann", "ann", 1, 1)
    assert (bob.id, bob.user, bob.query) == ("q/bob", "bob", Thing(title="q"))
    assert (ann.member.rating, bob.member.rating) == (1.0, 5.0)
    assert (ann.member.item_average, bob.member.item_average) == (5.0, 1.0)
    # Ann's are 21 fours, 1, 2 and 3, Bob's 20 fours and 5.
    assert (ann.member.average, ann.overall_average) == pytest.approx((90 / 24, (90 + 85) / 45))
    assert (ann.member.rank, data.groups) == (None, ())
    assert load_data.notes == {"behaviours left out as their user and item came before": 1}


def test_behaviours_with_twenty_before_are_drawn_as_many_as_asked_for(publish, load_data):
    def drawn(folder, **more):
        singles = load_data(folder, ask="rating", profile="none", **more).singles
        return {one.id: (one.member.rating, one.member.item_average) for one in singles}

    assert drawn(publish(RATERS)) == {"q/ann": (1.0, 5.0), "r/ann": (3.0, None)}
    long = [*EARLIER, ("p", 4.0), *((f"q{place}", 3.0) for place in range(30))]
    folder = publish({"ann": long, "bob": long})
    assert len(drawn(folder)) == 60
    twenty = [*drawn(folder, behaviours=20)]
    assert len(twenty) == 20
    assert twenty == [*drawn(folder, behaviours=30)][:20]
    assert [*drawn(folder, behaviours=20, limit=5)] == twenty[:5]
    assert twenty != [*drawn(folder, behaviours=20, seed=1)]


LONG = [(f"b{place}", 1.0 + place % 5) for place in range(16)]
CROWD = {
    "ann": [*LONG, ("q", 4.0), ("later", 5.0)],
    "bob": [*LONG, ("q", 2.0)],
    "cid": [("a", 2.0), ("x", 4.0), ("y", 3.0), ("z", 2.0)],
    "dan": [("b", 3.0), ("y", 1.0), ("x", 3.0), ("z", 5.0)],
    "eve": [("c", 1.0), ("x", 5.0), ("z", 4.0), ("y", 2.0)],
}
ASKED = [("ann", 16, 1.0), ("bob", 16, -1.0)]
HELD_OUT = {
    "x": [[("cid", 1, 1.2), ("dan", 2, 0.1)]],
    "y": [[("dan", 1, -2.0), ("cid", 2, 0.3)]],
    "z": [[("dan", 3, 2.0), ("eve", 2, 1.0)], [("eve", 2, 1.0), ("cid", 3, -0.7)]],
}


@pytest.fixture
def crowd(publish):
    return publish(CROWD, groups={"q": [ASKED]}, held_out=HELD_OUT)


@pytest.mark.parametrize("ask", ["pointwise", "rating"])
def test_examples_of_a_user_are_from_the_thirteenth_behaviour_on(crowd, load_data, ask):
    (crowd / "sample_behavior.json").write_text(
        '[{"user_id": "ann", "parent_asin": "q", "history_len": 16, "rating": 4.0}]'
    )
    single = load_data(crowd, ask=ask, profile="none", shots=4).singles[0]
    assert single.member.id == "ann"
    places = [int(one.query.title[1:]) for one in single.examples]
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
def test_published_examples_search_with_the_behaviour(publish, load_data, style, shown):
    # The question's block holds the word "of", a behaviour does not: all others are equal then.
    crowd = publish(CROWD, groups={"q": [ASKED]}, items={"b3": {"title": "song of it"}})
    more = {"ask": "pointwise", "profile": "none", "shots": 4, "k": 1}
    single = load_data(crowd, shot_style=style, **more).singles[0]
    examples = sorted(single.examples, key=lambda one: int(one.query.title[1:]))
    assert [one.members[0].shown[0].title for one in examples] == shown
    assert single.member.shown[0].title == "song of it"


def test_strict_examples_are_not_of_the_query_nor_show_it(publish, load_data):
    history = [("q", 1.0), *LONG[1:13], ("q", 1.0), *LONG[13:], ("q", 4.0)]
    crowd = publish(
        {"ann": history, "bob": history}, groups={"q": [[("ann", 17, 1.0), ("bob", 17, 0.5)]]}
    )
    more = {"ask": "pointwise", "profile": "none", "shots": 4, "k": 16}
    titles = {
        strict: {
            thing.title
            for single in load_data(crowd, strict=strict, **more).singles
            for example in single.examples
            for thing in (example.query, *example.members[0].shown)
        }
        for strict in (False, True)
    }
    assert "q" in titles[False]
    assert "q" not in titles[True]


def test_examples_of_lists_are_held_out_groups_with_the_order_of_their_users(crowd, load_data):
    [group] = load_data(crowd, ask="listwise", profile="none", shots=4).groups
    found = {tuple(user.id for user in one.members): one for one in group.examples}
    assert {users: (one.query.title, one.answer[-7:-1]) for users, one in found.items()} == {
        ("cid", "dan"): ("x", "[1, 2]"), ("dan", "cid"): ("y", "[2, 1]"),
        ("dan", "eve"): ("z", "[1, 2]"), ("eve", "cid"): ("z", "[1, 2]"),
    }  # fmt: skip
    shown = {user.id: {one.title for one in user.shown} for user in found["dan", "cid"].members}
    assert shown == {"dan": {"b"}, "cid": {"a", "x"}}


@pytest.fixture
def medium(publish):
    """A group of three, and twenty held-out ones in which Dan likes a thing most, then Eve."""
    held = {f"x{n}": [[("cid", 1, -1.0), ("dan", 2, 1.0), ("eve", 1, 0.0)]] for n in range(20)}
    groups = {"q": [[*ASKED, ("fay", 16, 0.0)]]}
    return publish({**CROWD, "fay": CROWD["ann"]}, level="medium", groups=groups, held_out=held)


@pytest.mark.parametrize(
    ("style", "answer"), [("corrected", "[2, 3, 1]"), ("published", "[3, 1, 2]")]
)
def test_the_published_style_tells_ranks_instead_of_orders(medium, load_data, style, answer):
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


def test_no_example_is_of_the_query_of_an_asked_user_or_of_the_group(publish, load_data):
    held = {
        **HELD_OUT,
        "q": [[("cid", 1, 1.0), ("dan", 1, 0.0)]],
        "v": [[("ann", 3, 1.0), ("eve", 1, 0.0)]],
        "w": [[("cid", 1, 1.0), ("dan", 1, 1.0)]],
    }
    folder = publish(CROWD, groups={"q": [ASKED]}, held_out=held)
    with pytest.raises(DataError, match="4 of 7 about other things"):
        load_data(folder, ask="listwise", profile="none", shots=5)
    more = {"ask": "pairwise", "profile": "none", "split": "held_out"}
    folder = publish(CROWD, groups={"q": [ASKED]}, held_out=HELD_OUT)
    assert len(load_data(folder, limit=1, shots=0, **more).groups) == 1
    with pytest.raises(DataError, match="too few held-out groups"):
        load_data(folder, shots=4, **more)


def test_examples_are_drawn_anew_for_each_group_and_seed(publish, load_data):
    held = {f"x{number}": [[("cid", 1, 1.2), ("dan", 2, 0.1)]] for number in range(40)}
    crowd = publish(CROWD, groups={"q": [ASKED], "p": [ASKED]}, held_out=held)

    def things(**more):
        groups = load_data(crowd, ask="listwise", profile="none", shots=3, **more).groups
        return {one.id: [example.query.title for example in one.examples] for one in groups}

    assert things() == things()
    assert things()["q"] != things()["p"]
    assert things(seed=1)["q"] != things()["q"]
    assert things(limit=1).items() <= things().items()


def test_profiles_of_those_in_examples_are_made_but_for_pairs_as_published(crowd, load_data):
    def made(ask="listwise", **options):
        data = load_data(crowd, ask=ask, **options)
        [group] = data.groups
        shown = {(user.profile, user.profiled) for one in group.examples for user in one.members}
        return {one.id for one in data.people}, shown

    people, shown = made(shots=4)
    assert people == {"ann/18", "bob/17", "cid/4", "dan/4", "eve/4"}
    assert shown == {(None, "cid/4"), (None, "dan/4"), (None, "eve/4")}
    assert made(shots=4, strict=True)[0] == {
        "ann/16", "bob/16", "cid/1", "dan/2", "dan/1", "cid/2", "dan/3", "eve/2", "cid/3",
    }  # fmt: skip
    # The pairs of the published examples show no profile.
    assert made("pairwise", shots=1, shot_style="published") == (
        {"ann/18", "bob/17"}, {(None, None)},
    )  # fmt: skip
