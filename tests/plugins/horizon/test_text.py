"""Tasks 2 and 3: cases, prompts, replies, scores, tables and training data."""

import json
from collections import Counter
from math import log2
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from builders.horizon import rows_of
from builders.records import make_records
from builders.stages import work_at_desk
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.next_item.scores import TABLES
from harness_horizon.recommenders.training_data import SAMPLE
from harness_horizon.text import finding, histories, searching, sft_export
from harness_horizon.text.finding import HORIZON_TEXT, score
from harness_horizon.text.histories import ALONE, CUT, NO_HISTORY, NO_TITLE, Options, load
from harness_horizon.text.replies import QueriesReader
from harness_horizon.text.searching import RETRIEVE, Answer, Hits, Queries, Search, hits_of
from harness_horizon.text.sft_export import FILE, Pair, Settings, pairs_of, read_pairs, run, traces
from harness_horizon.text.text_tables import curves, main
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from harness import Parsed, Unreadable
from harness.base.errors import DataError, UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import Reply
from harness.contracts.outcomes import CallFailed
from harness.contracts.task import IntervalSpec
from harness.pipeline.forecast import rehearse
from harness.pipeline.settings import make_settings
from harness.prompts import Templates
from harness.registry import load_plugins
from harness.scoring.aggregate import Columns
from harness.testing import ScriptedModel, run_tasks

from .conftest import finished

LONG = "x" * 10_000
ROWS = {"u": (["a", "b", "c", "d", "e"], 2, 2), "new": (["a", "b", "c"], 1, 0)}


class Data:
    """A data set with one table of cases, and what was noted of it."""

    task = "horizon_query"

    def __init__(self, rows, most=99):
        self._rows, self._most = rows, most
        self.noted, self.asked = {}, ""

    def table(self, name):
        self.asked = name
        return self

    def batches(self, *names):
        titles, first, before = zip(*self._rows.values(), strict=True)
        columns = {"user_id": [*self._rows], "titles": titles, "first": first, "before": before}
        yield SimpleNamespace(first=1, columns={name: columns[name] for name in names})

    def bad(self, row, column, value, expected):
        return DataError("a row is bad", where=f"row {row}", found=str(value), expected=expected)

    def path(self, name):
        return SAMPLE / f"{name}.json"

    def choose(self, users):
        return list(users)[: self._most]

    def note(self, fact, number):
        self.noted[fact] = number


def cases(data, **given):
    """The cases of a data set, or of these rows."""
    options = Options(**given)
    data = data if isinstance(data, Data) else Data(data)
    return list(histories.questions({}, load(data, options), options))


def test_each_item_from_2020_or_ten_distinct_titles_are_asked_for():
    assert [(one.id, one.history, one.truths) for one in cases(ROWS)] == [
        ("u/2", ("a", "b"), ("c",)), ("u/3", ("a", "b", "c"), ("d",)),
        ("u/4", ("a", "b", "c", "d"), ("e",)), ("new/1", ("a",), ("b",)),
        ("new/2", ("a", "b"), ("c",)),
    ]  # fmt: skip
    assert [one.id for one in cases(ROWS, first_k=1)] == ["u/2", "new/1"]
    many = {"u": (["a", "b", *(f"t{n // 2}" for n in range(40))], 2, 2)}
    [case] = cases(many, ask="long")
    assert (case.id, case.history) == ("u", ("a", "b"))
    assert case.truths == tuple(f"t{number}" for number in range(10))
    data = Data(ROWS)
    found = cases(data, ask="long")
    assert [(one.id, one.truths) for one in found] == [("u", ("c", "d", "e"))]
    held_out = complete_manifest(SAMPLE).totals["roles"]["held_out"]
    assert data.noted == {ALONE: held_out - 2, NO_HISTORY: 1, NO_TITLE: 0, CUT: 0}
    trained = Data(ROWS)
    load(trained, Options(ask="long", setting="1c"))
    assert trained.noted[ALONE] == 0


