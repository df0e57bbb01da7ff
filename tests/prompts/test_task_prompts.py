"""Prompts of a task's own and of `--prompts DIR`: what they replace, and that it can be told."""

import json

import pytest

from harness.base.errors import PromptError
from harness.pipeline.preparation import prepare
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins
from harness.runs.manifest import task_definition

OWN = """
task: mine
extends: interests
prompts: {name.candidate: words/mine.j2}
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "mine.j2").write_text("My words. {% include '_rest.j2' %}")
    (tmp_path / "words" / "_rest.j2").write_text("And the rest.")
    (tmp_path / "mine.yaml").write_text(OWN.lstrip())
    return tmp_path / "mine.yaml"


def prepared(*tasks, judge="lexical", prompts=None):
    given = {
        "tasks": [str(task) for task in tasks], "model": "baseline", "data": "sample",
        "prompts": prompts, "roles": {"judge": judge} if judge else {},
    }  # fmt: skip
    return list(prepare(make_settings(given), load_plugins()).tasks)


def test_the_stages_ask_with_the_tasks_own_prompt_and_all_that_is_told_of_it_is_of_its_own(mine):
    own, theirs = prepared(mine, "interests")
    name, support = own.contexts("run")
    their_name, their_support = theirs.contexts("run")
    (message,) = name.template("name", "candidate").render({})
    assert message.content == "My words. And the rest."
    assert name.key != their_name.key
    assert name.components["prompts"] != their_name.components["prompts"]
    assert support.components["prompts"] == their_support.components["prompts"]
    digests, theirs_digests = (one.templates.digests("interests") for one in (own, theirs))
    assert {name for name in digests if digests[name] != theirs_digests[name]} == {"name.candidate"}
    assert own.content != theirs.content
    assert own.not_comparable_because == (
        "bundled sample data", "own prompts: name.candidate", "judged by rule: lexical",
    )  # fmt: skip
    assert task_definition(own.task)["prompts"] == {"name.candidate": "mine.j2"}


def test_a_part_that_changed_is_another_prompt_wherever_it_lies(mine, tmp_path):
    (before,) = prepared(mine)
    (tmp_path / "words" / "_rest.j2").write_text("And another rest.")
    (after,) = prepared(mine)
    assert before.content != after.content
    assert before.contexts("run")[0].key != after.contexts("run")[0].key


def test_an_heir_finds_the_prompts_of_its_base_beside_the_base(mine, tmp_path):
    (tmp_path / "heirs").mkdir()
    heir = tmp_path / "heirs" / "heir.yaml"
    heir.write_text("task: heir\nextends: ../mine.yaml\nprompts: {support.judge: judge.j2}\n")
    (tmp_path / "heirs" / "judge.j2").write_text("Judge. {{ choices }}")
    (task,) = prepared(heir)
    (message,) = task.contexts("run")[0].template("name", "candidate").render({})
    assert message.content == "My words. And the rest."
    assert "own prompts: name.candidate, support.judge" in task.not_comparable_because


@pytest.mark.parametrize(
    ("said", "file", "where", "problem"),
    [
        ("nam.candidate: words/mine.j2", "x", "3:11", "'nam.candidate' to replace"),
        ("name.candidate: words/gone.j2", "x", "3:27: {words}/gone.j2", "file does not exist"),
        ("name.candidate: words/mine.j2", "{% if", "3:27: {words}/mine.j2:1", "syntax error"),
    ],
)
def test_a_prompt_that_cannot_be_asked_is_named_before_anything_is_asked(
    mine, said, file, where, problem
):
    mine.write_text(OWN.lstrip().replace("name.candidate: words/mine.j2", said))
    (mine.parent / "words" / "mine.j2").write_text(file)
    with pytest.raises(PromptError, match=problem) as caught:
        prepared(mine)
    assert caught.value.where == f"{mine}:{where.format(words=mine.parent / 'words')}"


UNASKED = """
task: mine
extends: {base}
prompts:
  {prompt}: words/mine.j2
