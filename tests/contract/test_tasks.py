from pathlib import Path

import pytest
import yaml
from builders.conformance import OF_TEXTS, PLUGINS

from harness.prompts import Templates
from harness.prompts.templates import VARIABLES, meanings
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue

ROOT = Path(__file__).resolve().parents[2]
TASK_FILES = sorted((ROOT / "task_configs").rglob("*.y*ml"))


@pytest.fixture(scope="module")
def plugins():
    found = load_plugins()
    assert [str(one) for one in found.broken] == []
    assert list(found.problems) == []
    return found


@pytest.fixture(scope="module")
def catalogue(plugins):
    return Catalogue(plugins)


@pytest.mark.parametrize("check", OF_TEXTS)
@pytest.mark.parametrize("plugin", PLUGINS)
def test_what_a_plugin_registers(plugin, check, harness_checks):
    harness_checks(plugin, checks=[check])


def test_a_task_file_is_listed_named_after_its_task_and_lies_with_its_benchmark(catalogue, plugins):
    for file in TASK_FILES:
        document = catalogue.find(str(file))[0]
        before = (document.pattern or document.name).partition("{")[0].rstrip("_")
        assert file.stem == before if document.pattern is None else file.stem.startswith(before)
        assert file.parent.name in plugins.benchmarks, file
    assert list(catalogue.problems) == []
    assert {entry.file for entry in catalogue.entries} >= set(TASK_FILES)


def test_a_task_has_the_version_of_its_benchmark(catalogue, plugins):
    runnable = [one for one in catalogue.entries if one.members is None and not one.abstract]
    tasks = [
        catalogue.task(catalogue.find(one.name)[0]) for one in runnable if one.file in TASK_FILES
    ]
    assert {task.benchmark for task in tasks} == {file.parent.name for file in TASK_FILES}
    for task in tasks:
        assert task.version == plugins.benchmark(task.benchmark).version, task.name


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
