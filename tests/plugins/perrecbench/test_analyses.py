"""Tables, curves, dots and heat maps, worked out by hand on a few groups."""

import pytest
from builders.perrecbench import make_comparisons, make_group
from builders.runs import keep_records
from builders.texts import write_csv
from harness_perrecbench.analyses import answers, curves, domains, shots, tables
from harness_perrecbench.analyses.grid import next_to
from harness_perrecbench.analyses.tables import TableOptions, main
from harness_perrecbench.paper import CELLS, TAU_NOTES
from harness_perrecbench.records import Compared

from harness.base.errors import UsageError
from harness.contracts.benchmark import NoOptions
from harness.contracts.outcomes import Unreadable
from harness.contracts.records import Done
from harness.contracts.report import Grid, Line, Points

ITEMS = tuple(f"i{number}" for number in range(200))


def rows_of(sheet):
    return {row[0]: row[1:] for row in sheet.rows}


def nine(kept, model, value, **more):
    """All nine tasks over 200 groups, each group the same but for what is given by cell."""
    found = {item: {"ptc": 1.0, "ptc_published": value} for item in ITEMS}
    return [kept(model, found, level=level, ask=ask, **more) for level, ask in CELLS]


def test_cells_are_means_with_unreadable_groups_counted_0_unless_too_many_are(kept):
    seven = {f"i{number}": 1.0 for number in range(7)}
    tasks = [
        kept("ada", {**seven, "j1": -1.0, "j2": "rate/no_json"}, ask="pointwise"),
        kept("ada", {"i0": -1.0}, ask="listwise"),
        kept("ada", {"i1": {"mae": 1.0}}, ask="rating"),  # is passed over
    ]
    ours, _, _, _, without = main(tasks, TableOptions()).sheets
    assert ours.columns == ("model", "easy point", "easy list", "avg. of 2")
    # Of nine groups 7 - 1 and a 0: 6/9; of one -1. The average: (2/3 - 1) / 2.
    assert rows_of(ours)["ada"] == (pytest.approx(2 / 3), -1.0, pytest.approx(-1 / 6))
    # A third of the draws of ten items do not hold that one: far more than an interval leaves out.
    assert "ada: no interval, for the mean has no value in" in ours.notes[-1]
    assert without.columns == ("model", "what", "easy point", "easy list", "avg. of 2")
    assert without.rows == (
        ("ada", "unreadable", 1, 0, None),
        ("ada", "ptc", pytest.approx(6 / 8), -1.0, pytest.approx(-1 / 8)),
    )
    groups = {f"i{number}": 1.0 for number in range(17)}
    failed = {f"f{number}": "rank/no_json" for number in range(3)}
    few = kept("ada", {**groups, **failed}, ask="pointwise")  # 3 of 20: 15%, and no more
    many = kept("ada", {**groups, **failed, "f3": "rank/refused"}, ask="listwise")  # 4 of 21
    ours, _, _, _, without = main([few, many], TableOptions()).sheets
    assert ours.columns == ("model", "easy point", "easy list")
    assert rows_of(ours)["ada"] == (pytest.approx(17 / 20), None)
    assert ours.notes[1:] == (
        "ada, easy listwise: 4 of 21 groups could not be read (rank/no_json 3, rank/refused 1), "
        "over 15%",
        "ada: no average without all cells; not shown: 1 of 2",
    )
    assert without.rows[0] == ("ada", "unreadable", 3, 4, None)
    assert without.rows[1] == ("ada", "ptc", 1.0, 1.0, 1.0)


