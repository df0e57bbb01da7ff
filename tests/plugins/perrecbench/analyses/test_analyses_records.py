"""Analyses that read what the stages recorded."""

import pytest
from builders.perrecbench import make_comparisons, make_group
from builders.runs import keep_records
from harness_perrecbench.analyses import answers, domains
from harness_perrecbench.records import Compared

from harness.contracts.benchmark import NoOptions
from harness.contracts.outcomes import Unreadable
from harness.contracts.records import Done


def compared(*sides):
    """Comparisons of users 1 and 2 by their two answers, "-" for one that could not be read."""
    made = make_comparisons(*(f"12{one}" for one in sides))
    return Done(Compared(order=(1, 2), ranks=(1, 2), comparisons=made))


@pytest.fixture
def recorded(kept):
    """A finished task whose stage "compare" came to this of each item; items are their titles."""

    def make(model, found, **more):
        task = kept(model, dict.fromkeys(found, 1.0), ask="pairwise", **more)
        groups = (make_group(item=item, title=f"The {item}") for item in found)
        return keep_records(task, "compare", [*zip(groups, found.values(), strict=True)])

    return make


def test_answers_by_position_are_counted_by_level_and_together(recorded):
    easy = {
        "tea": compared("AB"),  # user 1 either way
        "milk": compared("AA"),  # whoever is shown first
        "rye": compared("A-"),  # one answer, which names the first
        "oat": Unreadable("no_json", "compare"),
    }
    hard = {"tea": compared("BA", "BB", "--")}  # user 2, whoever is second, nothing
    tasks = [recorded("ada", easy), recorded("ada", hard, level="hard")]
    [sheet] = answers.positions(tasks, NoOptions()).sheets
    assert sheet.columns == (
        *("model", "level", "groups", "answers", "first", "first %", "pairs", "read twice"),
        *("contrary", "contrary %", "undecided", "undecided %"),
    )
    two_thirds = pytest.approx(200 / 3)
    assert sheet.rows == (
        ("ada", "easy", 3, 5, 4, 80.0, 3, 2, 1, 50.0, 2, two_thirds),
        ("ada", "hard", 1, 4, 1, 25.0, 3, 2, 1, 50.0, 2, two_thirds),
        ("ada", "all", 4, 9, 5, pytest.approx(500 / 9), 6, 4, 2, 50.0, 4, two_thirds),
    )


def test_a_level_without_any_readable_answer_has_no_shares(recorded):
    task = recorded("ada", {"tea": Unreadable("no_json", "compare")})
    [sheet] = answers.positions([task], NoOptions()).sheets
    assert sheet.rows == (("ada", "easy", 0, 0, 0, None, 0, 0, 0, None, 0, None),)


def test_counts_may_name_items_by_their_titles(recorded, tmp_path):
    counts = tmp_path / "counts.csv"
    counts.write_text('item,title,count\n,"the  TEA",8\nmilk,,2\n')
    found = {"tea": compared("AB"), "milk": compared("AB"), "rye": compared("AB")}
    report = domains.run(
        [recorded("ada", found, domain="kitchen")], domains.Options(counts=str(counts))
    )
    assert report.sheets[0].rows[0][:5] == ("ada", "kitchen", 3, 2, 5.0)
