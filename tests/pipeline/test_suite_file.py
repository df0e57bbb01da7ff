"""The models that a suite file names, and the lines of those that cannot be used."""

from pathlib import Path

import pytest

from harness.base.errors import TaskError
from harness.pipeline.suite_file import read_suite

TWO = "models: [{name: base, spec: baseline}, {name: new, spec: 'openai:model=m'}]\n"
GLOB = "models: [{name: night, glob: 'night-*', kind: vllm, args: {tp: 2}}]\ntasks: [t]\n"


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text):
        (tmp_path / "nightly.yaml").write_text(text)
        return read_suite(Path("nightly.yaml"))

    return read


def test_a_suite_holds_its_models_in_their_order_with_what_is_usual(suite):
    found = suite(TWO + "tasks: [interests]\n")
    assert [(each.name, each.entry, each.spec) for each in found.candidates] == [
        ("base", "base", "baseline"), ("new", "new", "openai:model=m"),
    ]  # fmt: skip
    assert (found.name, found.file.seeds, found.file.gates, found.file.limit) == (
        "nightly", (0,), (), None,
    )  # fmt: skip


def test_a_glob_is_a_model_for_each_match_in_the_order_of_their_names(suite, tmp_path):
    for folder in ("night-b", "night-a", "day"):
        (tmp_path / folder).mkdir()
    found = suite(GLOB).candidates
    assert [(each.name, each.entry, each.kind, each.args) for each in found] == [
        ("night-a", "night", "vllm", {"tp": 2, "pretrained": "night-a"}),
        ("night-b", "night", "vllm", {"tp": 2, "pretrained": "night-b"}),
    ]


def test_the_label_of_a_match_has_only_what_a_label_may_have(suite, tmp_path):
    (tmp_path / ("night-" + "x" * 50 + " 1")).mkdir()
    (found,) = suite(GLOB).candidates
    assert found.name == "x" * 38 + "_1"


def test_models_are_chosen_by_their_entry_or_their_name(suite, tmp_path):
    for folder in ("night-a", "night-b"):
        (tmp_path / folder).mkdir()
    found = suite(GLOB)
    assert [each.name for each in found.chosen(None)] == ["night-a", "night-b"]
    assert [each.name for each in found.chosen("night")] == ["night-a", "night-b"]
    assert [each.name for each in found.chosen("night-b")] == ["night-b"]
    with pytest.raises(TaskError, match="no such model") as caught:
        found.chosen("night-c")
    assert (caught.value.found, caught.value.expected) == ("night-c", "night, night-a, night-b")


@pytest.mark.parametrize(
    ("text", "says", "place"),
    [
        (TWO + "tasks: [t]\nagainst: bse\n", "`against` names no model", "nightly.yaml:3:10"),
        (TWO + "tasks: [t]\ngates: ['ptc > -0.1']\n", "gates need `against`", "nightly.yaml:3:1"),
        (TWO.replace("new", "base") + "tasks: [t]\n", "two models .* 'base'", "nightly.yaml:1:59"),
        ("models: [{name: a}]\ntasks: [t]\n", "either `spec` or `glob`", "nightly.yaml:1:10"),
        (GLOB.replace("kind: vllm, ", ""), "`kind` is missing", "nightly.yaml:1:24"),
        (GLOB, "nothing matches the glob", "nightly.yaml:1:30"),
        (
            "models: [{name: a, spec: b, kind: c}]\ntasks: [t]\n",
            "`kind` belongs",
            "nightly.yaml:1:29",
        ),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line_and_column(suite, text, says, place):
    with pytest.raises(TaskError, match=says) as caught:
        suite(text)
    assert caught.value.where == place
