"""Scores of what a catalogue finds, by hand and against ir-measures."""

from math import log2

import numpy as np
import pytest
from builders.records import make_records
from harness_horizon.next_item.scores import TABLES
from harness_horizon.text.finding import (
    HORIZON_TEXT,
    METRICS,
    column_of,
    score,
    score_of,
    values_of,
)  # fmt: skip
from harness_horizon.text.histories import Case, Options
from harness_horizon.text.searching import Answer, Hits, Queries, Search, hits_of
from msgspec import UNSET

from harness.contracts.outcomes import CallFailed, Unreadable
from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns

NEXT, LONG = Options(), Options(ask="long")


def answer(*found, truths=(7,)):
    return Answer(found, truths, tuple((0.5,) * len(truths) for _ in range(2)))


def values(found, options=NEXT, queries=10):
    return values_of(hits_of(found), len(found.truths), queries, options)


def test_the_title_itself_is_exact_and_a_near_one_counts_by_cosine_alone():
    found = values(answer((3, 0.8, 0, 0.9), (7, 0.7, 0, 1.0), (9, 0.6, 0, 0.8999)))
    assert (found["recall_10"], found["precision_10"]) == (1, 0.1)
    assert found["ndcg_10"] == pytest.approx(1 / log2(3))
    assert (found["recall_10_cosine"], found["precision_10_cosine"]) == (1, 0.2)
    assert found["ndcg_10_cosine"] == 1
    assert found["precision_100_cosine"] == pytest.approx(0.02)
    assert "published_recall_10" not in found
    # What is found behind a cut does not count there.
    others = [(number, 0.5, 0, 0.1) for number in range(100, 110)]
    found = values(answer(*others, (7, 0.4, 0, 1.0)))
    assert (found["recall_10"], found["recall_20"]) == (0, 1)
    assert found["ndcg_20"] == pytest.approx(1 / log2(12))


def test_the_share_of_true_titles_is_no_more_than_one_and_the_published_recall_can_be():
    near = [(number, 0.8, 0, 0.95) for number in range(20, 25)]
    found = values(answer((8, 0.9, 1, 1.0), *near, truths=(7, 8)), LONG)
    assert (found["recall_10"], found["recall_10_cosine"]) == (0.5, 1)
    assert found["published_recall_10"] == 3
    assert found["precision_10_cosine"] == 0.6
    assert found["ndcg_10"] == pytest.approx(1 / (1 + 1 / log2(3)))
    assert found["ndcg_10_cosine"] == pytest.approx(1)


def test_a_title_near_to_several_true_ones_finds_them_all_and_is_ranked_for_the_nearest():
    found = ((20, 0.8, 1, 0.97), (21, 0.7, 0, 0.3))
    answered = Answer(found, (7, 8, 9), ((0.5,) * 3,), ((0, 0, 0.9), (0, 2, 0.8999)))
    got = values(answered, LONG)
    assert got["recall_10_cosine"] == pytest.approx(2 / 3) and got["recall_10"] == 0
    assert got["published_recall_10"] == pytest.approx(1 / 3)
    assert got["precision_10_cosine"] == 0.1
    assert got["ndcg_10_cosine"] == pytest.approx(1 / (1 + 1 / log2(3) + 1 / log2(4)))
    behind = Answer(((21, 0.7, 0, 0.3),) * 10 + found[:1], (7, 8), ((0.5,) * 2,), ((10, 0, 0.9),))
    got = values(behind, LONG)
    assert (got["recall_10_cosine"], got["recall_20_cosine"]) == (0, 1)


def test_with_the_published_merge_each_query_gives_a_tenth_of_k_and_doubles_count():
    rows = [[7, *range(100, 109)], [*range(200, 202), 7, *range(202, 209)]]
    found = answer(*((row, 0.5, 0, 0.1) for one in rows for row in one))
    merged = values(found, Options(merge="published"), queries=2)
    assert merged["recall_10"] == 1 and merged["precision_10"] == 0.1
    assert merged["precision_20"] == 0.05
    assert merged["precision_50"] == 2 / 50
    assert merged["recall_50"] == 1


