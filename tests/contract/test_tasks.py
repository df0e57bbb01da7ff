"""Every task file can be run and every prompt is somebody's, compiles and renders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.prompts import Templates
from harness.prompts.variable_docs import VARIABLES, meanings
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.tasks.options import typed_options

ROOT = Path(__file__).resolve().parents[2]
TASK_FILES = sorted((ROOT / "task_configs").rglob("*.y*ml"))
PROMPTS = sorted((ROOT / "prompts").rglob("*.j2"))


def names(paths):
    """Short names for the parameters of a test."""
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.fixture(scope="module")
def plugins():
    found = load_plugins()
    assert [str(one) for one in found.broken] == []
    assert list(found.problems) == []
    return found


@pytest.fixture(scope="module")
def catalogue(plugins):
    return Catalogue(plugins)


@pytest.mark.parametrize("file", TASK_FILES, ids=names(TASK_FILES))
def test_a_task_file_validates(file, catalogue, plugins):
    for document in catalogue.find(str(file)):
        if document.is_group:
            assert catalogue.select([str(file)]).tasks
        elif not catalogue.resolved(document).values.get("abstract"):
            task = catalogue.task(document)
            benchmark = plugins.benchmark(task.benchmark)
            typed_options(task, benchmark.options)
            assert set(task.metrics) <= set(benchmark.metrics)


@pytest.mark.parametrize("file", TASK_FILES, ids=names(TASK_FILES))
def test_a_task_file_is_named_after_its_task_and_lies_with_its_benchmark(file, catalogue, plugins):
    document = catalogue.find(str(file))[0]
    if document.pattern is None:
        assert file.stem == document.name
    else:
        before = document.pattern.partition("{")[0].rstrip("_")
        assert file.stem.startswith(before), "a file of many tasks is named after what they share"
    assert file.parent.name in plugins.benchmarks


def test_published_results_are_of_tasks_and_metrics_that_there_are(catalogue, plugins):
    known = {*catalogue.names, *catalogue.groups}
    found = {}
    for name in plugins.benchmarks:
        benchmark = plugins.benchmark(name)
        for one in benchmark.published() if benchmark.published else ():
            found.setdefault(name, []).append(one)
            assert one.task in known and one.metric in benchmark.metrics, one
            assert one.source and one.comparable_if, one
    assert "perrecbench" in found


def test_no_file_is_left_out_of_the_list(catalogue):
    assert list(catalogue.problems) == []
    assert {entry.file for entry in catalogue.entries} >= set(TASK_FILES)


@pytest.mark.parametrize("file", PROMPTS, ids=names(PROMPTS))
def test_a_prompt_belongs_to_a_stage_and_compiles(file, plugins):
    benchmark = file.parent.name
    if file.name.startswith("_"):
        pytest.skip("a part for other prompts to include")
    prompt, _, role = file.name.removesuffix(".j2").rpartition(".")
    asked = {
        (template, asks)
        for stage in plugins.benchmark(benchmark).stages
        for template in stage.templates
        for asks in (*stage.roles, *stage.judges)
    }
    assert (prompt, role) in asked, f"no stage of {benchmark} asks {role} with {prompt}"
    template = Templates([ROOT / "prompts"]).get(benchmark, prompt, role)
    assert template is not None
    assert template.variables, "a prompt that shows nothing of the item asks nothing about it"


def test_what_prompts_are_given_is_described_and_nothing_else_is(plugins):
    """In `variables.yaml`, beside the prompts of each benchmark."""
    for benchmark in plugins.benchmarks:
        said = yaml.safe_load((ROOT / "prompts" / benchmark / VARIABLES).read_text("utf-8"))
        shared = {name for name, meaning in said.items() if isinstance(meaning, str)}
        own = {(name, variable) for name in said.keys() - shared for variable in said[name]}
        templates = Templates([ROOT / "prompts"])
        used = set()
        for name in templates.names(benchmark):
            prompt, _, role = name.rpartition(".")
            template = templates.need(benchmark, prompt, role)
            found = meanings(template.file, template.variables)
            assert [one for one, meaning in found.items() if not meaning] == [], name
            used |= {(name, one) if (name, one) in own else one for one in found}
        assert used == shared | own, "what no prompt is given is described"


def test_every_prompt_of_every_task_with_a_sample_renders(tmp_path, catalogue, plugins):
    """A rehearsal over the bundled samples makes the first prompt of each stage and role."""
    tasks = {
        name
        for name in catalogue.names
        if catalogue.task(catalogue.find(name)[0]).data.sample is not None
    }
    assert {"interests", "gist_synthetic"} <= tasks
    stages = [stage for name in plugins.benchmarks for stage in plugins.benchmark(name).stages]
    others = {role for stage in stages for role in stage.roles} - {"candidate", "retriever"}
    result = subprocess.run(
        [
            sys.executable, "-m", "harness", "--dry_run", "--json", "--data", "sample",
            "--limit", "20", "--tasks", ",".join(sorted(tasks)), "--model", "baseline",
            "--judge", "openai:model=m,base_url=http://127.0.0.1:9/v1",
            *(part for role in sorted(others) for part in ("--role", f"{role}=baseline")),
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "HARNESS_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    forecast = json.loads(result.stdout)["stages"]
    assert {stage["task"] for stage in forecast} == tasks
    for stage in forecast:
        for role in stage["roles"]:
            texts = [message["content"] for message in role["first_prompt"]]
            assert texts, f"{stage['task']}/{stage['stage']}: {role['role']} was asked nothing"
            assert all(text.strip() for text in texts)
    assert list(tmp_path.iterdir()) == [], "a rehearsal leaves nothing behind"
