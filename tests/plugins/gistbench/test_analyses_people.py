"""Analyses that hold runs against raters, a survey and outside figures, by hand."""

import csv
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from builders.gistbench import judged, make_claim, make_test_set
from builders.runs import keep_records
from builders.texts import read_csv, write_csv
from harness_gistbench.analyses import judge_validation
from harness_gistbench.analyses.judge_validation import ExportOptions, ValidationOptions, validate
from harness_gistbench.analyses.survey import OutsideOptions, SurveyOptions, outside, survey
from harness_gistbench.records import Evidence, Found, Judged, Kept, PoolObject
from msgspec.structs import replace

from harness.base.errors import UsageError
from harness.contracts.outcomes import NoVerdict
from harness.contracts.records import Done

LABELS = {
    # Item: what the raters A1 to A4 said of it, and the judge.
    "i1": ("yyyy", "y"),
    "i2": ("yyyn", "n"),
    "i3": ("nnnn", "n"),
    "i4": ("ynyn", "y"),
    "i5": ("nnny", ""),
    "i6": ("y", ""),
}
MEANING = {"y": "yes", "n": "no"}


def validated(folder: Path, *more: str) -> Any:
    rows = [
        f"evidence,{item},A{number},{MEANING[mark]}"
        for item, (marks, _) in LABELS.items()
        for number, mark in enumerate(marks, 1)
    ]
    said = [f"evidence,{item},{MEANING[mark]}" for item, (_, mark) in LABELS.items() if mark]
    labels = write_csv(folder / "labels.csv", "task,item,rater,label", *rows, *more)
    key = write_csv(folder / "key.csv", "task,item,label", *said)
    return validate([], ValidationOptions(labels=(labels,), key=key))


def test_agreement_of_raters_and_of_the_judge_by_hand(tmp_path):
    # On five items A1 and A3 say yynyn, A2 yynnn, A4 ynnny. A1 with A2: they agree on 4/5, by
    # chance 3/5·2/5 + 2/5·3/5 = .48, so .32/.52. With A4 2/5: -.08/.52. A2 with A4: .08/.48.
    sheet, majority, splits = validated(tmp_path).sheets
    assert sheet.columns == ("rater", "A1", "A2", "A3", "A4", "judge")
    upper = {row[0]: row[1:] for row in sheet.rows}
    assert upper["A1"][:4] == (None, *(pytest.approx(k) for k in (0.32 / 0.52, 1, -0.08 / 0.52)))
    assert upper["A2"][:4] == (None, None, pytest.approx(0.32 / 0.52), pytest.approx(0.08 / 0.48))
    assert upper["A3"][:4] == (None, None, None, pytest.approx(-0.08 / 0.52))
    # (8/13 + 1 - 2/13 + 8/13 + 1/6 - 2/13) / 6 = .348
    assert sheet.notes[0] == "mean κ of people: 0.35; pairs: 6, items of each: 5"
    # Of i1 to i4 the judge says ynny, as A1 does of three: by chance 1/2, so 1/2 again.
    assert {row[0]: row[5] for row in sheet.rows}["A1"] == pytest.approx(0.5)
    # The majority says y y n . n of i1, i2, i3 and i5; i4 is a tie and i6 not labelled by all.
    rows = {row[1]: row[2:] for row in majority.rows}
    assert rows["A1"] == (6, pytest.approx(400 / 6), 4, 100.0, 1.0, 1.0)
    # A4 says y n n y: half right, as by chance; one yes of two right, one of two found.
    assert rows["A4"] == (5, 40.0, 4, 50.0, 0.0, 0.5)
    # The judge says y n n of the first three: by chance 1/3·2/3 + 2/3·1/3 = 4/9, (6/9-4/9)/(5/9).
    assert rows["judge"] == (
        4, 50.0, 3, pytest.approx(200 / 3), pytest.approx(0.4), pytest.approx(2 / 3),
    )  # fmt: skip
    assert majority.notes == (
        "evidence: 4 items have a majority; left out: 1 tied, 1 not labelled by all",
    )
    shares = (("4–0", 2, 40.0), ("3–1", 2, 40.0), ("2–2", 1, 20.0))
    assert splits.rows == tuple(("evidence", *row) for row in shares)


