"""Cleaned titles, merging, and the arithmetic of memory, disk and GPU."""

import doctest
from functools import partial

import pytest
from builders.catalogue import write_curated
from harness_horizon.catalogue import merging, room, titles
from harness_horizon.catalogue.merging import at, merged, round_robin
from harness_horizon.catalogue.room import check_gpu, gpu_needs, room_of
from harness_horizon.catalogue.titles import (
    Titles,
    cleaned,
    distinct_titles,
    items_digest,
    sampled,
    table_of,
    true_titles,
)
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError

LONG = "x" * 9_990 + " " + "y" * 20


def test_the_examples_hold():
    for module in (merging, titles, room):
        found = doctest.testmod(module)
        assert found.failed == 0, module
        assert found.attempted > 0, module


@pytest.mark.parametrize(
    ("raw", "clean"),
    [(None, ""), ("None", ""), ("", ""), (" \n\t", ""), ("A\r\nthing\u00a0x ", "A thing x"),
     ("Cafe\u0301", "Café"), ("none", "none"), (LONG, LONG)],
)  # fmt: skip
def test_a_title_is_cleaned(raw, clean):
    assert cleaned(raw) == clean
    assert cleaned(clean) == clean


def test_titles_are_distinct_and_numbered_in_their_order(tmp_path):
    raw = ["B  thing", None, "None", "", "A", "B\nthing", LONG, "A "]
    found = distinct_titles(write_curated(tmp_path / "data", raw))
    assert found.to_pylist() == ["B thing", "A", LONG]
    index = Titles(table_of(found, [0, 2]))
    assert [index.position(one) for one in ("B thing", LONG, "A", "", "zz")] == [0, 1] + [None] * 3
    assert index.rows.tolist() == [0, 2]


def test_a_sample_keeps_all_true_titles(tmp_path):
    every = [f"title {number}" for number in range(100)]
    data = write_curated(tmp_path / "data", every, true=["title 7", " title  50", "None"])
    found = distinct_titles(data)
    assert true_titles(data) == {"title 7", "title 50"}
    rows = sampled(found, data, 10).tolist()
    assert len(rows) == 10 and {7, 50} <= set(rows) and rows == sorted(rows)
    assert set(rows) < set(sampled(found, data, 20).tolist())
    assert sampled(found, data, 1).tolist() == [7, 50]
    assert sampled(found, data, 1000).tolist() == list(range(100))


def test_the_digest_of_a_catalogue_is_that_of_its_items(tmp_path):
    first, second = (write_curated(tmp_path / one, [one]) for one in "ab")
    assert items_digest(first) != items_digest(second)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no complete build"):
        items_digest(tmp_path / "none")


def test_queries_take_turns_by_rank_and_no_title_comes_twice():
    lists = [[1, 2, 3], [1, 4, 5], [6, 1, 2]]
    found = [lists[query][place] for query, place in round_robin(lists, 100)]
    assert found == [1, 6, 2, 4, 3, 5]
    assert round_robin(lists, 2) == [(0, 0), (2, 0)]
    assert round_robin([[7, 8, 9]], 2) == [(0, 0), (0, 1)]
    assert round_robin([[7, 8], [7, 8]], 9) == [(0, 0), (0, 1)]
    assert round_robin([[], [5], []], 9) == [(1, 0)]
    assert round_robin([[], []], 9) == []


published = partial(merged, merge="published")

LISTS = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), min_size=1, max_size=10)


@given(LISTS, st.integers(1, 60), st.integers(1, 60))
def test_the_merge_at_a_smaller_k_is_the_beginning(lists, one, other):
    small, large = sorted((one, other))
    found = round_robin(lists, large)
    assert round_robin(lists, small) == found[:small] == at(found, small, "round_robin", len(lists))
    kept = [lists[query][place] for query, place in found]
    assert len(set(kept)) == len(kept) == min(large, len({one for own in lists for one in own}))


def test_published_keeps_a_tenth_of_each_query_with_what_is_there_twice():
    lists = [list(range(query, query + 100)) for query in range(10)]
    found = published(lists, 100)
    assert found == [(query, place) for query in range(10) for place in range(10)]
    for k in (10, 20, 50, 100):
        assert at(found, k, "published", 10) == published(lists, k)
        assert len(published(lists, k)) == k
    assert len(published(lists[:9], 100)) == 90
    assert at(published(lists[:9], 100), 20, "published", 9) == published(lists[:9], 20)
    assert at(published(lists + lists[:2], 100), 10, "published", 12) == published(lists, 10)
    assert published([[1, 2], [1, 2]], 100) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert at(published([[], []], 100), 50, "published", 2) == []


def test_the_room_of_35_million_titles_is_worked_out():
    whole, half = (room_of(35_000_000, 768, number) for number in (4, 2))
    assert round(whole.memory / 1e9) == 126
    assert round(half.memory / 1e9) == 72
    assert half.working - half.disk == 35_000_000 * 768 * 2
    assert round(gpu_needs(35_000_000, 768) / 1e9) == 57
    assert gpu_needs(1000, 768) < 2.1e9


def test_a_gpu_without_room_is_named_with_what_to_do():
    check_gpu(35_000_000, 768, 80_000_000_000)
    check_gpu(35_000_000, 768, None)
    with pytest.raises(DataError) as caught:
        check_gpu(35_000_000, 768, 48_000_000_000)
    said = str(caught.value)
    assert "48.0 GB free" in said and "57.4 GB: 35,000,000 x 768" in said and "device=cpu" in said