def test_all_nine_cells_stand_in_the_order_of_table_1_beside_its_nearest_rows(kept):
    theirs = main(nine(kept, "ada", 0.105), TableOptions()).sheets[1]
    assert theirs.columns == (
        *("model", "easy point", "easy pair", "easy list", "medium point", "medium pair"),
        *("medium list", "hard point", "hard pair", "hard list", "avg.", "low", "high"),
    )
    # Next above .105 are two rows with .11: Qwen 72B's cells sum up to .96, Mixtral's to .98.
    # Next below is .10, Qwen 14B. DeepSeek alone was asked with the tail of the nine tasks.
    assert [row[0] for row in theirs.rows] == [
        "published: DEEPSEEK-V3-671B", "published: QWEN2.5-72B-IT", "ada",
        "published: QWEN2.5-14B-IT",
    ]  # fmt: skip
    assert theirs.rows[1][1:] == (
        0.09, 0.27, 0.24, 0.04, 0.10, 0.06, 0.04, 0.09, 0.03, 0.11, None, None,
    )  # fmt: skip
    assert theirs.rows[2][10] == pytest.approx(0.105)
    assert theirs.notes == (
        "ada: tail of its list prompts: now; published: DEEPSEEK-V3-671B now, "
        "QWEN2.5-72B-IT not recorded, QWEN2.5-14B-IT plain",
    )
    # A row of the very same average stands above.
    same = main(nine(kept, "ben", 0.18), TableOptions()).sheets[1]
    assert [row[0] for row in same.rows][:2] == ["published: CLAUDE-3.5-SONNET", "ben"]


@pytest.mark.parametrize(
    ("tail", "beside"),
    [
        # .14 twice, of which Haiku's cells sum up to 1.22 and Llama 405B's to 1.29; none below.
        # Gemma 27B, at .08, was asked with it at medium alone.
        ("dot", ["CLAUDE-3.5-HAIKU", "QWEN2.5-72B-IT", "ada", "QWEN2.5-14B-IT"]),
        ("older", ["GPT-4o-MINI", "QWEN2.5-72B-IT", "ada", "QWEN2.5-14B-IT"]),
    ],
)
def test_models_that_were_asked_with_the_same_last_lines_are_neighbours_too(kept, tail, beside):
    theirs = main(nine(kept, "ada", 0.105, tail=tail, system="authors"), TableOptions()).sheets[1]
    assert [row[0].removeprefix("published: ").partition(",")[0] for row in theirs.rows] == beside
    [note] = theirs.notes
    assert f"tail of its list prompts: {tail}; published: {beside[0]} {tail}, " in note


def test_neighbours_are_those_of_the_average_without_unreadable_groups_as_published(kept):
    # Of 200 groups 20 cannot be read: .13 over all is .13 * 200 / 180 = .144 over the others, so
    # that the rows next to it are one of .15 and one of .14, not those next to .13.
    found = {item: {"ptc": 1.0, "ptc_published": 0.13 * 200 / 180} for item in ITEMS[20:]}
    found |= dict.fromkeys(ITEMS[:20], "rate/no_json")
    tasks = [kept("ada", found, level=level, ask=ask) for level, ask in CELLS]
    theirs = main(tasks, TableOptions()).sheets[1]
    _, above, _ = next_to(0.145, "now").values()
    assert [row[0] for row in theirs.rows] == [
        *above.names, "ada", "ada, unreadable left out",
        "published: DEEPSEEK-V3-671B", "published: LLAMA-3.1-405B-IT",
    ]  # fmt: skip
    assert theirs.rows[1][10] == pytest.approx(0.13)
    assert theirs.rows[2][1:] == (*[pytest.approx(0.13 / 0.9)] * 10, None, None)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"because": ("bundled sample data",)}, "bundled sample data"),
        ({"because": ("--limit 200",), "limit": 200}, "--limit 200"),
        ({"profile": "none", "shots": 3}, "different settings: without profile, 3 shots"),
        (
            {"prompts": {"rate.candidate": "mine.j2"}, "because": ("own prompts: rate.candidate",)},
            "different settings: own prompt mine.j2; own prompts: rate.candidate",
        ),
    ],
)
def test_no_published_row_stands_beside_what_was_asked_otherwise(kept, more, reason):
    theirs = main(nine(kept, "ada", 0.105, **more), TableOptions()).sheets[1]
    [row] = theirs.rows
    assert theirs.notes[-1] == f"no published rows next to {row[0]}: {reason}"


