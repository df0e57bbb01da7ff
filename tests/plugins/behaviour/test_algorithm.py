"""Prompts that are built follow Algorithm 1, as an independent checker sees it."""

from functools import partial
from math import sqrt
from statistics import fmean

import pytest
from builders.behaviour import answered, ranking
from harness_behaviour.building import draws
from harness_behaviour.data import read_log
from harness_behaviour.metrics import score
from harness_behaviour.records import LENGTHS, PROXIES, Options, Recipe
from samples.behaviour import MIN_PLAYS, SAMPLE

from .checker import faulty, read_movies, read_music
from .conftest import opened, prompts_of

REAL = "movielens-1m-part"


@pytest.mark.parametrize("options", [{}, {"draws": "popularity", "seed": 7, "table1": False}])
@pytest.mark.parametrize("domain", PROXIES)
def test_built_prompts_pass(domain, options):
    made = prompts_of(domain, tries=200, **options).prompts
    read = read_movies if domain == "movies" else partial(read_music, least=MIN_PLAYS)
    assert faulty(read(SAMPLE / domain), made) == {}
    expected = {(proxy, length) for proxy in PROXIES[domain] for length in LENGTHS if length <= 5}
    assert {(one.proxy, one.length) for one in made} >= expected
    short = sum(one.counts.count(0) < 25 for one in made)
    assert 0 < short < len(made) / 4, "no prompt whose users have nearly everything"


@pytest.fixture(scope="module")
def real(real_data):
    """Users 1 to 2998 of MovieLens 1M: what was built of them."""
    return prompts_of("movies", real_data / REAL)


@pytest.mark.real_data
def test_prompts_of_real_users_pass(real, real_data):
    bare = [one for one in real.prompts if not one.length]
    others = [one for one in real.prompts if one.length]
    assert faulty(read_movies(real_data / REAL), [*bare, *others[::15]]) == {}


@pytest.mark.real_data
def test_some_cells_of_real_users_stay_short_of_table_1(real):
    short = {(one.proxy, one.length) for one in real.cells if one.found < one.published}
    assert short == {("occupation", 10), ("occupation", 20), ("all", 5), ("all", 10)}
    assert all(one.tried == 20_000 for one in real.cells if (one.proxy, one.length) in short)
    bare = {one.proxy: one.found for one in real.cells if not one.length}
    assert bare == {"none": 1, "age": 7, "gender": 2, "occupation": 17, "all": 51}


@pytest.mark.real_data
def test_baselines_without_the_users_behind_real_prompts_have_the_gaps_that_are_known(real):
    """Measured with other code: popular .203 and in group .209, of all three .275 and .337."""
    pairs = [(one, ranking(*range(10))) for one in real.prompts if one.setting == "a"]
    found = list(score(answered(*pairs), Options()))
    known = {"gap_popular": (0.203, 0.275), "gap_popular_in_group": (0.209, 0.337)}
    for name, (every, all_three) in known.items():
        gaps = [(one.values[name], one.slices["proxy"] == "all") for one in found]
        assert fmean(gap for gap, _ in gaps) == pytest.approx(every, abs=0.0006)
        assert fmean(gap for gap, own in gaps if own) == pytest.approx(all_three, abs=0.0006)


@pytest.fixture(scope="module")
def real_log(real_data):
    return read_log(opened("movies", real_data / REAL), Recipe(domain="movies"))


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
