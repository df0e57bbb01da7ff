"""The curve, and the tables and figures of gaps, slopes and inflection points."""

import json
import math
import re
from collections import defaultdict
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from builders.runs import keep_task, make_summary, make_task
from harness_behaviour.analyses import boxes, curves, tables
from harness_behaviour.benchmark import BEHAVIOUR
from harness_behaviour.curve import (
    BINS,
    FEWEST,
    ORDER,
    STEPS,
    WINDOW,
    Curve,
    NoCurve,
    curve_of,
    edges_of,
    resampled,
    slope_of,
)
from harness_behaviour.metrics import MORE_USERS, THIRDS, USERS
from harness_behaviour.records import Fit, Options

from harness.base.errors import DataError
from harness.cli.main import main
from harness.contracts.records import Score
from harness.contracts.report import Boxes, Line, Points
from harness.contracts.task import IntervalSpec
from harness.reporting.figures import figure_bytes

CAUSE = "recommend/no_list"


def fit_of(entropy, gap=1.0, **more):
    """How a ranking fits a prompt, whose baselines have gaps of 2, 1.5 and 0.5."""
    usual = {"setting": "a", "proxy": "age", "length": 3, "users": 4}
    baselines = {"random": 2.0, "popular": 1.5, "popular_in_group": 0.5}
    usual["cross_draws"] = (entropy + 2, entropy + 1.8, entropy + 2.4)
    for name, value in baselines.items():
        usual[f"cross_{name}"] = entropy + value
        usual[f"cross_1e3_{name}"] = entropy + value / 2
        usual[f"displaced_{name}"] = value / 10
    if gap is not None:
        usual |= {"cross": entropy + gap, "cross_1e3": entropy + gap / 2, "displaced": gap / 10,
                  "filled": 0}  # fmt: skip
    return Fit(entropy=entropy, **{**usual, **more})


def score_of(number, fit, third):
    """The score of a prompt, as the benchmark makes it."""
    id, users = f"p{number:04}", [name for most, name in USERS if fit.users <= most]
    if fit.setting == "none":
        return Score(id=id, user=id, details=fit)
    names = ("random", "popular", "popular_in_group")
    values = {f"gap_{name}": getattr(fit, f"cross_{name}") - fit.entropy for name in names}
    if fit.cross is not None:
        values |= {"gap": fit.cross - fit.entropy, "gap_1e3": fit.cross_1e3 - fit.entropy,
                   "displaced": fit.displaced}  # fmt: skip
    return Score(
        id=id, user=id, values=values, missing={"gap": CAUSE} if fit.cross is None else {},
        details=fit, slices={"proxy": fit.proxy, "history": str(fit.length), "entropy": third,
                             "users": [*users, MORE_USERS][0]},
    )  # fmt: skip


