"""Orders made of scripted comparisons, both definitions of tau, and the rules for the undecided."""

from itertools import combinations, permutations, product
from random import Random

import numpy as np
import pytest
from builders.perrecbench import make_comparisons, make_group, make_member
from builders.records import make_records
from harness_perrecbench import ranking
from harness_perrecbench.ranking import by_heapsort, by_wins, heapsort, ptc, ptc_published, tau_b
from harness_perrecbench.records import Compared, Options
from scipy.stats import kendalltau


class Script:
    """Compares users by who is preferred in each pair, nobody unless told; notes each question."""

    def __init__(self, *preferred):
        self.preferred = {tuple(sorted(pair)): pair[0] for pair in preferred}
        self.asked = []

    async def __call__(self, first, second):
        self.asked.append((first, second))
        return compared(first, second, self.preferred.get((first, second)))


class Prepared(Random):
    """A generator that draws prepared numbers, and then 0, which leaves what it shuffles."""

    def __init__(self, *numbers):
        super().__init__(0)
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0) if self.numbers else 0.0


def compared(first, second, preferred=None):
    sides = {first: "AB", second: "BA", None: "AA"}
    [made] = make_comparisons(f"{first}{second}{sides[preferred]}")
    return made


async def sorted_by(users, preferred):
    """The order and all questions of a sort in which `preferred` are the pairs (better, worse)."""
    asked = []

    async def greater(one, other):
        asked.append((one, other))
        return (one, other) in preferred

    return await heapsort(users, greater), asked


@pytest.mark.parametrize(
    ("members", "comparisons", "pairs"),
    [(2, {1}, {1}), (3, {3}, {2, 3}), (4, {6, 7}, {3, 4, 5, 6})],
)
async def test_undecided_and_circular_pairs_cost_no_more_than_orders(members, comparisons, pairs):
    every = list(combinations(range(1, members + 1), 2))
    seen, distinct = set(), set()
    for outcomes in product((0, 1, None), repeat=len(every)):
        chosen = zip(every, outcomes, strict=True)
        preferred = {(p[o], p[1 - o]) for p, o in chosen if o is not None}
        _, asked = await sorted_by(range(1, members + 1), preferred)
        seen.add(len(asked))
        distinct.add(len({tuple(sorted(pair)) for pair in asked}))
    assert (seen, distinct) == (comparisons, pairs)


@pytest.mark.parametrize("order", [*permutations((1, 2, 3, 4))])
async def test_a_sort_asks_for_no_pair_twice_and_keeps_what_it_asked(order):
    script = Script(*combinations(order, 2))
    found = await by_heapsort(4, script, Random(7))
    assert found.order == order
    assert found.ranks == tuple(order.index(user) + 1 for user in (1, 2, 3, 4))
    assert len(set(script.asked)) == len(script.asked) == len(found.comparisons)
    assert [(one.first, one.second) for one in found.comparisons] == script.asked


async def test_the_sort_begins_as_the_seed_decides_and_only_undecided_neighbours_share_a_rank():
    # 0.9 of three puts 3 first, then 0.9 of the two left puts 1 behind 2, that is 3, 1 and 2 …
    script = Script()
    found = await by_heapsort(3, script, Prepared(0.9, 0.9))
    # … as drawn: 3 for 1, then 1 for 2. Undecided, the last two change places.
    assert (found.order, script.asked) == ((3, 2, 1), [(1, 3), (2, 3), (1, 2)])
    for members, preferred, order, ranks in (
        (3, [(1, 2), (1, 3)], (1, 3, 2), (1, 2, 2)),
        (3, [(1, 3), (2, 3)], (1, 2, 3), (1, 1, 3)),
        (4, [], (1, 4, 3, 2), (1, 2, 2, 2)),
    ):
        found = await by_heapsort(members, Script(*preferred), Prepared())
        assert (found.order, found.ranks) == (order, ranks)
    assert (1, 4) not in [(one.first, one.second) for one in found.comparisons]


async def test_of_all_pairs_wins_decide_and_equal_wins_share_a_rank_in_the_order_of_the_seed():
    script = Script((2, 1), (2, 3), (3, 1))
    found = await by_wins(3, script, Prepared())
    assert script.asked == [(1, 2), (1, 3), (2, 3)]
    assert (found.order, found.ranks, len(found.comparisons)) == ((2, 3, 1), (3, 1, 2), 3)
    # 4 wins twice, 1 and 2 once, 3 never.
    found = await by_wins(4, Script((4, 1), (4, 2), (1, 3), (2, 3)), Prepared())
    assert (found.order, found.ranks) == ((4, 1, 2, 3), (2, 2, 4, 1))
    circle = Script((1, 2), (2, 3), (3, 1))
    every = [await by_wins(3, circle, Random(seed)) for seed in range(50)]
    assert {one.order for one in every} == set(permutations((1, 2, 3)))
    assert {one.ranks for one in every} == {(1, 1, 1)}


