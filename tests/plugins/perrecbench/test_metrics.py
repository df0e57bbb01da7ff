"""Scores worked out by hand, whichever way a ranking was asked for."""

from math import sqrt

import pytest
from builders.perrecbench import make_comparisons, make_member
from builders.perrecbench import make_group as group
from builders.records import make_records
from harness_perrecbench.metrics import METRICS, counts, score
from harness_perrecbench.records import (
    Behaviour,
    Compared,
    GroupResult,
    Options,
    Person,
    Ranked,
    Rated,
    Single,
    Thing,
)
from msgspec.structs import replace

from harness.contracts.outcomes import CallFailed, Unreadable
from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns, sound

QUERY = Thing(title="rye")
FAILED = Unreadable("schema")
BASELINE_ORDERS = ("random", "user_average", "higher_average_first", "lower_average_first")


def member(name, average, **more):
    return make_member(name, average, **{"shown": (Behaviour(title="bread", rating=5.0),), **more})


ADA = member("ada", 4.5, rank=2, rating=4.0)
BEN = member("ben", 2.5, rank=1, rating=5.0)
CLEO = member("cleo", 3.5, rank=3, rating=1.0)


def rated(*ratings, members=(ADA, BEN, CLEO), item="item"):
    """Records of the stage "rate" of one group, last user first."""
    found = []
    for place, (one, rating) in enumerate(zip(members, ratings, strict=True), start=1):
        single = Single(
            id=f"{item}/{place}", user=item, query=QUERY, member=one, place=place, of=len(members)
        )
        failed = isinstance(rating, Unreadable | CallFailed)
        found.append((single, rating if failed else Rated(rating=rating, answers=(rating,))))
    return found[::-1]


def ranked(*order):
    return Ranked(order=order, answers=(order,))


def only(stage, *pairs, **options):
    (one,) = score({stage: make_records(pairs)}, Options(**options))
    return one


def summary(stage, *pairs):
    scores = score({stage: make_records(pairs)}, Options())
    columns = Columns(METRICS, map(sound, scores))
    return columns.results(interval=IntervalSpec(), seed=0, task="perrec")


def test_ratings_are_ranked_by_what_they_leave_of_the_averages():
    # 5 - 4.5, 3 - 2.5 and 1 - 3.5: ada and ben tie, cleo is last; ben is truly first, then ada.
    found = only("rate", *rated(5, 3, 1))
    assert (found.id, found.user, found.missing, found.counts) == ("item", "item", {}, {})
    assert found.details == GroupResult(
        item="item", averages=(4.5, 2.5, 3.5), truth=(2, 1, 3), ranks=(1, 1, 3), order=(2, 1, 3),
        ratings=(4.0, 5.0, 1.0), predicted=(5.0, 3.0, 1.0), baselines=found.details.baselines,
        guesses={"user_average": (4.5, 2.5, 3.5)},
    )  # fmt: skip
    for name, value in {
        "ptc": 2 / 3,
        # Orders 2, 1, 3 and 2, 1, 3: of equal ratings the later user comes first.
        "ptc_published": 1.0,
        "tau_b": 2 / sqrt(2 * 3),
        "exact": 0.0,
        "like_higher_average": (1 * 0 + 1 - 1) / 3,
        "mae": (1 + 2 + 0) / 3,
        "squared_error": (1 + 4 + 0) / 3,
    }.items():
        assert found.values[name] == pytest.approx(value), name


def test_who_ties_everybody_has_no_tau_b_and_who_is_left_out_comes_last():
    found = only("rate", *rated(4.5, 2.5, 3.5))
    assert (found.values["ptc"], found.missing) == (0, {"tau_b": "all_tied"})
    # Slices are the number of users and the domain that the task names.
    assert found.slices == {"users": "3"}
    of_one = only("rank", (group(ADA, BEN), ranked(1, 2)), domain="books")
    assert of_one.slices == {"domain": "books", "users": "2"}
    members = (member("a", 3.0, rank=1), member("b", 3.5, rank=3), member("c", 4.0, rank=2))
    found = only("rank", (group(*members), ranked(1, 3, 3)))
    assert (found.details.ranks, found.details.order) == ((1, 3, 2), (1, 3, 3))
    assert found.values["ptc"] == 1
    # Places 1, 3, 3 against 1, 3, 2: two pairs agree, the third is tied in the first list.
    assert found.values["ptc_published"] == pytest.approx(2 / sqrt(2 * 3))


