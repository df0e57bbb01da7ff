"""The study of drift: its measures by hand, and that it finds drift where there is some."""

import math
import sys
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from builders.horizon import TAU, built, read_build, write_log
from builders.processes import run_here, run_python
from harness_horizon import drift
from harness_horizon.drift import IN, OUT, Settings, distances, divergence, entropy, random_splits

from harness.analysis.analysis import no_progress
from harness.base.errors import DataError, Interrupted
from harness.reporting.figures import figure_bytes

DAY = 86_400_000
SMALL = {"topics": 6, "splits": 20, "memory": "2GB"}
OLD, NEW = "lamp kettle rug pan", "telescope ukulele kite pedal"


def write_shop(folder, *, drifting):
    """People who buy of two domains; with drift, those who come after 2020 buy other things."""
    rng = Random(7)
    titles = {
        domain: {
            f"{domain}{number}": f"{rng.choice(words.split())} {rng.choice(words.split())}"
            for number in range(60)
        }
        for domain, words in (("Home", OLD), ("Hobby", NEW))
    }
    reviews = {"Home": [], "Hobby": []}
    for number in range(700):
        late = number >= 250
        start = TAU + 10 * DAY if late else TAU - 400 * DAY
        for place in range(6):
            liked = ("Hobby" if late else "Home") if drifting else rng.choice(list(reviews))
            domain = liked if rng.random() < 0.9 else rng.choice(list(reviews))
            item = rng.choice(list(titles[domain]))
            time = start + place * (90 if not late else 10) * DAY
            reviews[domain].append((f"u{number:03}", item, time))
    write_log(folder, reviews, titles)
    return built(folder)


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    make = tmp_path_factory.mktemp
    return {drifting: write_shop(make("shop"), drifting=drifting) for drifting in (True, False)}


@cache
def study(data, *, drawn=False, **options):
    """The report on some data, which is made once, and without figures unless they are asked."""
    with pytest.MonkeyPatch.context() as patch:
        if not drawn:
            patch.setattr(drift, "_figures", lambda *_: ())
        return drift.run(Settings(data=data, **{**SMALL, **options}), no_progress)


def rows_of(report, title):
    [found] = [one for one in report.sheets if one.title.startswith(title)]
    return {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows}


def test_entropy_kl_and_what_is_between_two_groups_by_hand(monkeypatch):
    shares = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    assert entropy(shares) == pytest.approx([1.5 * math.log(2), 0.0])
    one, other = shares
    # With 0.25 added and the sums back at 1: 3/7 2/7 2/7 and 5/7 1/7 1/7.
    by_hand = 3 / 7 * math.log(3 / 5) + 4 / 7 * math.log(2)
    assert divergence(one, other, 0.25) == pytest.approx(by_hand)
    assert divergence(one, one, 0.25) == 0
    one = np.array([[0.5, 0.5], [1.0, 0.0]])
    other = np.array([[0.0, 1.0]])
    monkeypatch.setattr(drift.divergence, "__defaults__", (0.5,))
    entropies, dominance, of_means, of_pairs = distances(one, other, np.random.default_rng(0))
    assert entropies == pytest.approx(0 - math.log(2) / 2)
    assert dominance == pytest.approx(1 - 0.75)
    # The means are 3/4 1/4 and 0 1; with 0.5 added 5/8 3/8 and 1/4 3/4.
    assert of_means == pytest.approx(5 / 8 * math.log(5 / 2) + 3 / 8 * math.log(1 / 2))
    # The pairs: 1/2 1/2 or 3/4 1/4, to 1/4 3/4; each is half of the 10,000.
    first = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    second = 0.75 * math.log(3) + 0.25 * math.log(1 / 3)
    assert of_pairs == pytest.approx((first + second) / 2, abs=0.01)


@pytest.mark.parametrize(
    ("one", "other", "parts"),
    [(10, 4, (6, 4)), (4, 10, (4, 6)), (10, 10, (5, 5)), (10, 8, (5, 5)), (3, 11, (3, 8))],
)
def test_the_null_splits_the_larger_group_alike(one, other, parts):
    larger = max(one, other)
    groups = [np.arange(n, dtype=float)[:, None] + 100 * (n != larger) for n in (one, other)]
    splits = list(random_splits(*groups, 5, np.random.default_rng(0)))
    for first, second in splits:
        assert (len(first), len(second)) == parts
        assert sorted(np.concatenate([first, second])[:, 0]) == list(range(larger))
    assert len({tuple(first[:, 0]) for first, _ in splits}) > 1


