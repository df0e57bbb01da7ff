"""All cells of a domain: which prompts there are, what they say, and how many."""

from collections import Counter
from functools import cache

import pytest
from builders.processes import run_here, run_python
from harness_behaviour.building.cells import build_cells, table1
from harness_behaviour.records import LENGTHS, PROXIES, Recipe

from .conftest import load_prompts, log_of, movies_files, music_files

MANY = tuple(
    ((proxy, length), 12) for own in PROXIES.values() for proxy in own for length in LENGTHS
)
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


def of(built, proxy, length):
    return [one for one in built.prompts if (one.proxy, one.length) == (proxy, length)]


def test_table_1_ends_each_cell_at_its_own_number(built):
    made = built(published=((("gender", 3), 5), (("gender", 5), 400)))
    found = Counter((one.proxy, one.length) for one in made.prompts if one.length)
    assert found.keys() == {("gender", 3), ("gender", 5)}
    assert found["gender", 3] == 5
    assert 5 < found["gender", 5] <= 300
    short = [(one.proxy, one.length) for one in made.cells if one.found < one.published]
    assert short == [("gender", 5)]
    assert made.notes["cells with fewer prompts than the paper's Table 1"] == 1


def test_without_table_1_each_cell_ends_at_the_prompts_kept(built):
    made = built(published=(), table1=False, kept=3)
    found = Counter((one.proxy, one.length) for one in made.prompts)
    assert found["none", 1] == found["all", 3] == 3
    assert all(one.tried <= 300 for one in made.cells)


def test_a_cell_tells_what_was_tried_and_the_users_behind_prompts(built):
    made = built(kept=4)
    [cell] = [one for one in made.cells if (one.proxy, one.length) == ("gender", 3)]
    own = of(made, "gender", 3)
    users = sorted(one.users for one in own)
    assert (cell.groups, cell.found) == (2, 4)
    names = [f"movies/gender/3/{number:03}" for number in range(1, 5)]
    assert [one.id for one in own] == [one.user for one in own] == names
    assert 4 <= cell.tried < 300
    assert cell.users[1] == (users[1] + users[2]) / 2


def test_histories_of_popular_items_have_more_users_behind_them(built):
    def users(**options):
        made = of(built(table1=False, kept=60, **options), "none", 1)
        return sum(one.users for one in made) / len(made)

    assert users(draws="popularity") > users(draws="uniform")


def test_few_items_of_nobody_are_all_taken_and_counted(built):
    made = built()
    [cell] = [one for one in made.cells if (one.proxy, one.length) == ("none", 0)]
    [prompt] = of(made, "none", 0)
    assert prompt.counts.count(0) == 0
    assert cell.short_of_outside == 1
    assert made.notes["prompts with fewer than 25 candidates that nobody has"] >= 1


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


def test_another_seed_gives_other_prompts(tmp_path):
    folder = movies_files(tmp_path)
    (first, _), (second, _) = (
        load_prompts("movies", folder, setting="b", tries=60, seed=seed) for seed in (0, 1)
    )
    assert {one.history for one in first} != {one.history for one in second}


@pytest.mark.parametrize(
    ("domain", "total", "bare"),
    [("movies", 5_096, [1, 7, 2, 17, 51]), ("music", 4_924, [1, 17, 4, 2, 8])],
)
def test_table_1_has_the_papers_total_and_each_value_of_a_proxy_without_history(
    domain, total, bare
):
    found = table1(domain)
    assert sum(found.values()) == total
    assert [found[proxy, 0] for proxy in PROXIES[domain]] == bare
