"""The task files of the benchmark: which tasks there are, what each asks, where data may lie."""

import json
import shutil
from itertools import product

import pytest
from harness_perrecbench.benchmark import PERRECBENCH
from harness_perrecbench.records import Options
from samples.perrecbench import SAMPLE

import harness
from harness.data import open_dataset
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.scoring.summary import main_metrics
from harness.tasks.options import typed_options

LEVELS = ("easy", "medium", "hard")
ASKS = ("pointwise", "pairwise", "listwise")
VARIANTS = {
    "noprofile": {"profile": "none"},
    "fewshot": {"shots": 3},
    "fewshot_noprofile": {"shots": 3, "profile": "none"},
    "sc": {"samples": 5},
    "cot": {"thought": True},
    "strict": {"strict": True},
    "now": {"system": "authors"},
    "plain": {"system": "authors", "tail": "plain"},
    "dot": {"system": "authors", "tail": "dot"},
    "older": {"system": "authors", "tail": "older"},
}


@pytest.fixture(scope="module")
def plugins():
    return load_plugins()


@pytest.fixture(scope="module")
def catalogue(plugins):
    return Catalogue(plugins)


@pytest.fixture(scope="module")
def tasks(catalogue):
    """Every task of the benchmark by name."""
    return {task.name: task for task in catalogue.select(["tag:perrec"]).tasks}


@pytest.fixture(scope="module")
def options(plugins, tasks):
    """The options of each task, those that it leaves at their defaults left out."""
    kind = plugins.benchmark("perrecbench").options
    usual = kind()

    def changed(task):
        typed = typed_options(task, kind)
        names = typed.__struct_fields__
        return {
            name: getattr(typed, name)
            for name in names
            if getattr(typed, name) != getattr(usual, name)
        }

    return {name: changed(task) for name, task in tasks.items()}


def cell(level, ask):
    """The options of one of the nine, at easy and pointwise the defaults."""
    differing = {"level": level} if level != "easy" else {}
    return {**differing, **({"ask": ask} if ask != "pointwise" else {})}


@pytest.mark.parametrize(("level", "ask"), list(product(LEVELS, ASKS)))
def test_a_cell_is_asked_as_the_paper_asks_it(tasks, options, level, ask):
    task = tasks[f"perrec_{level}_{ask}"]

    assert options[task.name] == cell(level, ask)
    assert task.roles["candidate"].sampling == {"temperature": 0.1, "max_tokens": 800}
    assert task.stages["compare"] == {"candidate": {"max_tokens": 512}}
    assert task.roles["profiler"].default is None
    assert task.metrics[:2] == ("ptc", "ptc_published")
    assert task.least_scored == 0.85


def test_the_main_metric_is_ptc_and_of_ratings_alone_their_error(tasks):
    for name, main in (("perrec_easy_pairwise", "ptc"), ("perrec_rating", "mae")):
        metrics = {metric: PERRECBENCH.metrics[metric] for metric in tasks[name].metrics}
        assert main_metrics(PERRECBENCH.main, metrics) == (main,)


@pytest.mark.parametrize(("variant", "changes"), VARIANTS.items())
def test_a_variant_differs_from_each_of_the_nine_in_its_options_alone(
    tasks, options, variant, changes
):
    for level, ask in product(LEVELS, ASKS):
        name = f"perrec_{level}_{ask}_{variant}"
        assert options[name] == {**cell(level, ask), **changes}
        assert tasks[name].data == tasks[f"perrec_{level}_{ask}"].data
        assert tasks[name].metrics == tasks[f"perrec_{level}_{ask}"].metrics


def test_the_grid_of_examples_and_behaviours_is_whole(options):
    found = {
        (made.get("ask", "pointwise"), made.get("shots", 0), made.get("k", 4))
        for name, made in options.items()
        if name.startswith("perrec_easy_") and "_shots" in name and "_shots0_k4_" not in name
        if made.get("profile", "full") == "full" and "level" not in made
    }
    assert found == set(product(ASKS, range(6), (1, 2, 4, 8, 12, 16)))
    assert options["perrec_easy_listwise_shots5_k16"] == {"ask": "listwise", "shots": 5, "k": 16}


