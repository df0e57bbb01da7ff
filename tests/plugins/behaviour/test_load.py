"""The prompts of a run: built ones, or those that the run builds."""

from types import SimpleNamespace

import pytest
from harness_behaviour import data, movies
from harness_behaviour.records import Options

from .conftest import FEW, load_prompts, movies_files


@pytest.mark.parametrize("setting", ["a", "b", "c"])
def test_a_run_builds_what_the_tool_writes_and_each_setting_has_its_own_prompts(built, setting):
    options = {"setting": setting, **FEW}
    prompts, notes = made = load_prompts("movies", built.with_name("ml-1m"), **options)
    assert made == load_prompts("movies", built, **options)
    assert notes["cells with fewer prompts than the paper's Table 1"] > 0
    others = {one.setting for one in prompts if one.setting != setting}
    assert others == ({"none"} if setting == "c" else set())
    assert sum(one.setting == "none" for one in prompts) == len(others) < len(prompts)


def test_the_tasks_of_a_run_build_once(tmp_path, monkeypatch):
    reads = []
    read = movies.read
    monkeypatch.setattr(movies, "read", lambda *given: reads.append(1) or read(*given))
    folder, shared = movies_files(tmp_path), {}
    for setting in "abc":
        load_prompts("movies", folder, shared=shared, setting=setting, **FEW)
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("about", "least", "most"), [({"sample": "sample/music"}, 50, 100), ({}, 5_000, 300)]
)
def test_the_small_sample_needs_fewer_interactions_and_gives_fewer_prompts(about, least, most):
    dataset = SimpleNamespace(about=about)
    recipe = data.recipe_for(dataset, Options(domain="music"))
    assert (recipe.min_interactions, recipe.kept) == (least, most)
    few = data.recipe_for(dataset, Options(domain="music", min_interactions=9, kept=8))
    assert (few.min_interactions, few.kept) == (9, 8)
