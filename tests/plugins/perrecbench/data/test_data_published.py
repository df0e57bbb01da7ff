"""The published files: whom groups ask about, what is true of them, and what leaks where."""

import shutil

import pytest
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


def titles(member):
    return {one.title for one in member.shown}


def test_a_group_has_the_truth_of_its_users(folder, load_data):
    [group] = load_data(folder, ask="listwise", profile="none").groups
    ann, bob = group.members
    assert (group.id, group.user, group.query) == ("q", "q", Thing(title="q"))
    assert (ann.id, ann.rating, ann.rank) == ("ann", 4.0, 1)
    assert (bob.id, bob.rating, bob.rank) == ("bob", 2.0, 2)
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


def test_strict_retrieval_is_by_words_with_earlier_behaviours_first(folder, load_data):
    def shown(**options):
        [group] = load_data(folder, ask="listwise", profile="none", **options).groups
        return [one.title for one in group.members[1].shown]

    # Neither "e" nor "b" has to do with "q".
    assert shown() == ["b", "e"]
    assert shown(tokens="words") == shown(strict=True) == ["e", "b"]


def test_a_published_folder_of_another_domain_is_refused(folder, load_data, tmp_path_factory):
    books = tmp_path_factory.mktemp("data") / "book-processed"
    shutil.copytree(folder, books)
    assert load_data(books, ask="listwise", profile="none", domain="book").groups
    for domain in ("all", "kitchen"):
        with pytest.raises(DataError, match=f"domain: {domain}, and groups in a folder book-pro"):
            load_data(books, ask="listwise", profile="none", domain=domain)


def test_only_behaviours_before_the_query_are_shown(folder, load_data):
    [group] = load_data(folder, ask="listwise", profile="none", k=16).groups
    assert [titles(one) for one in group.members] == [{"a", "b", "q", "c_by"}, {"e", "b"}]
    assert Behaviour(title="c_by", author="Someone", rating=2.0) in group.members[0].shown
    assert [len(one.weights) for one in group.members] == [4, 2]


def test_profiles_are_the_data_s_or_still_to_be_made(publish, load_data):
    folder = publish(PEOPLE, groups={"q": [GROUP]}, profiles={"ann": "Likes it.", "bob": "  "})
    data = load_data(folder, ask="listwise")
    ann, bob = data.groups[0].members
    assert (ann.profile, ann.profiled, bob.profile, bob.profiled) == (
        "Likes it.", None, None, "bob/4",
    )  # fmt: skip
    [person] = data.people
    assert (person.id, person.user) == ("bob/4", "bob")
    assert [(one.title, one.rating) for one in person.history] == BOB


def test_strict_profiles_are_made_of_what_was_before(publish, load_data):
    folder = publish(PEOPLE, groups={"q": [GROUP]}, profiles={"ann": "Read d.", "bob": "Read f."})
    data = load_data(folder, ask="listwise", strict=True)
    assert [one.profile for one in data.groups[0].members] == [None, None]
    assert [one.profiled for one in data.groups[0].members] == ["ann/4", "bob/2"]
    assert [one.id for one in data.people] == ["ann/4", "bob/2"]
    assert [(one.title, one.rating) for one in data.people[0].history] == ANN[:4]


def test_a_long_history_is_cut_to_the_newest_that_fit_and_one_always(folder, load_data):
    # "### Item Title\nb\n### User Rating\n3.0" has 36 characters, and so have Bob's others.
    data = load_data(folder, ask="listwise", k=2, profile_characters=36 * 3 + 35)
    bob = next(one for one in data.people if one.user == "bob")
    assert [one.title for one in bob.history] == ["b", "q", "f"]
    assert bob.id == "bob/4"
    assert load_data.notes == {"users whose history was cut to the newest for their profile": 2}
    data = load_data(folder, ask="listwise", profile_characters=1)
    assert [[one.title for one in person.history] for person in data.people] == [["d"], ["f"]]


def test_a_relative_rating_that_contradicts_the_history_is_noted(publish, load_data):
    # Ann rated q 4; she averages 19/6, and 5/2 before it. Bob rated it 2, and averages 7/4 and 2.
    for right in (4 - 19 / 6, 4 - 5 / 2, 0.84):
        groups = {"q": [[("ann", 4, right), ("bob", 2, 0.9)]]}
        [group] = load_data(
            publish(PEOPLE, groups=groups), ask="listwise", profile="none", k=2
        ).groups
        assert load_data.notes == {"users whose relative rating contradicts their history": 1}
        assert [one.rating for one in group.members] == [4.0, 2.0]


def test_asked_one_by_one_each_member_is_a_question(publish, load_data):
    members = [("bob", 2, 0.25), ("ann", 4, 5 / 6), ("cid", 1, -0.5)]
    folder = publish(PEOPLE, level="medium", groups={"q": [members]})
    data = load_data(folder, ask="pointwise", level="medium", profile="none")
    assert data.groups == ()
    told = [(one.id, one.user, one.place, one.of, one.member.id) for one in data.singles]
    assert told == [
        ("q/1", "q", 1, 3, "bob"),
        ("q/2", "q", 2, 3, "ann"),
        ("q/3", "q", 3, 3, "cid"),
    ]
    assert [one.member.rank for one in data.singles] == [2, 1, 3]
    assert [one.overall_average for one in data.singles] == pytest.approx([35 / 12] * 3)


def test_a_query_that_is_not_in_its_place_is_rated_as_the_group_says(publish, load_data):
    # Ann's third behaviour is of c_by, and Bob's history ends before his.
    group = [("ann", 3, 4 - 19 / 6), ("bob", 4, 2 - 7 / 4)]
    folder = publish(PEOPLE, groups={"q": [group]})
    [found] = load_data(folder, ask="listwise", profile="none", k=3).groups
    assert [one.rating for one in found.members] == [4.0, 2.0]
    assert load_data.notes == {
        "users with another item in their history where the query should stand": 2
    }


def test_equal_relative_ratings_share_a_rank_and_are_noted(publish, load_data):
    # 1 - 1.3 and 2 - 2.3 differ by 6e-17 as floating numbers.
    members = [("ann", 4, 1 - 1.3), ("bob", 2, 2 - 2.3), ("cid", 1, -0.5)]
    folder = publish(PEOPLE, level="medium", groups={"q": [members]})
    [group] = load_data(folder, ask="listwise", level="medium", profile="none").groups
    assert [one.rank for one in group.members] == [1, 1, 3]
    assert load_data.notes["groups in which users share a relative rating"] == 1


def test_what_is_left_out_or_short_is_noted(publish, load_data):
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


def test_authors_are_names_where_there_are_any(publish, load_data):
    items = {
        "q": {"title": "Q", "author": {"name": "Ann"}},
        "e": {"title": "E", "author": {}},
        "b": {"title": "B"},
    }
    folder = publish(PEOPLE, groups={"q": [GROUP]}, items=items)
    [group] = load_data(folder, ask="listwise", profile="none").groups
    assert group.query == Thing(title="Q", author="Ann")
    assert {one.author for one in group.members[1].shown} == {None}
