"""Histories, splits and cases against plain dictionaries, and what must not change them."""

from random import Random

import pytest
from builders.horizon import (
    TAU,
    YEAR_2019,
    built,
    contents,
    expected,
    random_log,
    read_build,
    settings_of,
    write_log,
)
from harness_horizon.curation import build
from harness_horizon.curation.engine import engine
from harness_horizon.curation.ledger import read_manifest
from harness_horizon.curation.sources import raw_rows
from harness_horizon.recommenders.training_data import read_training, validation_cases

DAY = 86_400_000
PEOPLE = [f"p{number:02}" for number in range(20)]

REVIEWS = {
    "Books": [
        ("once", "b1", TAU - 9 * DAY),
        ("never-after", "b1", TAU - 3 * DAY),
        ("never-after", "b2", TAU - 2 * DAY),
        ("never-before", "b2", TAU + 2 * DAY),
        ("never-before", "b1", TAU + 1 * DAY),
        ("at", "b1", TAU - 1),
        ("at", "b2", TAU),
        ("ties", "b2", TAU - 5 * DAY),
        ("ties", "b1", TAU - 5 * DAY),
        ("three", "b1", TAU - 6 * DAY),
        ("twice", "b1", TAU - 4 * DAY),
        ("twice", "b1", TAU - 7 * DAY),
        ("twice", "b2", TAU - 8 * DAY),
        ("twice", "b2", TAU - 8 * DAY),
        ("both", "shared", TAU - 2 * DAY),
        ("again", "shared", TAU - 2 * DAY),
        ("untitled-only", "no-title", TAU - DAY),
        ("untitled-too", "no-title", TAU - DAY),
        ("untitled-too", "b2", TAU - 2 * DAY),
        *((one, "b1", TAU - 40 * DAY) for one in PEOPLE),
        *((one, "b2", TAU - 30 * DAY) for one in PEOPLE),
    ],
    "Games": [
        ("ties", "g1", TAU - 5 * DAY),
        ("three", "g1", TAU - 7 * DAY),
        ("both", "shared", TAU - 2 * DAY),
        ("again", "shared", TAU + 2 * DAY),
        *((one, "g1", TAU - 20 * DAY) for one in PEOPLE),
        *((one, "g2", TAU - 10 * DAY) for one in PEOPLE),
    ],
    "Toys": [
        ("three", "t1", TAU - 5 * DAY),
        ("ties", "t1", TAU - 5 * DAY),
        *((one, "t1", TAU + number * DAY) for number, one in enumerate(PEOPLE)),
    ],
}
TITLES = {
    "Books": {"b1": "Book  one\n", "b2": "Book two", "no-title": None, "shared": "Of books"},
    "Games": {"g1": "Game one", "g2": "Game two", "no-title": "None", "shared": "Of games"},
    "Toys": {"t1": "Toy one", "b1": "A later title", "nobody's": "Never reviewed"},
}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A folder with this log and its build."""
    folder = tmp_path_factory.mktemp("log")
    write_log(folder, REVIEWS, TITLES, packed=True)
    built(folder)
    return folder


@pytest.fixture(scope="module")
def made(log):
    return read_build(log / "out")


HISTORIES = {
    "once": ["b1"],
    "never-after": ["b1", "b2"],
    "never-before": ["b1", "b2"],
    "at": ["b1", "b2"],
    "ties": ["b2", "b1", "g1", "t1"],  # rows, then categories
    "three": ["g1", "b1", "t1"],
    "twice": ["b2", "b1"],
    "both": ["shared"],
    "again": ["shared", "shared"],
    "untitled-too": ["b2"],
}


def test_a_history_is_ordered_by_time_category_and_row(made):
    found = {user: [item for item, _ in rows] for user, rows in made["histories"].items()}
    assert found == HISTORIES | {one: ["b1", "b2", "g1", "g2", "t1"] for one in PEOPLE}


def test_all_of_it_is_what_plain_dictionaries_give(made):
    assert_equal(made, expected(REVIEWS, TITLES))


def assert_equal(made, wanted):
    for name, value in wanted.items():
        assert made[name] == value, name


@pytest.mark.parametrize("part", range(2))
def test_random_logs_give_what_plain_dictionaries_give(tmp_path, part, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda file: None)  # most of the time of so small a build
    for number in range(part * 4, part * 4 + 4):
        rng = Random(number)
        reviews, titles = random_log(rng, size=3)
        options = {
            "seed": rng.randrange(3),
            "held_out": rng.choice([1, 2, 1000]),
            "trained": rng.choice([5, 1000]),
            "tested": rng.choice([2, 5]),
            "validation": rng.choice(["last", "2019"]),
            "published": rng.random() < 0.5,
            "least_interactions": rng.choice([None, None, 2, 3]),
        }
        folder = tmp_path / str(number)
        write_log(folder, reviews, titles)
        out = built(folder, partitions=rng.choice([1, 3]), **options)
        assert_equal(read_build(out), expected(reviews, titles, **options))


@pytest.mark.parametrize("memory", ["500MB", "4GB"])
def test_the_same_options_give_the_same_bytes(log, tmp_path, memory):
    assert contents(built(log, out=tmp_path, memory=memory)) == contents(log / "out")


@pytest.mark.parametrize("packed", [False, True])
def test_no_folder_is_taken_for_a_pattern_or_a_partition(tmp_path, made, packed):
    odd, matched = (tmp_path / "user_id=bob" / name / "part=1" for name in ("a[b]*'?", "ab'x"))
    write_log(odd, REVIEWS, TITLES, packed=packed)
    write_log(matched, {**REVIEWS, "Toys": [("wrong", "t1", TAU)]}, TITLES, packed=packed)
    built(matched)
    assert read_build(built(odd).rename(tmp_path / "out")) == made


def test_csv_in_such_a_folder_keeps_its_columns(tmp_path):
    file = tmp_path / "user_id=bob" / "a?" / "Books.csv"
    file.parent.mkdir(parents=True)
    file.write_text("user_id,parent_asin,rating,timestamp\nu1,b1,4.0,5\n")
    with engine(tmp_path, 500_000_000) as database:
        assert database.rows(raw_rows(database, file, "reviews")) == [("u1", "b1", "5")]


def test_the_second_time_nothing_is_done(log):
    out = log / "out"
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.name != ".lock"}
    assert build.run(settings_of(log)).notes[-1] == "nothing was left to do"
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert not (out / "work").exists()


OLD, LAST, OF_2020 = YEAR_2019 - 9 * DAY, YEAR_2019 + 9 * DAY, TAU + 9 * DAY
LIVES = {
    "tests": [OLD - 2, OLD - 1, OLD, LAST, OF_2020],
    "validates": [OLD - 3, OLD - 2, OLD - 1, OLD, LAST],
    "short": [OLD - 1, OLD, LAST, OF_2020],
    "new": [LAST, LAST + 1, LAST + 2, OF_2020, OF_2020 + 1],
    "later": [OLD - 1, OLD, TAU + 400 * DAY, TAU + 401 * DAY, TAU + 402 * DAY],
    "old": [OLD - 4, OLD - 3, OLD - 2, OLD - 1, OLD],
}
"""When somebody buys, for each kind of user that the authors' scripts treat differently."""


