import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

DEMO = ("--model", "baseline", "--judge", "lexical", "--tasks", "interests_all", "--data", "sample")


def files_under(folder, suffixes):
    """The files of a folder of the checkout, relative to it."""
    base = ROOT / folder
    return {str(p.relative_to(base)) for p in base.rglob("*") if p.suffix in suffixes}


def test_the_code_comes_from_the_wheel(environment):
    code = "import harness, harness_interests; print(harness.__file__, harness_interests.__file__)"
    for place in environment.said("python", "-c", code).split():
        assert Path(place).is_relative_to(environment.folder)


def test_the_wheel_holds_every_module_task_file_prompt_and_sample(built):
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    modules = files_under("harness", {".py", ".json", ".typed", ".tmpl"})
    expected = {
        *(f"harness/{name}" for name in modules),
        *files_under("plugins", {".py", ".typed", ".jsonl"}),
        *(f"harness/_bundled/task_configs/{n}" for n in files_under("task_configs", {".yaml"})),
        *(f"harness/_bundled/prompts/{n}" for n in files_under("prompts", {".j2"})),
    }
    assert expected - held == set()
    assert not [name for name in held if name.startswith(("tests/", "benchmarks/", "plugins/"))]


def test_the_sdist_holds_what_the_tests_need(built):
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "Makefile", "tests/contract/test_wheel.py"} <= held


def test_the_wheel_declares_every_entry_point(environment):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    code = (
        "import json\nfrom importlib.metadata import entry_points\n"
        "print(json.dumps({e.name: e.value for e in entry_points(group='harness.plugins')}))"
    )
    found = json.loads(environment.said("python", "-c", code))
    assert found == declared["entry-points"]["harness.plugins"]


def test_the_wheel_lists_what_the_checkout_lists(environment):
    here = subprocess.run(
        [sys.executable, "-m", "harness", "tasks", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    listed = without_files(json.loads(environment.said("harness", "tasks", "--json")))
    assert listed == without_files(json.loads(here))
    assert "interests" in json.dumps(listed)


def without_files(value):
    """The same without the places of files, which differ by where they are installed."""
    if isinstance(value, dict):
        return {name: without_files(held) for name, held in value.items() if name != "file"}
    if isinstance(value, list):
        return [without_files(held) for held in value]
    return value


def test_the_demo_runs_from_the_wheel(environment):
    said = environment.said("harness", *DEMO)
    for task in ("interests", "interests_short", "interests_strict"):
        assert task in said
    summaries = list((environment.elsewhere / "runs").glob("*/*/summary.json"))
    assert sorted(path.parent.name for path in summaries) == [
        "interests", "interests_short", "interests_strict",
    ]  # fmt: skip