def test_comparisons_tell_of_first_places_and_unreadable_ones_count_no_better_than_the_order():
    dan = member("dan", 3.0, rank=4)
    told = make_comparisons("12BA", "13AA", "23A-", "14AB")
    value = Compared(order=(2, 1, 3, 4), ranks=(2, 1, 2, 4), comparisons=told)
    found = only("compare", (group(ADA, BEN, CLEO, dan), value))
    # A was named in five of seven answers; of three comparisons read whole, one named both.
    assert {
        "ptc": pytest.approx(5 / 6), "ptc_published": 1, "first_position": 5 / 7,
        "inconsistent": 1 / 3, "undecided": 2 / 4, "unreadable_comparisons": 1 / 4,
    }.items() <= found.values.items()  # fmt: skip
    # The second pair of users counts as 0 where what is missing is counted.
    assert found.worst == {"ptc": pytest.approx(4 / 6)}
    assert found.parts == dict.fromkeys(
        ("ptc", "ptc_published", "tau_b", "exact", "like_higher_average", "first_position",
         "inconsistent"), (1, 4)
    )  # fmt: skip
    # True order: ben, ada, cleo. Of the order cleo, ada, ben each pair is wrong: ptc -1. The
    # comparison of ada and cleo could not be read; counted as 0 it would give -2/3.
    told = make_comparisons("12AB", "23BA", "13B-")
    pair = group(ADA, BEN, CLEO), Compared(order=(3, 1, 2), ranks=(2, 3, 1), comparisons=told)
    assert only("compare", pair).worst == {"ptc": -1.0}
    # A third of the comparisons is missing; the other taus are -1 too, and none becomes better.
    found = summary("compare", pair)
    assert [found[name].counted_as_worst for name in ("ptc", "tau_b")] == [-1.0, -1.0]


@pytest.mark.parametrize(
    ("failure", "value", "missing"),
    [
        (Unreadable("none_named"), 1.0, None),
        (Unreadable("no_profile"), None, "profile/no_profile"),
        (CallFailed("timeout"), None, "compare/timeout"),
    ],
)
def test_a_group_without_a_readable_comparison_is_unreadable_or_failed(failure, value, missing):
    found = only("compare", (group(ADA, BEN), failure))
    assert found.values.get("unreadable_comparisons") == value
    assert found.missing.get("unreadable_comparisons") == missing


AGREEMENT = ("like_higher_average", "ptc", "ptc_published", "tau_b", "exact")


def test_one_unreadable_user_makes_the_group_unreadable_and_the_first_gives_the_cause():
    found = only("rate", *rated(5, CallFailed("timeout"), Unreadable("no_json")))
    assert found.missing == dict.fromkeys((*AGREEMENT, "mae", "squared_error"), "rate/timeout")
    own = {"labelled", "mae_user_average", "squared_error_user_average"}
    assert set(found.values) == {*BASELINE_ORDERS, *own}
    assert found.details.ranks is found.details.predicted is None
    assert found.details.truth == (2, 1, 3)


@pytest.mark.parametrize(
    ("stage", "own"), [("rank", ()), ("compare", ("first_position", "inconsistent", "undecided"))]
)
def test_an_unreadable_group_keeps_its_baselines(stage, own):
    found = only(stage, (group(ADA, BEN), FAILED))
    assert found.missing == dict.fromkeys((*AGREEMENT, *own), f"{stage}/schema")
    assert [found.values[name] for name in BASELINE_ORDERS[1:]] == [0, -1, 1]
    assert found.values["random"] in (1, -1)
    # |4.5 - 4| and |2.5 - 5|
    assert found.values["mae_user_average"] == 1.5


def test_groups_without_a_label_or_true_ratings_are_counted_and_have_no_such_scores():
    unlabelled = group(member("a", 4.0, rank=1), member("b", 3.0))
    read, unread = only("rank", (unlabelled, ranked(1, 2))), only("rank", (unlabelled, FAILED))
    assert read.values == {"like_higher_average": 1.0, "labelled": 0.0}
    assert (read.missing, unread.missing) == ({}, {"like_higher_average": "rank/schema"})
    assert read.counts == unread.counts == {"groups without a whole true order": 1}
    assert read.details.truth is None
    bare = (member("a", 4.0, rank=1), member("b", 3.0, rank=2))
    read, unread = (only("rate", *rated(5, other, members=bare)) for other in (2, FAILED))
    assert read.values["ptc"] == 1
    for found in (read, unread):
        known = found.values | found.missing
        assert not [name for name in known if name.startswith(("mae", "squared_error"))]
        assert {"item_average", "both_averages", "bm25_ratings"}.isdisjoint(known)
        assert found.counts == {"groups without true ratings": 1}


