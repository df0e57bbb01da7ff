"""The models that a suite file names."""

from pathlib import Path

import pytest

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


def test_a_glob_is_a_model_for_each_match_chosen_by_its_entry_or_its_name(suite, tmp_path):
    for folder in ("night-b", "night-a", "day"):
        (tmp_path / folder).mkdir()
    found = suite(GLOB)
    night_a, night_b = found.candidates
    assert (night_a.name, night_a.entry, night_a.kind) == ("night-a", "night", "vllm")
    assert night_a.args == {"tp": 2, "pretrained": "night-a"}
    assert found.chosen(None) == found.chosen("night") == (night_a, night_b)
    assert found.chosen("night-b") == (night_b,)


def test_the_label_of_a_match_has_only_what_a_label_may_have(suite, tmp_path):
    (tmp_path / ("night-" + "x" * 50 + " 1")).mkdir()
    (found,) = suite(GLOB).candidates
    assert found.name == "x" * 38 + "_1"