def test_users_without_a_past_have_a_long_horizon_in_data_of_published_alone(monkeypatch):
    rows = ROWS | {"alone": (["a", "b", "c", "d"], 1, 1)}
    build = complete_manifest(SAMPLE)
    published = msgspec.structs.replace(build, options=build.options | {"published": True})
    for made, users in ((build, ["u", "alone"]), (published, ["u", "new", "alone"])):
        monkeypatch.setattr(histories, "complete_manifest", lambda _, made=made: made)
        found = cases(rows, ask="long")
        assert [one.id for one in found] == users
        assert (found[0].history, found[0].truths) == (("a", "b"), ("c", "d", "e"))
    # Their first item is the history, and what follows is asked for.
    assert (found[1].history, found[1].truths) == (("a",), ("b", "c"))


def test_titles_are_cleaned_and_the_oldest_leave_first_or_are_cut():
    rows = {"u": ([None, " one\n pot ", "", "None", "a", " \t", "b\r\nc"], 4, 4)}
    data = Data(rows)
    found = cases(data)
    assert [(one.id, one.history, one.truths) for one in found] == [
        ("u/4", ("one pot",), ("a",)), ("u/6", ("one pot", "a"), ("b c",)),
    ]  # fmt: skip
    assert (data.noted[NO_HISTORY], data.noted[NO_TITLE], data.noted[CUT]) == (0, 1, 0)
    assert cases({"u": ([None, "", "a"], 2, 2)}) == []
    rows = {"u": ([LONG, "old", "new", LONG, "b"], 2, 2), "v": (["a", "b", "c"], 2, 2)}
    data = Data(rows)
    found = cases(data, history_characters=12)
    assert [one.history for one in found] == [("old",), ("new",), ("x" * 12,), ("a", "b")]
    assert found[1].truths == (LONG,)
    assert data.noted[CUT] == 1
    # With " <SEP> " between them, two titles of a letter have nine characters.
    few = {"v": (["a", "b", "c"], 2, 2)}
    for most, shown in ((8, ("b",)), (9, ("a", "b"))):
        assert [one.history for one in cases(few, history_characters=most)] == [shown]
    for ending, first_k in ((["x", "y"], 1), ([None], None)):
        shown = Data({"u": (["oldest", "b", *ending], 1, 1)})
        load(shown, Options(history_characters=6, first_k=first_k))
        assert shown.noted[CUT] == 0


def test_a_single_query_asks_for_the_next_item_alone_and_the_setting_chooses_the_table():
    for other in ({"prompt": "one"}, {"first_k": 2}):
        with pytest.raises(UsageError, match="asked for with the next item"):
            load(Data(ROWS), Options(ask="long", **other))
    # Nor is there a first target without a history.
    with pytest.raises(DataError, match="a row is bad"):
        cases({"u": (["a", "b"], 2, 2)})
    data = Data(ROWS, most=1)
    found = load(data, Options(setting="1c"))
    assert (data.asked, found.users) == ("cases_1c", {"u"})
    assert isinstance(found, histories.TitleData) and len(found.items) == 64


def rendered(prompt, history=("A pot", "A kite")):
    templates = Templates([Path(__file__).parents[3] / "prompts"])
    return templates.need("horizon_text", prompt, "candidate").render({"history": list(history)})


def words(text):
    """The words of a prompt, without the lines of its JSON that print lost."""
    lines = (line.strip() for line in text.splitlines())
    return " ".join(" ".join(line for line in lines if line not in ("{", "}", "]", "...,")).split())


@pytest.mark.parametrize(("prompt", "begin"), [("next", "PROMPT FOR TASK 2"),
                                               ("long", "PROMPT for Task 3")])  # fmt: skip
def test_the_published_prompts_are_those_of_appendix_g(real_data, prompt, begin):
    file = real_data.parent / "papers" / "horizon.txt"
    if not file.is_file():
        pytest.skip(f"no text of the paper at {file}")
    printed = file.read_text("utf-8").partition(begin)[2].partition("\n")[2].partition("```")[0]
    printed = printed.replace("onesentence", "one-sentence")  # a hyphen at the end of a line
    before, placeholder, after = printed.partition("I1 <SEP> I2 <SEP> ..... <In>")
    assert placeholder
    [message] = rendered(prompt)
    assert message.role == "user"
    assert words(message.content) == words(f"{before}A pot <SEP> A kite{after}")


