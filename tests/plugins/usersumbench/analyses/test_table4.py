"""Table 4, and what the verifier and the predictor said, by hand."""

from types import MappingProxyType, SimpleNamespace

import pytest
from harness_usersumbench.analyses.accuracy import questions
from harness_usersumbench.analyses.results import SETTING, by_data, table_values
from harness_usersumbench.analyses.rounds import rounds
from harness_usersumbench.analyses.table4 import increment, main
from harness_usersumbench.benchmark import USERSUMBENCH
from harness_usersumbench.paper import TABLES
from harness_usersumbench.records import Pair, Refined, Round

from harness.base.errors import UsageError
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.scoring.score_run import task_options

from .conftest import User, use

NOTHING = None


def sheet_of(report, title):
    [sheet] = [one for one in report.sheets if one.title.startswith(title)]
    return sheet


def rows(report, title):
    return {row[0]: row[1:] for row in sheet_of(report, title).rows}


@pytest.fixture
def single(kept):
    """Two users: 2 and 4 words; Q_s of the three runs is 1, 0, 1 and 0, 1, 1."""
    first, second = User(("1110", "1100", "1111"), "a b"), User(("0000", "1110", "0111"), "a b c d")
    return lambda model="ada", **more: kept(model, {"u1": first, "u2": second}, **more)


@pytest.fixture
def refined(kept):
    """Two users who always have three right answers, with 2 and 3 words, and those given."""
    always = {name: User(("1110",) * 3, text) for name, text in (("u1", "a b"), ("u2", "a b c"))}
    return lambda others=MappingProxyType({}), **more: kept(
        "ada", {**always, **others}, method="hierarchy_critique", **more
    )


def test_means_and_deviations_over_runs_by_hand(single):
    values = table_values(single(max_words=3))
    # QM of the runs: 1/2, 1/2, 1; its squares around 2/3 add up to 1/6, and of n - 1 are 1/12.
    assert values["qm"] == (pytest.approx(2 / 3), pytest.approx((1 / 12) ** 0.5))
    # 0.1% are thousandths: (3/4, 1/2, 1) / 2 words and (0, 3/4, 3/4) / 4 words.
    runs = [187.5, 218.75, 343.75]
    spread = (sum((one - 250) ** 2 for one in runs) / 2) ** 0.5
    assert values["idm"] == (pytest.approx(250), pytest.approx(spread))
    assert values["ifm"] == (0.5, None)


def test_increments_by_hand(single, refined):
    report = main([single(max_words=3), refined(max_words=3)], None)
    table = rows(report, "Table 4: MovieLens, ada")
    # QM 1 for 2/3, IFM 1 for 1/2, IDM (375 + 250) / 2 for 250.
    assert table["hierarchy_critique"][:-1] == pytest.approx(
        (2, 1.0, 0.0, 50.0, 1.0, 100.0, 312.5, 0.0, 25.0, 2)
    )
    assert table["single_step"][3::2] == (NOTHING, NOTHING, pytest.approx(82.68, abs=0.01), NOTHING)
    assert table["single_step"][8] is NOTHING


def test_increments_are_those_of_the_users_in_common_by_hand(kept):
    # u1 is in both, with one run more that is good; u2 and u3 are in one each.
    single = {"u1": User(("1110", "0000"), "a b"), "u2": User(("1111",) * 2, "a")}
    refined = {"u1": User(("1110", "1110"), "a b"), "u2": User(summary=None),
               "u3": User(("0000",) * 2, "a")}  # fmt: skip
    tasks = [kept("ada", single), kept("ada", refined, method="hierarchy_critique")]
    row = rows(main(tasks, None), "Table 4")["hierarchy_critique"]
    # QM over all users falls from 3/4 to 1/2, and rises from 1/2 to 1 for the one in common, whose
    # IDM rises from 3/8 to 3/4 of 500.
    assert row[:4] == (2, 0.5, 0.0, 100.0)
    assert (row[5], row[8], row[9]) == (0.0, 100.0, 1)


def test_the_share_of_checks_that_could_not_be_read_stands_in_the_row_of_the_verifier(
    single, refined
):
    for read, share in (((30, 40), 25.0), (None, NOTHING)):
        report = main([single(), refined(read=read)], None)
        table, notes = rows(report, "Table 4"), sheet_of(report, "Table 4").notes
        assert (table["single_step"][-1], table["hierarchy_critique"][-1]) == (NOTHING, share)
        assert any(note.startswith("unread %: ") for note in notes) == bool(read)


