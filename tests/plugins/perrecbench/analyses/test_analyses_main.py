"""The nine cells and their average, worked out by hand on a few groups."""

import pytest
from harness_perrecbench.analyses.grid import next_to
from harness_perrecbench.analyses.tables import TableOptions, main
from harness_perrecbench.paper import CELLS

ITEMS = tuple(f"i{number}" for number in range(200))


def rows_of(sheet):
    return {row[0]: row[1:] for row in sheet.rows}


def nine(kept, model, value, **more):
    """All nine tasks over 200 groups, each group the same but for what is given by cell."""
    found = {item: {"ptc": 1.0, "ptc_published": value} for item in ITEMS}
    return [kept(model, found, level=level, ask=ask, **more) for level, ask in CELLS]


def test_cells_are_means_with_unreadable_groups_counted_0_and_the_average_is_of_cells(kept):
    seven = {f"i{number}": 1.0 for number in range(7)}
    tasks = [
        kept("ada", {**seven, "j1": -1.0, "j2": "rate/no_json"}, ask="pointwise"),
        kept("ada", {"i0": -1.0}, ask="listwise"),
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


def test_a_cell_of_which_too_many_groups_are_unreadable_is_not_shown_nor_is_its_average(kept):
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

    names = [row[0].removeprefix("published: ").partition(",")[0] for row in theirs.rows]
    assert names == beside
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
    assert theirs.rows[2][1:11] == (pytest.approx(0.13 / 0.9),) * 10
    assert theirs.rows[2][11:] == (None, None)


def test_a_published_row_of_the_very_same_average_stands_above(kept):
    theirs = main(nine(kept, "ada", 0.18), TableOptions()).sheets[1]
    assert [row[0] for row in theirs.rows][:2] == ["published: CLAUDE-3.5-SONNET", "ada"]


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


def test_baselines_stand_in_the_same_layout_once_for_all_models(kept):
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


def test_baselines_of_other_groups_stand_apart_and_say_of_which(kept):
    tasks = [
        kept("ada", {"i1": 1.0, "i2": 1.0}, always={"random": 1.0}),
        kept("ada", {"j1": 1.0, "j2": 1.0}, always={"random": 0.0}, k=8),
    ]
    sheet = main(tasks, TableOptions()).sheets[2]
    assert sheet.columns[:2] == ("ranking", "of the groups of")
    assert [row[:3] for row in sheet.rows] == [
        ("random", "ada", 1.0), ("random", "ada, k 8", 0.0),
    ]  # fmt: skip


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
    assert [row[0] for row in rows] == [
        "ada one", "ada two",
    ]  # fmt: skip


def test_how_far_models_follow_the_averages_is_over_what_could_be_read(kept):
    found = {
        f"i{number}": {"ptc": 1.0, "ptc_published": 1.0, "like_higher_average": like}
        for number, like in enumerate((1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    }
    found |= {"i6": {"like_higher_average": 1.0}, "i7": "rate/no_json"}
    ours, _, _, like, _ = main([kept("ada", found)], TableOptions()).sheets
    assert like.rows == (("ada", pytest.approx(4 / 7), pytest.approx(4 / 7)),)
    assert like.notes == ()
    # Seven of the eight groups have a label: i6 has none, i7 could not be read.
    assert ours.notes[-1] == "ada, easy: 7 of 8 groups have a label"


def test_groups_without_any_label_leave_the_agreement_with_averages(kept):
    found = {"i1": {"like_higher_average": 1.0}, "i2": {"like_higher_average": 0.0}}
    ours, theirs, baselines, like, without = main([kept("ada", found)], TableOptions()).sheets
    assert ours.rows == (("ada",),)
    assert "ada: no group has a label" in ours.notes
    assert (theirs.rows, baselines.rows) == ((("ada",),), ())
    assert like.rows == (("ada", 0.5, 0.5),)
    assert without.rows == (("ada", "unreadable"),)


def test_rating_tasks_are_passed_over(kept):
    rating = kept("ada", {"i1": {"mae": 1.0}}, ask="rating")
    assert len(main([rating, kept("ada", {"i1": 1.0})], TableOptions()).sheets[0].rows) == 1
