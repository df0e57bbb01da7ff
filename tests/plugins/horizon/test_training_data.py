"""Training cases, vocabulary and the rules that count; none of it needs torch."""

from dataclasses import replace

import numpy as np
from harness_horizon.next_item.cases import ItemData, Options, Person
from harness_horizon.recommenders.rankers import neighbours, popular, scores_after
from harness_horizon.recommenders.training_data import (
    Vocabulary,
    padded,
    training_cases,
    validation_cases,
    windows,
)

from .conftest import made_data


def test_each_prefix_is_a_case():
    data = made_data([[30, 10, 20], [10], [20, 30]])
    [(histories, targets)] = training_cases(data).batches(10, 5)
    assert data.vocabulary.items.tolist() == [10, 20, 30]
    assert histories.tolist() == [[3, 0], [3, 1], [2, 0]]
    assert targets.tolist() == [1, 2, 3]


def test_long_histories_keep_their_latest_items():
    data = made_data([list(range(1, 8))])
    cases = training_cases(data)
    batches = list(cases.batches(2, 3, np.array([5, 0, 2])))
    assert [one.tolist() for one, _ in batches] == [[[4, 5, 6], [1, 0, 0]], [[1, 2, 3]]]
    assert [one.tolist() for _, one in batches] == [[7, 2], [4]]


def test_validation_skips_unknown_items_and_counts_unknown_targets_as_misses():
    data = made_data([[1, 2, 3]], [[1, 9, 2, 3], [9, 1], [2, 9], [3, 1, 9, 2]])
    [(histories, targets)] = validation_cases(data).batches(10, 5)
    assert (histories.tolist(), targets.tolist()) == ([[1, 2], [2, 0], [3, 1]], [3, 0, 2])
    # All items from the first one asked are targets.
    data = replace(made_data([[1, 2, 3]]), asked=np.array([1]))
    [(histories, targets)] = validation_cases(data).batches(10, 5)
    assert (histories.tolist(), targets.tolist()) == ([[1, 0], [1, 2]], [2, 3])


def test_unknown_items_have_no_number():
    known = Vocabulary(np.array([4, 7, 9]))
    assert known.numbers(np.array([9, 5, 4, 100, -1])).tolist() == [3, 0, 1, 0, 0]
    assert Vocabulary(np.array([], dtype=np.int64)).numbers(np.array([1])).tolist() == [0]
    rows = [np.array([3, 0, 1, 2]), np.array([], dtype=np.int64)]
    assert padded(rows, 2).tolist() == [[1, 2], [0, 0]]


def test_windows_never_reach_into_another_history():
    numbers = np.arange(1, 11)
    found = windows(numbers, np.array([0, 4]), np.array([4, 10]), 3)
    assert found.tolist() == [[2, 3, 4], [8, 9, 10]]
    assert windows(numbers, np.array([4]), np.array([6]), 3).tolist() == [[5, 6, 0]]


def test_neighbours_follow_within_ten_places_weighted_by_distance():
    data = made_data([[1, 2, 3], [1, 3], [4, *range(10, 20), 5]])
    arrays = neighbours(data)
    after = dict(zip(data.vocabulary.items.tolist(), scores_after(1, arrays), strict=True))
    assert [round(after[item], 3) for item in (2, 3)] == [1.0, 1.5]
    assert 0 < after[1] < 1e-4
    fourth = scores_after(4, arrays)
    found = dict(zip(data.vocabulary.items.tolist(), fourth, strict=True))
    assert round(found[19], 3) == 0.1
    assert found[5] < 1e-4
    assert scores_after(3, arrays).argmax() in (0, 2)


def test_the_popular_one_of_equal_neighbours_is_first():
    data = made_data([[1, 2], [1, 3], [4, 3], [5, 6]])
    scores = scores_after(1, neighbours(data))
    order = data.vocabulary.items[np.argsort(-scores, kind="stable")]
    assert order[:2].tolist() == [3, 2]
    assert scores_after(None, popular(data)).tolist() == [2, 1, 2, 1, 1, 1]


def test_validation_cuts_a_history_before_it_drops_unknown_items_as_a_question_does():
    rows = [[1, *range(1000, 1099), 2, 3], [1, *range(1000, 1100), 2]]
    data = made_data([[1, 2, 3]], rows)
    [(histories, targets)] = validation_cases(data).batches(10, 100)
    # Of 101 items before the target, the latest hundred are asked about; 1 is the oldest.
    assert (histories.tolist(), targets.tolist()) == ([[2]], [3])
    people = [Person(str(len(row)), tuple(row), len(row) - 1) for row in rows]
    asked = ItemData(people, data.vocabulary.items, "s", 0).cases(Options())
    known = [data.vocabulary.numbers(np.array(case.history)) for case in asked]
    assert [row[row > 0].tolist() for row in known] == [[2], []]