@pytest.mark.parametrize(
    ("prompt", "fields"),
    [("next", ["queries"]), ("long", ["item_descriptions_timewise"]), ("one", ["queries"]),
     ("next_code", ["guideline", "queries"]),
     ("long_code", ["guideline", "item_descriptions_timewise"])],
)  # fmt: skip
def test_each_prompt_shows_the_json_that_it_asks_for(prompt, fields):
    text = rendered(prompt)[-1].content
    shown = text[text.index("{") :].replace("...,", "").removesuffix("```")
    assert list(json.loads(shown)) == fields


def test_the_code_has_a_system_message_and_another_separator_and_titles_are_shown_as_they_are():
    assert {*searching.PROMPTS} == {"next", "next_code", "long", "long_code", "one"}
    for prompt in ("next_code", "long_code"):
        system, user = rendered(prompt)
        assert (system.role, user.role) == ("system", "user")
        assert user.content.startswith("History: A pot |<SEP>| A kite |<SEP>| ")
    [message] = rendered("next", ["{{ 7 }} <b> \" ' & é"])
    assert "History: {{ 7 }} <b> \" ' & é\n" in message.content


READ = QueriesReader(field="queries", most=10)
TEN = [f'search {number} for "x"' for number in range(1, 11)]
WHOLE = json.dumps({"queries": TEN}, indent=1)


def texts(reply, read=READ):
    found = read(reply)
    assert isinstance(found, Parsed), found
    return list(found.value), found.rung


@pytest.mark.parametrize(
    ("reply", "rung"),
    [
        (WHOLE, "strict"), (json.dumps(TEN), "strict"), (f"```json\n{WHOLE}\n```", "fenced"),
        (json.dumps({"guideline": 'likes "queries"', "queries": TEN}), "strict"),
        (json.dumps({"search_queries": TEN, "n": 10}), "strict"),
        (json.dumps({"queries": [{"query": one} for one in TEN]}), "strict"),
        (json.dumps({"queries": [*TEN, "an eleventh"]}), "strict"),
        (f"Sure [1]! Here {{ok}}:\n{WHOLE}\nHope that helps.", "brackets"),
        (f'{{"queries": ["query1"]}}\n{WHOLE}', "brackets"), (WHOLE[:-3], "repaired"),
        (WHOLE.replace("\n ]", ",\n ]"), "repaired"),
    ],
)  # fmt: skip
def test_ten_queries_are_read_whatever_stands_around_them(reply, rung):
    assert texts(reply) == (TEN, rung)


@pytest.mark.parametrize("around", ["{}", "```json\n{}", "Here they are:\n{}"])
@pytest.mark.parametrize("end", range(-1, 15))
def test_of_a_reply_cut_in_the_ninth_text_the_eight_whole_ones_are_kept(end, around):
    reply = WHOLE[: WHOLE.index("search 9") + end]
    assert texts(around.format(reply)) == (TEN[:8], "repaired")


@pytest.mark.parametrize(
    "reply",
    ["I cannot do this.", '{"queries": []}', '{"queries":', '{"queries": ["an unfinished',
     '{"guideline": "people wh', '{"queries": [1, null]}', '{"queries": ["queries"]}'],
)  # fmt: skip
def test_a_reply_without_any_is_unreadable(reply):
    found = READ(reply)
    assert isinstance(found, Unreadable) and found.cause == "no_list"
    assert READ(" \n").cause == "empty"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        # A text that ends before its list does is whole.
        (WHOLE[: WHOLE.index('",\n  "search 9') + 1], TEN[:8]),
        # A cut in another field takes nothing from the list.
        (json.dumps({"queries": ["a", "b"], "why": "because b"})[:-2], ["a", "b"]),
        # The name of the field and nothing are no queries.
        ('{"queries": ["queries", "Queries:", "a", "", " "]}', ["a"]),
        ('queries: "queries", "a"', ["a"]),
        ('{"queries": ["queries", "a", "b', ["a"]),
        # Without JSON the whole texts in quotation marks behind the name count.
        ('My "best" queries: "a b", "c d" and "e', ["a b", "c d"]),
        ('the queries ["a", "b"], not "c"', ["a", "b"]),
    ],
)
def test_what_is_whole_and_a_query_is_kept(reply, found):
    assert texts(reply)[0] == found


