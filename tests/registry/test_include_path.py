"""`--include_path DIR`: tasks that no plugin brings, with data and prompts of their own."""

import json
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.pipeline.preparation import prepare
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue

TEA = """
task: tea
extends: interests
data: {folder: people}
options: {window: 3}
prompts: {name.candidate: words/tea.j2}
"""
PEOPLE = "".join(
    json.dumps({"user": user, "title": f"{thing} {number}", "action": "liked"}) + "\n"
    for user, thing in (("ann", "green tea"), ("bob", "black tea"))
    for number in range(4)
)


@pytest.fixture
def mine(tmp_path: Path, own_cache: Path) -> Path:
    deep = tmp_path / "mine" / "deep"
    (deep / "people").mkdir(parents=True)
    (deep / "words").mkdir()
    (deep / "tea.yaml").write_text(TEA.lstrip())
    (deep / "people" / "engagements.jsonl").write_text(PEOPLE)
    (deep / "words" / "tea.j2").write_text(
        "Fond of? {% for one in history %}{{ one.title }} {% endfor %}"
    )
    return tmp_path / "mine"


def command(mine: Path, *more: str) -> list[str]:
    return [
        "--model", "baseline", "--judge", "lexical", "--tasks", "tea", "--quiet", "--include_path",
        str(mine), "--output_path", str(mine.parent / "runs"), *more,
    ]  # fmt: skip


def content(mine: Path) -> str:
    settings = make_settings(
        {"tasks": "tea", "model": "baseline", "roles": {"judge": "lexical"}, "include_path": mine}
    )
    (task,) = prepare(settings, load_plugins()).tasks
    return task.content


def test_a_task_of_a_folder_runs_on_its_own_data_with_its_own_prompt(mine, printed):
    said = printed(*command(mine)).out
    assert "own prompts: name.candidate" in said
    (manifest,) = (mine.parent / "runs").glob("*/manifest.json")
    entry = json.loads(manifest.read_text())["tasks"]["tea"]
    assert entry["definition"]["data"]["folder"] == "people", "the folder is one machine's"
    assert entry["data"]["path"] == str(mine / "deep" / "people")
    (journal,) = manifest.parent.glob("tea/1-name.jsonl")
    asked = [json.loads(line)["calls"][0]["messages"] for line in journal.read_text().splitlines()]
    assert sorted(messages[0]["content"] for messages in asked) == [
        "Fond of? black tea 1 black tea 2 black tea 3 ",
        "Fond of? green tea 1 green tea 2 green tea 3 ",
    ]


def test_the_data_that_the_command_names_goes_before_the_tasks(mine, tmp_path, printed):
    other = tmp_path / "other.jsonl"
    other.write_text(PEOPLE.replace("ann", "zoe"))
    assert f"data: {other}" in printed(*command(mine, "--data", str(other), "--verbose")).out


def test_what_a_task_is_does_not_depend_on_where_its_folder_lies(mine, tmp_path):
    before = content(mine)
    assert content(mine.rename(tmp_path / "elsewhere")) == before
    file = tmp_path / "elsewhere" / "deep" / "tea.yaml"
    file.write_text(file.read_text().replace("window: 3", "window: 4"))
    assert content(tmp_path / "elsewhere") != before


def test_its_tasks_are_listed_and_validated_beside_the_installed(mine, printed):
    listed = json.loads(printed("tasks", "--include_path", str(mine), "--json").out)["tasks"]
    tasks = {one["name"]: one for one in listed}
    assert tasks["tea"]["source"] == str(mine)
    assert "interests" in tasks
    assert main(["validate", "tea", "--include_path", str(mine)]) == 0
    (mine / "deep" / "people" / "engagements.jsonl").write_text('{"user": "ann"}\n')
    assert "tea.yaml:3:16: " in printed("validate", "tea", "--include_path", str(mine), code=2).err


def test_what_is_listed_is_what_a_run_with_the_same_settings_knows(mine, monkeypatch, printed):
    monkeypatch.chdir(mine.parent)
    Path("harness.toml").write_text(f"include_path = ['{mine.name}']\n")
    assert "mine/deep/people" in printed("tasks", "tea").out
    assert main(["validate", "tea"]) == 0
    Path("harness.toml").unlink()
    assert main(["tasks", "tea"]) == 2
    monkeypatch.setenv("HARNESS_INCLUDE_PATH", str(mine))
    assert main(["tasks", "tea"]) == 0


def test_a_folder_that_is_named_twice_gives_its_files_once(mine):
    catalogue = Catalogue(load_plugins(), include_path=[mine, mine / "deep"])
    assert catalogue.select(["tea"]).tasks[0].name == "tea"
