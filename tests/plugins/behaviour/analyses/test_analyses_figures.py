"""The figures of curves and boxes, and all analyses through the command."""

import json

import pytest
from harness_behaviour.analyses import boxes, curves

from harness.cli.main import main
from harness.contracts.report import Boxes, Line, Points
from harness.reporting.figures import figure_bytes

from .conftest import prompt
from .test_analyses_gap import bowl


def labelled(figure, label, kind):
    return [mark for mark in figure.marks if mark.label == label and isinstance(mark, kind)]


def test_settings_stand_side_by_side_with_models_baselines_and_the_target(kept):
    demography = [prompt(1 + number / 10, setting="c", length=0) for number in range(20)]
    tasks = [
        kept(model, fits, setting=setting)
        for setting, fits in (("a", bowl(2.0, many=500)), ("c", demography))
        for model in ("ada", "bob")
    ]
    report = curves.run(tasks, None)
    [panels] = report.figures
    assert panels.across == 2
    assert [figure.title for figure in panels.figures] == [
        "Movies, a: demography and history", "Movies, c: demography, no curve",
        "Movies, a: demography and history", "Movies, c: demography",
    ]  # fmt: skip
    curve, dots, users, _ = panels.figures
    [diagonal] = labelled(curve, "X=Y", Line)
    assert diagonal.dashed and diagonal.x == diagonal.y
    for name in ("ada", "bob", "random", "popular"):
        assert len(labelled(curve, name, Line)) == 1
        assert len(labelled(dots, name, Line)) == 0
        assert len(labelled(dots, name, Points)[0].x) == 20
        assert len(labelled(users, name, Line)) == 1
    [_, lowest] = labelled(curve, "ada", Points)
    assert lowest.shape == "diamond"
    assert lowest.x[0] == pytest.approx(2.0, abs=0.1)
    [band] = labelled(curve, "random", Points)  # its lowest point is a bound
    assert len(band.x) == 3 * len(labelled(curve, "ada", Points)[0].x)  # a dot of each draw
    assert len(labelled(curve, "popular in group", Line)) == 1
    assert not labelled(dots, "popular in group", Points)
    [target] = labelled(users, "H", Line)
    assert target.dashed
    assert target.y[0] > target.y[-1]
    assert curve.y.low == dots.y.low and curve.y.high == dots.y.high
    assert "caution: on the prompts of Algorithm 1 H grows" in panels.note
    assert b"X=Y" in figure_bytes(panels)


def boxed(figure):
    """Label → name → the values of the box."""
    return {
        mark.label: dict(zip(mark.names, mark.values, strict=True))
        for mark in figure.marks
        if isinstance(mark, Boxes)
    }


def test_boxes_by_proxy_and_history_keep_prompts_without_history_apart(kept):
    fits = {
        "a": [prompt(1.0, 0.1, proxy="age", length=1), prompt(2.0, 0.2, proxy="age", length=3),
              prompt(3.0, None, proxy="age", length=3), prompt(1.0, 0.3, proxy="gender", length=1)],
        "b": [prompt(1.5, 0.4, setting="b", proxy="none", length=3)],
        "c": [prompt(2.5, 0.5, setting="c", proxy="age", length=0),
              prompt(2.0, 0.6, setting="c", proxy="gender", length=0),
              prompt(3.5, 0.7, setting="none", proxy="none", length=0)],
    }  # fmt: skip
    report = boxes.run([kept("ada", own, setting=setting) for setting, own in fits.items()], None)
    by_proxy, by_history = map(boxed, report.figures[0].figures)
    assert [*by_proxy] == ["H of the target", "ada", "random"]
    assert boxed(report.figures[1].figures[1]) == {
        "H of the target": {"(Def)": (2.5,), "1": (1.0,), "3": (2.0, 3.0)},
        "ada": {"(Def)": (3.0,), "1": (1.1,), "3": (2.2,)},
    }
    assert by_proxy["H of the target"] == {
        "no proxy (Def)": (3.5,), "no proxy": (1.5,), "age (Def)": (2.5,), "age": (1.0, 2.0, 3.0),
        "gender (Def)": (2.0,), "gender": (1.0,),
    }  # fmt: skip
    assert by_proxy["ada"]["age"] == pytest.approx((1.1, 2.2))
    assert by_history["H of the target"] == {
        "(Def)": (2.0, 2.5, 3.5), "1": (1.0, 1.0), "3": (1.5, 2.0, 3.0),
    }  # fmt: skip
    assert by_history["ada"]["(Def)"] == pytest.approx((2.6, 3.0, 4.2))
    # The table has the medians.
    [sheet] = report.sheets
    rows = {row[:2]: row[2:] for row in sheet.rows}
    assert rows["age", "every"] == (3, 2.0, pytest.approx(1.65), pytest.approx(4.0))
    assert rows["every", "(Def)"][0] == 3
    assert ("gender", "(Def)") in rows


def test_models_with_other_settings_are_compared_over_those_that_both_have(kept):
    age = [prompt(1.0, 0.1, proxy="age"), prompt(2.0, 0.1, proxy="age")]
    history = [prompt(1.5, 0.4, setting="b", proxy="none")]
    tasks = [kept("ada", age), kept("ada", history, setting="b"), kept("bob", age)]
    [sheet] = boxes.run(tasks, None).sheets
    assert [row[:3] for row in sheet.rows] == [("age", "every", 2), ("every", "3", 2)]


def test_the_analyses_read_a_run_of_the_sample(tmp_path, harness_run, capsys):
    result = harness_run("behaviour_music_c")
    [summary] = result.summaries
    for name in ("behaviour", "behaviour-curve", "behaviour-boxes"):
        plot = ("--plot", str(tmp_path / "curve.svg")) if name == "behaviour-curve" else ()
        capsys.readouterr()
        assert main(["analyse", name, str(result.folder), "--json", *plot]) == 0
        report = json.loads(capsys.readouterr().out)["report"]
        assert report["notes"] == ["NOT COMPARABLE with published results: bundled sample data"]
        first = report["sheets"][0]
        assert first["title"].startswith("Music: ")
        if name == "behaviour":
            metric = summary.metrics["gap"]
            row = first["rows"][0]
            assert row[3:6] == pytest.approx([metric.value, *metric.interval])