def test_line_ends_become_blanks_one_text_is_enough_and_descriptions_have_their_own_field():
    assert texts('{"queries": ["red\\n pot ", "b"]}')[0] == ["red pot", "b"]
    assert texts('{"queries": "red pot"}')[0] == ["red pot"]
    assert texts(WHOLE, QueriesReader(field="queries", most=1))[0] == TEN[:1]
    read = QueriesReader(field="item_descriptions_timewise", most=10)
    both = {"guideline": "x", "queries": ["no"], "item_descriptions_timewise": TEN}
    assert texts(json.dumps(both), read)[0] == TEN
    assert read.schema["required"] == ["item_descriptions_timewise"]


@given(st.text(alphabet='{}[]":,\\ aqueries\n`', max_size=200))
def test_no_text_makes_the_reader_fail(text):
    found = READ(text)
    if isinstance(found, Parsed):
        assert found.value and all(one.strip() and one != "queries" for one in found.value)


NEXT, TASK_3 = Options(), Options(ask="long")


def answer(*found, truths=(7,)):
    return Answer(found, truths, tuple((0.5,) * len(truths) for _ in range(2)))


def values(found, options=NEXT, queries=10):
    return finding.values_of(hits_of(found), len(found.truths), queries, options)


def hold(found, **wanted):
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_the_title_itself_is_exact_and_a_near_one_counts_by_cosine_alone():
    found = values(answer((3, 0.8, 0, 0.9), (7, 0.7, 0, 1.0), (9, 0.6, 0, 0.8999)))
    hold(found, recall_10=1, precision_10=0.1, ndcg_10=1 / log2(3))
    hold(found, recall_10_cosine=1, precision_10_cosine=0.2, ndcg_10_cosine=1)
    hold(found, precision_100_cosine=0.02)
    assert "published_recall_10" not in found
    # What is found behind a cut does not count there.
    others = [(number, 0.5, 0, 0.1) for number in range(100, 110)]
    found = values(answer(*others, (7, 0.4, 0, 1.0)))
    hold(found, recall_10=0, recall_20=1, ndcg_20=1 / log2(12))


def test_the_share_of_true_titles_is_at_most_one_and_a_title_near_to_several_finds_them_all():
    near = [(number, 0.8, 0, 0.95) for number in range(20, 25)]
    found = values(answer((8, 0.9, 1, 1.0), *near, truths=(7, 8)), TASK_3)
    hold(found, recall_10=0.5, recall_10_cosine=1, published_recall_10=3, precision_10_cosine=0.6)
    hold(found, ndcg_10=1 / (1 + 1 / log2(3)), ndcg_10_cosine=1)
    found = ((20, 0.8, 1, 0.97), (21, 0.7, 0, 0.3))
    also = ((0, 0, 0.9), (0, 2, 0.8999))
    got = values(Answer(found, (7, 8, 9), ((0.5,) * 3,), also), TASK_3)
    hold(got, recall_10_cosine=2 / 3, recall_10=0, published_recall_10=1 / 3)
    hold(got, precision_10_cosine=0.1, ndcg_10_cosine=1 / (1 + 1 / log2(3) + 1 / log2(4)))
    behind = Answer(((21, 0.7, 0, 0.3),) * 10 + found[:1], (7, 8), ((0.5,) * 2,), ((10, 0, 0.9),))
    hold(values(behind, TASK_3), recall_10_cosine=0, recall_20_cosine=1)


def test_with_the_published_merge_each_query_gives_a_tenth_of_k_and_doubles_count():
    rows = [[7, *range(100, 109)], [*range(200, 202), 7, *range(202, 209)]]
    found = answer(*((row, 0.5, 0, 0.1) for one in rows for row in one))
    merged = values(found, Options(merge="published"), queries=2)
    hold(merged, recall_10=1, precision_10=0.1, precision_20=0.05)
    hold(merged, recall_50=1, precision_50=2 / 50)
    # The cosines are the mean of all and of the nearest query of each title.
    found = hits_of(Answer(((1, 0.5, 0, 0.1),), (7, 8), ((0.2, 0.8), (0.6, 0.4))))
    assert (found.mean, found.best) == pytest.approx((0.5, 0.7))


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
    columns = Columns(finding.METRICS, found.values(), of_others=HORIZON_TEXT.stages_of_others)
    return columns.results(interval=IntervalSpec(draws=20), seed=0, task="t")


