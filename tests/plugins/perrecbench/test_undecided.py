"""The three rules for undecided comparisons, shown where many are undecided."""

from builders.perrecbench import make_comparisons, make_group, make_member
from builders.records import make_records
from harness_perrecbench.ranking import notes
from harness_perrecbench.records import Compared, Options


def compared(item, *told, ranks):
    """A group of three whose true order is 1, 2, 3, with comparisons such as "12AB"."""
    group = make_group(*(make_member(str(n), rank=n) for n in (1, 2, 3)), item=item)
    return group, Compared(order=(1, 2, 3), ranks=ranks, comparisons=make_comparisons(*told))


def noted(*pairs, **options):
    return list(notes({"compare": make_records(pairs)}, Options(**options)))


WHOLE = compared("a", "12AB", "13AA", "23AA", ranks=(1, 2, 2))


def test_the_three_rules_stand_side_by_side_where_many_are_undecided():
    # Only 1 is preferred to 2. Heapsort recorded 1, then 2 and 3 tied. From the order of numbers,
    # "not greater" makes 1, 3, 2 of it. By wins 1 is first, and 2 and 3 tie.
    assert noted(WHOLE, compared("b", "12AB", "13AB", ranks=(1, 2, 3)), comparing="heapsort") == [
        "40% of the comparisons are undecided, so that ptc depends on the rule for them (option "
        "`comparing`, here heapsort); in 1 of 2 groups every pair was compared, and ptc of these "
        "is: heapsort 0.667, published 0.333, all_pairs 0.667"
    ]


def test_the_rules_are_not_compared_over_a_minority_of_the_groups():
    parts = [compared(item, "12AB", "13AA", ranks=(1, 2, 3)) for item in ("b", "c")]

    (note,) = noted(WHOLE, *parts, comparing="heapsort")

    assert note.endswith(
        "in 1 of 3 groups every pair was compared, too few to compare the rules: "
        "comparing=all_pairs compares every pair"
    )
    assert "published" not in note


def test_a_tenth_of_undecided_comparisons_is_not_worth_a_note():
    decided = [compared(str(n), "12AB", "13AB", "23AB", ranks=(1, 2, 3)) for n in range(3)]

    assert not noted(*decided)
    assert not noted(*decided, compared("x", "12AA", ranks=(1, 1, 3)))
    assert noted(*decided, compared("x", "12AA", "13AA", ranks=(1, 1, 1)))
    assert not list(notes({}, Options(ask="listwise")))
