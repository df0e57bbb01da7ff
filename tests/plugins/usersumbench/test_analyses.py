"""Table 4, what was said and rated, and figures, from runs written by hand."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import msgspec
import pytest
from builders.records import make_records
from builders.runs import keep_task, make_line, make_summary, make_task, write_journal
from builders.texts import read_csv, write_csv
from builders.usersumbench import WORDS, a_question
from harness_usersumbench.analyses import text_metrics
from harness_usersumbench.analyses.accuracy import questions
from harness_usersumbench.analyses.correlations import MetricOptions, metrics
from harness_usersumbench.analyses.examples import examples_of, top_categories
from harness_usersumbench.analyses.rating_sheet import SheetOptions, sheet
from harness_usersumbench.analyses.ratings import RatingOptions, agree
from harness_usersumbench.analyses.results import SETTING, by_data, table_values
from harness_usersumbench.analyses.rounds import rounds
from harness_usersumbench.analyses.table4 import increment, main
from harness_usersumbench.analyses.text_metrics import Unavailable
from harness_usersumbench.benchmark import USERSUMBENCH
from harness_usersumbench.paper import TABLES
from harness_usersumbench.records import (
    TASKS,
    Activity,
    Options,
    Pair,
    Past,
    Rated,
    Ratings,
    Refined,
    Round,
    Segment,
    Segments,
    Summary,
    count_words,
)

from harness import Done, Unreadable
from harness.base.errors import DataError, UsageError
from harness.contracts.task import IntervalSpec
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.runs.manifest import RoleEntry, StageEntry
from harness.scoring.aggregate import Columns
from harness.scoring.score_run import task_options
from harness.scoring.stats import cohen_kappa, pearson
from harness.scoring.summary import RoleUse, StageSummary

LETTERS = ("a", "b", "c", "d", "e")
PAST = (Activity(0, "Heat", ("Action", "Crime")), Activity(3600, "Clue", ("Comedy",)))


@dataclass(frozen=True)
class User:
    """What a test is about: answers as "110?" for each run, and how the summary came to be.

    1 is right, 0 wrong, ? unread. `summary` None is a failed one. `rounds` are of one segment each.
    """

    answers: Sequence[str] = ()
    summary: str | None = "likes action"
    past: tuple[Activity, ...] = PAST
    rounds: tuple[Refined | None, ...] = ()
    marks: tuple[int, int] | None = None


def use(calls, prompt, completion):
    """What one role of a stage used: calls, tokens of prompts, and tokens of answers."""
    return RoleUse(
        calls=calls, from_store=0, failed=0, prompt_tokens=prompt, completion_tokens=completion,
        cached_tokens=0, reasoning_tokens=0, asked_schema=0, met_schema=0, rungs={},
    )  # fmt: skip


@pytest.fixture
def kept(tmp_path):
    """A finished task from its users: journals are written, and scored as any run is.

    `uses` are by stage what its roles used, `roles` the models of other roles than the candidate,
    `read` is how many of how many checks of the verifier could be read; the rest is the summary's.
    """

    def make(
        model, users, *, method="single_step", source="movielens", uses=None, roles=None,
        because=(), units=None, read=None, **more,
    ):  # fmt: skip
        options = Options(**WORDS, source=source, method=method, **more)
        name, path = f"usersum_{source}_{method}", tmp_path / f"run-of-{model}"
        definition = make_task(
            name, benchmark="usersumbench", metrics=("qm",), interval=IntervalSpec(draws=200),
            options=msgspec.to_builtins(options),
        )  # fmt: skip
        stages, entries, values = stages_of(users, options), [], {}
        for stage, pairs in stages.items():
            key, file = stage[0] * 32, f"{stage}.jsonl"
            lines = (make_line(n, *pair, stage=key) for n, pair in enumerate(pairs))
            write_journal(path / name / file, *lines)
            entries.append(StageEntry(name=stage, key=key, file=file, items=len(pairs)))
            values[stage] = make_records(
                (item, one.value if isinstance(one, Done) else one) for item, one in pairs
            )
        scores = list(USERSUMBENCH.score(values, options))
        asked = {"candidate": model, "predictor": model, **(roles or {})}
        used = {"verify": (*reversed(read), ())} if read else {}
        used |= {stage: (1, 1, of) for stage, of in (uses or {}).items()}
        columns = Columns(USERSUMBENCH.metrics, scores)
        summary = make_summary(
            name, roles=asked, comparable=not because, not_comparable_because=because,
            units=len(scores) if units is None else units,
            stages={
                stage: StageSummary(items=items, done=done, failures={}, roles=dict(enumerate(of)))
                for stage, (items, done, of) in used.items()
            },
            metrics=columns.results(interval=definition.interval, seed=0, task=name),
        )  # fmt: skip
        return keep_task(
            path, definition, *entries, benchmark=USERSUMBENCH, scores=scores, summary=summary,
            label=model, options=options, model=model,
            roles={role: RoleEntry(name=of, identity={"name": of}) for role, of in asked.items()},
        )  # fmt: skip

    return make


def stages_of(users, options):
    """The items and outcomes of each stage that the method has."""
    failed = Unreadable("truncated")
    done = {name: Done(Summary(one.summary)) for name, one in users.items()}
    done |= {name: failed for name, one in users.items() if one.summary is None}
    found, everybody = {}, users.items()
    if options.method == "single_step":
        found["summarise"] = [
            (Past(id=name, user=name, activities=one.past), done[name]) for name, one in everybody
        ]
    if options.method == "hierarchy_critique":
        found["segment"] = [pair for name, one in everybody for pair in segments(name, one)]
        found["combine"] = [
            (Segments(id=name, user=name, ranges=(), summaries=()), done[name]) for name in users
        ]
    found["predict"] = [pair for name, one in everybody for pair in asked_of(name, one, options)]
    if options.autoeval:
        found["rate"] = [
            (Rated(id=name, user=name, summary=one.summary), Done(Ratings(*one.marks)))
            for name, one in everybody if one.marks
        ]  # fmt: skip
    return found


def segments(name, one):
    """A segment for each of the given rounds, or one of the whole past; the last comes first."""
    parts = one.rounds or (Refined("", ()),)
    size = -(-len(one.past) // len(parts))
    return [
        (
            Segment(
                id=f"{name}/{number}", user=name, number=number, of=len(parts), by="count",
                activities=one.past[(number - 1) * size : number * size],
            ),
            Unreadable("empty") if refined is None else Done(refined),
        )
        for number, refined in reversed(list(enumerate(parts, 1)))
    ]  # fmt: skip


def asked_of(name, one, options):
    """The questions of a user with their answers; none if the summary failed."""
    summary = one.summary if options.method != "none" else None
    if summary is None and options.method != "none":
        return []
    found = []
    for run, answers in enumerate(one.answers, 1):
        for place, (task, answer) in enumerate(zip(TASKS, answers, strict=True)):
            right = (run + place) % len(LETTERS)
            question = a_question(
                task, run, user=name, history=len(one.past), summary=summary, options=LETTERS,
                words=None if summary is None else count_words(summary), shown=(), right=right,
                popular=0,
            )  # fmt: skip
            chosen = {"1": right, "0": (right + 1) % len(LETTERS)}.get(answer)
            found.append((question, Unreadable("none_named") if chosen is None else Done(chosen)))
    return found


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


def test_the_share_of_unread_checks_stands_in_the_row_of_the_verifier(single, refined):
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
    assert found["QM"] == ("single_step", "hierarchy_critique", *(pytest.approx(-1 / 3),) * 3, 2)
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
INCONSISTENT = Round("s", True, ("Crime", "Golf"), (FINE, WRONG))
NO_ENTITY = Round("s", None, unread=("fits_query",))
NO_VERDICT = Round("s", True, ("Art",), (SILENT,), unread=("judgements",))
UNREAD_ENTITIES = Round("s", True, unread=("entities",))

SEGMENTS = (
    Refined("s", (CONSISTENT,)),
    Refined("s", (Round("s", False), INCONSISTENT, CONSISTENT)),
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


GOOD, BAD = "1111", "0000"
QUALITIES = {"u1": GOOD, "u2": GOOD, "u3": BAD, "u4": BAD, "u5": GOOD, "u6": "11?0"}
RATINGS = {
    # Rater: what the rater said of u1 to u6, and . of nothing.
    "ann": "gbgb.g",
    "bob": "gg..b.",
}
MARKS = {"g": "good", "b": "bad"}


@pytest.fixture
def run(kept):
    """A task with six summaries, of which u6 has no Q_s."""
    said = "likes action, says {}".format
    users = {name: User((answers, BAD), said(name)) for name, answers in QUALITIES.items()}
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
            f"{name_of[user]},{rater},{MARKS[mark]}"
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


def test_rows_that_cannot_be_used_are_named(rated, kept, tmp_path):
    for row, column, found, expected in (
        ("s0,ann,good", "example", "'s0'",
         "an example of these runs and tasks: give all that the sheet has"),
        ("s1,ann,fine", "rating", "'fine'", "good or bad"),
    ):  # fmt: skip
        with pytest.raises(DataError) as raised:
            agree(*rated(row))
        assert raised.value.where.endswith(f"ratings.csv, row 9, column '{column}'")
        assert (raised.value.found, raised.value.expected) == (found, expected)
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


def test_the_correlation_of_q_s_by_hand_and_what_is_missing_is_named_once(correlated):
    found, notes = correlated()
    # u1 to u5: Q_s is 1 1 0 0 1, and the share that says good is 1, 1/2, 1, 0, 0.
    r = pearson([1, 1, 0, 0, 1], [1, 0.5, 1, 0, 0])
    # The means are 3/5 and 1/2: the products add up to .4·.5 + 0 - .6·.5 + .6·.5 - .4·.5 = 0.
    assert r == pytest.approx(0)
    cells = found["Quality Q_s"]
    assert (*cells[:2], cells[4]) == (5, pytest.approx(0), 0.363)
    for names, package in (
        ("ROUGE-2, ROUGE-L", "rouge-score"), ("BLEU", "sacrebleu"),
        ("BERTScore-precision, BERTScore-recall, BERTScore-F1", "bert-score"),
    ):  # fmt: skip
        assert f"{names}: {package} is not installed: pip install {package}" in notes
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


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (None, ((0.1, 0.1), (2, 1), (3, 0))),
        (OSError("no file weights.bin\nand much more"), "no file weights.bin"),
        (OSError(), "OSError"),
    ],
)
def test_bertscore_reads_the_summary_or_names_missing_weights(monkeypatch, problem, expected):
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