def test_each_domain_has_its_folder_and_no_sample(tasks, options):
    for domain, ask in product(("book", "clothing", "kitchen", "electronic"), ASKS):
        task = tasks[f"perrec_easy_{ask}_{domain}"]
        assert options[task.name] == {**cell("easy", ask), "domain": domain}
        assert (task.data.size, task.data.sample) == (50, None)
        for table in task.data.tables.values():
            assert table.files[0].startswith(f"{domain}/{domain}-processed/")


def test_ratings_are_asked_without_a_profile_and_without_chance(tasks, options):
    names = ["perrec_rating", "perrec_rating_published"]
    grid = [
        f"perrec_rating_{wording}_k{k}_shots{shots}"
        for wording, k, shots in product("abcd", (2, 4, 8), range(4))
    ]
    for name in [*names, *grid]:
        made = {"ask": "rating", "profile": "none"}
        assert made.items() <= options[name].items()
        assert tasks[name].roles["candidate"].sampling["temperature"] == 0
        assert tasks[name].data.size == 1000
    assert options["perrec_rating_d_k2_shots3"] == {
        "ask": "rating", "profile": "none", "wording": "d", "k": 2, "shots": 3,
    }  # fmt: skip
    assert tasks["perrec_rating_published"].data.tables["behaviours"].required


def test_groups_are_asked_in_each_configuration_that_ratings_are(tasks, options):
    for wording, k, shots in product("abcd", (2, 4, 8), range(4)):
        of_groups = options[f"perrec_easy_pointwise_{wording}_k{k}_shots{shots}"]
        alone = options[f"perrec_rating_{wording}_k{k}_shots{shots}"]
        assert {**of_groups, "ask": "rating"} == alone


@pytest.mark.parametrize("inside", [".", "all", "all/all-processed"])
def test_the_folder_of_the_data_may_be_any_of_those_on_the_way_to_the_files(tasks, inside):
    for name in ("perrec_hard_pairwise", "perrec_rating"):
        dataset = open_dataset(
            tasks[name].data,
            data=str(SAMPLE / inside),
            limit=None,
            seed=0,
            package=None,
            task=name,
        )
        published = {"histories", "profiles", "items", "groups", "held_out", "behaviours"}
        there = {table for table in published & set(tasks[name].data.tables) if dataset.has(table)}
        assert there == published & set(tasks[name].data.tables)


def test_a_domain_of_one_s_own_runs_from_its_folder_by_its_name(tmp_path):
    shutil.copytree(SAMPLE / "all" / "all-processed", tmp_path / "g1/beauty/beauty-processed")

    def run(data, **changes):
        return harness.evaluate(
            "perrec_hard_listwise",
            model="baseline",
            data=str(data),
            limit=2,
            set=changes,
            output_path=tmp_path / "runs",
            store=tmp_path / "calls.sqlite",
        )

    [summary] = run(tmp_path / "g1/beauty", domain="beauty").summaries
    assert summary.metrics["ptc"].n == 2
    with pytest.raises(harness.DataError, match="belong to another domain") as told:
        run(tmp_path / "g1/beauty/beauty-processed")
    assert told.value.hint.endswith("--data DIR/beauty --set domain=beauty")
    with pytest.raises(harness.DataError, match="no complete set of groups") as told:
        run(tmp_path / "g1")
    assert told.value.hint == f"use --data {tmp_path / 'g1/beauty'} --set domain=beauty"


def test_ratings_are_drawn_where_there_is_no_list_and_such_are_not_the_published_ones(
    tasks, tmp_path
):
    folder = tmp_path / "data"
    shutil.copytree(SAMPLE / "all" / "all-processed", folder)
    (folder / "sample_behavior.json").unlink()

    def asked(task):
        data = tasks[task].data
        dataset = open_dataset(data, data=str(folder), limit=None, seed=0, package=None, task=task)
        return len(PERRECBENCH.load(dataset, typed_options(tasks[task], Options)).singles)

    (folder / "drawn_behavior.json").write_bytes(
        (SAMPLE / "all" / "all-processed" / "sample_behavior.json").read_bytes()
    )
    listed = len(json.loads((folder / "drawn_behavior.json").read_text()))
    assert asked("perrec_rating") == listed
    with pytest.raises(harness.DataError, match="behaviours"):
        asked("perrec_rating_published")
    (folder / "drawn_behavior.json").unlink()

    histories = json.loads((folder / "userid2history.json").read_text())
    late = sum(len(history) - 21 for history in histories.values())
    assert asked("perrec_rating") == min(1000, late)
    with pytest.raises(harness.DataError, match="behaviours"):
        asked("perrec_rating_published")