def test_what_nobody_labelled_and_what_the_judge_never_said_is_counted(tmp_path):
    assert validated(tmp_path, "evidence,i7,A1,", "evidence,i7,,").notes == (
        "evidence: raters 4, items 6; rows without a label: 2; "
        "items of which it is not known what the judge said: 2",
    )
    # Raters of one word have no kappa, and it is said.
    said = "retrieval,i,A,1", "retrieval,i,B,True"
    labels = write_csv(tmp_path / "l.csv", "task,item,rater,label", *said)
    key = write_csv(tmp_path / "k.csv", "task,item,label", "retrieval,i,no")
    sheet = validate([], ValidationOptions(labels=(labels,), key=key)).sheets[0]
    assert sheet.rows[0] == ("A", None, None, 0.0)
    assert "A and B: no κ: both gave one label alone, and the same" in sheet.notes


USERS = ("ann", "bob", "cid")
CATEGORIES = {"Jazz": 10, "Chess": 20}


@pytest.fixture
def judged_run(kept):
    """A stored run: three users with two interests each, of four objects and of ten to find.

    The judge keeps the first two objects of each interest, and finds the first of the ten.
    """

    def make(model: str) -> Any:
        interests = [judged(name, number, skipped=4) for name, number in CATEGORIES.items()]
        task = kept(model, dict.fromkeys(USERS, interests), judge="llama")
        unanswered = Evidence("x", "never judged", ("implicit_negative",))
        verified = [(make_claim(1, "Jazz", [unanswered], part=2), NoVerdict("no_json"))]
        retrieved = []
        for user, (number, name) in product(USERS, enumerate(CATEGORIES, 1)):
            takes = [f"{name}, take {n}" for n in range(4)]
            shown = ((f"{name}-{user}-{n}", take) for n, take in enumerate(takes))
            evidence = [Evidence(*one, ("explicit_positive",)) for one in shown]
            claim = make_claim(number, name, evidence, user=user)
            verified.append((claim, Done(Kept(positions=(0, 1)))))
            objects = (PoolObject(f"{name}-{n}", f'"{name}", no. {n}') for n in range(10))
            tested = make_test_set(number, (0, 3), user=user)
            tested = replace(tested, interest=name, objects=tuple(objects))
            retrieved.append((tested, Done(Found(positions=(0,)))))
        task = keep_records(task, "verify", verified)
        return keep_records(task, "specificity", retrieved)

    return make


def export(tasks: list[Any], folder: Path, **options: Any) -> Any:
    return judge_validation.export(tasks, ExportOptions(out=str(folder), **options))


def test_raters_see_items_and_the_key_says_what_the_judge_said(judged_run, tmp_path):
    out = tmp_path / "all"
    export([judged_run("a")], out)
    key = {row["item"]: row for row in read_csv(out / "key.csv")}
    evidence, retrieval = read_csv(out / "evidence.csv"), read_csv(out / "retrieval.csv")
    assert list(evidence[0]) == ["task", "item", "interest", "engagement", "text", "rater", "label"]
    assert list(retrieval[0]) == ["task", "item", "interest", "text", "rater", "label"]
    assert {row["engagement"] for row in evidence} == {"explicit positive"}
    assert {(row["rater"], row["label"]) for row in evidence + retrieval} == {("", "")}
    assert all(row["interest"] in row["text"] for row in evidence + retrieval)
    assert (len(evidence), len(retrieval), len(key)) == (24, 60, 84)
    for row in evidence:
        kept = row["text"].endswith(("take 0", "take 1"))
        assert key[row["item"]]["label"] == ("yes" if kept else "no")
    for row in retrieval:
        found = row["text"].endswith("no. 0")
        assert key[row["item"]]["label"] == ("yes" if found else "no")
    some = key[evidence[0]["item"]]
    assert (some["judge"], some["run"], some["dataset"], some["model"]) == (
        "llama", "run-of-a", "synthetic", "a",
    )  # fmt: skip
    assert some["category"] == str(CATEGORIES[evidence[0]["interest"]])


