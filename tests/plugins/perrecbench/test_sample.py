"""The bundled sample is what its generator makes; averages tell ratings there, and no order."""

import json
import re
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
from harness_perrecbench.analyses.tables import TableOptions, main
from harness_perrecbench.benchmark import PERRECBENCH
from samples.perrecbench import (
    FIRST_NAMES,
    FOND,
    GOODS,
    LAST_NAMES,
    MILD,
    NO_TASTE,
    OPENINGS,
    SAMPLE,
    SCALES,
    world,
    write,
)

import harness
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task

USERS = {"easy": 2, "medium": 3, "hard": 4}
DAYS_29 = 29 * 24 * 3600 * 1000


class Files:
    """What a folder in the published layout holds."""

    def __init__(self, folder: Path):
        self.folder = folder / "all" / "all-processed"
        self.histories = self.read("userid2history")
        self.items = self.read("parentasin2item")
        self.profiles = self.read("userid2profile")
        self.behaviours = self.read("sample_behavior")
        self.tested = {level: self.read(f"item2group_avg_diff_sample-{level}") for level in USERS}
        self.held_out = {level: self.read(f"held_out-{level}") for level in USERS}

    def read(self, name):
        return json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))

    def groups(self, level):
        """Item and users of every group of a level, those to test and those held out."""
        for split in (self.tested, self.held_out):
            for item, [users] in split[level].items():
                yield item, users

    def rating(self, user, item):
        return self.histories[user["user_id"]][user["history_len"]]


@pytest.fixture(scope="module")
def bundled():
    return Files(SAMPLE)


@pytest.fixture(scope="module")
def another(tmp_path_factory):
    """What the generator makes of another seed."""
    folder = tmp_path_factory.mktemp("sample")
    write(folder, world(1))
    return Files(folder)


def agreement(one, other):
    """Pairs in the same order, less those in the other, as a share of all; ties count 0."""

    def sign(number):
        return (number > 0) - (number < 0)

    pairs = list(combinations(range(len(one)), 2))
    same = sum(sign(one[a] - one[b]) * sign(other[a] - other[b]) for a, b in pairs)
    return same / len(pairs)


def test_the_generator_makes_the_committed_bytes(tmp_path):
    write(tmp_path, world())

    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.json")}
    kept = {path.relative_to(SAMPLE): path.read_bytes() for path in SAMPLE.rglob("*.json")}
    assert len(kept) == 10
    assert made == kept


def test_it_is_small_and_has_the_published_layout(bundled):
    assert sum(path.stat().st_size for path in bundled.folder.iterdir()) < 1_000_000
    for level, users in USERS.items():
        assert len(bundled.tested[level]) == 60
        assert len(bundled.held_out[level]) == 40
        for _, group in bundled.groups(level):
            assert len(group) == users
    assert set(bundled.histories) == set(bundled.profiles)
    assert {len(history) for history in bundled.histories.values()} == set(range(25, 41))
    assert len(bundled.behaviours) == 200


def test_levels_share_their_items_and_no_held_out_item_is_tested(bundled):
    for split in (bundled.tested, bundled.held_out):
        assert set(split["easy"]) == set(split["medium"]) == set(split["hard"])
    assert not set(bundled.tested["easy"]) & set(bundled.held_out["easy"])


def test_histories_are_in_the_order_of_time_and_hold_each_item_once(bundled):
    for history in bundled.histories.values():
        times = [one["timestamp"] for one in history]
        assert times == sorted(times)
        assert len({one["parent_asin"] for one in history}) == len(history)
        assert {one["rating"] for one in history} <= {1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5}
        assert {one["parent_asin"] for one in history} <= set(bundled.items)


def test_ratings_that_stand_alone_are_of_the_histories(bundled):
    for one in bundled.behaviours:
        before = one["history_len"]
        assert before > 20
        at = bundled.histories[one["user_id"]][before]
        assert at == {key: one[key] for key in ("parent_asin", "rating", "timestamp")}


@pytest.mark.parametrize("level", USERS)
def test_groups_keep_the_rules_of_the_benchmark(another, level):
    for item, users in another.groups(level):
        asked = [another.rating(user, item) for user in users]
        assert {one["parent_asin"] for one in asked} == {item}
        assert all(user["history_len"] > 20 for user in users)
        times = [one["timestamp"] for one in asked]
        assert max(times) - min(times) < DAYS_29
        for user, one in zip(users, asked, strict=True):
            usual = fmean(rated["rating"] for rated in another.histories[user["user_id"]])
            assert user["avg_rating"] == pytest.approx(usual)
            assert user["relative_rating"] == pytest.approx(one["rating"] - usual)
        for a, b in combinations(users, 2):
            assert abs(a["relative_rating"] - b["relative_rating"]) > 0.6


