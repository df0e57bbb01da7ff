"""Segments: months merged forward, tails, parts of equal count; nothing lost, nothing moved."""

from datetime import UTC, datetime

import pytest
from builders.usersumbench import options
from harness_usersumbench.records import Activity
from harness_usersumbench.segments import by_count, by_months, segmented


def at(year, month, day=1, hour=0):
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp())


def months(*counts):
    """So many activities in each of consecutive calendar months, from January 2001 on."""
    return [
        Activity(at(2001 + place // 12, place % 12 + 1, 1 + number % 28), f"{number}", ("x",))
        for place, count in enumerate(counts)
        for number in range(count)
    ]


def sizes(segments):
    return [len(one) for one in segments]


@pytest.mark.parametrize(
    ("counts", "merged"),
    [
        ((19, 1, 20), [20, 20]),
        ((5, 5, 5, 5, 30), [20, 30]),
        ((10, 30, 10, 10), [40, 20]),
        ((20, 20, 19), [20, 39]),
        ((20, 1), [21]),
        ((5, 0, 0, 15, 25, 3, 0, 16), [20, 25 + 19]),
    ],
)
def test_months_are_merged_forward_and_a_small_tail_joins_the_one_before(counts, merged):
    past = months(*counts)
    found = by_months(past, least=20)
    assert sizes(found) == merged
    assert [one for segment in found for one in segment] == past


def test_months_are_those_of_utc_and_of_their_year():
    late = Activity(at(2001, 1, 31, 23), "late", ("x",))
    early = Activity(at(2001, 2, 1, 0), "early", ("x",))
    again = Activity(at(2002, 2, 1, 0), "a year on", ("x",))
    assert sizes(by_months([late, early, again], least=1)) == [1, 1, 1]


@pytest.mark.parametrize(
    ("count", "parts"),
    [
        (199, [49, 50, 50, 50]),
        (79, [26, 26, 27]),
        (59, [29, 30]),
        (39, [39]),
    ],
)
def test_parts_are_equal_and_large_enough(count, parts):
    past = months(count)
    found = by_count(past, most=4, least=20)
    assert sorted(sizes(found)) == parts
    assert [one for segment in found for one in segment] == past


def test_a_past_without_months_to_divide_it_is_cut_by_count_or_if_asked():
    asked = options(segmenting="count", segments=3, min_segment_activities=10)
    for past, given, by, cut in (
        (months(180), options(), "count", [45, 45, 45, 45]),
        (months(160, 20), options(), "months", [160, 20]),
        (months(20, 20, 20), asked, "count", [20, 20, 20]),
    ):
        found = segmented(past, given)
        assert (found.by, sizes(found.segments)) == (by, cut)
