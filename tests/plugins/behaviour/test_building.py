"""Algorithm 1: small arrays, all cells of a domain, the data tools, and an independent checker."""

import json
import math
from collections import Counter
from functools import cache, partial
from itertools import islice
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
import pytest
from builders.processes import run_here, run_python
from harness_behaviour import music
from harness_behaviour.building import describe, draws
from harness_behaviour.building.cells import build_cells, table1
from harness_behaviour.building.describe import check_of_proxies, cut, entropy
from harness_behaviour.building.log import Group, Log
from harness_behaviour.records import LENGTHS, PROXIES, Recipe
from samples.behaviour import MIN_PLAYS, SAMPLE

from .checker import CONTINENTS, FEW_USERS, faulty, lines, read_movies, read_music
from .conftest import log_of, movies_files, music_files, prompts_of

REAL = "movielens-1m-part"


@pytest.mark.parametrize("options", [{}, {"draws": "popularity", "seed": 7, "table1": False}])
@pytest.mark.parametrize("domain", PROXIES)
def test_built_prompts_pass(domain, options):
    made = prompts_of(domain, tries=200, **options).prompts
    read = read_movies if domain == "movies" else partial(read_music, least=MIN_PLAYS)
    assert faulty(read(SAMPLE / domain), made) == {}
    expected = {(proxy, length) for proxy in PROXIES[domain] for length in LENGTHS if length <= 5}
    assert {(one.proxy, one.length) for one in made} >= expected
    had = [[number > 0 for number in one.counts] for one in made if 0 in one.counts]
    assert all(own not in (sorted(own), sorted(own, reverse=True)) for own in had)
    short = sum(one.counts.count(0) < 25 for one in made)
    assert 0 < short < len(made) / 4, "no prompt whose users have nearly everything"


@pytest.mark.real_data
def test_prompts_of_real_users_pass_and_some_of_their_cells_stay_short_of_table_1(real_data):
    """Users 1 to 2998 of MovieLens 1M."""
    real = prompts_of("movies", real_data / REAL)
    bare = [one for one in real.prompts if not one.length]
    others = [one for one in real.prompts if one.length]
    assert faulty(read_movies(real_data / REAL), [*bare, *others[::15]]) == {}
    short = {(one.proxy, one.length) for one in real.cells if one.found < one.published}
    assert short == {("occupation", 10), ("occupation", 20), ("all", 5), ("all", 10)}
    assert all(one.tried == 20_000 for one in real.cells if (one.proxy, one.length) in short)
    bare = {one.proxy: one.found for one in real.cells if not one.length}
    assert bare == {"none": 1, "age": 7, "gender": 2, "occupation": 17, "all": 51}


@pytest.fixture(scope="module")
def real_log(real_data):
    return log_of("movies", real_data / REAL)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("length", "tries", "known"),
    [(3, 2_000, 0.725), (5, 2_000, 0.5964), (10, 20_000, 0.2002), (20, 20_000, 0.02245)],
)
def test_as_many_draws_succeed_as_is_known(real_log, length, tries, known):
    had, [group] = real_log.had, real_log.groups["none"]
    everybody = [draws.set_of(group.users, of_users=had.users)]
    cell = draws.draw(had, everybody, length, most=tries, tries=tries, seed=(0,))
    assert cell.tried == tries
    assert abs(len(cell.found) - known * tries) < 3 * sqrt(tries * known * (1 - known))


SEED = (0, "test")


def had_of(*of_users, inventory):
    """Who has what, given the items of each user."""
    users = np.array([user for user, own in enumerate(of_users) for _ in own], dtype=np.int64)
    items = np.array([item for own in of_users for item in own], dtype=np.int64)
    return draws.who_has(users, items, of_users=len(of_users), inventory=inventory)


@pytest.fixture
def crowd():
    """A hundred users, each with half of a hundred and twenty items."""
    rng = np.random.default_rng(3)
    return had_of(*(rng.permutation(120)[:60].tolist() for _ in range(100)), inventory=120)


def test_popular_items_are_drawn_more_often_and_items_of_nobody_never():
    found = draws.histories(Random(1), 1, inventory=3, weights=[1, 0, 3])
    drawn = [one for (one,) in islice(found, 4000)]
    assert set(drawn) == {0, 2}
    assert drawn.count(2) == pytest.approx(3000, abs=100)


def test_groups_take_turns_and_a_group_without_success_keeps_its_turn(crowd):
    groups = [draws.set_of(range(50), of_users=100), draws.set_of([50, 51], of_users=100)]
    cell = draws.draw(crowd, groups, 1, most=1000, tries=9, seed=SEED)
    assert [one.group for one in cell.found] == [0] * 5
    assert cell.tried == 9