def test_items_are_spread_over_models_categories_and_users(judged_run, tmp_path):
    out = tmp_path / "items"
    report = export([judged_run("a"), judged_run("b")], out, items=12)
    key = [row for row in read_csv(out / "key.csv") if row["task"] == "evidence"]
    # Two models, two categories, three users: each of the twelve has one item.
    origins = {(row["model"], row["category"], row["user"]) for row in key}
    assert (len(key), len(origins)) == (12, 12)
    assert report.sheets[0].rows[0][:6] == ("evidence", 12, 2, 1, 2, 3)
    report = export([judged_run("a")], tmp_path / "more", items=30)
    assert report.sheets[0].rows[0][1] == 24
    assert report.sheets[0].notes == ("evidence: 24 items are all there are; 30 were asked for",)


def test_the_same_seed_draws_the_same_bytes_and_another_one_others(judged_run, tmp_path):
    tasks, drawn = [judged_run("a"), judged_run("b")], []
    for number, seed in enumerate((0, 0, 1)):
        out = tmp_path / str(number)
        export(tasks, out, items=10, seed=seed)
        drawn.append((out / "evidence.csv").read_bytes())
    assert drawn[0] == drawn[1] != drawn[2]
    # What is labelled already is not written over.
    (tmp_path / "kept").mkdir()
    write_csv(tmp_path / "kept" / "retrieval.csv", "work of days")
    with pytest.raises(UsageError):
        export(tasks, tmp_path / "kept")
    assert (tmp_path / "kept" / "retrieval.csv").read_text() == "work of days\n"


def test_exported_items_come_back_labelled(judged_run, tmp_path):
    task, out, labels = judged_run("a"), tmp_path / "items", []
    export([task], out, items=10)
    key = {row["item"]: row["label"] for row in read_csv(out / "key.csv")}
    for question in ("evidence", "retrieval"):
        rows = read_csv(out / f"{question}.csv")
        labels.append(str(out / f"{question}-labelled.csv"))
        with Path(labels[-1]).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows({**row, "rater": "Zoe", "label": key[row["item"]]} for row in rows)
    for key_file in (str(out / "key.csv"), ""):
        report = validate([task], ValidationOptions(labels=tuple(labels), key=key_file))
        assert report.notes == ("evidence: raters 1, items 10", "retrieval: raters 1, items 10")
        found = {(row[0], row[1]): row[4:6] for row in report.sheets[2].rows}
        assert found["evidence", "judge"] == found["retrieval", "judge"] == (10, 100.0)


ANIME, BASEBALL, BASKETBALL, CHRISTMAS = 10, 30, 31, 56


def interest(name: str, category: int | None, correct: int | None = None, of: int = 4) -> Judged:
    """Verified where it was asked how many of its objects are found again."""
    if correct is None:
        return judged(name, category)
    return judged(name, category, liked=2, found=(correct, of))


UNREADABLE = "predict/no_json"


@pytest.fixture
def tasks(kept: Any) -> list[Any]:
    nba, hoops = interest("NBA", BASKETBALL, 3), interest("Hoops", BASKETBALL, 1)
    manga, pitchers = interest("Manga", ANIME, 4), interest("Pitchers", BASEBALL, 5, of=5)
    return [
        kept("a", {"u1": [nba, interest("Santa", CHRISTMAS)], "u2": [hoops, interest("?", None)],
                   "u9": [manga]}),
        kept("b", {"u1": [interest("Manga", ANIME, 4, of=5)], "u2": []}),
        kept("c", {"u1": UNREADABLE, "u2": [pitchers]}),
    ]  # fmt: skip


