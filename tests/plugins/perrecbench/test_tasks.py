"""The task files and published tables: what tasks ask, and where their data may lie."""

import json
import shutil
from collections import Counter
from itertools import product

import msgspec
import pytest
from harness_perrecbench.analyses.tables import TableOptions
from harness_perrecbench.analyses.tables import main as table_1
from harness_perrecbench.benchmark import PERRECBENCH
from harness_perrecbench.paper import CELLS, TABLES, tails
from harness_perrecbench.records import Options
from samples.perrecbench import SAMPLE

import harness
from harness.cli.main import main
from harness.contracts.published import PublishedResult
from harness.data import open_dataset
from harness.data.read import Table
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task
from harness.tasks.options import typed_options

LEVELS = ("easy", "medium", "hard")
ASKS = ("pointwise", "pairwise", "listwise")
VARIANTS = {
    "noprofile": {"profile": "none"}, "fewshot": {"shots": 3}, "sc": {"samples": 5},
    "fewshot_noprofile": {"shots": 3, "profile": "none"}, "cot": {"thought": True},
    "strict": {"strict": True}, "now": {"system": "authors"},
    **{tail: {"system": "authors", "tail": tail} for tail in ("plain", "dot", "older")},
}  # fmt: skip


@pytest.fixture(scope="module")
def tasks():
    """Every task of the benchmark by name."""
    return {task.name: task for task in Catalogue(load_plugins()).select(["tag:perrec"]).tasks}


@pytest.fixture(scope="module")
def options(tasks):
    """The options of each task, those that it leaves at their defaults left out."""
    usual = msgspec.structs.asdict(Options())

    def changed(task):
        typed = msgspec.structs.asdict(typed_options(task, Options))
        return {name: value for name, value in typed.items() if value != usual[name]}

    return {name: changed(task) for name, task in tasks.items()}


def cell(level, ask):
    """The options of one of the nine, at easy and pointwise the defaults."""
    differing = {"level": level} if level != "easy" else {}
    return {**differing, **({"ask": ask} if ask != "pointwise" else {})}


def test_cells_are_asked_as_in_the_paper_and_the_grid_and_domains_are_whole(tasks, options):
    for level, ask in product(LEVELS, ASKS):
        task = tasks[f"perrec_{level}_{ask}"]
        assert options[task.name] == cell(level, ask)
        assert task.roles["candidate"].sampling == {"temperature": 0.1, "max_tokens": 800}
        assert task.stages["compare"] == {"candidate": {"max_tokens": 512}}
        assert task.roles["profiler"].default is None
        assert task.metrics[:2] == ("ptc", "ptc_published")
        assert task.least_scored == 0.85
    found = {
        (made.get("ask", "pointwise"), made.get("shots", 0), made.get("k", 4))
        for name, made in options.items()
        if name.startswith("perrec_easy_") and "_shots" in name and "_shots0_k4_" not in name
        if made.get("profile", "full") == "full" and "level" not in made
    }
    assert found == set(product(ASKS, range(6), (1, 2, 4, 8, 12, 16)))
    assert options["perrec_easy_listwise_shots5_k16"] == {"ask": "listwise", "shots": 5, "k": 16}
    for domain, ask in product(("book", "clothing", "kitchen", "electronic"), ASKS):
        task = tasks[f"perrec_easy_{ask}_{domain}"]
        assert options[task.name] == {**cell("easy", ask), "domain": domain}
        assert (task.data.size, task.data.sample) == (50, None)
        for table in task.data.tables.values():
            assert table.files[0].startswith(f"{domain}/{domain}-processed/")


@pytest.mark.parametrize(("variant", "changes"), VARIANTS.items())
def test_a_variant_differs_from_each_of_nine_in_options_alone(tasks, options, variant, changes):
    for level, ask in product(LEVELS, ASKS):
        name = f"perrec_{level}_{ask}_{variant}"
        assert options[name] == {**cell(level, ask), **changes}
        assert tasks[name].data == tasks[f"perrec_{level}_{ask}"].data
        assert tasks[name].metrics == tasks[f"perrec_{level}_{ask}"].metrics


def test_ratings_are_asked_without_a_profile_and_without_chance_and_groups_alike(tasks, options):
    grid = [f"{way}_k{k}_shots{shots}" for way, k, shots in product("abcd", (2, 4, 8), range(4))]
    for name in ("perrec_rating", "perrec_rating_published", *(f"perrec_rating_{i}" for i in grid)):
        assert {"ask": "rating", "profile": "none"}.items() <= options[name].items()
        assert tasks[name].roles["candidate"].sampling["temperature"] == 0
        assert tasks[name].data.size == 1000
    for one in grid:
        alone = options[f"perrec_rating_{one}"]
        assert {**options[f"perrec_easy_pointwise_{one}"], "ask": "rating"} == alone
    assert options["perrec_rating_d_k2_shots3"] == {
        "ask": "rating", "profile": "none", "wording": "d", "k": 2, "shots": 3,
    }  # fmt: skip
    assert tasks["perrec_rating_published"].data.tables["behaviours"].required