@pytest.fixture
def kept(tmp_path):
    """A finished task, from how the rankings of a model fit its prompts."""

    def make(model, fits, *, thirds=(), run=None, **more):
        options = Options(**more)
        task = make_task(
            f"behaviour_{options.domain}_{options.setting}", benchmark="behaviour",
            metrics=("gap",), options=msgspec.to_builtins(options),
            interval=IntervalSpec(draws=200),
        )  # fmt: skip
        named = thirds or [THIRDS[3 * number // len(fits)] for number in range(len(fits))]
        return keep_task(
            tmp_path / (run or f"run-of-{model}"), task, label=model, benchmark=BEHAVIOUR,
            scores=[score_of(n, *one) for n, one in enumerate(zip(fits, named, strict=True))],
            options=options,
            summary=make_summary(task.name, benchmark="behaviour", model=model, units=len(fits)),
        )  # fmt: skip

    return make


def spread(many, *, low=0.2, high=3.6, seed=0):
    return np.random.default_rng(seed).uniform(low, high, many)


def bowl_of(entropy, lowest, *, noise=0.0):
    """Cross-entropies that are lowest at one entropy."""
    normal = np.random.default_rng(1).normal(size=len(entropy))
    return 2 + 0.3 * (entropy - lowest) ** 2 + noise * normal


def by_hand(entropy, cross, edges, window):
    """The ends and the lowest point of the curve, one bin and one window after the other."""
    bins = [
        (entropy >= low) & (entropy < high if high < edges[-1] else entropy <= high)
        for low, high in pairwise(edges)
    ]
    filled = [number for number, own in enumerate(bins) if own.any()]
    centres = [(edges[number] + edges[number + 1]) / 2 for number in filled]
    means = [cross[bins[number]].mean() for number in filled]
    starts = range(len(filled) - WINDOW + 1)
    y = np.array([np.mean(means[start : start + WINDOW]) for start in starts])
    if window == "centred":
        x = np.array([np.mean(centres[start : start + WINDOW]) for start in starts])
    else:
        x = np.array([centres[start + WINDOW - 1] for start in starts])
    standard = (x - x.mean()) / x.std()
    fitted = np.polynomial.Polynomial.fit(standard, y, ORDER, domain=[-1, 1])
    grid = np.linspace(standard[0], standard[-1], STEPS)
    found = fitted(grid)
    return x[0], x[-1], grid[found.argmin()] * x.std() + x.mean(), found


@pytest.mark.parametrize("window", ["centred", "trailing"])
@pytest.mark.parametrize("many", [80, 300, 3000])
def test_a_curve_is_what_numpy_finds_step_by_step(many, window):
    entropy = spread(many)
    cross = bowl_of(entropy, 1.7, noise=0.3)
    edges = edges_of(entropy)
    curve = curve_of(entropy, cross, edges, window=window)
    first, last, lowest, course = by_hand(entropy, cross, edges, window)
    assert [*curve.course[0][[0, -1]]] == pytest.approx([first, last])
    assert curve.course[1] == pytest.approx(course)
    assert curve.lowest == pytest.approx(lowest)


@pytest.mark.parametrize(("sign", "end", "place"), [(1, "left", 0), (-1, "right", -1)])
def test_a_curve_that_only_rises_or_falls_is_lowest_at_an_end(sign, end, place):
    entropy = spread(2000)
    cross = 4 + sign * entropy
    curve = curve_of(entropy, cross, edges_of(entropy))
    assert (curve.place, curve.lowest) == (end, pytest.approx(curve.means[0][place]))
    drawn = resampled(entropy, cross, edges_of(entropy), seed=0, draws=50)
    assert drawn.shares == {"left": 0.0, "inside": 0.0, "right": 0.0, end: 1.0}
    assert (drawn.low, drawn.high) == (curve.lowest, curve.lowest)
    assert drawn.agrees(curve)


def test_fewer_than_35_bins_have_no_curve():
    for many in (FEWEST - 1, FEWEST):
        # One prompt in each of as many bins, the first and the last of all among them.
        entropy = (np.linspace(0, BINS - 1, many).round() + 0.5) / BINS
        entropy[[0, -1]] = 0, 1
        found = curve_of(entropy, entropy, edges_of(entropy))
        assert found.bins == many
        assert isinstance(found, NoCurve if many < FEWEST else Curve)
    assert curve_of(np.empty(0), np.empty(0), edges_of(entropy)) == NoCurve(bins=0)


def test_resamples_are_curves_through_the_prompts_with_exponential_weights():
    entropy = spread(400)
    cross = bowl_of(entropy, 2.0, noise=0.4)
    edges = edges_of(entropy)
    random = np.random.Generator(np.random.PCG64(7))
    # A prompt that counts twice is there twice: weights in hundredths are copies of prompts.
    points = []
    for _ in range(60):
        copies = np.maximum((100 * random.standard_exponential(400)).round().astype(int), 1)
        points.append(curve_of(np.repeat(entropy, copies), np.repeat(cross, copies), edges).lowest)
    found = resampled(entropy, cross, edges, seed=7, draws=60)
    assert [found.low, found.high] == pytest.approx(np.quantile(points, [0.025, 0.975]), abs=0.01)
    assert sum(found.shares.values()) == pytest.approx(1)


def test_an_interval_holds_its_own_point_where_most_bins_hold_one_prompt():
    left, right = np.linspace(0, 1, 60), spread(3000, low=1.0, high=3.0)
    entropy = np.concatenate((left, right))
    for lowest in (0, 1.0, 1.5, 2.0):
        cross = bowl_of(entropy, lowest, noise=0.2)
        curve = curve_of(entropy, cross, edges_of(entropy))
        drawn = resampled(entropy, cross, edges_of(entropy), seed=0, draws=300)
        assert drawn.low <= curve.lowest <= drawn.high


def test_a_slope_is_that_of_least_squares():
    x = spread(50)
    y = 3 * x + bowl_of(x, 1)
    assert slope_of(x, y) == pytest.approx(np.polyfit(x, y, 1)[0])
    assert np.isnan(slope_of(np.ones(3), np.arange(3.0)))


def sheets_of(report):
    return {sheet.title: sheet for sheet in report.sheets}


def rows_of(report, title):
    """A sheet, and its rows by setting and ranking, with the first of columns of one name."""
    sheet = sheets_of(report)[title]
    columns, rows = sheet.columns[::-1], (row[::-1] for row in sheet.rows)
    made = [dict(zip(columns, row, strict=True)) for row in rows]
    return sheet, {(row["setting"], row["ranking"]): row for row in made}


def gaps_of(*fits, kept):
    """The table of gaps of a model with these fits, and its rows."""
    return rows_of(tables.main([kept("ada", fits)], None), "Movies: generalisation gap")


SPREAD = [fit_of(1 + number / 10, gap=0.5 + number / 100) for number in range(30)]


def test_gaps_stand_beside_those_of_the_baselines(kept):
    sheet, rows = gaps_of(*SPREAD, kept=kept)
    assert [*rows] == [("a", name) for name in ("ada", "random", "popular", "popular in group")]
    columns = ("prompts", "gap 1e-6", "gap 1e-3", "displaced %")
    ada, random = ([rows["a", name][one] for one in columns] for name in ("ada", "random"))
    assert ada == pytest.approx([30, 0.645, 0.3225, 6.45])
    assert random == pytest.approx([30, 2, 1, 20])
    assert rows["a", "ada"]["slope"] == pytest.approx(1.1)
    gaps = [rows["a", name]["gap 1e-6"] for name in ("popular", "popular in group")]
    assert gaps == pytest.approx([1.5, 0.5])
    assert "with unread" not in sheet.columns
    draws = "one draw of each prompt, as in the paper; other draws: a 1.800 to 2.400 (3 draws)"
    assert f"random: {draws}" in sheet.notes
    # Of the gap of popular, 1.5, the ideal closes all and popular nothing.
    assert {name: row["to ideal %"] for (_, name), row in rows.items()} == pytest.approx(
        {"ada": 57, "random": -100 / 3, "popular": 0, "popular in group": 200 / 3}
    )
    place = sheet.columns.index("to ideal %")
    _, low, high = next(row for row in sheet.rows if row[1] == "ada")[place : place + 3]
    assert 53 < low < 57 < high < 61
    assert not any("decides the size" in note for note in sheet.notes)


def test_whose_order_changes_with_epsilon_is_said_below_the_table(kept):
    fits = [
        fit_of(fit.entropy, gap=1.6, cross_1e3=fit.entropy + 0.7, proxy=proxy)
        for fit, proxy in zip(SPREAD, ["age", "all"] * 15, strict=True)
    ]
    tasks = kept("ada", fits), kept("bob", [fit_of(fit.entropy, gap=1.55) for fit in SPREAD])
    found = sheets_of(tables.main(tasks, None))
    # At 1e-3 ada has .7, bob .775 and popular .75, while at 1e-6 they have 1.6, 1.55 and 1.5.
    order = "in another order at 1e-3 than at 1e-6: "
    [note] = [one for one in found["Movies: generalisation gap"].notes if one.startswith(order)]
    assert note == f"{order}a ada and bob, a ada and popular"
    [note] = [one for one in found["Movies, setting a: gap by part"].notes if order in one]
    assert "proxy age ada and bob, proxy age ada and popular, proxy all three ada and bob" in note
    sheet, _ = gaps_of(*SPREAD, kept=kept)
    assert f"{order}no two rankings" in sheet.notes


def test_filled_places_and_invented_answers_are_said_below_the_table(kept):
    fits = [fit_of(1 + n / 10, filled=places) for n, places in enumerate((10, 0, 4, 0, 0))]
    sheet, _ = gaps_of(*fits, kept=kept)
    assert sheet.notes[0] == (
        "a, ada: 28.0% of the places were filled at random; 1 of 5 answers name no candidate"
    )


def test_a_prompt_that_could_not_be_read_is_counted_as_ranked_at_random(kept):
    fits = [fit_of(1.0, gap=0.5), fit_of(2.0, gap=None), fit_of(3.0, gap=0.7), fit_of(2.0, gap=0.6)]
    sheet, rows = gaps_of(*fits, kept=kept)
    assert rows["a", "ada"]["prompts"] == 3
    assert rows["a", "ada"]["gap 1e-6"] == pytest.approx(0.6)
    assert rows["a", "ada"]["with unread"] == pytest.approx((0.5 + 2 + 0.7 + 0.6) / 4)
    assert rows["a", "random"]["with unread"] == pytest.approx(2)
    assert "a, ada: without an answer: 1: recommend/no_list 1" in sheet.notes


def test_gaps_are_told_by_proxy_history_users_and_thirds(kept):
    fits = [
        fit_of(1.0, gap=0.1, proxy="gender", length=1, users=500),
        fit_of(1.1, gap=0.3, proxy="gender", length=1, users=3),
        fit_of(2.0, gap=0.5, proxy="age", length=20, users=3),
        fit_of(3.0, gap=0.7, proxy="all", length=5, users=30),
    ]
    task = kept("ada", fits, thirds=["lowest", "lowest", "middle", "highest"])
    sheet = sheets_of(tables.main([task], None))["Movies, setting a: gap by part"]
    found = defaultdict(dict)
    for part, name, many, gap, *_ in sheet.rows:
        found[part][name] = (many, round(gap, 6))
    assert found == {
        "proxy": {"age": (1, 0.5), "gender": (2, 0.2), "all three": (1, 0.7)},
        "history": {"1": (2, 0.2), "5": (1, 0.7), "20": (1, 0.5)},
        "|u_h|": {"3": (2, 0.4), "21-100": (1, 0.7), "over 100": (1, 0.1)},
        "third of H": {"lowest": (2, 0.2), "middle": (1, 0.5), "highest": (1, 0.7)},
    }
    assert sheet.columns[-3:] == ("random", "popular", "popular in group")


def test_models_share_a_page_where_their_prompts_are_the_same(kept):
    other = [fit_of(fit.entropy + 0.1) for fit in SPREAD]
    tasks = [kept("ada", SPREAD), kept("bob", [fit_of(fit.entropy, 0.9) for fit in SPREAD]),
             kept("cy", other)]  # fmt: skip
    titles = [*sheets_of(tables.main(tasks, None))]
    assert [title for title in titles if "generalisation" in title] == [
        "Movies (ada, bob): generalisation gap", "Movies (cy): generalisation gap",
    ]  # fmt: skip
    with pytest.raises(DataError, match="have no scores"):
        tables.main([kept("ada", [])], None)


def bowl(lowest, many=1500, **more):
    places = np.random.default_rng(0).uniform(0.2, 3.6, many)
    users = [max(3, round(math.exp(4 - place))) for place in places]
    return [
        fit_of(float(place), gap=float(2 + (place - lowest) ** 2 - place), users=count, **more)
        for place, count in zip(places, users, strict=True)
    ]


def inflections_of(*tasks):
    return rows_of(curves.run(tasks, None), "Movies: inflection points")


def test_the_inflection_point_has_an_interval_and_the_caution(kept):
    sheet, rows = inflections_of(kept("ada", bowl(2.0)))
    row = rows["a", "ada"]
    assert float(row["inflection"]) == pytest.approx(2.0, abs=0.1)
    low, high = map(float, row["interval"].split(" to "))
    assert low < 2.05 and high > 1.95
    assert low <= float(row["inflection"]) <= high
    assert (row["left %"], row["right %"], rows["a", "random"]["left %"]) == (0, 0, 100)
    assert re.fullmatch(r"≤ 0\.\d+, no inversion seen", rows["a", "random"]["inflection"])
    assert sheet.notes[-1].startswith("caution: on the prompts of Algorithm 1 H grows as groups")
    assert sheet.notes[-1].endswith("here the correlation is: a -0.99")


def test_a_lowest_point_that_resamples_do_not_share_is_undecided(kept):
    chance = np.random.default_rng(7)
    places, heights = chance.uniform(0.2, 3.6, 300), chance.normal(3, 1, 300)
    fits = [fit_of(float(h), gap=float(y - h)) for h, y in zip(places, heights, strict=True)]
    assert curve_of(places, heights, edges_of(places)).place == "right"
    _, rows = inflections_of(kept("ada", fits))
    row = rows["a", "ada"]
    assert row["inflection"] == "undecided"
    assert row["interval"].split(" to ")[1].startswith("≥ 3.")
    assert 70 < row["right %"] < 95


def test_the_band_of_random_has_the_lowest_point_of_each_draw(kept):
    rising = bowl(1.0)
    entropies = [one.entropy for one in rising]
    fits = [fit_of(one, cross_draws=(2 + one, 2 + (one - 2) ** 2)) for one in entropies]
    sheet, _ = inflections_of(kept("ada", fits))
    note = sheet.notes[0]
    assert note.startswith("random draws, their own lowest points: a 0.")
    assert " to 2.0" in note or " to 1.9" in note
    assert note.endswith("of 2 draws 1 at the left end and 0 at the right")


def test_too_few_bins_are_told_and_a_trailing_mean_is_an_option_of_the_task(kept):
    row = inflections_of(kept("ada", SPREAD))[1]["a", "ada"]
    assert row["bins"] == 30
    assert row["inflection"] == "no curve: fewer than 35 bins"
    assert row["interval"] is None
    lowest = {}
    for window in ("trailing", "centred"):
        _, rows = inflections_of(kept("ada", bowl(2.0), run=window, window=window))
        lowest[window] = next(float(rows[key]["inflection"]) for key in rows if "ada" in key[1])
    assert lowest["trailing"] - lowest["centred"] == pytest.approx(0.25, abs=0.05)


def labelled(figure, label, kind):
    return [mark for mark in figure.marks if mark.label == label and isinstance(mark, kind)]


def test_settings_stand_side_by_side_with_models_baselines_and_the_target(kept):
    demography = [fit_of(1 + number / 10, setting="c", length=0) for number in range(20)]
    tasks = [
        kept(model, fits, setting=setting)
        for setting, fits in (("a", bowl(2.0, many=500)), ("c", demography))
        for model in ("ada", "bob")
    ]
    [panels] = curves.run(tasks, None).figures
    assert panels.across == 2
    curve, dots, users, _ = panels.figures
    assert [figure.title for figure in panels.figures] == [
        "Movies, a: demography and history", "Movies, c: demography, no curve",
        "Movies, a: demography and history", "Movies, c: demography",
    ]  # fmt: skip
    [diagonal], [target] = labelled(curve, "X=Y", Line), labelled(users, "H", Line)
    assert diagonal.dashed and diagonal.x == diagonal.y
    assert target.dashed and target.y[0] > target.y[-1]
    for name in ("ada", "bob", "random", "popular"):
        many = [len(labelled(figure, name, Line)) for figure in (curve, dots, users)]
        assert (many, len(labelled(dots, name, Points)[0].x)) == ([1, 0, 1], 20)
    [own, lowest] = labelled(curve, "ada", Points)
    assert lowest.shape == "diamond"
    assert lowest.x[0] == pytest.approx(2.0, abs=0.1)
    [band] = labelled(curve, "random", Points)  # its lowest point is a bound
    assert len(band.x) == 3 * len(own.x)  # a dot of each draw
    assert len(labelled(curve, "popular in group", Line)) == 1
    assert not labelled(dots, "popular in group", Points)
    assert (curve.y.low, curve.y.high) == (dots.y.low, dots.y.high)
    assert "caution: on the prompts of Algorithm 1 H grows" in panels.note
    assert b"X=Y" in figure_bytes(panels)


def boxed(figure):
    """Label → name → the values of the box."""
    marks = [mark for mark in figure.marks if isinstance(mark, Boxes)]
    return {mark.label: dict(zip(mark.names, mark.values, strict=True)) for mark in marks}


def test_boxes_by_proxy_and_history_keep_prompts_without_history_apart(kept):
    fits = {
        "a": [fit_of(1.0, 0.1, proxy="age", length=1), fit_of(2.0, 0.2, proxy="age", length=3),
              fit_of(3.0, None, proxy="age", length=3), fit_of(1.0, 0.3, proxy="gender", length=1)],
        "b": [fit_of(1.5, 0.4, setting="b", proxy="none", length=3)],
        "c": [fit_of(2.5, 0.5, setting="c", proxy="age", length=0),
              fit_of(2.0, 0.6, setting="c", proxy="gender", length=0),
              fit_of(3.5, 0.7, setting="none", proxy="none", length=0)],
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
    # Models with other settings are compared over those that both have.
    age = [fit_of(1.0, 0.1, proxy="age"), fit_of(2.0, 0.1, proxy="age")]
    history = kept("eve", [fit_of(1.5, 0.4, setting="b", proxy="none")], setting="b")
    [sheet] = boxes.run([kept("eve", age), history, kept("bob", age)], None).sheets
    assert [row[:3] for row in sheet.rows] == [("age", "every", 2), ("every", "3", 2)]


def test_the_analyses_read_a_run(tmp_path, recorded, capsys):
    folder = recorded / "behaviour"
    summary = json.loads((folder / "behaviour_movies_a" / "summary.json").read_text())
    metric = summary["metrics"]["gap"]
    for name in ("behaviour", "behaviour-curve", "behaviour-boxes"):
        plot = ("--plot", str(tmp_path / "curve.svg")) if name == "behaviour-curve" else ()
        assert main(["analyse", name, str(folder), "--json", *plot]) == 0
        report = json.loads(capsys.readouterr().out)["report"]
        [note] = report["notes"]
        assert note.startswith("NOT COMPARABLE with published results: bundled sample data")
        first = report["sheets"][0]
        assert first["title"].startswith("Movies: ")
        if name == "behaviour":
            assert first["rows"][0][3:6] == pytest.approx([metric["value"], *metric["interval"]])