"""


@pytest.mark.parametrize(
    ("base", "prompt", "asked"),
    [
        # The stage that would ask it is not one of the task's.
        ("perrec_easy_pairwise", "rate.candidate", "compare.candidate"),
        # The stage asks another one with the task's options.
        ("perrec_easy_pointwise", "rate_b.candidate", "rate.candidate"),
    ],
)
def test_a_prompt_that_the_task_does_not_ask_is_refused(mine, base, prompt, asked):
    mine.write_text(UNASKED.format(base=base, prompt=prompt).lstrip())
    with pytest.raises(PromptError, match=f"replaces the prompt '{prompt}' but does not") as caught:
        prepared(mine, judge=None)
    assert (caught.value.where, caught.value.expected) == (f"{mine}:4:3", f"one of {asked}")


def test_a_prompt_that_the_task_asks_by_its_options_is_taken(mine):
    text = UNASKED.format(base="perrec_easy_pointwise", prompt="rate_b.candidate").lstrip()
    mine.write_text(f"{text}options: {{wording: b}}\n")
    (task,) = prepared(mine, judge=None)
    assert "own prompts: rate_b.candidate" in task.not_comparable_because


def test_a_rehearsal_shows_it_and_a_run_keeps_its_digest(mine, tmp_path, monkeypatch, printed):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    common = [
        "--tasks", str(mine), "--model", "baseline", "--judge", "lexical", "--data", "sample",
        "--limit", "2",
    ]  # fmt: skip
    forecast = json.loads(printed(*common, "--dry_run", "--json").out)
    (role,) = forecast["stages"][0]["roles"]
    assert [one["content"] for one in role["first_prompt"]] == ["My words. And the rest."]
    said = printed(*common, "--verbose", "--output_path", str(tmp_path / "runs")).out
    assert "own prompts: name.candidate" in said
    (manifest,) = (tmp_path / "runs").glob("*/manifest.json")
    entry = json.loads(manifest.read_text())["tasks"]["mine"]
    (task,) = prepared(mine)
    template = task.templates.need("interests", "name", "candidate")
    assert entry["templates"]["name.candidate"] == template.digest
    assert entry["stages"][0]["components"]["prompts"] == {"name.candidate": template.digest}


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


def test_what_the_command_says_goes_before_what_the_task_says(own, tmp_path):
    (tmp_path / "theirs.j2").write_text("Theirs.")
    file = tmp_path / "mine.yaml"
    file.write_text("task: mine\nextends: interests\nprompts: {name.candidate: theirs.j2}\n")
    (task,) = prepared(file, prompts=own)
    (message,) = task.contexts("run")[0].template("name", "candidate").render({})
    assert message.content == "Mine. And the rest."


def test_only_the_tasks_that_ask_a_prompt_are_changed_by_it(own):
    (own / "perrecbench").mkdir()
    (own / "perrecbench" / "rate_b.candidate.j2").write_text("{{ member }}")
    (own / "perrecbench" / "rate.candidate.j2").write_text("{{ member }}")
    pointwise, pairwise, interests = prepared(
        "perrec_easy_pointwise", "perrec_easy_pairwise", "interests", prompts=own
    )
    assert set(pointwise.task.prompts) == {"rate.candidate"}
    assert pairwise.task.prompts == {}
    assert set(interests.task.prompts) == {"name.candidate"}


def test_a_folder_of_which_no_task_asks_anything_is_refused(own):
    with pytest.raises(PromptError, match="no chosen task asks any of these prompts") as caught:
        prepared("perrec_easy_pairwise", judge=None, prompts=own)
    assert caught.value.found == "interests/name.candidate"
    assert caught.value.expected == "one of perrecbench/compare.candidate"


@pytest.mark.parametrize(
    ("file", "near"),
    [
        ("interests/nam.candidate.j2", "did you mean 'interests/name.candidate.j2'?"),
        ("interests/name.candidate.txt", "did you mean 'interests/name.candidate.j2'?"),
        ("zzz", "`harness list prompts` lists the prompts"),
    ],
)
def test_a_file_that_replaces_nothing_is_refused(own, file, near):
    (own / file).parent.mkdir(exist_ok=True)
    (own / file).write_text("x")
    with pytest.raises(PromptError, match="replaces no prompt") as caught:
        prepared("interests", prompts=own)
    assert (caught.value.where, caught.value.hint) == (str(own / file), near)