def published(folder, lives=LIVES, *, many=30, **options):
    """The folder of a published build of many users of each kind."""
    rows = [(f"{kind}-{number}", f"b{place}", time) for kind, times in lives.items()
            for number in range(many) for place, time in enumerate(times)]  # fmt: skip
    write_log(folder, {"Books": rows}, {"Books": {f"b{n}": f"Book {n}" for n in range(5)}})
    return built(folder, published=True, **options)


def test_published_draws_users_as_the_authors_scripts(tmp_path):
    made = read_build(published(tmp_path, held_out=70))
    roles = ("held_out", "trained", "tested", "validating")
    kinds = {role: {one.partition("-")[0] for one in made[role]} for role in roles}
    assert kinds["held_out"] <= {"tests", "short", "new"}
    assert kinds["tested"] == {"tests"}
    assert kinds["validating"] == {"validates"}
    assert kinds["trained"] == {"tests", "validates", "new", "later", "old"}
    # A tenth of the 90 users of 2020 is held out.
    assert len(made["held_out"]) == 9
    assert made["tested"] | made["validating"] <= made["trained"]
    assert {user.partition("-")[0] for user, *_ in made["1b"]} <= {"tests", "new"}


def test_published_sets_users_aside_who_need_no_item_before_2019(tmp_path):
    early = [TAU - 500 * DAY + place for place in range(5)]
    lives = {"late": [LAST, LAST + 1, LAST + 2, TAU, TAU + DAY], "old": early}
    made = read_build(published(tmp_path, lives, many=100))
    # Ten of 100 users of 2020 are held out, and nine of the 90 who are left are set aside.
    left = set(made["histories"]) - made["held_out"] - made["trained"]
    assert len(made["held_out"]) == 10
    assert (len(left), {user.partition("-")[0] for user in left}) == (9, {"late"})


def test_published_validates_with_every_item_of_2019(tmp_path):
    out = published(tmp_path, {"p": [OLD, LAST, LAST + 1, LAST + 2, OF_2020]})
    data = read_training(out)
    [(histories, targets)] = validation_cases(data).batches(10**6, 9)
    # Only b0 is trained on: it is the history of b1 and b2, which nobody can recommend.
    assert histories.tolist() == [[1]] * len(targets) and not targets.any()
    assert len(targets) == 2 * len(read_build(out)["tested"]) > 0
    assert read_manifest(out).totals["audit"]["looked_for_validation_targets"] == len(targets)


def test_fewer_are_tested_where_fewer_are_trained_on(tmp_path):
    assert settings_of(tmp_path, trained=5000).most_tested == 5000
    assert settings_of(tmp_path).rules()["tested"] == 25_000
    with pytest.raises(ValueError, match="tested=6000 is more than trained=5000"):
        settings_of(tmp_path, trained=5000, tested=6000)
