"""Both definitions of tau: the examples of the definition, scipy, and noise that is known."""

import random
from itertools import permutations, product

import numpy as np
import pytest
from harness_perrecbench.ranking import (
    ptc,
    ptc_published,
    published_order,
    ranks_of,
    ranks_of_order,
    relative,
    tau_b,
)
from scipy.stats import kendalltau


def test_orders_compared_place_by_place_can_agree_where_the_rankings_are_opposite():
    # True order (1,3,2): user 1 first, 2 third, 3 second. Predicted (2,3,1): 3, 1, 2.
    assert ptc(ranks=(3, 1, 2), truth=(1, 3, 2)) == -1
    assert ptc_published(order=(2, 3, 1), true_order=(1, 3, 2)) == pytest.approx(1 / 3)

    # True order (1,3,4,2), predicted (2,3,4,1).
    assert ptc(ranks=(4, 1, 2, 3), truth=(1, 4, 2, 3)) == pytest.approx(-2 / 3)
    assert ptc_published(order=(2, 3, 4, 1), true_order=(1, 3, 4, 2)) == pytest.approx(2 / 3)


def test_a_tie_with_the_rest_right_earns_what_breaking_it_at_random_would():
    broken = [ptc(ranks, (1, 2, 3)) for ranks in ((1, 2, 3), (2, 1, 3))]

    assert broken == pytest.approx([1, 1 / 3])
    assert ptc((1, 1, 3), (1, 2, 3)) == pytest.approx(0.667, abs=5e-4)
    assert tau_b((1, 1, 3), (1, 2, 3)) == pytest.approx(0.816, abs=5e-4)


def test_who_ties_everybody_scores_nothing():
    assert ptc((1, 1, 1), (1, 2, 3)) == 0
    assert tau_b((1, 1, 1), (1, 2, 3)) is None
    assert ptc((1, 2), (1, 1)) == 0
    assert tau_b((1, 2), (1, 1)) is None
    assert ptc_published((1, 1), (1, 2)) is None
    assert 1 - 1.3 != 2 - 2.3
    assert ranks_of(relative((1.0, 2.0, 5.0), (1.3, 2.3, 3.0))) == (2, 2, 1)


@pytest.mark.parametrize("members", [2, 3])
def test_tau_b_is_that_of_scipy_whatever_ties(members):
    rankings = list(product(range(members), repeat=members))
    for one, other in list(product(rankings, rankings))[::7]:
        if len(set(one)) > 1 and len(set(other)) > 1:
            assert tau_b(one, other) == pytest.approx(kendalltau(one, other).statistic)


@pytest.mark.parametrize("members", [2, 3, 4])
def test_without_ties_both_are_scipys_tau_of_what_they_compare(members):
    orders = list(permutations(range(1, members + 1)))
    for order, true_order in product(orders, repeat=2):
        ranks, truth = ((np.argsort(one) + 1).tolist() for one in (order, true_order))
        assert ptc(ranks, truth) == pytest.approx(kendalltau(ranks, truth).statistic)
        published = kendalltau(order, true_order).statistic
        assert ptc_published(order, true_order) == pytest.approx(published)


@pytest.mark.parametrize(("members", "shown"), [(2, 0.30), (3, 0.189), (4, 0.131)])
def test_the_published_number_of_a_ranker_falls_with_the_users_of_a_group(members, shown):
    rng = np.random.default_rng(7)
    groups = 200_000
    truth = rng.normal(size=(groups, members))
    scores = truth + 1.963 * rng.normal(size=(groups, members))
    orders = list(permutations(range(1, members + 1)))
    of_rankings, of_orders = (
        np.array([[of(order, other) for other in orders] for order in orders])
        for of in (lambda *two: ptc(*map(ranks_of_order, two)), ptc_published)
    )

    said, true = (
        (np.argsort(-one)[:, None] + 1 == orders).all(axis=2).argmax(axis=1)
        for one in (scores, truth)
    )

    assert of_rankings[said, true].mean() == pytest.approx(0.30, abs=0.005)
    assert of_orders[said, true].mean() == pytest.approx(shown, abs=0.005)


def test_the_published_order_is_a_stable_argsort_turned_round():
    rng = random.Random(3)
    for _ in range(200):
        scores = [int(4 * rng.random()) for _ in range(4)]
        expected = (np.argsort(scores, kind="stable") + 1)[::-1]
        assert published_order(scores) == tuple(expected.tolist())


def test_whom_an_order_leaves_out_for_a_repeated_other_comes_last():
    assert ranks_of_order((1, 3, 3)) == (1, 3, 2)
    assert ranks_of_order((4, 4, 1, 1)) == (2, 3, 3, 1)
