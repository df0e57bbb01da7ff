"""Recorded groups: numbers as printed, labels where they are whole, and what they cannot give."""

from collections import Counter

import pytest
from builders.texts import write_json_lines
from harness_perrecbench.records import Behaviour, Thing


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


def test_printed_numbers_are_numbers(load_data, tmp_path):
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


def test_only_whole_orders_are_the_truth(load_data, tmp_path):
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
    rows = [
        held_out("i", user("ann"), user("bob"), ranks=[2, 1]),
        held_out("i", user("cid"), user("dan"), ranks=[1, 2]),
    ]

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


@pytest.fixture
def real(real_data):
    return real_data / "perrecbench"


@pytest.mark.real_data
@pytest.mark.parametrize(("level", "members", "labelled"), [("easy", 2, 130), ("medium", 3, 8)])
def test_the_recorded_groups_load(real, load_data, level, members, labelled):
    groups = load_data(real, ask="listwise", level=level).groups
    assert len(groups) == len({one.id for one in groups}) == 200
    assert {len(one.members) for one in groups} == {members}
    assert {len(member.shown) for one in groups for member in one.members} == {4}
    ranks = [tuple(member.rank for member in one.members) for one in groups]
    assert sum(None not in one for one in ranks) == labelled
    assert load_data.notes == {"groups without a whole true order": 200 - labelled}


@pytest.mark.real_data
def test_the_recorded_held_out_groups_load(real, load_data):
    groups = load_data(real, ask="listwise", split="held_out").groups
    assert len(groups) == len({one.id for one in groups}) == 463
    ranks = Counter(tuple(member.rank for member in one.members) for one in groups)
    assert ranks == {(2, 1): 241, (1, 2): 222}
