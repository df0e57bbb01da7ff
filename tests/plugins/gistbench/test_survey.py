import math
from pathlib import Path
from typing import Any

import pytest
from builders.texts import write_csv
from harness_gistbench.analyses.survey import OutsideOptions, SurveyOptions, outside, survey
from harness_gistbench.records import Counts, Judged

ANIME, BASEBALL, BASKETBALL, CHRISTMAS = 10, 30, 31, 56
LIKED = Counts(explicit_positive=2)


def interest(name: str, category: int | None, correct: int | None = None, of: int = 4) -> Judged:
    """Verified where it was asked how many of its objects are found again."""
    if correct is None:
        return Judged(name=name, cited=2, category=category, counts=Counts())
    return Judged(name=name, cited=2, category=category, counts=LIKED, correct=correct, backing=of)


UNREADABLE = "predict/no_json"


@pytest.fixture
def tasks(kept: Any) -> list[Any]:
    return [
        kept(
            "a",
            {
                "u1": [interest("NBA", BASKETBALL, 3), interest("Santa", CHRISTMAS)],
                "u2": [interest("Hoops", BASKETBALL, 1), interest("?", None)],
                "u9": [interest("Manga", ANIME, 4)],
            },
        ),
        kept("b", {"u1": [interest("Manga", ANIME, 4, of=5)], "u2": []}),
        kept("c", {"u1": UNREADABLE, "u2": [interest("Pitchers", BASEBALL, 5, of=5)]}),
    ]


@pytest.fixture
def stated(tmp_path: Path) -> str:
    return write_csv(
        tmp_path / "stated.csv",
        "user,interest",
        "u1,basketball",
        "u1,10",
        "u2, hoops",
        "u2,Knitting of quanta",
        "u3,Anime",
        "u4,Sleep",
    )


def rows_of(sheet: Any) -> dict[Any, Any]:
    return {row[1]: dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows}


def test_stated_interests_by_hand(tasks, stated):
    # u1 stated basketball and anime, u2 basketball (the runs' own word). Model a named basketball
    # and Christmas for u1 (1/2, 1/2), basketball for u2 (1, 1; what is unmapped does not count).
    # Model b: anime for u1 (1, 1/2), nothing for u2 (0, 0). Model c: baseball for u2 (0, 0).
    # All three verified {basketball, anime} of u1 and {basketball, baseball} of u2.
    report = survey(tasks, SurveyOptions(stated=stated))
    a, b, c = (rows_of(report.sheets[1])[model] for model in "abc")
    names = ("users", "read", "S-Prec", "S-Rec", "survey F1")
    assert [[row[name] for name in names] for row in (a, b, c)] == [
        [2, 2, 75.0, 75.0, 75.0],
        [2, 2, 50.0, 25.0, pytest.approx(100 / 3)],
        [2, 1, 0.0, 0.0, 0.0],
    ]
    assert c["n IS"] == 1
    # b, u1: precision 1, recall 1/2, F1 2/3, IS 4/5; u2: nothing, 0 and 0.
    assert (b["IG F1"], b["IS"]) == (pytest.approx(100 / 3), pytest.approx(40))
    assert b["√(IG F1 · IS)"] == pytest.approx(100 * math.sqrt(0.4 / 3))
    # c, u2: precision 1, recall 1/2, F1 2/3, IS 1.
    assert c["√(IG F1 · IS)"] == pytest.approx(100 * math.sqrt(2 / 3))
    # Survey F1 ranks a, b, c; √(IG F1 · IS) ranks c .82, a .54 or so, b .37: 1 - 6 · 6 / 24.
    assert [(row[:3], pytest.approx(row[3])) for row in report.sheets[3].rows] == [
        (("synthetic", "medians", 3), -0.5),
        (("synthetic", "means", 3), -0.5),
    ]
    sheet = report.sheets[0]
    assert sheet.columns[1:] == (
        "users", "with a category", "the mapping file", "the taxonomy", "the runs' mapping",
        "nothing",
    )  # fmt: skip
    assert sheet.rows == (("synthetic", 4, 3, 0, 3, 1, 2),)
    assert "matching is ours" in sheet.notes[0]
    assert sheet.notes[1] == "synthetic: 2 without a category, such as Knitting of quanta, Sleep"
    [figure] = report.figures
    assert [mark.label for mark in figure.marks] == ["a", "b", "c"]
    assert figure.marks[0].x == (75.0,)


