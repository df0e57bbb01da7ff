"""Behaviours that stand alone: those of the published list, or drawn from histories."""

import json

import pytest
from harness_perrecbench.records import Thing

EARLIER = [(f"b{place}", 4.0) for place in range(20)]
PEOPLE = {
    "ann": [*EARLIER, ("p", 4.0), ("q", 1.0), ("b3", 2.0), ("r", 3.0)],
    "bob": [*EARLIER, ("q", 5.0)],
}
"""Twenty ratings stand before p and Bob's q, and more before Ann's q, b3 and r."""


@pytest.fixture
def listed(publish):
    """Writes the published files with a list of behaviours: user, item, ratings before, rating."""

    def write(*behaviours):
        names = ("user_id", "parent_asin", "history_len", "rating")
        rows = [dict(zip(names, one, strict=True), timestamp=1) for one in behaviours]
        folder = publish(PEOPLE)
        (folder / "sample_behavior.json").write_text(json.dumps(rows))
        return folder

    return write


def test_the_published_list_is_asked_about(listed, load_data):
    folder = listed(("ann", "q", 21, 1.0), ("bob", "q", 20, 5.0))
    data = load_data(folder, ask="rating", profile="none")
    ann, bob = sorted(data.singles, key=lambda one: one.id)
    assert (ann.id, ann.user, ann.place, ann.of) == ("q/ann", "ann", 1, 1)
    assert (bob.id, bob.user, bob.query) == ("q/bob", "bob", Thing(title="q"))
    assert (ann.member.rating, bob.member.rating) == (1.0, 5.0)
    assert (ann.member.item_average, bob.member.item_average) == (5.0, 1.0)
    # Ann's are 21 fours, 1, 2 and 3, Bob's 20 fours and 5.
    assert ann.member.average == pytest.approx(90 / 24)
    assert ann.overall_average == pytest.approx((90 + 85) / 45)
    assert (ann.member.rank, data.groups) == (None, ())


def test_a_behaviour_that_comes_again_counts_once(listed, load_data):
    folder = listed(*[("bob", "q", 20, 5.0)] * 2)
    assert len(load_data(folder, ask="rating", profile="none").singles) == 1
    assert load_data.notes == {"behaviours left out as their user and item came before": 1}


def test_behaviours_are_drawn_where_more_than_twenty_came_before_the_first_of_its_item(
    publish, load_data
):
    data = load_data(publish(PEOPLE), ask="rating", profile="none")
    found = {one.id: (one.member.rating, one.member.item_average) for one in data.singles}
    assert found == {"q/ann": (1.0, 5.0), "r/ann": (3.0, None)}


def test_as_many_are_drawn_as_asked_for_and_a_limit_takes_the_first(publish, load_data):
    long = [*EARLIER, ("p", 4.0), *((f"q{place}", 3.0) for place in range(30))]
    folder = publish({"ann": long, "bob": long})

    def ids(**more):
        return [one.id for one in load_data(folder, ask="rating", profile="none", **more).singles]

    assert (len(ids()), len(ids(behaviours=20))) == (60, 20)
    assert ids(behaviours=20) == ids(behaviours=30)[:20]
    assert ids(behaviours=20, limit=5) == ids(behaviours=20)[:5]
    assert ids(behaviours=20) != ids(behaviours=20, seed=1)
