"""Raters and other metrics of texts against Q_s, by hand."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders.texts import read_csv, write_csv
from harness_usersumbench.analyses import text_metrics
from harness_usersumbench.analyses.correlations import MetricOptions, metrics
from harness_usersumbench.analyses.examples import examples_of, top_categories
from harness_usersumbench.analyses.rating_sheet import SheetOptions, sheet
from harness_usersumbench.analyses.ratings import RatingOptions, agree
from harness_usersumbench.analyses.text_metrics import Unavailable
from harness_usersumbench.records import Activity

from harness.base.errors import DataError, UsageError
from harness.scoring.stats import cohen_kappa, pearson

from .conftest import User

GOOD, BAD = "1111", "0000"
QUALITIES = {"u1": GOOD, "u2": GOOD, "u3": BAD, "u4": BAD, "u5": GOOD, "u6": "11?0"}
RATINGS = {
    # Rater: what the rater said of u1 to u6, and . of nothing.
    "ann": "gbgb.g",
    "bob": "gg..b.",
}
WORDS = {"g": "good", "b": "bad"}


@pytest.fixture
def run(kept):
    """A task with six summaries, of which u6 has no Q_s."""
    users = {
        name: User((answers, BAD), f"likes action, says {name}")
        for name, answers in QUALITIES.items()
    }
    return kept("ada", {**users, "u7": User(summary=None)})


def examples_in(task):
    """The examples of a task by name."""
    [(_, examples)] = examples_of([task], stop_share=1.0)
    return examples


@pytest.fixture
def name_of(run):
    """The name of each user's example."""
    return {one.user: name for name, one in examples_in(run).items()}


@pytest.fixture
def rated(tmp_path, run, name_of):
    """The arguments of an analysis of ratings, with more rows and options."""

    def make(*more, kind=RatingOptions, ratings=RATINGS, **options):
        rows = [
            f"{name_of[user]},{rater},{WORDS[mark]}"
            for rater, marks in ratings.items()
            for user, mark in zip(QUALITIES, marks, strict=True)
            if mark != "."
        ]
        file = write_csv(tmp_path / "ratings.csv", "example,rater,rating", *rows, *more)
        return [run], kind(ratings=(file,), **options)

    return make


def test_the_four_counts_and_maa_by_hand(rated):
    report = agree(*rated())
    found = {row[2]: row[3:] for row in report.sheets[0].rows}
    # Q_s is good for u1, u2, u5 and bad for u3, u4. Ann says good, bad, good, bad of u1 to u4.
    assert found["ann"][:6] == (4, 1, 1, 1, 1, 50.0)
    # Bob says good, good, bad of u1, u2, u5.
    assert found["bob"][:6] == (3, 2, 1, 0, 0, pytest.approx(200 / 3))
    assert found["all raters"][:6] == (7, 3, 2, 1, 1, pytest.approx(400 / 7))
    for *_, maa, low, high in found.values():
        assert 0 <= low < maa < high <= 100
    assert report.notes == ("ada, usersum_movielens_single_step: rated examples without Q_s, "
                            "left out: 1",)  # fmt: skip


def test_kappa_of_raters_of_the_same_examples_by_hand(rated):
    ratings = {"ann": "gbgb.g", "bob": "ggbb.g", "cid": "....g."}
    sheets = agree(*rated(ratings=ratings)).sheets
    # Both say the same of u1, u4 and u6: 3/5. Each says good of three: by chance 3·3/25 + 2·2/25.
    [row] = sheets[1].rows
    assert row[2:7] == ("ann", "bob", 5, 60.0, pytest.approx((3 / 5 - 13 / 25) / (12 / 25)))
    assert row[6] == pytest.approx(cohen_kappa("gbgbg", "ggbbg"))
    assert [row[2] for row in sheets[0].rows] == ["ann", "bob", "cid", "all raters"]


def test_q_s_is_that_of_the_run_that_is_named(rated):
    # In the second run all answers are wrong.
    found = {row[2]: row[3:8] for row in agree(*rated(asked_in=2)).sheets[0].rows}
    assert found["ann"] == (5, 0, 0, 3, 2)
    nothing = {row[2]: row[3:] for row in agree(*rated(asked_in=3)).sheets[0].rows}
    assert nothing["ann"] == (0, 0, 0, 0, 0, None, None, None)


