"""Orders made of scripted comparisons: what is asked, how often, and what comes of it."""

from itertools import combinations, permutations, product
from random import Random

import pytest
from builders.perrecbench import make_comparisons
from harness_perrecbench.ranking import by_heapsort, by_wins, heapsort, intransitive


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


async def test_three_users_are_sorted_by_three_comparisons():
    # Worked out by hand: 2 and then 3 rise over the root; of the two that are left 2 is greater.
    found = await sorted_by([1, 2, 3], {(3, 2), (3, 1), (2, 1)})
    assert found == ((3, 2, 1), [(2, 1), (3, 2), (2, 1)])
    # 1 stays the root, then 3 is put there and 2 rises over it.
    found = await sorted_by([1, 2, 3], {(1, 2), (1, 3), (2, 3)})
    assert found == ((1, 2, 3), [(2, 1), (3, 1), (2, 3)])


@pytest.mark.parametrize(
    ("members", "comparisons", "pairs"),
    [(2, {1}, {1}), (3, {3}, {2, 3}), (4, {6, 7}, {3, 4, 5, 6})],
)
async def test_undecided_and_circular_comparisons_cost_no_more_than_orders(
    members, comparisons, pairs
):
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


async def test_the_sort_begins_with_an_order_that_the_seed_decides():
    # 0.9 of three puts 3 first, then 0.9 of the two left puts 1 behind 2, that is 3, 1 and 2 …
    script = Script()
    found = await by_heapsort(3, script, Prepared(0.9, 0.9))

    # … as drawn: 3 for 1, then 1 for 2. Undecided, the last two change places.
    assert (found.order, script.asked) == ((3, 2, 1), [(1, 3), (2, 3), (1, 2)])


async def test_neighbours_share_a_rank_only_where_their_comparison_is_undecided():
    found = await by_heapsort(3, Script((1, 2), (1, 3)), Prepared())
    assert (found.order, found.ranks) == ((1, 3, 2), (1, 2, 2))

    found = await by_heapsort(3, Script((1, 3), (2, 3)), Prepared())
    assert (found.order, found.ranks) == ((1, 2, 3), (1, 1, 3))

    found = await by_heapsort(4, Script(), Prepared())
    assert (found.order, found.ranks) == ((1, 4, 3, 2), (1, 2, 2, 2))
    assert (1, 4) not in [(one.first, one.second) for one in found.comparisons]


async def test_of_all_pairs_wins_decide_and_equal_wins_share_a_rank():
    script = Script((2, 1), (2, 3), (3, 1))
    found = await by_wins(3, script, Prepared())

    assert script.asked == [(1, 2), (1, 3), (2, 3)]
    assert (found.order, found.ranks) == ((2, 3, 1), (3, 1, 2))
    assert len(found.comparisons) == 3
    # 4 wins twice, 1 and 2 once, 3 never.
    found = await by_wins(4, Script((4, 1), (4, 2), (1, 3), (2, 3)), Prepared())

    assert (found.order, found.ranks) == ((4, 1, 2, 3), (2, 2, 4, 1))


async def test_those_of_equal_wins_follow_each_other_as_the_seed_decides():
    circle = ((1, 2), (2, 3), (3, 1))
    found = [await by_wins(3, Script(*circle), Random(seed)) for seed in range(50)]

    assert {one.order for one in found} == set(permutations((1, 2, 3)))
    assert {one.ranks for one in found} == {(1, 1, 1)}


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

    assert intransitive(comparisons, members) == circles