def scores(*outcomes, options=NEXT):
    """The scores of a user's cases, from what became of each and how many queries it had."""
    asked, searched = [], []
    for number, (user, outcome) in enumerate(outcomes):
        case = histories.Case(
            id=f"{user}/{number}", user=user, shown=number + 5, history=("a",), truths=("b",)
        )
        if isinstance(outcome, Unreadable):
            asked.append((case, outcome))
            continue
        queries = Queries(("q",) * (10 if number % 2 == 0 else 9), cut=number % 2 == 1)
        asked.append((case, queries))
        item = Search(id=case.id, user=user, shown=case.shown, queries=queries, truths=case.truths)
        searched.append((item, outcome))
    records = {"generate": make_records(asked, stage="a key")}
    records["retrieve"] = make_records(searched, stage="another key")
    return {one.id: one for one in score(records, options)}


HIT, MISS = Hits(100, ((0, 0),), ((0, 0),), 0.4, 0.6), Hits(100, (), (), 0.2, 0.3)
NO_LIST, DOWN = Unreadable("no_list", ""), CallFailed("timeout", "")


def test_cases_and_users_are_units_with_both_denominators_whole_as_the_authors_count():
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
    found = finding.score_of(record, True, True, Options(prompt=prompt))
    assert found.slices["queries"] == queries
    [found] = [*scores(("u", HIT), options=Options(prompt=prompt)).values()][:1]
    assert found.values["recall_10_whole"] == 1


def test_a_long_horizon_has_one_unit_a_user_and_the_main_metrics_are_recalls_at_ten():
    found = scores(("u", HIT), ("v", NO_LIST), options=TASK_3)
    assert list(found) == ["u/0", "v/1"]
    assert found["u/0"].values["published_recall_50_whole"] == 1
    assert found["v/1"].missing["published_recall_100"] == "generate/no_list"
    assert HORIZON_TEXT.main == ("recall_10", "recall_10_cosine")
    assert finding.column_of("horizon_query_1m", "recall_10") == "recall_10_cosine"


def test_the_published_tables_are_those_of_the_page():
    found = {name: TABLES.read(name) for name in ("table5", "table6")}
    assert {name: [*table.rows] for name, table in found.items()} == {
        "table5": [("LLAMA-3.1-8B", 1.62, 2.37, 2.84, 0.20, 0.23, 0.22),
                   ("Qwen3-8B", 2.06, 2.95, 3.50, 0.25, 0.28, 0.28),
                   ("Gemma2-9B", 1.45, 2.26, 2.66, 0.16, 0.21, 0.19)],
        "table6": [("LLAMA-3.1-8B", 1.26, 6.52, 13.25, 0.51, 0.52, 0.53),
                   ("Qwen3-8B", 1.51, 7.78, 15.75, 0.63, 0.65, 0.66),
                   ("Gemma2-9B", 0.98, 5.07, 10.39, 0.42, 0.43, 0.44)],
    }  # fmt: skip
    assert [table.source for table in found.values()] == ["Table 5", "Table 6"]
    results = HORIZON_TEXT.published()
    every = {(one.task, one.model, one.metric): one.value for one in results}
    assert len(every) == 2 * 3 * 6
    for *key, value in (
        ("horizon_query_1m", "Qwen3-8B", "recall_10_cosine_whole", 0.0206),
        ("horizon_long_1m", "Gemma2-9B", "published_recall_100_whole", 0.1039),
        ("horizon_long_1m", "Qwen3-8B", "precision_50_cosine_whole", 0.0065),
    ):
        assert every[tuple(key)] == pytest.approx(value)