def test_drift_is_above_the_null_and_none_is_within_and_its_topics_come_first(shops):
    there = rows_of(study(shops[True]), "Topics of users")
    absent = rows_of(study(shops[False]), "Topics of users")
    for name in ("KL(in‖out) of the means", "KL(in‖out) of pairs of users"):
        assert there[name]["between"] > 1.3 * there[name]["null high"]
        assert absent[name]["null low"] < absent[name]["between"] < absent[name]["null high"] * 1.05
    of_means = "KL(in‖out) of the means"
    assert there[of_means]["between"] > 10 * there[of_means]["null high"]
    for found in (there, absent):
        assert found[of_means]["null high"] < 0.1
        for name in ("entropy", "dominance"):
            assert abs(found[name]["null"]) < 0.02
            assert found[name]["null low"] < 0 < found[name]["null high"]
    [*_, sheet] = study(shops[True]).sheets
    assert len(sheet.rows) == 6
    gains = [row[2] - row[1] for row in sheet.rows]
    assert gains == sorted(gains, reverse=True)
    assert [sum(row[place] for row in sheet.rows) for place in (1, 2)] == pytest.approx([100, 100])
    first, last = (set(row[3].split()[:3]) for row in (sheet.rows[0], sheet.rows[-1]))
    assert first <= {*NEW.split(), "hobby"} and last <= {*OLD.split(), "home"}
    assert all(len(row[3].split()) == 10 for row in sheet.rows)


def test_documents_are_all_titles_of_users_who_are_bounded_and_chosen_by_hash(shops):
    found = rows_of(study(shops[True], users=40, least=5), "Topics of users")
    assert (found["users"][IN], found["users"][OUT]) == (40, 40)
    assert 5 <= found["mean interactions"][OUT] <= 6
    of = [drift._documents(Settings(data="", users=n, seed=seed), shops[True])
          for n, seed in ((20, 0), (40, 0), (20, 1))]  # fmt: skip
    few, more, others = ([one for one in each if one[0] == OUT] for each in of)
    assert few == more[:20]
    assert few != others
    data = read_build(shops[True])
    expected = [
        (name, len(rows), " ".join(" ".join(data["items"][item]) for item, _ in rows))
        for name, role in ((IN, "tested"), (OUT, "held_out"))
        for rows in (data["histories"][user] for user in data[role])
    ]
    assert sorted(drift._documents(Settings(data=""), shops[True])) == sorted(expected)
    assert run_python(READ, shops[True]) == run_here(READ, shops[True])
    assert study(shops[True], users=60, seed=1).sheets != study(shops[True], users=60).sheets


READ = """
import sys
from pathlib import Path
from harness_horizon.drift import Settings, _documents
print(_documents(Settings(data=""), Path(sys.argv[1])))
"""


def test_the_figures_hold_every_user_and_are_drawn(shops):
    report = study(shops[True], users=60, drawn=True)
    users = rows_of(report, "Topics of users")["users"]
    groups, halves = report.figures
    assert {mark.label: len(mark.x) for mark in groups.marks} == {IN: users[IN], OUT: users[OUT]}
    assert sum(len(mark.x) for mark in halves.marks) == max(users[IN], users[OUT])
    for figure in report.figures:
        drawn = figure_bytes(figure, "svg").decode()
        assert all(f">{mark.label}</text>" in drawn for mark in figure.marks)


def test_scikit_learn_that_is_absent_is_named_before_any_data(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        drift.run(Settings(data=Path("nowhere")), no_progress)
    assert missing.value.name == "sklearn"


def test_too_few_users_words_or_time_end_the_study(shops, tmp_path):
    with pytest.raises(DataError, match="too few users with words that others have") as error:
        study(shops[True], least=7)
    assert error.value.found == "0 in-distribution, 0 held-out"
    with pytest.raises(DataError) as error:
        study(shops[True], users=9)
    assert error.value.found == "9 in-distribution, 9 held-out"
    bought = (("a", TAU - 3 * DAY), ("b", TAU + DAY))
    rows = [(f"u{n:03}", item, time) for n in range(200) for item, time in bought]
    write_log(tmp_path, {"1": rows}, {"1": {"a": "7 8 9", "b": "10"}})
    with pytest.raises(DataError, match="too few users with words"):
        study(built(tmp_path))
    with pytest.raises(DataError, match="no complete build"):
        study(tmp_path)

    def interrupt(what, done, of=None):
        if what == "topics" and done:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as error:
        drift.run(Settings(data=shops[True], **SMALL), interrupt)
    assert "begins again" in str(error.value.hint)


def test_the_sample_has_no_drift_between_its_groups():
    found = rows_of(study(Path("sample"), users=400), "Topics of users")
    of_means = found["KL(in‖out) of the means"]
    assert of_means["between"] < 1.5 * of_means["null high"] < 0.15
