import csv
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from builders.gistbench import judged, make_claim, make_test_set
from builders.runs import keep_records
from builders.texts import read_csv, write_csv
from harness_gistbench.analyses import judge_validation
from harness_gistbench.analyses.judge_validation import (
    ExportOptions,
    ValidationOptions,
    validate,
)
from harness_gistbench.records import Evidence, Found, Kept, PoolObject
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
    assert splits.rows == (
        ("evidence", "4–0", 2, 40.0),
        ("evidence", "3–1", 2, 40.0),
        ("evidence", "2–2", 1, 20.0),
    )


def test_what_nobody_labelled_and_what_the_judge_never_said_is_counted(tmp_path):
    report = validated(tmp_path, "evidence,i7,A1,", "evidence,i7,,")
    assert report.notes == (
        "evidence: raters 4, items 6; rows without a label: 2; "
        "items of which it is not known what the judge said: 2",
    )


def test_raters_of_one_word_have_no_kappa_and_it_is_said(tmp_path):
    labels = write_csv(
        tmp_path / "l.csv", "task,item,rater,label", "retrieval,i,A,1", "retrieval,i,B,True"
    )
    key = write_csv(tmp_path / "k.csv", "task,item,label", "retrieval,i,no")
    options = ValidationOptions(labels=(labels,), key=key)
    sheet = validate([], options).sheets[0]
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
            evidence = (
                Evidence(f"{name}-{user}-{n}", f"{name}, take {n}", ("explicit_positive",))
                for n in range(4)
            )
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
    assert list(evidence[0]) == [
        "task", "item", "interest", "engagement", "text", "rater", "label",
    ]  # fmt: skip
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


@pytest.mark.parametrize("with_key", [True, False])
def test_exported_items_come_back_labelled(judged_run, tmp_path, with_key):
    task, out = judged_run("a"), tmp_path / "items"
    export([task], out, items=10)
    key = {row["item"]: row["label"] for row in read_csv(out / "key.csv")}
    for question in ("evidence", "retrieval"):
        rows = read_csv(out / f"{question}.csv")
        with (out / f"{question}-labelled.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            for row in rows:
                writer.writerow(row | {"rater": "Zoe", "label": key[row["item"]]})
    labels = tuple(str(out / f"{question}-labelled.csv") for question in ("evidence", "retrieval"))
    options = ValidationOptions(labels=labels, key=str(out / "key.csv") if with_key else "")
    report = validate([task], options)
    assert report.notes == (
        "evidence: raters 1, items 10",
        "retrieval: raters 1, items 10",
    )
    rows = {(row[0], row[1]): row[4:6] for row in report.sheets[2].rows}
    assert rows["evidence", "judge"] == rows["retrieval", "judge"] == (10, 100.0)


def test_what_is_labelled_already_is_not_written_over(judged_run, tmp_path):
    task = judged_run("a")
    write_csv(tmp_path / "retrieval.csv", "work of days")
    with pytest.raises(UsageError):
        export([task], tmp_path)
    assert (tmp_path / "retrieval.csv").read_text() == "work of days\n"