def test_both_tasks_run_and_their_tables_hold_published_rows_beside_cosine_alone(tmp_path):
    tasks = finished(run_tasks("horizon_text", folder=tmp_path, limit=5))
    for setting in ("1c", "1d"):
        asked = {"prompt": "one", "setting": setting}
        tasks += finished(run_tasks("horizon_query", folder=tmp_path, set=asked, limit=3))
    report = main(tasks, None)
    five, six, single = report.sheets
    assert [sheet.title.partition(":")[0] for sheet in report.sheets] == [
        "Table 5", "Table 6", "In the layout of Table 10",
    ]  # fmt: skip
    for sheet, cases in ((five, ["all", "whole", "by user"]), (six, ["all", "whole"])):
        rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
        assert [row["cases"] for row in rows[: len(cases)]] == cases
        papers = rows[len(cases) :]
        assert [row["model"] for row in papers] == [
            "paper: LLAMA-3.1-8B", "paper: Qwen3-8B", "paper: Gemma2-9B",
        ]  # fmt: skip
        for row in papers:
            assert all(row[name] is None for name in sheet.columns[3:10])
            assert all(row[name] is not None for name in sheet.columns[10:16])
    assert dict(zip(six.columns, six.rows[3], strict=True))["~R@100"] == 15.75
    assert any("can pass 100" in note for note in six.notes)
    assert [row[:2] for row in single.rows] == [
        ("1c: users trained on", "K=10"), ("1c: users trained on", "K=100"),
        ("1d: users held out", "K=10"), ("1d: users held out", "K=100"),
    ]  # fmt: skip
    recall = curves(tasks, None)
    [sheet] = recall.sheets
    for row in sheet.rows:
        assert list(row[3:]) == sorted(row[3:])
    assert len(recall.figures) == 1
    assert main((), None).sheets == ()


def test_a_table_names_what_was_searched_and_has_papers_of_held_out_users(tmp_path):
    [held_out] = finished(run_tasks("horizon_long", folder=tmp_path, limit=2))
    [trained] = finished(run_tasks("horizon_long_1c", folder=tmp_path, limit=2))
    searched = held_out.manifest.roles["retriever"].identity["model"]["details"]
    searched["catalog_sample"] = 5_000
    six, as_six = main([trained, held_out], None).sheets
    assert (six.title[:8], as_six.title[:10]) == ("Table 6:", "As Table 6")
    named = "baseline: titles by hashing:words, index sample"
    assert f"{named}, a sample of 5,000 titles, in which more is found" in six.notes
    assert named in as_six.notes
    for sheet, papers in ((six, 3), (as_six, 0)):
        assert sum(row[0].startswith("paper") for row in sheet.rows) == papers
        assert any(finding.COMPARABLE_IF in note for note in sheet.notes) == (papers > 0)


@pytest.mark.parametrize("merge", ["round_robin", "published"])
def test_recall_of_a_candidate_that_names_the_next_title_is_whole_in_both_merges(tmp_path, merge):
    given = {"model": knowing("d"), "set": {"merge": merge}, "limit": 1}
    result = run_tasks("horizon_query", folder=tmp_path, **given)
    metrics = {name: one.value for name, one in result.summaries[0].metrics.items()}
    hold(metrics, recall_10=1, recall_10_user=1, precision_10=0.1)
    assert metrics["cosine_best"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("thinks", [True, False])
def test_what_a_thinking_model_had_is_in_the_setting_and_the_stamp(tmp_path, monkeypatch, thinks):
    monkeypatch.setattr(ScriptedModel, "thinks", lambda _: thinks)
    tasks = ["horizon_query", "horizon_long"]
    result = run_tasks(tasks, folder=tmp_path, model=knowing("d"), limit=1)
    said = (summary.not_comparable_because for summary in result.summaries)
    why = [[one for one in because if "thinks" in one] for because in said]
    own, sheets = ("4,316", "4,446"), main(finished(result), None).sheets
    assert why == [
        [f"the candidate thinks: {tokens} tokens, the published {most}"] if thinks else []
        for tokens, most in zip(own, (220, 350), strict=True)
    ]
    assert [sheet.rows[0][1] for sheet in sheets] == [
        f"{tokens} tokens, 4,096 of them for reasoning" if thinks else "" for tokens in own
    ]


async def answered(merge="round_robin", **changes):
    search = Search(id="u/1", user="u", shown=1, queries=Queries(("a", "b")), truths=("t",))
    fit = {"found": [[0, 0.5, 0, 0.95]], "truths": [7], "cosines": [[0.5], [0.4]]}
    answers, options = [json.dumps(fit | changes)], Options(merge=merge)
    return await work_at_desk(RETRIEVE, search, answers, benchmark="horizon_text", options=options)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cosines", [[0.5]]), ("truths", [1, 2]), ("found", [[0, 0.5, 1, 0.95]]),
        ("found", [[0, 0.5, -1, 0.95]]), ("also", [[0, 1, 0.95]]), ("also", [[100, 0, 0.95]]),
    ],
)  # fmt: skip
async def test_a_hundred_titles_are_asked_for_and_what_does_not_fit_is_a_failure(field, value):
    for merge in ("round_robin", "published"):
        worked = await answered(merge)
        assert json.loads(worked.requests[0].messages[0].content) == {
            "queries": ["a", "b"], "truths": ["t"], "k": 100, "merge": merge,
        }  # fmt: skip
        assert worked.outcome.near == ((0, 0),)
    assert (await answered(**{field: value})).outcome.cause == "schema"


