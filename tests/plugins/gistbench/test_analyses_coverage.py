"""How much of the taxonomy is reached, and how unevenly."""

import pytest
from builders.gistbench import judged
from harness_gistbench.analyses import coverage
from harness_gistbench.analyses.compared_runs import TableOptions
from harness_gistbench.analyses.coverage import CoverageOptions
from harness_gistbench.records import Options as Settings

from harness.contracts.report import Bars, Rule


@pytest.fixture
def taxonomy(tmp_path):
    """Options with a taxonomy of eight categories."""
    path = tmp_path / "categories.csv"
    rows = (f"{number},category {number}" for number in range(1, 9))
    path.write_text("category_id,category_name\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return Settings(taxonomy=str(path))


@pytest.fixture
def runs(kept, taxonomy):
    """`wide` reaches 1, 2, 3 of the videos and 5 of the news; `narrow` 4 and 1 of the videos."""
    wide_videos = {
        "u1": (judged("Trains", 1), judged("owls", 2, liked=2)),
        "u2": (judged("trains ", 1), judged("jazz", 3), judged("odd", None)),
    }
    return [
        kept("wide", wide_videos, options=taxonomy),
        kept("wide", {"u1": (judged("chess", 5),)}, dataset="gist_mind", options=taxonomy),
        kept("narrow", {"u1": (judged("pots", 4), judged("Trains", 1))}, options=taxonomy),
    ]


def test_categories_are_counted_by_model_and_by_dataset(runs):
    report = coverage.coverage(runs, CoverageOptions())
    sheet, together, *_ = report.sheets
    assert sheet.columns == (
        *("model", "distinct interests", "categories", "% of 8", "unmapped interests"),
    )
    assert sheet.rows == (("wide", 4, 4, 50.0, 1), ("narrow", 2, 2, 25.0, 0))
    assert together.title == "Categories by dataset: wide and all models"
    assert together.columns == ("dataset", "alone", "alone % of 8", "all", "all % of 8", "gain")
    assert together.rows == (("synthetic", 3, 37.5, 4, 50.0, 1), ("mind", 1, 12.5, 1, 12.5, 0))
    models, alone, together = report.figures
    assert models.marks == (
        Bars(label="categories", names=("wide", "narrow"), values=(4.0, 2.0)),
        Rule(label="all 8", at=8.0),
    )
    assert (alone.marks[0].names, alone.marks[0].values) == (("synthetic", "mind"), (3.0, 1.0))
    assert together.marks[0].values == (4.0, 1.0)
    rows = coverage.concentration(runs, TableOptions()).sheets[0].rows
    assert [(row[0], row[1]) for row in rows] == [("wide", 5), ("narrow", 2), ("all models", 7)]


def test_the_share_of_categories_that_hold_most_interests(kept, taxonomy):
    # Ten interests in four of eight categories: 5, 3, 1, 1.
    counts = {1: 5, 2: 3, 3: 1, 4: 1}
    named = tuple(judged(f"{id} {n}", id) for id, many in counts.items() for n in range(many))
    task = kept("first", {"u1": (*named, judged("odd", None))}, options=taxonomy)
    report = coverage.concentration([task], TableOptions())
    sheet = report.sheets[0]
    assert sheet.columns == (
        *("model", "interests", "% holding 50 %", "% holding 80 %", "% holding 90 %", "Gini"),
    )
    # One category holds 5 of 10, two hold 8, three hold 9. Ascending 0,0,0,0,1,1,3,5:
    # Gini = 2 (5·1 + 6·1 + 7·3 + 8·5) / (8·10) − 9/8 = 144/80 − 9/8 = 0.675.
    assert sheet.rows == (("first", 10, 12.5, 25.0, 37.5, pytest.approx(0.675)),)
    # The curve is cumulated from the largest category.
    [curve] = report.figures[0].marks
    assert curve.x == (0.0, 12.5, 25.0, 37.5, 50.0)
    assert curve.y == pytest.approx((0.0, 50.0, 80.0, 90.0, 100.0))


def test_the_model_held_against_all_may_be_chosen(runs):
    sheet = coverage.coverage(runs, CoverageOptions(model="narrow")).sheets[1]
    assert sheet.rows == (
        ("synthetic", 2, 25.0, 4, 50.0, 2),
        ("mind", None, None, 1, 12.5, None),
    )
