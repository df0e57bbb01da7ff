"""The data tools, as the command line runs them."""

import json
import math

import numpy as np
import pytest
from harness_behaviour.building import describe
from harness_behaviour.building.describe import check_of_proxies, cut, entropy
from harness_behaviour.building.draws import who_has
from harness_behaviour.building.log import Group, Log

from .conftest import movies_files


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
    users = np.repeat(np.arange(8), 10)
    had = who_has(users, np.array(of_users).ravel(), of_users=8, inventory=100)
    groups = tuple(
        Group(values=(name,), users=tuple(range(start, start + 4)))
        for name, start in (("alike", 0), ("unlike", 4))
    )
    everybody = (Group(values=(), users=tuple(range(8))),)
    return Log(
        domain="movies",
        had=had,
        groups={"none": everybody, "age": groups},
        titles=lambda items: {},
        notes={},
    )


@pytest.mark.parametrize("users", [[0], [0, 1, 2]])
def test_the_entropy_of_users_who_have_the_same_is_that_of_their_items(log, users):
    assert entropy(log.had, users) == pytest.approx(math.log(10))


def test_random_users_are_cut_into_sets_of_the_sizes_of_the_groups():
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