def test_a_cell_depends_on_its_seed_alone(crowd, monkeypatch):
    # Three groups do not fit evenly into histories that are looked at 7 or 500 at a time.
    groups = [draws.set_of(range(n, n + 60), of_users=100) for n in (0, 20, 40)]

    def cell(seed=SEED, tries=300):
        found = draws.draw(crowd, groups, 5, most=20, tries=tries, seed=seed)
        return [(one.group, one.history, one.candidates, one.counts) for one in found.found]

    first = cell()
    assert cell(tries=200) == first
    assert cell(seed=(1, "test")) != first
    monkeypatch.setattr(draws, "TOGETHER", 7)
    assert cell() == first


MANY = tuple(((proxy, length), 12) for of in PROXIES.values() for proxy in of for length in LENGTHS)
FEW = {"min_interactions": 5, "min_users_per_country": 5}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A small log of each domain."""
    folder = tmp_path_factory.mktemp("logs")
    files = {"movies": movies_files(folder), "music": music_files(folder)}
    return {domain: log_of(domain, path, **FEW) for domain, path in files.items()}


@pytest.fixture(scope="module")
def built(logs):
    """Builds the cells of a small log, the same ones once."""

    @cache
    def build(domain="movies", published=MANY, **options):
        recipe = Recipe(domain=domain, **FEW, **{"tries": 300, **options})
        return build_cells(logs[domain], recipe, dict(published))

    return build


def test_table_1_ends_each_cell_at_its_own_number(built):
    made = built(published=((("gender", 3), 5), (("gender", 5), 400)))
    found = Counter((one.proxy, one.length) for one in made.prompts if one.length)
    assert found.keys() == {("gender", 3), ("gender", 5)}
    assert found["gender", 3] == 5
    assert 5 < found["gender", 5] <= 300
    short = [(one.proxy, one.length) for one in made.cells if one.found < one.published]
    assert short == [("gender", 5)]
    assert made.notes["cells with fewer prompts than the paper's Table 1"] == 1


def test_without_table_1_each_cell_ends_at_the_prompts_kept_and_a_seed_has_its_own_prompts(built):
    made = built(published=(), table1=False, kept=3)
    found = Counter((one.proxy, one.length) for one in made.prompts)
    assert found["none", 1] == found["all", 3] == 3
    assert all(one.tried <= 300 for one in made.cells)
    other = built(published=(), table1=False, kept=3, seed=1)
    assert {one.history for one in made.prompts} != {one.history for one in other.prompts}


def test_a_cell_tells_what_was_tried_and_the_users_behind_prompts(built):
    made = built(kept=4)
    [cell] = [one for one in made.cells if (one.proxy, one.length) == ("gender", 3)]
    own = [one for one in made.prompts if (one.proxy, one.length) == ("gender", 3)]
    users = sorted(one.users for one in own)
    assert (cell.groups, cell.found) == (2, 4)
    names = [f"movies/gender/3/{number:03}" for number in range(1, 5)]
    assert [one.id for one in own] == [one.user for one in own] == names
    assert 4 <= cell.tried < 300
    assert cell.users[1] == (users[1] + users[2]) / 2
    # Few items of nobody are all taken and counted.
    [cell] = [one for one in made.cells if (one.proxy, one.length) == ("none", 0)]
    [prompt] = [one for one in made.prompts if (one.proxy, one.length) == ("none", 0)]
    assert prompt.counts.count(0) == 0
    assert cell.short_of_outside == 1
    assert made.notes["prompts with fewer than 25 candidates that nobody has"] >= 1


def test_histories_of_popular_items_have_more_users_behind_them(built):
    users = []
    for way in ("uniform", "popularity"):
        made = built(table1=False, kept=60, draws=way).prompts
        users.append(fmean(one.users for one in made if (one.proxy, one.length) == ("none", 1)))
    assert users[0] < users[1]


SCRIPT = """
import pathlib
import sys
from harness_behaviour.building.tool import Settings, run
domain, folder, out = sys.argv[1:]
settings = {"tries": 50, "min_interactions": 5, "min_users_per_country": 5}
run(Settings(domain=domain, source=pathlib.Path(folder), out=pathlib.Path(out), **settings))
"""


@pytest.mark.parametrize("write", [movies_files, music_files])
def test_shuffled_files_give_the_same_bytes_in_another_process(tmp_path, write):
    domain, here, there = write.__name__.partition("_")[0], tmp_path / "here", tmp_path / "there"
    run_here(SCRIPT, domain, write(tmp_path), here)
    again = run_python if domain == "music" else run_here
    again(SCRIPT, domain, write(tmp_path, shuffle=1, name="shuffled"), there)
    assert (here / "prompts.parquet").read_bytes() == (there / "prompts.parquet").read_bytes()


def test_table_1_has_the_papers_total_and_each_value_of_a_proxy_without_history():
    for domain, total, bare in (
        ("movies", 5_096, [1, 7, 2, 17, 51]), ("music", 4_924, [1, 17, 4, 2, 8])
    ):  # fmt: skip
        found = table1(domain)
        assert sum(found.values()) == total
        assert [found[proxy, 0] for proxy in PROXIES[domain]] == bare


def test_movies_are_built_and_described(printed, tmp_path):
    folder, out = str(movies_files(tmp_path)), tmp_path / "prompts"
    few = ("--tries", "300", "--kept", "10")
    built = printed("data", "behaviour-prompts", "--from", folder, "--out", str(out), *few).out
    assert f"written: {out}, 159 prompts" in built
    described = printed("data", "behaviour-describe", "--data", str(out), "--from", folder).out
    # Table 1 is the same in both.
    assert built[built.index("Prompts of movies") :] in described
    assert "27 cells have fewer prompts than the paper's Table 1: none at 1" in described
    assert "Entropy of the behaviour of groups, movies" in described
    record = json.loads((out / "prompts.json").read_text("utf-8"))
    assert record["options"]["tries"] == 300
    assert record["files"].keys() == {"users.dat", "ratings.dat", "movies.dat"}
    assert all(len(digest) == 64 for digest in record["files"].values())


@pytest.fixture
def log():
    """Two groups of four users, the first with one taste and the second with none."""
    rng = np.random.default_rng(4)
    of_users = [list(range(10))] * 4 + [rng.permutation(100)[:10].tolist() for _ in range(4)]
    groups = {
        "none": (Group(values=(), users=tuple(range(8))),),
        "age": tuple(Group(values=(f"from {n}",), users=tuple(range(n, n + 4))) for n in (0, 4)),
    }
    had = had_of(*of_users, inventory=100)
    return Log(domain="movies", had=had, groups=groups, titles=lambda items: {}, notes={})


def test_the_entropy_of_users_who_have_the_same_is_that_of_their_items(log):
    for users in ([0], [0, 1, 2]):
        assert entropy(log.had, users) == pytest.approx(math.log(10))
    # Random users are cut into sets of the sizes of the groups.
    groups = [Group(values=(), users=tuple(range(size))) for size in (3, 1, 4)]
    assert cut([7, 1, 5, 0, 2, 6, 4, 3], groups) == [[7, 1, 5], [0], [2, 6, 4, 3]]


def test_the_interval_of_the_check_of_proxies_has_95_percent_of_the_cuts(log, monkeypatch):
    # The groups have an entropy of 0, and a hundred cuts have those from 1 to 100.
    monkeypatch.setattr(describe, "mean_entropy", lambda had, sets: next(values))
    values = iter(range(101))
    [(*_, difference, low, high)] = check_of_proxies(log, draws=100, seed=0).rows
    assert (difference, low, high) == pytest.approx((-50.5, -97.525, -3.475))


def test_groups_of_one_taste_have_less_entropy_than_random_users(log):
    sheet = check_of_proxies(log, draws=60, seed=0)
    [(proxy, groups, own, difference, low, high)] = sheet.rows
    assert (proxy, groups) == ("age", 2)
    assert own == pytest.approx((entropy(log.had, range(4)) + entropy(log.had, range(4, 8))) / 2)
    assert low <= difference <= high
    assert difference < 0
    assert check_of_proxies(log, draws=60, seed=0) == sheet


@pytest.mark.real_data
def test_the_table_of_continents_has_each_country_of_the_profiles(real_data):
    written = json.loads((Path(music.__file__).parent / "continents.json").read_text("utf-8"))
    countries = [country for own in written.values() for country in own]
    assert len(set(countries)) == len(countries)
    rows = lines(real_data / "lastfm/1k-userid-profile.tsv", "utf-8")[1:]
    met = {country for _, _, _, country, _ in (row.split("\t") for row in rows) if country}
    assert met <= set(countries)
    for name in music.CONTINENTS:
        assert met & set(written[name]) == {*CONTINENTS[name], *FEW_USERS.get(name, ())}
    assert {"Turkey", "Armenia"} <= set(written["Asia"])


@pytest.mark.real_data
def test_real_profiles_with_invented_plays_give_the_bare_prompts_of_table_1(real_data, tmp_path):
    profile = lines(real_data / "lastfm/1k-userid-profile.tsv", "utf-8")[1:]
    rng, plays = Random(5), []
    for user in (row.split("\t")[0] for row in profile for _ in range(MIN_PLAYS)):
        track = int(400 * rng.random() ** 2)
        plays.append(f"{user}\t2008-01-01T00:00:00Z\t\tBand {track % 9}\t\t{track}")
    folder = music_files(tmp_path, profile=profile, events=plays)
    made = prompts_of("music", folder, tries=50)
    assert {one.proxy: one.groups for one in made.cells} == {
        "none": 1, "country": 17, "continent": 4, "gender": 2, "gender_continent": 8,
    }  # fmt: skip
    assert faulty(read_music(folder, least=MIN_PLAYS), made.prompts) == {}