@pytest.mark.parametrize("row", TABLES.read("methods").dicts(), ids=str)
def test_increments_are_those_of_the_published_table(row):
    ours = increment(row["hierarchy-critique"], row["single-step"])
    assert ours == pytest.approx(row["increment"], abs=0.0051)


def test_without_single_step_or_with_one_run_there_is_no_increment_or_deviation(kept):
    alone = kept("ada", {"u1": User(("1110",)), "u2": User(("0000",))}, method="hierarchy_critique")
    table = rows(main([alone], None), "Table 4")
    assert table["hierarchy_critique"][:4] == (2, 0.5, NOTHING, NOTHING)
    assert increment(0.5, 0.0) is NOTHING


def test_contexts_have_no_words_and_baselines_no_model(single, kept):
    none = kept("ada", {"u1": User(("1111",)), "u2": User(("0000",))}, method="none")
    table = rows(main([single(), none], None), "Table 4")
    assert list(table) == ["none", "single_step", "popular, no model", "random, no model"]
    assert table["none"] == (2, 0.5, NOTHING, pytest.approx(-25), *(NOTHING,) * 5, 2, NOTHING)
    # One in five four times over: 4 · .2³ · .8 + .2⁴.
    assert table["random, no model"][:2] == (2, pytest.approx(4 * 0.2**3 * 0.8 + 0.2**4))


def test_users_without_a_summary_or_a_decision_are_counted_by_cause(kept):
    users = {"u1": User(("1110",)), "u2": User(summary=None)}
    users |= {f"u{n}": User((answers,)) for n, answers in enumerate(("11?0", "111?", "00?1"), 3)}
    report = main([kept("ada", users)], None)
    # Three right or two wrong decide, so u4 and u5 count.
    assert rows(report, "Table 4")["single_step"][:2] == (3, pytest.approx(2 / 3))
    assert sheet_of(report, "Table 4").notes[-1] == (
        "single_step: users without QM: predict/none_named 1, summarise/truncated 1"
    )
    questions = rows(report, "Questions")["single_step"]
    # Four of five users have a summary: t3 is right for u1 and u4, unread for u3 and u5.
    assert questions[:6] == pytest.approx((4, 75.0, 75.0, 50.0, 25.0, 100 * 3 / 16))


def test_qm_is_the_number_of_the_results_where_unread_answers_decide(kept):
    # u1 has Q_s 1 in one run, the others undecided; u2 has 0, 0 and 1: the users have 1 and 1/3.
    answers = {"u1": ("1110", "11??", "11??"), "u2": ("0000", "0000", "1110")}
    task = kept("ada", {name: User(given) for name, given in answers.items()})
    # The runs have 1/2, 0 and 1.
    assert rows(main([task], None), "Table 4")["single_step"][1:3] == pytest.approx((2 / 3, 0.5))
    assert task.summary.metrics["qm"].value == pytest.approx(2 / 3)


def test_a_good_summary_costs_the_calls_and_tokens_of_all(single, refined):
    cheap = {"summarise": [use(2, 100, 20)], "predict": [use(24, 900, 9)]}
    dear = {"segment": [use(10, 500, 60), use(20, 300, 40)], "combine": [use(2, 9, 1)]}
    table = rows(main([single(uses=cheap), refined(uses=dear)], None), "Questions and cost")
    # 2/3 + 2/3 good ones for 2 calls and 120 tokens; 2 for 32 and 910.
    assert table["single_step"][6:] == pytest.approx((2, 120, 4 / 3, 1.5, 90))
    assert table["hierarchy_critique"][6:] == pytest.approx((32, 910, 2, 16, 455))


def test_methods_are_compared_on_the_users_of_both(single, refined):
    tasks = [single(), refined({"u3": User(("0000",) * 3)})]
    sheet = sheet_of(main(tasks, None), "Methods on the same users: MovieLens, ada")
    found = {row[0]: row[1:] for row in sheet.rows}
    assert found["QM"] == (
        "single_step", "hierarchy_critique", *(pytest.approx(-1 / 3),) * 3, 2
    )  # fmt: skip
    # Thousandths of 3/4 by 2 and by 3 words, taken from those of the mean answers: 375 less 375,
    # and 1/2 of 1/4 less 250.
    assert found["IDM ×0.1%"][2:] == pytest.approx((-62.5, -125.0, 0.0, 2))