def test_the_cosines_are_the_mean_of_all_and_of_the_nearest_query_of_each_title():
    found = hits_of(Answer(((1, 0.5, 0, 0.1),), (7, 8), ((0.2, 0.8), (0.6, 0.4))))
    assert found.mean == pytest.approx(0.5)
    assert found.best == pytest.approx(0.7)


@pytest.mark.parametrize("truths", [1, 3, 10])
def test_exact_scores_agree_with_ir_measures(truths):
    measures = pytest.importorskip("ir_measures", reason="needs ir-measures")
    rng = np.random.default_rng(truths)
    runs, qrels, ours = {}, {}, []
    for query in range(80):
        rows = rng.permutation(160)[: rng.integers(5, 101)].tolist()
        true = rng.permutation(160)[:truths].tolist()
        runs[f"q{query}"] = {f"d{row}": -float(place) for place, row in enumerate(rows)}
        qrels[f"q{query}"] = {f"d{row}": 1 for row in true}
        found = Answer(tuple((row, 0.5, 0, 0.1) for row in rows), tuple(true), ((0.5,) * truths,))
        ours.append(values(found))
    kinds = {"ndcg": measures.nDCG, "recall": measures.R, "precision": measures.P}
    for name, kind in kinds.items():
        for cut in (10, 20, 50, 100):
            theirs = measures.calc_aggregate([kind @ cut], qrels, runs)[kind @ cut]
            for end in ("", "_cosine"):
                mean = np.mean([one[f"{name}_{cut}{end}"] for one in ours])
                assert mean == pytest.approx(theirs), (name, cut, end)


def results_of(found):
    columns = Columns(METRICS, found.values(), of_others=HORIZON_TEXT.stages_of_others)
    return columns.results(interval=IntervalSpec(draws=20), seed=0, task="t")


def scores(*outcomes, options=NEXT):
    """The scores of a user's cases, from what became of each and how many queries it had."""
    asked, searched = [], []
    for number, (user, outcome) in enumerate(outcomes):
        case = Case(
            id=f"{user}/{number}", user=user, shown=number + 5, history=("a",), truths=("b",)
        )
        if isinstance(outcome, Unreadable):
            asked.append((case, outcome))
            continue
        queries = Queries(("q",) * (10 if number % 2 == 0 else 9), cut=number % 2 == 1)
        asked.append((case, queries))
        item = Search(id=case.id, user=user, shown=case.shown, queries=queries, truths=case.truths)
        searched.append((item, outcome))
    records = {
        "generate": make_records(asked, stage="a key"),
        "retrieve": make_records(searched, stage="another key"),
    }
    return {one.id: one for one in score(records, options)}


HIT, MISS = Hits(100, ((0, 0),), ((0, 0),), 0.4, 0.6), Hits(100, (), (), 0.2, 0.3)
NO_LIST, DOWN = Unreadable("no_list", ""), CallFailed("timeout", "")


def test_cases_and_users_are_units_with_both_denominators():
    found = scores(("u", HIT), ("u", MISS), ("u", NO_LIST), ("v", MISS), ("w", DOWN))
    assert list(found) == ["u/0", "u/1", "u/2", "user u", "v/3", "user v", "w/4", "user w"]
    whole = [found[f"u/{number}"].missing["recall_10_whole"] for number in range(3)]
    assert whole == ["fewer_queries", "fewer_queries", "generate/no_list"]
    assert found["u/0"].slices == {"history": "1-5", "queries": "all"}
    assert found["u/1"].counts == {"fewer queries than asked for": 1, "cut replies": 1}
    assert found["u/2"].missing["recall_10_cosine"] == "generate/no_list"
    assert "recall_10" not in found["user u"].values
    assert found["user u"].values["recall_10_user"] == pytest.approx(1 / 2)
    assert found["user u"].lost == dict.fromkeys(found["user u"].values, pytest.approx(1 / 3))
    assert found["user v"].lost is UNSET
    results = results_of(found)
    # A case without queries counts 0 in the mean of its user, and one not searched does not count.
    assert results["recall_10_user"].value == pytest.approx((1 / 3 + 0) / 2)
    assert results["recall_10"].value == pytest.approx(1 / 4)
    assert results["recall_10_whole"].value is None
    assert found["user w"].missing["recall_10_user"] == "retrieve/timeout"
    assert found["w/4"].missing["cosine_best"] == "retrieve/timeout"


