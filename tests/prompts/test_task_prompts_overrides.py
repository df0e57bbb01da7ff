"""`--prompts DIR`: prompts replaced one by one, and that it can be told."""

import json

import pytest

from harness.base.errors import PromptError
from harness.cli.main import main
from harness.pipeline.preparation import prepare
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins


@pytest.fixture
def own(tmp_path):
    folder = tmp_path / "own"
    (folder / "interests").mkdir(parents=True)
    (folder / "interests" / "name.candidate.j2").write_text(
        "Mine. {% include 'interests/_rest.j2' %}"
    )
    (folder / "interests" / "_rest.j2").write_text("And the rest.")
    (folder / "README.md").write_text("Why these words.")
    return folder


def prepared(tasks, prompts, judge="lexical"):
    given = {
        "tasks": tasks, "model": "baseline", "data": "sample", "prompts": prompts,
        "roles": {"judge": judge} if judge else {},
    }  # fmt: skip
    return list(prepare(make_settings(given), load_plugins()).tasks)


def test_the_stages_ask_with_the_prompts_of_the_folder(own):
    (changed,) = prepared("interests", own)
    (plain,) = prepared("interests", None)
    name, support = changed.contexts("run")
    (message,) = name.template("name", "candidate").render({})
    assert message.content == "Mine. And the rest."
    plain_name, plain_support = plain.contexts("run")
    assert name.key != plain_name.key
    assert support.components["prompts"] == plain_support.components["prompts"]
    assert changed.content != plain.content
    assert changed.not_comparable_because == (
        "bundled sample data", "own prompts: name.candidate", "judged by rule: lexical",
    )  # fmt: skip


def test_what_the_command_says_goes_before_what_the_task_says(own, tmp_path):
    (tmp_path / "theirs.j2").write_text("Theirs.")
    file = tmp_path / "mine.yaml"
    file.write_text("task: mine\nextends: interests\nprompts: {name.candidate: theirs.j2}\n")
    (task,) = prepared(str(file), own)
    (message,) = task.contexts("run")[0].template("name", "candidate").render({})
    assert message.content == "Mine. And the rest."


def test_only_the_tasks_that_ask_a_prompt_are_changed_by_it(own):
    (own / "perrecbench").mkdir()
    (own / "perrecbench" / "rate_b.candidate.j2").write_text("{{ member }}")
    (own / "perrecbench" / "rate.candidate.j2").write_text("{{ member }}")
    pointwise, pairwise, interests = prepared(
        "perrec_easy_pointwise,perrec_easy_pairwise,interests", own
    )
    assert set(pointwise.task.prompts) == {"rate.candidate"}
    assert pairwise.task.prompts == {}
    assert set(interests.task.prompts) == {"name.candidate"}


def test_a_folder_of_which_no_task_asks_anything_is_refused(own):
    with pytest.raises(PromptError, match="no chosen task asks any of these prompts") as caught:
        prepared("perrec_easy_pairwise", own, judge=None)
    assert caught.value.found == "interests/name.candidate"
    assert caught.value.expected == "one of perrecbench/compare.candidate"


@pytest.mark.parametrize(
    ("file", "near"),
    [
        ("interests/nam.candidate.j2", "did you mean 'interests/name.candidate.j2'?"),
        ("interest/name.candidate.j2", "did you mean 'interests/name.candidate.j2'?"),
        ("interests/name.candidate.txt", "did you mean 'interests/name.candidate.j2'?"),
        ("zzz", "`harness prompts` lists the prompts"),
    ],
)
def test_a_file_that_replaces_nothing_is_refused(own, file, near):
    (own / file).parent.mkdir(exist_ok=True)
    (own / file).write_text("x")
    with pytest.raises(PromptError, match="replaces no prompt") as caught:
        prepared("interests", own)
    assert (caught.value.where, caught.value.hint) == (str(own / file), near)


def test_runs_with_and_without_them_are_distinguished_and_say_so(
    own, tmp_path, monkeypatch, printed
):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    common = [
        "--tasks", "interests", "--model", "baseline", "--judge", "lexical", "--data", "sample",
        "--limit", "2", "--quiet", "--output_path", str(tmp_path / "runs"),
    ]  # fmt: skip
    assert main([*common, "--max_calls", "1"]) == 1
    assert main([*common, "--prompts", str(own), "--max_calls", "1"]) == 1
    assert "own prompts: name.candidate" in printed(*common, "--prompts", str(own), "--verbose").out
    runs = [json.loads(one.read_text()) for one in (tmp_path / "runs").glob("*/manifest.json")]
    asked = {one["asked"].get("prompts"): one for one in runs}
    assert set(asked) == {None, str(own)}
    assert [asked[one]["status"] for one in (None, str(own))] == ["failed", "done"]
    assert asked[str(own)]["tasks"]["interests"]["definition"]["prompts"] == {
        "name.candidate": "name.candidate.j2"
    }
    assert asked[None]["tasks"]["interests"]["comparable"] is False