def test_models_are_compared_where_they_use_one_method(single):
    report = main([single(), single("ben"), single("cid", source="yelp")], None)
    assert [sheet.title for sheet in report.sheets if "same users" in sheet.title] == [
        "Models on the same users: MovieLens"
    ]
    sheet = sheet_of(report, "Models on")
    assert [row[:4] for row in sheet.rows] == [
        (f"{head} single_step", "ada", "ben", 0.0) for head in ("QM", "IFM", "IDM ×0.1%")
    ]


def test_qm_is_compared_with_the_paper_where_all_is_as_there(single, refined):
    report = main([single(units=4297), refined(units=4297, because=("limited to 9",))], None)
    sheet = sheet_of(report, "Ours and the published Table 4: MovieLens, ada")
    found = {row[:2]: row[2:] for row in sheet.rows}
    assert found["QM", "single_step"] == (
        pytest.approx(2 / 3), pytest.approx((1 / 12) ** 0.5), 0.557, 0.002,
        pytest.approx(2 / 3 - 0.557), "",
    )  # fmt: skip
    assert found["QM", "hierarchy_critique"] == (1.0, 0.0, 0.586, 0.003, NOTHING, "")
    for name in ("IFM", "IDM ×0.1%"):
        for method in ("single_step", "hierarchy_critique"):
            assert found[name, method][-2:] == (NOTHING, "limit unknown")
    assert sheet.notes[0] == "hierarchy_critique: not comparable: limited to 9"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"units": 12}, "12 users, not 4,297"),
        ({"distractors": "popularity"}, "different settings: distractors popularity"),
        ({"threshold": 2}, "different settings: threshold 2"),
        ({"because": ("bundled sample data",)}, "bundled sample data"),
        ({"roles": {"predictor": "max"}}, "the predictor is another model: max"),
    ],
)
def test_what_is_not_as_in_the_paper_is_said_and_has_no_difference(single, changes, reason):
    sheet = sheet_of(main([single(**{"units": 4297, **changes})], None), "Ours and the published")
    assert {row[6] for row in sheet.rows} == {NOTHING}
    assert sheet.notes[0] == f"single_step: not comparable: {reason}"


def test_tasks_share_a_table_if_one_predictor_answered(single, refined):
    for role, methods in (("verifier", [["single_step", "hierarchy_critique"]]),
                          ("predictor", [["single_step"], ["hierarchy_critique"]])):  # fmt: skip
        tables = by_data([single(), refined(roles={role: "max"})])["MovieLens"]
        assert [list(row.tasks) for row in tables] == methods


def test_the_tasks_that_are_shipped_have_no_setting_to_tell():
    tasks = Catalogue(load_plugins()).select(["tag:usersum"]).tasks
    assert len(tasks) >= 15
    for task in tasks:
        options, manifest = task_options(task, USERSUMBENCH), SimpleNamespace(asked={})
        run = SimpleNamespace(task=task, options=options, manifest=manifest)
        assert (task.name, SETTING.describe(run)) == (task.name, "")


FINE = Pair("Which?", "Crime", consistent=True)
WRONG = Pair("Which?", "Golf", consistent=False, reference="Crime")
SILENT = Pair("Which?", "Art")

CONSISTENT = Round("s", True, ("Crime",), (FINE,))
MISSED = Round("s", False)
INCONSISTENT = Round("s", True, ("Crime", "Golf"), (FINE, WRONG))
NO_ENTITY = Round("s", None, unread=("fits_query",))
NO_VERDICT = Round("s", True, ("Art",), (SILENT,), unread=("judgements",))
UNREAD_ENTITIES = Round("s", True, unread=("entities",))

SEGMENTS = (
    Refined("s", (CONSISTENT,)),
    Refined("s", (MISSED, INCONSISTENT, CONSISTENT)),
    Refined("s", (INCONSISTENT, INCONSISTENT)),
    Refined("s", (NO_ENTITY,)),
    Refined("s", (NO_VERDICT,)),
    Refined("s", (UNREAD_ENTITIES,)),
    None,
)