def test_baselines_stand_in_the_same_layout_once_for_all_models_of_the_same_groups(kept):
    always = {"random": -1.0, "user_average": 0.0, "higher_average_first": 0.5}
    tasks = [
        kept("ada", {"i1": 1.0, "i2": "rate/no_json"}, ask="pointwise", always=always),
        kept("ada", {"i1": 1.0, "i2": 1.0}, ask="listwise", always=always),
        kept("ben", {"i1": 0.0, "i2": 1.0}, ask="listwise", always=always),
    ]
    sheet = main(tasks, TableOptions()).sheets[2]
    assert sheet.columns == ("ranking", "easy point", "easy list", "avg. of 2", "low", "high")
    assert sheet.rows == (
        ("random", -1.0, -1.0, -1.0, -1.0, -1.0),
        ("user_average", 0.0, 0.0, 0.0, 0.0, 0.0),
        ("higher_average_first", 0.5, 0.5, 0.5, 0.5, 0.5),
    )
    tasks = [
        kept("ada", {"i1": 1.0, "i2": 1.0}, always={"random": 1.0}),
        kept("ada", {"j1": 1.0, "j2": 1.0}, always={"random": 0.0}, k=8),
    ]
    sheet = main(tasks, TableOptions()).sheets[2]
    assert sheet.columns[:2] == ("ranking", "of the groups of")
    assert [row[:3] for row in sheet.rows] == [("random", "ada", 1.0), ("random", "ada, k 8", 0.0)]


SAME = {"origin": "folder", "tables": {"histories": {"fingerprint": "a"}}}


@pytest.mark.parametrize(
    "more",
    [
        {"data": {**SAME, "tables": {"histories": {"fingerprint": "b"}}}},
        {"limit": 5},
        {"revision": "2"},
    ],
)
def test_tasks_of_other_data_make_another_row(kept, more):
    easy = kept("ada", {"i1": 1.0}, run="one", data=SAME)
    hard = kept("ada", {"i1": 0.5}, run="two", level="hard", **{"data": SAME, **more})
    rows = main([easy, hard], TableOptions()).sheets[0].rows
    assert [row[0] for row in rows] == ["ada one", "ada two"]