@pytest.mark.parametrize(
    ("members", "preferred", "circles"),
    [
        (3, [(1, 2), (2, 3), (3, 1)], 1),
        (3, [(1, 2), (2, 3), (1, 3)], 0),
        (3, [(1, 2), (2, 3)], 0),
        # 1 > 2 > 3 > 1 and 2 > 3 > 4 > 2; the other two triples have a best user.
        (4, [(1, 2), (2, 3), (3, 1), (3, 4), (4, 2), (1, 4)], 2),
    ],
)
def test_a_circle_of_three_preferences_is_intransitive(members, preferred, circles):
    chosen = {tuple(sorted(pair)): pair[0] for pair in preferred}
    every = combinations(range(1, members + 1), 2)
    comparisons = [compared(*pair, chosen.get(pair)) for pair in every]
    assert ranking.intransitive(comparisons, members) == circles


def test_a_tie_earns_what_breaking_it_at_random_would_and_who_ties_everybody_nothing():
    assert [ptc(ranks, (1, 2, 3)) for ranks in ((1, 2, 3), (2, 1, 3))] == pytest.approx([1, 1 / 3])
    tied = (1, 1, 3), (1, 2, 3)
    assert (ptc(*tied), tau_b(*tied)) == pytest.approx((0.667, 0.816), abs=5e-4)
    for ranks, truth in (((1, 1, 1), (1, 2, 3)), ((1, 2), (1, 1))):
        assert (ptc(ranks, truth), tau_b(ranks, truth)) == (0, None)
    assert ptc_published((1, 1), (1, 2)) is None
    # 1 - 1.3 and 2 - 2.3 differ as floating numbers.
    assert ranking.ranks_of(ranking.relative((1.0, 2.0, 5.0), (1.3, 2.3, 3.0))) == (2, 2, 1)


@pytest.mark.parametrize("members", [2, 3, 4])
def test_each_tau_is_scipys_of_what_it_compares(members):
    orders = list(permutations(range(1, members + 1)))
    for order, true_order in product(orders, repeat=2):
        ranks, truth = ((np.argsort(one) + 1).tolist() for one in (order, true_order))
        assert ptc(ranks, truth) == pytest.approx(kendalltau(ranks, truth).statistic)
        published = kendalltau(order, true_order).statistic
        assert ptc_published(order, true_order) == pytest.approx(published)
    tied = [one for one in product(range(min(members, 3)), repeat=members) if len(set(one)) > 1]
    for one, other in list(product(tied, tied))[::7]:
        assert tau_b(one, other) == pytest.approx(kendalltau(one, other).statistic)


def test_the_published_order_is_a_stable_argsort_turned_round():
    rng = Random(3)
    for _ in range(200):
        scores = [int(4 * rng.random()) for _ in range(4)]
        expected = (np.argsort(scores, kind="stable") + 1)[::-1]
        assert ranking.published_order(scores) == tuple(expected.tolist())


def of_three(item, *told, ranks):
    """A group of three whose true order is 1, 2, 3, with comparisons such as "12AB"."""
    group = make_group(*(make_member(str(n), rank=n) for n in (1, 2, 3)), item=item)
    return group, Compared(order=(1, 2, 3), ranks=ranks, comparisons=make_comparisons(*told))


def noted(*pairs, **options):
    return list(ranking.notes({"compare": make_records(pairs)}, Options(**options)))


WHOLE = of_three("a", "12AB", "13AA", "23AA", ranks=(1, 2, 2))


def test_the_three_rules_stand_side_by_side_where_many_are_undecided_of_most_groups():
    # Only 1 is preferred to 2. Heapsort recorded 1, then 2 and 3 tied. From the order of numbers,
    # "not greater" makes 1, 3, 2 of it. By wins 1 is first, and 2 and 3 tie.
    assert noted(WHOLE, of_three("b", "12AB", "13AB", ranks=(1, 2, 3)), comparing="heapsort") == [
        "40% of the comparisons are undecided, so that ptc depends on the rule for them (option "
        "`comparing`, here heapsort); in 1 of 2 groups every pair was compared, and ptc of these "
        "is: heapsort 0.667, published 0.333, all_pairs 0.667"
    ]
    parts = [of_three(item, "12AB", "13AA", ranks=(1, 2, 3)) for item in ("b", "c")]
    (note,) = noted(WHOLE, *parts, comparing="heapsort")
    assert "published" not in note
    assert note.endswith(
        "in 1 of 3 groups every pair was compared, too few to compare the rules: "
        "comparing=all_pairs compares every pair"
    )
    # A tenth is not worth a note.
    decided = [of_three(str(n), "12AB", "13AB", "23AB", ranks=(1, 2, 3)) for n in range(3)]
    assert not noted(*decided, of_three("x", "12AA", ranks=(1, 1, 3)))
    assert noted(*decided, of_three("x", "12AA", "13AA", ranks=(1, 1, 1)))
    assert not list(ranking.notes({}, Options(ask="listwise")))