@pytest.mark.parametrize("level", USERS)
def test_averages_order_no_groups_whatever_the_seed(another, level):
    for split in (another.tested, another.held_out):
        taus = [
            agreement(
                [user["avg_rating"] for user in users],
                [user["relative_rating"] for user in users],
            )
            for [users] in split[level].values()
        ]
        assert fmean(taus) == pytest.approx(0, abs=1e-12)
        assert min(taus) < 0 < max(taus), "averages are not the same for all users"


@pytest.mark.parametrize("level", USERS)
def test_each_group_has_its_mirror_image(another, level):
    orders = {}
    for item, users in another.groups(level):
        ranked = sorted(users, key=lambda user: user["relative_rating"])
        orders[item] = tuple(user["user_id"] for user in ranked)
    for order in orders.values():
        assert order[::-1] in orders.values()


def test_averages_tell_ratings_whatever_the_seed(another):
    everything = [one["rating"] for history in another.histories.values() for one in history]
    overall = fmean(everything)
    by_item = {item: [] for item in another.items}
    for history in another.histories.values():
        for one in history:
            by_item[one["parent_asin"]].append(one["rating"])
    errors = {"overall": [], "user": [], "item": []}
    for item, users in another.groups("easy"):
        for user in users:
            rating = another.rating(user, item)["rating"]
            others = (sum(by_item[item]) - rating) / (len(by_item[item]) - 1)
            errors["overall"].append(abs(rating - overall))
            errors["user"].append(abs(rating - user["avg_rating"]))
            errors["item"].append(abs(rating - others))
    mae = {name: fmean(values) for name, values in errors.items()}
    assert mae["user"] < 0.85 * mae["overall"]
    assert mae["item"] < 0.9 * mae["overall"]


def test_titles_hold_two_words_of_one_theme_neither_first_nor_last(bundled):
    themes = [set(words.split()) for scale in SCALES for words in scale]
    for about in bundled.items.values():
        first, *middle, last = about["title"].split()
        assert sorted(len(theme & set(middle)) for theme in themes)[-2:] == [0, 2]
        assert not any(theme & {first, last} for theme in themes)
    books = [about for about in bundled.items.values() if about["author"]]
    assert 0.1 < len(books) / len(bundled.items) < 0.4


def test_every_text_is_made_of_the_generators_own_words(bundled):
    goods = [word for part in GOODS.values() for word in part]
    phrases = [*OPENINGS, *FOND, *MILD, NO_TASTE, "with whatever says or"]
    scales = [words for scale in SCALES for words in scale]
    names = [*FIRST_NAMES, *LAST_NAMES]
    ours = set(re.findall(r"\w+", " ".join([*goods, *phrases, *scales, *names]).casefold()))
    texts = [about["title"] for about in bundled.items.values()]
    texts += [about["author"]["name"] for about in bundled.items.values() if about["author"]]
    for text in [*texts, *bundled.profiles.values()]:
        assert set(re.findall(r"\w+", text.casefold())) <= ours


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The run of the baseline on the sample."""
    return harness.evaluate(
        [f"perrec_{level}" for level in USERS],
        model="baseline",
        data="sample",
        output_path=tmp_path_factory.mktemp("runs"),
        no_store=True,
        quiet=True,
    )


@pytest.fixture(scope="module")
def summaries(result):
    return {summary.task: summary.metrics for summary in result.summaries}


@pytest.mark.parametrize("ask", ["pointwise", "pairwise", "listwise"])
@pytest.mark.parametrize("level", USERS)
def test_taste_tells_the_order_and_averages_do_not(summaries, level, ask):
    metrics = summaries[f"perrec_{level}_{ask}"]

    assert metrics["ptc"].n == 60
    assert metrics["ptc"].value > 0.3
    for name in ("item_average", "lower_average_first", "higher_average_first"):
        low, high = metrics[name].interval
        assert low < 0 < high, name
        assert metrics[name].value == pytest.approx(0, abs=1e-12), name
    assert metrics["user_average"].value == 0
    assert metrics["user_average"].interval == (0, 0)


def test_a_good_error_and_a_good_order_are_two_things(summaries):
    """Taste orders the groups, and rates worse than the average, which orders none."""
    metrics = summaries["perrec_easy_pointwise"]

    assert metrics["mae_user_average"].value < metrics["mae"].value - 0.1
    assert metrics["mae_user_average"].value < metrics["mae_item_average"].value < 0.8
    assert metrics["ptc"].value > metrics["user_average"].value + 0.5


def test_the_mean_of_a_group_has_one_interval_in_the_results_and_in_the_analysis(result):
    manifest, folder = result.manifest, RunFolder(result.folder)
    tasks = [
        finished_task(folder, manifest, name, PERRECBENCH, label="rule")
        for name in manifest.tasks
        if "hard" in name
    ]
    [mean] = [one for one in result.means if (one.name, one.metric) == ("perrec_hard", "ptc")]
    assert mean.interval is not None
    [row] = main(tasks, TableOptions()).sheets[0].rows
    assert row[-3:] == (pytest.approx(mean.value), *mean.interval)