def test_how_far_models_follow_the_averages_is_over_what_could_be_read_even_without_labels(kept):
    found = {
        f"i{number}": {"ptc": 1.0, "ptc_published": 1.0, "like_higher_average": like}
        for number, like in enumerate((1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    }
    found |= {"i6": {"like_higher_average": 1.0}, "i7": "rate/no_json"}
    ours, _, _, like, _ = main([kept("ada", found)], TableOptions()).sheets
    assert (like.rows, like.notes) == ((("ada", *[pytest.approx(4 / 7)] * 2),), ())
    # Seven of the eight groups have a label: i6 has none, i7 could not be read.
    assert ours.notes[-1] == "ada, easy: 7 of 8 groups have a label"
    found = {"i1": {"like_higher_average": 1.0}, "i2": {"like_higher_average": 0.0}}
    ours, theirs, baselines, like, without = main([kept("ada", found)], TableOptions()).sheets
    assert ours.rows == theirs.rows == (("ada",),)
    assert "ada: no group has a label" in ours.notes
    assert (baselines.rows, like.rows) == ((), (("ada", 0.5, 0.5),))
    assert without.rows == (("ada", "unreadable"),)


def test_each_way_of_asking_is_a_curve_and_a_mean_is_of_one_method_and_counts_a_model_once(kept):
    asked = {"pointwise": (0.5, 0.2, -0.1), "listwise": (0.4, None, 0.3)}
    tasks = [
        kept("ada", {"i1": value}, level=level, ask=ask)
        for ask, values in asked.items()
        for level, value in zip(("easy", "medium", "hard"), values, strict=True)
        if value is not None
    ]
    report = curves.by_size(tasks, curves.SizeOptions())
    assert report.sheets[0].rows == tuple(("ada", ask, *values) for ask, values in asked.items())
    [figure] = report.figures
    assert figure.x.ticks == (2.0, 3.0, 4.0)
    assert figure.marks == (
        Line(label="pointwise", x=(2.0, 3.0, 4.0), y=(0.5, 0.2, -0.1)),
        Line(label="listwise", x=(2.0, 4.0), y=(0.4, 0.3)),
    )
    tasks = [
        kept("ada", {"i1": 0.2}, run="r1", profile="none"),
        kept("ada", {"i1": 0.4}, run="r2", profile="none", seed=1),
        kept("ben", {"i1": 0.9}, profile="none"),
        kept("ben", {"i1": 1.0}),
        kept("cleo", {"i1": 0.0}, limit=5),
        kept("dora", {"i1": 0.0}, level="hard", limit=6),
    ]
    rows = curves.by_size(tasks, curves.SizeOptions()).sheets[0].rows
    # (0.3 + 0.9) / 2; without a word of the setting, ben and cleo were asked of other groups.
    assert rows[0][:3] == ("mean of 2 models, without profile", "pointwise", pytest.approx(0.6))
    assert sum(row[0].startswith("mean") for row in rows) == 1


BOTH = {"i1": {"ptc": 0.5, "ptc_published": -0.25}}
"""A group whose two taus differ, as those of three users may."""


def test_the_paper_s_numbers_stand_below_their_definition_and_each_table_has_both(kept, tmp_path):
    tasks = [kept("ada", BOTH, level="medium"), kept("ben", {"i1": 1.0}, level="medium")]
    report = curves.by_size(tasks, curves.SizeOptions(published=True))
    ours, theirs, published = report.sheets
    assert ("pointwise at easy", 0.09, "appendix B") in published.rows
    assert (ours.title[:7], theirs.title[:17]) == ("ptc by ", "ptc_published by ")
    assert [row[3] for row in ours.rows] == [0.75, 0.5, 1.0]
    assert [row[3] for row in theirs.rows] == [0.375, -0.25, 1.0]
    assert report.notes == TAU_NOTES
    maps = shots.run([kept("ada", BOTH, level="medium", k=k) for k in (1, 2)], NoOptions())
    assert [(sheet.title.partition(",")[0], sheet.rows) for sheet in maps.sheets] == [
        ("ada", (("0", 0.5, 0.5),)), ("ada", (("0", -0.25, -0.25),)),
    ]  # fmt: skip
    assert "pointwise: ptc_published, unreadable" in maps.sheets[1].title
    assert len(maps.figures) == 1
    counts = write_csv(tmp_path / "counts.csv", "item,count", "i1,10")
    of_domain = kept("ada", BOTH, level="medium", domain="books")
    [by_domain] = domains.run([of_domain], domains.Options(counts=counts)).sheets
    assert by_domain.columns[5:] == ("average", "low", "high", "ptc_published")
    assert by_domain.rows[0][5::3] == (0.5, -0.25)
    listed, _ = answers.errors([kept("ada", BOTH, level="medium")], NoOptions()).sheets
    assert (listed.columns[4], listed.columns[-1]) == ("ptc", "ptc_published")
    assert (listed.rows[0][4], listed.rows[0][-1]) == (0.5, -0.25)


def test_the_average_of_all_cells_stands_over_the_size_with_a_line_a_family(kept, tmp_path):
    tasks = [
        kept("vllm:org/large", {"i1": 0.25, "i2": 0.75}),
        kept("vllm:org/large", {"i1": 0.25, "i2": 0.25}, ask="listwise"),
        kept("small", {"i1": 0.2}),
        kept("small", {"i1": 0.0}, ask="listwise"),
        kept("huge", {"i1": 0.0}),
        kept("huge", {"i1": 0.0}, ask="listwise"),
        kept("lone", {"i1": {"ptc": 1.0, "ptc_published": 0.5}}),
        kept("lone", {"i1": 0.0}, ask="listwise"),
        kept("part", {"i1": 1.0}),
    ]
    sizes = write_csv(
        tmp_path / "sizes.csv", "model,parameters,family", "small,7,Llama", "Large,70,Llama",
        "huge,400,Llama", "lone,9,", "other,1,Qwen",
    )  # fmt: skip
    report = curves.by_scale(tasks, curves.ScaleOptions(figures=sizes, published=True))
    assert (len(report.sheets[1].rows), report.notes) == (19, TAU_NOTES)
    assert report.sheets[0].columns[3:] == ("average", "ptc_published")
    assert report.sheets[0].rows == (
        ("part", None, None, None, None),
        ("lone", None, 9.0, 0.5, 0.25),
        ("small", "Llama", 7.0, 0.1, 0.1),
        ("vllm:org/large", "Llama", 70.0, 0.375, 0.375),
        ("huge", "Llama", 400.0, 0.0, 0.0),
    )
    lacks = "part: no average without all cells; not there: 1 of 2"
    assert report.sheets[0].notes == ("the average is over 2 cells", lacks)
    [figure] = report.figures
    assert (figure.x.label, figure.x.log) == ("parameters", True)
    x, y = (7.0, 70.0, 400.0), (0.1, 0.375, 0.0)
    names = ("small", "vllm:org/large", "huge")
    assert figure.marks == (
        Line(label="Llama", x=x, y=y),
        Points(label="Llama", x=x, y=y, names=names),
        Points(label="no family", x=(9.0,), y=(0.5,), names=("lone",)),
    )


def test_methods_are_rows_by_both_definitions_in_the_order_of_table_2(kept):
    found = {"i1": {"ptc": 1.0, "ptc_published": 0.5}, "i2": {"ptc": 0.0, "ptc_published": 0.5}}
    zero = [kept("ada", found)]
    tasks = [*zero, kept("ada", found, k=8, profile="no_text")]
    published = tables.PromptingOptions(published=True)
    ours, theirs, table_2 = tables.prompting(tasks, published).sheets
    assert ours.rows[1][0] == "zero-shot without profile text, k 8"
    assert ours.columns[:3] == ("prompting", "easy point", "avg. of 1")
    assert ours.rows[0] == ("zero-shot", 0.5, 0.5, 0.0, 1.0)
    assert theirs.rows[0] == ("zero-shot", 0.5, 0.5, 0.5, 0.5)
    assert theirs.title.startswith("ada: ptc_published by method")
    assert table_2.rows[5] == (
        "CHAIN-OF-THOUGHT", 0.09, 0.26, 0.31, 0.08, 0.08, 0.08, 0.08, 0.05, 0.01, 0.12,
    )  # fmt: skip
    # One method shows nothing but beside the published ones.
    with pytest.raises(UsageError, match="all tasks have the same method\n  found:    zero-shot\n"):
        tables.prompting(zero, tables.PromptingOptions())
    assert tables.prompting(zero, published).sheets
    ways = [
        ("r1-aa", {"thought": True}),
        ("r1-aa", {"profile": "none"}),
        ("r2-bb", {"shots": 3, "profile": "none"}),
        ("r2-bb", {"shots": 3}),
        ("r2-bb", {"profile": "none", "seed": 1}),
        ("r3-cc", {"strict": True}),
        ("r3-cc", {"samples": 5}),
        ("r4-dd", {}),
    ]
    tasks = [kept("ada", {"i1": 1.0}, run=run, label=f"ada {run}", **way) for run, way in ways]
    ours, theirs = tables.prompting(tasks, tables.PromptingOptions()).sheets
    assert ours.title.startswith("ada: ptc by method")
    assert [row[0] for row in ours.rows] == [
        "zero-shot", "zero-shot without profile (aa)", "zero-shot without profile (bb)",
        "few-shot (3)", "few-shot (3) without profile", "self-consistency (5)", "chain of thought",
        "zero-shot, strict",
    ]  # fmt: skip
    assert [row[0] for row in theirs.rows] == [row[0] for row in ours.rows]


def test_ways_and_their_mean_are_heat_maps_with_the_same_colours(kept):
    values = {(0, 2): 0.2, (0, 16): 0.4, (1, 2): -0.5}
    tasks = [kept("ada", {"i1": value}, shots=shots, k=k) for (shots, k), value in values.items()]
    tasks += [kept("ada", {"i1": 0.6}, shots=0, k=16, ask="listwise")]
    # What was asked with one number alone makes no map.
    report = shots.run([*tasks, kept("ben", {"i1": 0.1})], NoOptions())
    pointwise, listwise, mean, *_ = report.sheets
    assert pointwise.title.startswith("ada, easy, pointwise: ptc")
    assert pointwise.columns == ("shots", "k = 2", "k = 16")
    assert pointwise.rows == (("0", 0.2, 0.4), ("1", -0.5, None))
    assert listwise.rows == (("0", None, 0.6), ("1", None, None))
    assert mean.rows == (("0", None, pytest.approx(0.5)), ("1", None, None))
    assert [figure.title for figure in report.figures] == [
        "ada, easy, pointwise: ptc", "ada, easy, listwise: ptc", "ada, easy, mean: ptc",
    ]  # fmt: skip
    assert report.figures[0].marks == (
        Grid(label="ptc", across=("2", "16"), down=("0", "1"), values=((0.2, 0.4), (-0.5, None)),
             deepest=0.6),
    )  # fmt: skip


@pytest.fixture
def wordings(kept):
    """Pointwise tasks of three wordings: tau .1, .2, .6 and MAE 1, 2, 3 over the groups."""
    return [
        kept("ada", {"i1": {"ptc": tau, "mae": error, "squared_error": error**2}}, wording=wording)
        for wording, tau, error in (("a", 0.1, 1.0), ("b", 0.2, 2.0), ("c", 0.6, 3.0))
    ]


def test_tau_and_errors_are_correlated_with_those_of_the_rating_task_alike(wordings, kept):
    report = answers.errors(wordings, NoOptions())
    listed, correlations = report.sheets
    assert listed.rows == (
        ("ada", "same as the nine tasks", "easy", 1, 0.1, 1.0, 1.0, "groups", 1, None),
        ("ada", "wording b", "easy", 1, 0.2, 2.0, 2.0, "groups", 1, None),
        ("ada", "wording c", "easy", 1, 0.6, 3.0, 3.0, "groups", 1, None),
    )
    # Deviations of tau -.2, -.1, .3 and of MAE -1, 0, 1: .5 / sqrt(.14 · 2).
    assert correlations.rows == (
        ("MAE", "easy", "groups", 3, pytest.approx(0.5 / 0.28**0.5), None),
        ("RMSE", "easy", "groups", 3, pytest.approx(0.5 / 0.28**0.5), None),
    )
    mae, rmse = report.figures
    assert (mae.x.label, rmse.x.label) == ("MAE", "RMSE")
    assert mae.marks == (
        Points(
            label="easy, of groups", x=(1.0, 2.0, 3.0), y=(0.1, 0.2, 0.6),
            names=("ada, same as the nine tasks", "ada, wording b", "ada, wording c"),
        ),
    )  # fmt: skip
    errors = {"i1/u1": 1.0, "i2/u2": 3.0}
    found = {id: {"mae": error, "squared_error": error**2} for id, error in errors.items()}
    alone = kept("ada", {**found, "i3/u3": "rate/no_json"}, ask="rating", wording="b")
    listed, correlations = answers.errors([*wordings, alone], NoOptions()).sheets
    assert listed.rows[1][5:9] == (2.0, pytest.approx(5**0.5), "behaviours", 2)
    assert listed.rows[2][7] == "groups"
    # Errors of other things are no points of one line.
    assert [row[:4] for row in correlations.rows[:2]] == [
        ("MAE", "easy", "groups", 2), ("MAE", "easy", "behaviours", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "more", [{"data": {"origin": "sample"}}, {"limit": 5}, {"sampling": {"temperature": 0.7}}]
)
def test_a_rating_task_over_other_data_or_with_other_sampling_does_not_ask_alike(kept, more):
    own = kept("ada", {"i1": {"ptc": 0.5, "mae": 1.0, "squared_error": 1.0}})
    alone = kept("ada", {"i1/u1": {"mae": 3.0, "squared_error": 9.0}}, ask="rating", **more)
    assert answers.errors([own, alone], NoOptions()).sheets[0].rows[0][5:8] == (1.0, 1.0, "groups")


def test_each_domain_stands_at_the_mean_count_of_its_items(kept, tmp_path):
    counts = write_csv(tmp_path / "counts.csv", "item,count", "i1,10", "i2,30", "j1,100", "x,5")
    tasks = [
        kept("ada", {"i1": 1.0, "i2": 0.0}, domain="books"),
        kept("ada", {"i1": 0.0, "i2": 0.0}, domain="books", ask="listwise"),
        kept("ada", {"j1": -1.0, "j2": 0.0}, domain="kitchen"),
        kept("ada", {"j1": 1.0, "j2": 1.0}, domain="kitchen", ask="listwise"),
        kept("ada", {"k1": 1.0}),
    ]
    report = domains.run(tasks, domains.Options(counts=counts))
    rows = [row[:6] for row in report.sheets[0].rows]
    assert rows == [("ada", "books", 2, 2, 20.0, 0.25), ("ada", "kitchen", 2, 1, 100.0, 0.25)]
    [figure] = report.figures
    assert figure.x.log
    assert figure.marks == (
        Points(label="ada", x=(20.0, 100.0), y=(0.25, 0.25), names=("books", "kitchen")),
    )
    counts = write_csv(tmp_path / "counts.csv", "item,count", "i1,0", "j1,5")
    tasks = [kept("ada", {"i1": 1.0}, domain="books"), kept("ben", {"j1": 1.0}, domain="kitchen")]
    [figure] = domains.run(tasks, domains.Options(counts=counts)).figures
    assert not figure.x.log


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


def test_answers_by_position_are_counted_and_counts_may_name_titles(recorded, tmp_path):
    easy = {
        "tea": compared("AB"),  # user 1 either way
        "milk": compared("AA"),  # whoever is shown first
        "rye": compared("A-"),  # one answer, which names the first
        "oat": Unreadable("no_json", "compare"),
    }
    hard = {"tea": compared("BA", "BB", "--")}  # user 2, whoever is second, nothing
    tasks = [recorded("ada", easy), recorded("ada", hard, level="hard")]
    [sheet] = answers.positions(tasks, NoOptions()).sheets
    two_thirds = pytest.approx(200 / 3)
    assert sheet.rows == (
        ("ada", "easy", 3, 5, 4, 80.0, 3, 2, 1, 50.0, 2, two_thirds),
        ("ada", "hard", 1, 4, 1, 25.0, 3, 2, 1, 50.0, 2, two_thirds),
        ("ada", "all", 4, 9, 5, pytest.approx(500 / 9), 6, 4, 2, 50.0, 4, two_thirds),
    )
    # A level without any readable answer has no shares.
    task = recorded("ben", {"tea": Unreadable("no_json", "compare")})
    [sheet] = answers.positions([task], NoOptions()).sheets
    assert sheet.rows == (("ben", "easy", 0, 0, 0, None, 0, 0, 0, None, 0, None),)
    counts = write_csv(tmp_path / "counts.csv", "item,title,count", ',"the  TEA",8', "milk,,2")
    found = {"tea": compared("AB"), "milk": compared("AB"), "rye": compared("AB")}
    report = domains.run([recorded("ada", found, domain="kitchen")], domains.Options(counts=counts))
    assert report.sheets[0].rows[0][:5] == ("ada", "kitchen", 3, 2, 5.0)