@pytest.fixture
def stated(tmp_path: Path) -> str:
    return write_csv(
        tmp_path / "stated.csv", "user,interest", "u1,basketball", "u1,10", "u2, hoops",
        "u2,Knitting of quanta", "u3,Anime", "u4,Sleep",
    )  # fmt: skip


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
    rows = "basketball,Anime", "Knitting  of Quanta,10"
    mapping = write_csv(tmp_path / "map.csv", "interest,category", *rows)
    report = survey(tasks, SurveyOptions(stated=stated, mapping=mapping))
    assert report.sheets[0].rows == (("synthetic", 4, 3, 2, 2, 1, 1),)
    # u1 stated anime alone now: a (0, 0) there; u2 basketball and anime: a (1, 1/2).
    a = rows_of(report.sheets[1])["a"]
    assert (a["S-Prec"], a["S-Rec"]) == (50.0, 25.0)


@pytest.fixture
def ranked(kept: Any) -> list[Any]:
    """Models of IG F1 1, 2/3, 1/2 and 2/5: one verified category, and 0 to 3 that are not."""
    verified, guesses = interest("NBA", BASKETBALL, 4), [interest(f"no. {n}", n) for n in (1, 2, 3)]
    return [kept(f"vllm:org/Model-{n}", {"u": [verified, *guesses[:n]]}) for n in range(4)]


FIGURES = (
    "model,Elo,size", "org/model-0,1300,1", "Model-1,1400,1", "vllm:org/Model-2,1200,1",
    "Model-3,,1", "Elsewhere,1500,1",
)  # fmt: skip


def test_outside_figures_are_matched_and_correlated(ranked, tmp_path):
    figures = write_csv(tmp_path / "elo.csv", *FIGURES)
    options = OutsideOptions(figures=figures, column="Elo", above=1200)
    models, correlations = outside(ranked, options).sheets
    assert [row[1:3] for row in models.rows] == [(f"vllm:org/Model-{n}", 1) for n in range(4)]
    assert [row[3] for row in models.rows] == pytest.approx([100, 200 / 3, 50, 40])
    assert [row[4] for row in models.rows] == [1300, 1400, 1200, None]
    assert "left out of the correlation: vllm:org/Model-3" in models.notes[-1]
    # Ranks 3 2 1 against 2 3 1: 1 - 6 · 2 / 24. Above 1200 there are two, of which ρ says nothing.
    known = [("synthetic", "all", 3), ("synthetic", "Elo above 1200", 2)]
    assert [row[:3] for row in correlations.rows] == known
    assert correlations.rows[0][3] == pytest.approx(0.5)
    assert correlations.rows[1][3] is None
    assert correlations.notes == (
        "synthetic, Elo above 1200: no ρ: fewer than three pairs: for two it is always 1 or -1",
    )


def test_runs_asked_otherwise_and_copies_are_not_correlated(ranked, kept, tmp_path):
    figures = write_csv(tmp_path / "elo.csv", *FIGURES)
    found = {"u": [interest("NBA", BASKETBALL, 4), interest("Manga", ANIME, 4)]}
    odd = kept("odd", found, judge="another-judge")
    given = [*ranked, odd, ranked[0]]
    report = outside(given, OutsideOptions(figures=figures, column="Elo"))
    # The odd run would have added anime to the oracle, and halved the recall of all the others.
    assert [row[3] for row in report.sheets[0].rows] == pytest.approx([100, 200 / 3, 50, 40])
    assert "odd is left out: judge's name another-judge against judge-70b" in report.notes[-1]
    assert any("vllm:org/Model-0 is left out: it is a copy of" in note for note in report.notes)


def test_a_model_that_could_hardly_be_read_has_no_number_and_no_rank(tasks, stated, kept):
    silent = kept("d", {"u1": UNREADABLE, "u2": UNREADABLE})
    report = survey([*tasks, silent], SurveyOptions(stated=stated))
    d = rows_of(report.sheets[1])["d"]
    assert (d["read"], d["S-Prec"], d["survey F1"], d["IS"]) == (0, None, None, None)
    assert any("d on synthetic: no S-Prec" in note for note in report.sheets[1].notes)
    assert report.sheets[3].rows[0][2] == 3