def test_rows_that_cannot_be_used_are_named(rated, name_of, kept, tmp_path):
    for row, column, found, expected in (
        ("s0,ann,good", "example", "'s0'",
         "an example of these runs and tasks: give all that the sheet has"),
        ("{u1},ann,bad", "example", "'{u1}'",
         "one rating of each example by 'ann', who has another in row 1"),
        ("{u5},ann,fine", "rating", "'fine'", "good or bad"),
        ("{u5},,good", "rater", "nothing", "a name"),
    ):  # fmt: skip
        with pytest.raises(DataError) as raised:
            agree(*rated(row.format(**name_of)))
        assert raised.value.where.endswith(f"ratings.csv, row 9, column '{column}'")
        assert raised.value.found == found.format(**name_of)
        assert raised.value.expected == expected
    with pytest.raises(UsageError, match="nobody has rated anything"):
        agree(*rated("s1,ann,", ratings={}))
    none = kept("ada", {"u1": User((GOOD,))}, method="none")
    with pytest.raises(UsageError) as raised:
        sheet([none], SheetOptions(out=str(tmp_path / "out")))
    assert raised.value.found == "usersum_movielens_none"
    assert raised.value.expected == "a task with method: single_step or hierarchy_critique"


def test_raters_see_what_they_rate_and_no_score(run, tmp_path):
    report = sheet([run], SheetOptions(out=str(tmp_path), number=4, stop_share=1.0))
    rows = read_csv(tmp_path / "for_raters" / "sheet.csv")
    assert list(rows[0]) == [
        "example", "query", "activities", "top_categories", "summary", "rater", "rating",
    ]  # fmt: skip
    assert {row["query"] for row in rows} == {"Summarize my taste"}
    assert rows[0]["activities"] == (
        'watched "Heat" [Action, Crime] around Thu 01/01/1970 12AM\n'
        'watched "Clue" [Comedy] around Thu 01/01/1970 1AM'
    )
    assert rows[0]["top_categories"] == "Action, Comedy, Crime"
    assert {row["rater"] + row["rating"] for row in rows} == {""}
    key = {row["example"]: row for row in read_csv(tmp_path / "key.csv")}
    assert list(key) == [row["example"] for row in rows]
    assert {row["summary"][-2:] for row in rows} == {row["user"] for row in key.values()}
    assert {row["names_top_category"] for row in key.values()} == {"yes"}
    assert report.sheets[0].rows == (("ada", "usersum_movielens_single_step", 6, 4, 4.0, 100.0),)
    guide = (tmp_path / "for_raters" / "GUIDE.md").read_text(encoding="utf-8")
    assert "`good` or `bad` into the column `rating`" in guide
    # Somebody may be rating it, and it is not written again.
    with pytest.raises(UsageError) as raised:
        sheet([run], SheetOptions(out=str(tmp_path)))
    assert raised.value.found == "for_raters/sheet.csv, for_raters/GUIDE.md, key.csv"


def test_an_example_keeps_its_name_with_another_predictor_and_not_with_another_summary(kept):
    first, same, other = (
        list(examples_in(kept(model, {"u1": User((GOOD,), summary)}, **more)))
        for model, summary, more in (
            ("ada", "likes action", {}),
            ("ben", "likes action", {"roles": {"predictor": "max"}}),
            ("cid", "likes crime", {}),
        )
    )
    assert same == first != other


def test_a_past_of_segments_is_whole_and_in_order(kept):
    past = tuple(Activity(3600 * hour, f"no. {hour}", ("Crime",)) for hour in range(5))
    users = {"u1": User((GOOD,), past=past, rounds=(None, None))}
    [one] = examples_in(kept("ada", users, method="hierarchy_critique")).values()
    assert [line.split('" [')[0] for line in one.activities.splitlines()] == [
        f'watched "no. {hour}' for hour in range(5)
    ]