def test_whole_counts_the_users_whose_replies_all_have_all_queries_as_the_authors_do():
    # The cases 1, 3 and 7 have nine queries and the case 5 none, so that u, v and x do not count.
    found = scores(
        ("u", HIT), ("u", HIT), ("w", HIT), ("v", HIT), ("x", HIT), ("x", NO_LIST), ("y", DOWN),
        ("v2", HIT), ("z", MISS),
    )  # fmt: skip
    whole = results_of(found)["recall_10_whole"]
    assert (whole.value, whole.n) == (pytest.approx(1 / 2), 2)
    assert whole.missing == {"fewer_queries": 5, "generate/no_list": 1, "retrieve/timeout": 1}
    assert found["u/0"].slices["queries"] == "all"


@pytest.mark.parametrize(("prompt", "queries"), [("one", "all"), ("paper", "fewer")])
def test_one_query_is_all_where_one_was_asked_for(prompt, queries):
    item = Search(id="u/1", user="u", shown=2, queries=Queries(("q",)), truths=("b",))
    [record] = make_records([(item, HIT)], stage="a key")
    found = score_of(record, True, True, Options(prompt=prompt))
    assert found.slices["queries"] == queries
    [found] = [*scores(("u", HIT), options=Options(prompt=prompt)).values()][:1]
    assert found.values["recall_10_whole"] == 1


def test_a_long_horizon_has_one_unit_a_user():
    found = scores(("u", HIT), ("v", NO_LIST), options=LONG)
    assert list(found) == ["u/0", "v/1"]
    assert found["u/0"].values["published_recall_50_whole"] == 1
    assert found["v/1"].missing["published_recall_100"] == "generate/no_list"


PRINTED = {
    "Table 5": """LLAMA-3.1-8B 1.62 2.37 2.84 0.20 0.23 0.22
                  Qwen3-8B 2.06 2.95 3.50 0.25 0.28 0.28
                  Gemma2-9B 1.45 2.26 2.66 0.16 0.21 0.19""",
    "Table 6": """LLAMA-3.1-8B 1.26 6.52 13.25 0.51 0.52 0.53
                  Qwen3-8B 1.51 7.78 15.75 0.63 0.65 0.66
                  Gemma2-9B 0.98 5.07 10.39 0.42 0.43 0.44""",
}


def test_the_published_tables_are_those_of_the_page():
    for table in map(TABLES.read, ("table5", "table6")):
        rows = [line.split() for line in PRINTED[table.source].splitlines()]
        assert [(row[0], *map(float, row[1:])) for row in rows] == [*table.rows]
    results = HORIZON_TEXT.published()
    every = {(one.task, one.model, one.metric): one.value for one in results}
    assert len(every) == 2 * 3 * 6
    assert every["horizon_query", "Qwen3-8B", "recall_10_cosine_whole"] == pytest.approx(0.0206)
    assert every["horizon_long", "Gemma2-9B", "published_recall_100_whole"] == pytest.approx(0.1039)
    assert every["horizon_long", "Qwen3-8B", "precision_50_cosine_whole"] == pytest.approx(0.0065)
    assert column_of("horizon_query", "recall_10") == "recall_10_cosine"


def test_the_main_metrics_are_recall_at_ten_of_titles_and_of_what_is_alike():
    assert HORIZON_TEXT.main == ("recall_10", "recall_10_cosine")