def test_a_mapping_file_goes_before_names(tasks, stated, tmp_path):
    mapping = write_csv(
        tmp_path / "map.csv", "interest,category", "basketball,Anime", "Knitting  of Quanta,10"
    )
    report = survey(tasks, SurveyOptions(stated=stated, mapping=mapping))
    assert report.sheets[0].rows == (("synthetic", 4, 3, 2, 2, 1, 1),)
    # u1 stated anime alone now: a (0, 0) there; u2 basketball and anime: a (1, 1/2).
    a = rows_of(report.sheets[1])["a"]
    assert (a["S-Prec"], a["S-Rec"]) == (50.0, 25.0)


@pytest.fixture
def ranked(kept: Any) -> list[Any]:
    """Models of IG F1 1, 2/3, 1/2 and 2/5: one verified category, and 0 to 3 that are not."""
    return [
        kept(
            f"vllm:org/Model-{extra}",
            {
                "u": [
                    interest("NBA", BASKETBALL, 4),
                    *(interest(f"guess {number}", number) for number in range(1, extra + 1)),
                ]
            },
        )
        for extra in range(4)
    ]


FIGURES = (
    "model,Elo,size",
    "org/model-0,1300,1",
    "Model-1,1400,1",
    "vllm:org/Model-2,1200,1",
    "Model-3,,1",
    "Elsewhere,1500,1",
)


def test_outside_figures_are_matched_and_correlated(ranked, tmp_path):
    figures = write_csv(tmp_path / "elo.csv", *FIGURES)
    options = OutsideOptions(figures=figures, column="Elo", above=1200)
    models, correlations = outside(ranked, options).sheets
    assert [row[1:3] for row in models.rows] == [(f"vllm:org/Model-{n}", 1) for n in range(4)]
    assert [row[3] for row in models.rows] == pytest.approx([100, 200 / 3, 50, 40])
    assert [row[4] for row in models.rows] == [1300, 1400, 1200, None]
    assert "left out of the correlation: vllm:org/Model-3" in models.notes[-1]
    # Ranks 3 2 1 against 2 3 1: 1 - 6 · 2 / 24. Above 1200 there are two, of which ρ says nothing.
    assert [row[:3] for row in correlations.rows] == [
        ("synthetic", "all", 3),
        ("synthetic", "Elo above 1200", 2),
    ]
    assert correlations.rows[0][3] == pytest.approx(0.5)
    assert correlations.rows[1][3] is None
    assert correlations.notes == (
        "synthetic, Elo above 1200: no ρ: fewer than three pairs: for two it is always 1 or -1",
    )


def test_runs_asked_otherwise_and_copies_are_not_correlated(ranked, kept, tmp_path):
    figures = write_csv(tmp_path / "elo.csv", *FIGURES)
    options = OutsideOptions(figures=figures, column="Elo")
    found = {"u": [interest("NBA", BASKETBALL, 4), interest("Manga", ANIME, 4)]}
    odd = kept("odd", found, judge="another-judge")
    models, _ = outside([*ranked, odd, ranked[0]], options).sheets
    # The odd run would have added anime to the oracle, and halved the recall of all the others.
    assert [row[3] for row in models.rows] == pytest.approx([100, 200 / 3, 50, 40])
    notes = outside([*ranked, odd, ranked[0]], options).notes
    assert "odd is left out: judge's name another-judge against judge-70b" in notes[-1]
    assert any("vllm:org/Model-0 is left out: it is a copy of" in note for note in notes)


def test_a_model_that_could_hardly_be_read_has_no_number_and_no_rank(tasks, stated, kept):
    silent = kept("d", {"u1": UNREADABLE, "u2": UNREADABLE})
    report = survey([*tasks, silent], SurveyOptions(stated=stated))
    d = rows_of(report.sheets[1])["d"]
    assert (d["read"], d["S-Prec"], d["survey F1"], d["IS"]) == (0, None, None, None)
    assert any("d on synthetic: no S-Prec" in note for note in report.sheets[1].notes)
    assert report.sheets[3].rows[0][2] == 3