def knowing(name):
    """A candidate that knows what follows, since the same titles follow in the sample."""

    after = {}
    for row in rows_of(SAMPLE / "cases-1d.parquet"):
        for place in range(row["first"], len(row["titles"])):
            after[" <SEP> ".join(row["titles"][:place])] = row["titles"][place]

    def answer(request):
        text = request.messages[0].content
        history = text.partition("History: ")[2].partition("\n")[0]
        others = [f"a query for nothing number {number}" for number in range(9)]
        return Reply(text=json.dumps({"queries": [after[history], *others]}))

    return ScriptedModel(answer, name=name)


def test_replies_that_are_cut_short_or_without_queries_are_counted(tmp_path):
    replies = [
        Reply(text='{"queries": ["pot", "kite", "lan', finish="length"),
        Reply(text='{"queries": ["pot"]}'),
        Reply(text="I would rather not."),
        Reply(text="", finish="refused"),
    ]
    short = ScriptedModel(lambda asked: replies[len(asked.messages[0].content) % 4], name="short")
    [task] = finished(run_tasks("horizon_query", folder=tmp_path, model=short, limit=12))
    counts, recall = task.summary.counts, task.summary.metrics["recall_10"]
    assert {"generate/no_list", "generate/refused"} == set(recall.missing)
    assert counts["cut replies"] > 0 and counts["fewer queries than asked for"] == recall.n
    sheet = main([task], None).sheets[0]
    assert [row[2] for row in sheet.rows[:2]] == ["all", "by user"]
    assert any("cut replies" in note and "no_list" in note for note in sheet.notes)


def test_a_case_of_task_2_is_small_beside_its_prompt(tmp_path):
    """With ten queries of sixty characters; the titles of the history are the prompt's."""
    text = "a cast iron skillet for camping that lasts for years {:>6}"
    said = json.dumps({"queries": [text.format(number) for number in range(10)]})
    long = ScriptedModel(lambda _: said, name="long")
    [task] = finished(run_tasks("horizon_query", folder=tmp_path, model=long, limit=2))
    sizes = Counter()
    for file in ("1-generate.jsonl", "2-retrieve.jsonl", "scores.jsonl"):
        for line in (task.path / task.entry.folder / file).read_text("utf-8").splitlines():
            found = json.loads(line)
            prompt = found.get("item", {}).get("history", [])
            if file.startswith("1"):
                prompt = [prompt, [one["content"] for one in found["calls"][0]["messages"]]]
            own = len(json.dumps(prompt, ensure_ascii=False).encode())
            sizes[found["id"]] += len(line.encode()) - own
    cases = [size for name, size in sizes.items() if "/" in name]
    assert len(cases) == len(list(task.records("generate")))
    assert max(cases) <= 8_192, max(cases)


async def test_a_dry_run_counts_no_completions_of_the_catalogue():
    asked = {"tasks": "horizon_query", "model": "baseline", "data": "sample", "limit": 5}
    forecast = await rehearse(make_settings(asked), load_plugins())
    roles = {role.role: role for stage in forecast.stages for role in stage.roles}
    assert roles["candidate"].writes and roles["candidate"].most_completion_tokens
    retriever = roles["retriever"]
    assert retriever.calls and not retriever.writes and not retriever.most_completion_tokens


def test_only_a_catalogue_of_the_same_items_suits():
    def check(kind, **details):
        data = SimpleNamespace(items="a" * 64, folder=Path("DATA"))
        others = {"candidate": Identity(kind="openai", name="y")}
        others["retriever"] = Identity(kind=kind, name="x", details=details)
        searching.suits(data, Options(), others)

    assert HORIZON_TEXT.suits is searching.suits
    check("catalogue", items="a" * 64)
    check("openai", recorded="digest")
    with pytest.raises(UsageError, match="no catalogue of the items") as error:
        check("catalogue", items="b" * 64)
    assert "harness horizon index --data DATA --embedder" in str(error.value)
    assert "an index of items aaaaaaaaaaaa" in str(error.value)
    with pytest.raises(UsageError, match="no catalogue of the items"):
        check("openai")