def test_top_categories_by_hand():
    said = {
        "u1": ("Bars", "Bars", "Food", "Art", "Golf"), "u2": ("Food", "Food", "Bars"),
        "u3": ("Food", "Golf", "Golf"),
    }  # fmt: skip
    pasts = {user: [Activity(0, "x", (one,)) for one in past] for user, past in said.items()}
    # Of one frequency, the first in the alphabet.
    assert top_categories(pasts, stop_share=1.0) == {
        "u1": ("Bars", "Art", "Food"), "u2": ("Food", "Bars"), "u3": ("Golf", "Food"),
    }  # fmt: skip
    # Food is a top category of all three, Bars of two of three.
    assert top_categories(pasts, stop_share=0.9) == {
        "u1": ("Bars", "Art", "Golf"), "u2": ("Bars",), "u3": ("Golf",),
    }  # fmt: skip


def test_a_category_is_named_whatever_its_case_and_marks(kept):
    past = (Activity(0, "x", ("Sci-Fi", "Children's")),)
    said = {"Loves SCI-FI.": True, "loves sci fi": True, "**Children’s** films": True, "": False}
    users = {text: User((GOOD,), text, past=past) for text in said}
    assert {one.user: one.names_top for one in examples_in(kept("ada", users)).values()} == said


@pytest.fixture
def correlated(rated, monkeypatch):
    """The rows of Table 3 by metric, without packages for the metrics of texts."""
    for package in ("rouge_score", "rouge_score.rouge_scorer", "sacrebleu", "bert_score"):
        monkeypatch.setitem(sys.modules, package, None)

    def make(**options):
        [found] = metrics(*rated(kind=MetricOptions, **options)).sheets
        return {row[0]: row[1:] for row in found.rows}, found.notes[3:]

    return make


def test_the_correlation_of_q_s_by_hand(correlated):
    found, _ = correlated()
    # u1 to u5: Q_s is 1 1 0 0 1, and the share that says good is 1, 1/2, 1, 0, 0.
    r = pearson([1, 1, 0, 0, 1], [1, 0.5, 1, 0, 0])
    # The means are 3/5 and 1/2: the products add up to .4·.5 + 0 - .6·.5 + .6·.5 - .4·.5 = 0.
    assert r == pytest.approx(0)
    cells = found["Quality Q_s"]
    assert (*cells[:2], cells[4]) == (5, pytest.approx(0), 0.363)


def test_what_is_missing_is_named_once_for_the_metrics_that_miss_it(correlated):
    found, notes = correlated()
    assert "ROUGE-2, ROUGE-L: rouge-score is not installed: pip install rouge-score" in notes
    assert found["ROUGE-L"] == (0, None, None, None, 0.151)
    said = "AutoEval: no judge rated the summaries: run with --set autoeval=true and --judge"
    assert said in notes