def test_unreadable_groups_count_zero_beside_the_share_with_a_label_and_errors_are_of_users():
    bare = (member("a", 4.0), member("b", 3.0))
    found = summary(
        "rank",
        (group(ADA, BEN, item="one"), ranked(2, 1)),
        (group(ADA, BEN, item="two"), FAILED),
        *((group(*bare, item=name), ranked(1, 2)) for name in ("three", "four", "five")),
    )
    for name in ("ptc", "ptc_published", "exact"):
        one = found[name]
        assert (one.value, one.n, one.left_out) == (0.5, 1, 1.0), name
        assert one.missing == {"rank/schema": 1}, name
    assert (found["lower_average_first"].value, found["lower_average_first"].n) == (1, 2)
    labelled = found["labelled"]
    assert (labelled.value, labelled.n, labelled.baseline) == (2 / 5, 5, False)
    assert "cover the labelled groups only" in labelled.note
    told = {"one": (5, 1), "two": (4, 4)}.items()
    one, two = (rated(*ratings, members=(ADA, BEN), item=item) for item, ratings in told)
    found = summary("rate", *one, *two)
    # Errors 1, 4, 0 and 1; of the averages |4.5 - 4| and |2.5 - 5| twice.
    errors = [found[name].value for name in ("mae", "rmse", "rmse_user_average")]
    assert errors == pytest.approx([6 / 4, sqrt(18 / 4), sqrt((0.25 + 6.25) / 2)])


def test_a_behaviour_that_stands_alone_is_a_unit_of_its_own():
    shown = (Behaviour(title="bread", rating=5.0), Behaviour(title="trains", rating=1.0))
    ada = member("ada", 4.0, rating=3.0, shown=shown, weights=(1.0, 3.0), item_average=4.5)
    other = Single(id="tea/ada", user="ada", query=QUERY, member=ada, place=1, of=1)
    single = replace(other, id="rye/ada", overall_average=4.25)
    pairs = (single, Rated(rating=5, answers=(5,))), (other, Unreadable("truncated"))
    read, unread = score({"rate": make_records(pairs)}, Options(ask="rating"))
    assert read.values == {
        "mae": 2.0, "squared_error": 4.0,
        "mae_user_average": 1.0, "squared_error_user_average": 1.0,
        "mae_item_average": 1.5, "squared_error_item_average": 2.25,
        "mae_both_averages": 1.25, "squared_error_both_averages": 1.5625,
        # (5 + 3 * 1) / 4 = 2
        "mae_bm25_ratings": 1.0, "squared_error_bm25_ratings": 1.0,
    }  # fmt: skip
    assert (read.details.item, read.details.predicted) == ("rye", (5.0,))
    assert unread.missing == {"mae": "rate/truncated", "squared_error": "rate/truncated"}
    assert (unread.user, unread.counts) == ("ada", {})


def test_what_happened_in_the_run_is_counted():
    circle, half_read = make_comparisons("12AB", "23AB", "13BA"), make_comparisons("12-A")
    profiles = {"ada": "likes rye", "ben": Unreadable("empty"), "cleo": "likes tea"}
    told = [
        (group(ADA, BEN, CLEO), Compared(order=(1, 2, 3), ranks=(1, 1, 1), comparisons=circle)),
        (group(ADA, BEN), Compared(order=(1, 2), ranks=(1, 1), comparisons=half_read)),
        (group(ADA, CLEO), Unreadable("empty")),
    ]
    records = {
        "profile": make_records(
            (Person(id=f"{name}/1", user=name, history=()), text) for name, text in profiles.items()
        ),
        "compare": make_records(told),
    }
    assert counts(records, Options()) == {
        "profiles that could not be made": 1,
        "comparisons of two users": 4,
        "answers to comparisons that could not be read": 1,
        "triples of users preferred in a circle": 1,
    }
    assert counts({"rank": make_records(())}, Options()) == {}
