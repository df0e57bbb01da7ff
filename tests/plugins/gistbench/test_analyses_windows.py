"""Scores by the number of engagements in a prompt."""

import pytest
from builders.gistbench import judged
from harness_gistbench.analyses.window_size import WindowOptions, run
from harness_gistbench.records import Options as Settings

from harness.contracts.report import Line


@pytest.fixture
def sizes(kept):
    """One model at 50 and 100 engagements a prompt; named as runs that were not given in order."""
    trains = judged("trains", 1, liked=2, found=(1, 2))
    owls = judged("owls", 2, watched=3, found=(2, 2))
    weak = judged("looms", 3, liked=1)
    return [
        kept("m", {"u1": (trains, owls)}, run="large", options=Settings(window=100)),
        kept("m", {"u1": (trains, weak, weak)}, run="small", options=Settings(window=50)),
    ]


def test_sizes_stand_side_by_side_with_an_oracle_of_their_own(sizes):
    report = run(sizes, WindowOptions())
    [note] = report.notes
    assert "an oracle of its own" in note
    sheet = report.sheets[0]
    assert sheet.title == "synthetic: m by window size"
    assert sheet.columns == ("engagements a prompt", "50", "100")
    # At 50: P (1 + 0) / 2, R 1 of the categories 1 and 2 that the two sizes verified, IS 1/2.
    # At 100: P 1, R 1, IS (1/2 + 1) / 2.
    assert sheet.rows == (
        ("IG P %", 50.0, 100.0),
        ("IG R %", 50.0, 100.0),
        ("IG F1 %", 50.0, 100.0),
        ("IS %", 50.0, 75.0),
        ("interests a user", 3.0, 2.0),
        ("users with IG", 1, 1),
        ("users with IS", 1, 1),
    )
    [figure] = run(sizes, WindowOptions()).figures
    assert "an oracle of its own" in figure.note
    assert figure.marks == (
        Line(label="IG P", x=(50.0, 100.0), y=(50.0, 100.0)),
        Line(label="IG R", x=(50.0, 100.0), y=(50.0, 100.0)),
        Line(label="IG F1", x=(50.0, 100.0), y=(50.0, 100.0)),
        Line(label="IS", x=(50.0, 100.0), y=(50.0, 75.0)),
    )


def test_one_window_size_may_stand_beside_the_published_ones(sizes):
    assert run(sizes[:1], WindowOptions(published=True)).sheets


def test_what_differs_beside_the_window_is_named(sizes, kept):
    third = kept("m", {"u1": ()}, run="third", options=Settings(window=150), judge="another")
    [note] = [
        note for note in run([*sizes, third], WindowOptions()).sheets[0].notes if "third" in note
    ]
    assert note == "third differs from small also in: roles.judge.name another against judge-70b"


def test_another_model_does_not_enter_the_oracle(sizes, kept):
    other = kept("n", {"u1": (judged("chess", 9, liked=2),)}, options=Settings(window=100))
    alone, among = run(sizes, WindowOptions()), run([*sizes, other], WindowOptions())
    assert among.sheets[0] == alone.sheets[0]
    assert among.sheets[1].title == "synthetic: n by window size"