def test_bleurt_is_computed_by_the_function_that_is_named(correlated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("by_length.py").write_text(
        "def score(*, references, candidates):\n    return [ord(one[-1]) for one in candidates]\n"
    )
    found, _ = correlated(bleurt="by_length:score")
    # Summaries end in 1 to 6; the shares are 1, 1/2, 1, 0, 0, 1.
    assert found["BLEURT"][:2] == (6, pytest.approx(pearson(range(6), [1, 0.5, 1, 0, 0, 1])))


def test_autoeval_is_the_mean_of_the_judge_s_marks(kept, tmp_path):
    marks = {"u1": (5, 4), "u2": (1, 2), "u3": (3, 3), "u4": None}
    users = {name: User((GOOD,), name, marks=of) for name, of in marks.items()}
    task = kept("ada", users, autoeval=True)
    said = {"u1": "good", "u2": "bad", "u3": "good", "u4": "good"}
    rows = [f"{name},ann,{said[one.user]}" for name, one in examples_in(task).items()]
    file = write_csv(tmp_path / "ratings.csv", "example,rater,rating", *rows)
    [found] = metrics([task], MetricOptions(ratings=(file,))).sheets
    cells = {row[0]: row[1:3] for row in found.rows}
    assert cells["AutoEval"] == (3, pytest.approx(pearson([4.5, 1.5, 3.0], [1, 0, 1])))


PAIRS = [
    # Summary, activities.
    ("a b d", "a b c d"),
    ("They liked running shoes", "bought “Running shoe” [Sports]\nbought “Shoe” [Sports]"),
    ("a b c d", "a b c d e f g h"),
    ("watched “Clue” [Comedy]", "watched “Clue” [Comedy]"),
    ("", "watched “Heat” [Action, Crime, Thriller] around Sat 05/15/2004 4PM"),
]
SUMMARIES, ACTIVITIES = zip(*PAIRS, strict=True)


def test_rouge_by_hand():
    pytest.importorskip("rouge_score")
    # "a b d" and "a b c d" share one bigram, of two and of three: 2/5; a b d is common: 2·3/7.
    two, longest = text_metrics.rouge(SUMMARIES, ACTIVITIES)
    assert (two[0], longest[0]) == (pytest.approx(2 / 5), pytest.approx(6 / 7))
    # Stems: "shoes" and "shoe" are one. Of 4 and 7 words, running and shoe are common in order.
    assert longest[1] == pytest.approx(2 * 2 / 11)
    assert (two[3], longest[3], two[4], longest[4]) == (1, 1, 0, 0)


def test_bleu_by_hand():
    pytest.importorskip("sacrebleu")
    found = text_metrics.bleu(SUMMARIES, ACTIVITIES)
    # All of the summary is in the activities, which are twice as long: exp(1 - 8/4).
    assert found[2] == pytest.approx(100 * math.exp(-1))
    assert (found[3], found[4]) == (pytest.approx(100), 0)


def test_a_package_that_is_missing_is_named(monkeypatch):
    scores = ("BERTScore-precision", "BERTScore-recall", "BERTScore-F1")
    for module in ("sacrebleu", "bert_score"):
        for name in [module, *(one for one in sys.modules if one.startswith(f"{module}."))]:
            monkeypatch.setitem(sys.modules, name, None)
    found = text_metrics.text_metrics(SUMMARIES, ACTIVITIES)
    for package, names in (("sacrebleu", ("BLEU",)), ("bert-score", scores)):
        reason = f"{package} is not installed: pip install {package}"
        assert [found[name] for name in names] == [Unavailable(reason)] * len(names)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (None, ((0.1, 0.1), (2, 1), (3, 0))),
        (OSError("no file weights.bin\nand much more"), "no file weights.bin"),
        (OSError(), "OSError"),
    ],
)
def test_bertscore_reads_the_summary_as_candidate_or_names_missing_weights(
    monkeypatch, problem, expected
):
    class Scorer:
        """In the place of bert-score's: three numbers a pair, or no weights."""

        def __init__(self, *, model_type):
            if problem:
                raise problem

        def score(self, candidates, references):
            return [0.1] * len(candidates), [*map(len, candidates)], [*map(len, references)]

    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(BERTScorer=Scorer))
    found = tuple(text_metrics.bert_score(["ab", "c"], ["xyz", ""], "mine"))
    if problem:
        expected = (Unavailable(f"the weights 'mine' cannot be loaded: {expected}"),) * 3
    assert found == expected


@pytest.mark.parametrize("body", ["[1.0]", "[1.0, float('nan')]"])
def test_a_function_that_returns_no_scores_is_an_error(tmp_path, monkeypatch, body):
    monkeypatch.chdir(tmp_path)
    name = f"of_{tmp_path.name}"
    Path(f"{name}.py").write_text(f"def score(*, references, candidates):\n    return {body}\n")
    with pytest.raises(UsageError) as raised:
        text_metrics.bleurt_of(["ab", "c"], ["xyz", ""], f"{name}:score")
    assert raised.value.found.endswith(f":score: list of {len(body.split(','))}")
    assert raised.value.expected == "a list of 2 numbers, one for each candidate"


def test_without_a_function_bleurt_says_what_to_name():
    found = text_metrics.bleurt_of(["a"], ["b"], "")
    assert isinstance(found, Unavailable)
    assert "--bleurt module:function" in found.reason