def test_what_was_flagged_fixed_and_left_and_the_checks_of_each_round_by_hand(kept):
    refined = kept("ada", {"u1": User(("1111",), rounds=SEGMENTS)}, method="hierarchy_critique")
    single = kept("ben", {"u1": User(("1111",))})
    with pytest.raises(UsageError, match="no task has a verifier"):
        rounds([single], None)
    segments, checks = rounds([single, refined], None).sheets
    # Of seven one failed, two were flagged: one was missed and wrong, and fixed; one was left.
    # Nothing flagged three whose query, pair or entities nobody could read.
    assert segments.rows == (
        ("ada", "usersum_movielens_hierarchy_critique", 7, 1, 1, 2, 1, 2, 1, 1, 3,
         pytest.approx(100 / 6), pytest.approx(3 / 6)),
    )  # fmt: skip
    # Pairs of the first round: those of the first, third and fifth segment.
    assert [row[2:] for row in checks.rows] == [
        (1, 6, 2, pytest.approx(100 / 3), 1, 1, 4, 1, 1, 3),
        (2, 2, 2, 100.0, 0, 0, 4, 2, 0, 0),
        (3, 1, 0, 0.0, 0, 0, 1, 0, 0, 0),
    ]


def test_a_summary_is_not_fixed_by_a_check_that_could_not_be_read(kept):
    half_judged = Round("s", True, ("Art",), (FINE, SILENT))
    last = (NO_ENTITY, NO_VERDICT, UNREAD_ENTITIES, half_judged)
    flagged = tuple(Refined("s", (INCONSISTENT, one)) for one in (*last, CONSISTENT))
    task = kept("ada", {"u1": User(("1111",), rounds=flagged)}, method="hierarchy_critique")
    segments, _ = rounds([task], None).sheets
    # Segments, failed, consistent at once, flagged, by query, by facts, fixed, left, undecided.
    assert segments.rows[0][2:11] == (5, 0, 0, 5, 0, 5, 1, 0, 4)


def test_accuracy_counts_an_unread_answer_as_wrong_and_leaves_it_out_by_hand(kept):
    users = {"u1": User(("1100", "10?0")), "u2": User(("1100", "00?0"))}
    accuracy, _ = questions([kept("ada", users)], None).sheets
    assert accuracy.title == "Accuracy in %: MovieLens, ada"
    found = {row[1]: row[2:] for row in accuracy.rows}
    # Users, right of all, right of the readable with its bounds, unread.
    assert found["t1"] == (2, 75.0, 75.0, 50.0, 100.0, 0.0)
    assert found["t2"] == (2, 50.0, 50.0, 50.0, 50.0, 0.0)
    assert found["t3"] == (2, 0.0, 0.0, 0.0, 0.0, 50.0)


def test_positions_by_hand(kept):
    # The right answer of t1 to t4 stands at B C D E in the first run and at C D E A in the second;
    # a wrong answer names the next position, after E the first.
    _, placed = questions([kept("ada", {"u1": User(("1101", "001?"))})], None).sheets
    found = {row[1]: row[2:] for row in placed.rows}
    one, two, four = (pytest.approx(100 * count / 7) for count in (1, 2, 4))
    # Named: B, C, E (for D), E; then D (for C), E (for D), E.
    assert found["named"] == (7, 0, one, one, one, four)
    # Right: B, C, D, E; then C, D, E.
    assert found["right"] == (7, 0, one, two, two, two)
    assert found["right if there"] == (7, None, 100.0, 50.0, 0.0, 100.0)


def test_bars_are_accuracies_by_what_is_shown_and_metrics_by_data(kept):
    tasks = [
        kept("ada", {"u1": User(("1110",), "a b")}),
        kept("ada", {"u1": User(("1100",), "a b")}, source="yelp"),
        kept("ada", {"u1": User(("0110",))}, method="none"),
        kept("ben", {"u1": User(("0000",))}),
    ]
    first, second, *_ = figures = questions(tasks, None).figures
    assert first.title == "MovieLens: accuracy of t1 by what the predictor is shown"
    bars = {mark.label: dict(zip(mark.names, mark.values, strict=True)) for mark in first.marks}
    assert bars == {"ada": {"none": 0.0, "single_step": 100.0}, "ben": {"single_step": 0.0}}
    assert second.marks[0].values == (100.0, 100.0)
    assert [figure.title for figure in figures[-3:]] == ["QM", "IFM", "IDM ×0.1%"]
    assert [mark.label for mark in figures[-3].marks] == ["ada, single_step", "ben, single_step"]
    ada = figures[-3].marks[0]
    assert (ada.names, ada.values) == (("MovieLens", "Yelp"), (1.0, 0.0))
    assert figures[-1].marks[0].values == (375.0, 250.0)