def exported(folder, **options):
    report = run(Settings(data=Path("sample"), out=folder, **options))
    lines = (folder / FILE).read_text("ascii").splitlines()
    return report, [json.loads(line)["messages"] for line in lines]


def test_each_line_is_the_question_of_one_and_the_last_title_of_a_training_history(tmp_path):
    report, lines = exported(tmp_path)
    titles = {row["item"]: row["title"] for row in rows_of(SAMPLE / "items.parquet")}
    wanted = [
        (" <SEP> ".join(titles[item] for item in row["items"][:-1]), titles[row["items"][-1]])
        for row in sorted(rows_of(SAMPLE / "train.parquet"), key=lambda row: row["user_id"])
        if len(row["items"]) > 1
    ]
    found = []
    for user, assistant in lines:
        assert (user["role"], assistant["role"]) == ("user", "assistant")
        read = QueriesReader(field="queries", most=1)(assistant["content"])
        assert isinstance(read, Parsed)
        found.append((user["content"].split("\n")[1].removeprefix("History: "), read.value[0]))
    assert found == wanted
    counts, audit = report.sheets
    assert counts.rows[0][0] == len(lines)
    in_tests, in_training, shared = audit.rows[0]
    assert in_tests > 0 and in_training > len(lines) and shared == 0


@pytest.mark.parametrize(
    ("tested", "left"),
    [({("u", 3), ("u", "c", None)}, 1), ({("v", 2)}, 1), ({("u", 2)}, 0), ({("u", "a", None)}, 0)],
)
def test_a_pair_that_a_test_asks_for_is_left_out(tested, left, tmp_path, monkeypatch):
    traced = frozenset({("u", 1), ("u", "a", None), ("u", 2), ("u", "b", None)})
    monkeypatch.setattr(sft_export, "read_pairs", lambda *_: ([Pair(("a",), "b", traced)], tested))
    if left:
        report, lines = exported(tmp_path)
        assert len(lines) == left and report.sheets[0].rows == ((1, 0),)
        return
    with pytest.raises(DataError, match="give no training data"):
        exported(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_the_pairs_of_a_user_are_the_last_items_and_tests_ask_for_all_that_their_cases_hold():
    settings = Settings(data=Path("sample"), out=Path("out"), per_user=2, history_characters=10)
    found = list(pairs_of(settings, "u", [1, 2, 3], ["one\nlong title", "b", "c"]))
    assert [(one.history, one.title) for one in found] == [(("one long t",), "b"), (("b",), "c")]
    assert found[1].traces == {("u", 2), ("u", "b", None), ("u", 3), ("u", "c", None)}
    assert list(pairs_of(settings, "u", [1], ["alone"])) == []
    # The trace of a title is that of the same title in other spacing.
    own, other = traces("u", 1, " red\n pot "), traces("u", 2, "red pot")
    assert own[1] == other[1] == ("u", "red pot", None)
    _, tested = read_pairs(Settings(data=Path("sample"), out=Path("out")), SAMPLE)
    trained = {row["user_id"] for row in rows_of(SAMPLE / "train.parquet")}
    wanted = {
        (row["user_id"], item)
        for name in ("validation", "cases-1a", "cases-1b", "cases-1c", "cases-1d")
        for row in rows_of(SAMPLE / f"{name}.parquet")
        if row["user_id"] in trained
        for item in row["items"][row["first"] :]
    }
    assert {one for one in tested if len(one) == 2} == wanted


def test_a_leak_writes_nothing_and_nothing_is_written_over(tmp_path, monkeypatch):
    real = sft_export.audit
    with monkeypatch.context() as patch:
        patch.setattr(
            sft_export, "audit", lambda tested, found, *rest: real(tested, found | tested, *rest)
        )
        with pytest.raises(DataError, match="contains test items"):
            exported(tmp_path)
    assert not (tmp_path / FILE).exists()
    (tmp_path / FILE).touch()
    with pytest.raises(UsageError, match="already contains training data"):
        exported(tmp_path)
