"""Curves, dots and heat maps, as tables and as the data of figures."""

import pytest
from builders.texts import write_csv
from harness_perrecbench.analyses import (
    answers,
    curves,
    domains,
    shots,
    tables,
)
from harness_perrecbench.paper import TAU_NOTES

from harness.base.errors import UsageError
from harness.contracts.benchmark import NoOptions
from harness.contracts.report import Grid, Line, Points


def test_each_way_of_asking_is_a_curve_over_sizes(kept):
    asked = {"pointwise": (0.5, 0.2, -0.1), "listwise": (0.4, None, 0.3)}
    tasks = [
        kept("ada", {"i1": value}, level=level, ask=ask)
        for ask, values in asked.items()
        for level, value in zip(("easy", "medium", "hard"), values, strict=True)
        if value is not None
    ]
    report = curves.by_size(tasks, curves.SizeOptions())
    assert report.sheets[0].columns == ("model", "asked", "2 users", "3 users", "4 users")
    assert report.sheets[0].rows == tuple(("ada", ask, *values) for ask, values in asked.items())
    [figure] = report.figures
    assert figure.x.ticks == (2.0, 3.0, 4.0)
    assert figure.marks == (
        Line(label="pointwise", x=(2.0, 3.0, 4.0), y=(0.5, 0.2, -0.1)),
        Line(label="listwise", x=(2.0, 4.0), y=(0.4, 0.3)),
    )


def test_a_mean_is_of_one_method_on_the_same_data_and_counts_a_model_once(kept):
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


def test_the_paper_s_numbers_stand_below_numbers_of_their_own_definition(kept):
    tasks = [kept("ada", BOTH, level="medium"), kept("ben", {"i1": 1.0}, level="medium")]
    report = curves.by_size(tasks, curves.SizeOptions(published=True))
    ours, theirs, published = report.sheets
    assert ("pointwise at easy", 0.09, "appendix B") in published.rows
    assert (ours.title[:7], theirs.title[:17]) == ("ptc by ", "ptc_published by ")
    assert [row[3] for row in ours.rows] == [0.75, 0.5, 1.0]
    assert [row[3] for row in theirs.rows] == [0.375, -0.25, 1.0]
    assert report.notes == TAU_NOTES


def test_maps_domains_and_configurations_have_both_definitions(kept, tmp_path):
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


SIZES = (
    "model,parameters,family",
    "small,7,Llama",
    "Large,70,Llama",
    "huge,400,Llama",
    "lone,9,",
    "other,1,Qwen",
)


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
    sizes = write_csv(tmp_path / "sizes.csv", *SIZES)
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
    assert report.sheets[0].notes == (
        "the average is over 2 cells",
        "part: no average without all cells; not there: 1 of 2",
    )
    [figure] = report.figures
    assert (figure.x.label, figure.x.log) == ("parameters", True)
    x, y = (7.0, 70.0, 400.0), (0.1, 0.375, 0.0)
    names = ("small", "vllm:org/large", "huge")
    assert figure.marks == (
        Line(label="Llama", x=x, y=y),
        Points(label="Llama", x=x, y=y, names=names),
        Points(label="no family", x=(9.0,), y=(0.5,), names=("lone",)),
    )


def test_each_method_of_a_model_is_a_row_by_both_definitions(kept):
    found = {"i1": {"ptc": 1.0, "ptc_published": 0.5}, "i2": {"ptc": 0.0, "ptc_published": 0.5}}
    tasks = [kept("ada", found), kept("ada", found, k=8, profile="no_text")]
    ours, theirs, table_2 = tables.prompting(tasks, tables.PromptingOptions(published=True)).sheets
    assert ours.rows[1][0] == "zero-shot without profile text, k 8"
    assert ours.columns[:3] == ("prompting", "easy point", "avg. of 1")
    assert ours.rows[0] == ("zero-shot", 0.5, 0.5, 0.0, 1.0)
    assert theirs.rows[0] == ("zero-shot", 0.5, 0.5, 0.5, 0.5)
    assert theirs.title.startswith("ada: ptc_published by method")
    assert table_2.rows[5] == (
        "CHAIN-OF-THOUGHT", 0.09, 0.26, 0.31, 0.08, 0.08, 0.08, 0.08, 0.05, 0.01, 0.12,
    )  # fmt: skip


def test_one_method_shows_nothing_but_beside_the_published_ones(kept):
    tasks = [kept("ada", {"i1": 1.0}), kept("ben", {"i1": 0.0})]
    with pytest.raises(UsageError, match="all tasks have the same method\n  found:    zero-shot\n"):
        tables.prompting(tasks, tables.PromptingOptions())
    assert tables.prompting(tasks, tables.PromptingOptions(published=True)).sheets


def test_several_runs_of_a_model_share_its_table_with_methods_in_the_order_of_table_2(kept):
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
    report = shots.run(tasks, NoOptions())
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
        Grid(
            label="ptc",
            across=("2", "16"),
            down=("0", "1"),
            values=((0.2, 0.4), (-0.5, None)),
            deepest=0.6,
        ),
    )


def test_what_was_asked_with_one_number_alone_makes_no_map(kept):
    varied = [kept("ben", {"i1": 0.1}, k=k) for k in (1, 2)]
    [figure] = shots.run([kept("ada", {"i1": 0.1}), *varied], NoOptions()).figures
    assert figure.title == "ben, easy, pointwise: ptc"


@pytest.fixture
def wordings(kept):
    """Pointwise tasks of three wordings: tau .1, .2, .6 and MAE 1, 2, 3 over the groups."""
    return [
        kept(
            "ada",
            {"i1": {"ptc": tau, "mae": error, "squared_error": error**2}},
            wording=wording,
        )
        for wording, tau, error in (("a", 0.1, 1.0), ("b", 0.2, 2.0), ("c", 0.6, 3.0))
    ]


def test_tau_and_errors_of_configurations_are_correlated_and_drawn(wordings):
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
            label="easy, of groups",
            x=(1.0, 2.0, 3.0),
            y=(0.1, 0.2, 0.6),
            names=("ada, same as the nine tasks", "ada, wording b", "ada, wording c"),
        ),
    )


def test_errors_are_those_of_the_rating_task_that_asks_alike(wordings, kept):
    alone = kept(
        "ada",
        {
            "i1/u1": {"mae": 1.0, "squared_error": 1.0},
            "i2/u2": {"mae": 3.0, "squared_error": 9.0},
            "i3/u3": "rate/no_json",
        },
        ask="rating",
        wording="b",
    )
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


def test_a_count_of_nothing_keeps_the_axis_plain(kept, tmp_path):
    counts = write_csv(tmp_path / "counts.csv", "item,count", "i1,0", "j1,5")
    tasks = [
        kept("ada", {"i1": 1.0}, domain="books"),
        kept("ben", {"j1": 1.0}, domain="kitchen"),
    ]
    [figure] = domains.run(tasks, domains.Options(counts=counts)).figures
    assert not figure.x.log
