"""The three rules for undecided comparisons, shown where many are undecided."""

from builders.records import make_records
from harness_perrecbench.ranking import notes
from harness_perrecbench.records import Compared, Comparison, Group, Member, Options, Thing

FORTH = {1: ("A", "B"), 0: ("A", "A"), -1: ("B", "A")}


def compared(item, *preferences, ranks):
    """A group of three whose true order is 1, 2, 3, with the preferences in each pair of users."""
    members = tuple(Member(id=str(n), average=3.0, common=3.0, shown=(), rank=n) for n in (1, 2, 3))
    pairs = [(1, 2), (1, 3), (2, 3)]
    made = tuple(
        Comparison(first=first, second=second, forth=FORTH[one][0], back=FORTH[one][1])
        for (first, second), one in zip(pairs, preferences, strict=False)
    )
    group = Group(id=item, user=item, query=Thing(title="x"), members=members)
    return group, Compared(order=(1, 2, 3), ranks=ranks, comparisons=made)


def records(*pairs):
    return {"compare": make_records(pairs)}


def test_the_three_rules_stand_side_by_side_where_many_are_undecided():
    # Only 1 is preferred to 2. Heapsort recorded 1, then 2 and 3 tied. From the order of numbers,
    # "not greater" makes 1, 3, 2 of it. By wins 1 is first, and 2 and 3 tie.
    found = records(compared("a", 1, 0, 0, ranks=(1, 2, 2)), compared("b", 1, 1, ranks=(1, 2, 3)))

    (note,) = notes(found, Options(comparing="heapsort"))

    assert note == (
        "40% of the comparisons are undecided, so that ptc depends on the rule for them (option "
        "`comparing`, here heapsort); in 1 of 2 groups every pair was compared, and ptc of these "
        "is: heapsort 0.667, published 0.333, all_pairs 0.667"
    )


def test_the_rules_are_not_compared_over_a_minority_of_the_groups():
    whole = compared("a", 1, 0, 0, ranks=(1, 2, 2))
    parts = [compared(item, 1, 0, ranks=(1, 2, 3)) for item in ("b", "c")]

    (note,) = notes(records(whole, *parts), Options(comparing="heapsort"))

    assert note.endswith(
        "in 1 of 3 groups every pair was compared, too few to compare the rules: "
        "comparing=all_pairs compares every pair"
    )
    assert "published" not in note


def test_a_tenth_of_undecided_comparisons_is_not_worth_a_note():
    decided = [compared(str(n), 1, 1, 1, ranks=(1, 2, 3)) for n in range(3)]

    assert not list(notes(records(*decided), Options()))
    assert not list(notes(records(*decided, compared("x", 0, ranks=(1, 1, 3))), Options()))
    assert list(notes(records(*decided, compared("x", 0, 0, ranks=(1, 1, 1))), Options()))
    assert not list(notes({}, Options(ask="listwise")))