def opened(task, data, limit=None):
    folder = str(data)
    return open_dataset(task.data, data=folder, limit=limit, seed=0, package=None, task=task.name)


@pytest.mark.parametrize("inside", [".", "all"])
@pytest.mark.parametrize("name", ["perrec_hard_pairwise", "perrec_rating"])
def test_the_folder_of_the_data_may_be_any_of_those_on_the_way_to_the_files(tasks, inside, name):
    dataset, tables = opened(tasks[name], SAMPLE / inside), tasks[name].data.tables
    for table in tables.keys() & {"histories", "profiles", "items", "groups", "behaviours"}:
        assert dataset.has(table)


def test_ratings_are_drawn_without_a_list_and_a_folder_may_be_of_one_domain(tasks, tmp_path):
    shutil.copytree(SAMPLE / "all" / "all-processed", tmp_path / "beauty-processed")
    task = tasks["perrec_hard_listwise"]
    own = msgspec.structs.replace(typed_options(task, Options), domain="beauty")
    assert len(PERRECBENCH.load(opened(task, tmp_path, limit=2), own).groups) == 2
    folder = tmp_path / "data"
    shutil.copytree(SAMPLE / "all" / "all-processed", folder)
    drawn = (folder / "sample_behavior.json").rename(folder / "drawn_behavior.json")

    def asked():
        task = tasks["perrec_rating"]
        return len(PERRECBENCH.load(opened(task, folder), typed_options(task, Options)).singles)

    listed = len(json.loads(drawn.read_text()))
    assert asked() == listed
    drawn.unlink()
    assert listed < asked() <= 1000


def test_table_1_and_the_last_lines_of_its_models_are_published():
    found = PERRECBENCH.published()
    assert len(found) == 19 * 10
    sonnet = {one.task: one for one in found if one.model == "CLAUDE-3.5-SONNET"}
    comparable = sonnet["perrec_medium_listwise"].comparable_if
    assert "without --limit" in comparable
    assert sonnet["perrec_medium_listwise"] == PublishedResult(
        task="perrec_medium_listwise", metric="ptc_published", model="CLAUDE-3.5-SONNET",
        value=0.14, n=200, source="Table 1", comparable_if=comparable,
    )  # fmt: skip
    assert (sonnet["perrec"].value, sonnet["perrec"].n) == (0.18, None)
    rows = TABLES.read("tails").dicts()
    assert [row["model"] for row in rows] == [row["model"] for row in TABLES.read("main").dicts()]
    said = {row[level] for row in rows for level in ("easy", "medium", "hard")}
    assert said == {None, "now", "plain", "dot", "older"}
    assert tails()["GPT-4o-MINI"] == "older"
    assert tails()["GEMMA-2-27B-IT"] == "plain/dot"
    assert tails()["GEMMA-2-9B-IT"] == "not recorded"


@pytest.mark.parametrize(
    ("name", "named"), [("main", "model"), ("prompting", "prompting"), ("tuning", "training")]
)
def test_averages_that_do_not_follow_from_the_cells_are_noted(name, named):
    told = " ".join(TABLES.read(name).notes).casefold()
    for row in TABLES.read(name).dicts():
        if row["average"] is not None:
            found = sum(row[f"{level} {ask}"] for level, ask in CELLS) / len(CELLS)
            line = f"{row[named]} {found:.3f} for {row['average']:.2f}".replace("0.", ".")
            assert round(found, 2) == row["average"] or line.casefold() in told


@pytest.mark.parametrize(
    ("words", "files"), [("perrec_hard --set shots=1", 5), ("perrec_rating --dry_run", 3)]
)
def test_tasks_read_each_file_once(monkeypatch, tmp_path, words, files):
    monkeypatch.chdir(tmp_path)
    found, rows = Counter(), Table.rows

    def counted(table):
        found.update(source.path.name for source in table.sources)
        return rows(table)

    monkeypatch.setattr(Table, "rows", counted)
    common = ("--model", "baseline", "--data", "sample", "--limit", "2", "--tasks")
    assert main([*common, *words.split()]) == 0
    assert (len(found), set(found.values())) == (files, {1})


def test_averages_tell_no_order_and_a_mean_has_one_interval_in_results_and_analysis(tmp_path):
    result = harness.evaluate(
        "perrec_hard", model="baseline", data="sample", output_path=tmp_path, reuse="run",
        quiet=True,
    )  # fmt: skip
    for summary in result.summaries:
        metrics = summary.metrics
        assert metrics["ptc"].n == 60
        assert metrics["ptc"].value > 0.3
        for name in ("item_average", "lower_average_first", "higher_average_first"):
            low, high = metrics[name].interval
            assert low < 0 < high, name
            assert metrics[name].value == pytest.approx(0, abs=1e-12), name
    folder, manifest = RunFolder(result.folder), result.manifest
    names = manifest.tasks
    tasks = [finished_task(folder, manifest, one, PERRECBENCH, label="rule") for one in names]
    [mean] = [one for one in result.means if one.metric == "ptc"]
    assert mean.interval is not None
    [row] = table_1(tasks, TableOptions()).sheets[0].rows
    assert row[-3:] == (pytest.approx(mean.value), *mean.interval)
