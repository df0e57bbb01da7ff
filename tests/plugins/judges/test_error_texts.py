"""What is said of judges that cannot be made, word for word."""

import pytest

import harness
from harness import plugin_manager
from harness.cli.main import main
from harness.errors import HarnessError
from harness.judging import JudgeParts

CASES = {
    ("lexical", "shares", "1"): """\
the judge 'lexical' has no such argument
  found:    shares
  expected: share""",
    ("lexical", "share", "most"): """\
the judge 'lexical': the share of words that an option must hold makes no sense
  found:    share=most
  expected: a number above 0, at most 1""",
    ("llm", "", ""): """\
the judge 'llm' needs a model
  to do:    name it as `--judge openai:…` or the like""",
    ("panel", "", ""): """\
a panel is of two judges or more
  found:    none
  expected: panel:SPEC+SPEC+…, as in panel:openai:a+openai:b+openai:c""",
}


@pytest.mark.parametrize(("judge", "name", "value"), CASES)
def test_arguments(judge, name, value):
    factory = plugin_manager.load_plugins().judge(judge).factory
    with pytest.raises(HarnessError) as caught:
        factory(JudgeParts(args={name: value} if name else {}))
    assert str(caught.value) == CASES[judge, name, value]


def test_arguments_of_a_judge_that_is_its_model():
    from harness.testing import ScriptedModel

    factory = plugin_manager.load_plugins().judge("llm").factory
    with pytest.raises(HarnessError) as caught:
        factory(JudgeParts(model=ScriptedModel("yes"), args={"tries": "2"}))
    assert str(caught.value) == (
        "the judge 'llm' has no arguments of its own\n"
        "  found:    tries\n"
        "  expected: those of its model: llm:openai:model=NAME"
    )


LABELS = {
    "item,label\nann/1,\n": """\
labels.csv: nobody has labelled anything
  expected: rows with an item and a label
""",
    "item,label\nann/9,yes\nbob/9,no\n": """\
labels.csv: no label is of anything that these runs judged
  found:    items ann/9, bob/9
  expected: items as `harness show RUN --sample ITEM` knows them
""",
    "item,label\nann/9,yes\nann/9,yes\nann/8,no\nann/7,no\nann/6,no\n": """\
labels.csv: no label is of anything that these runs judged
  found:    items ann/9, ann/8, ann/7, …
  expected: items as `harness show RUN --sample ITEM` knows them
""",
}


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """What `harness analyse` says of a run that one judge judged."""
    monkeypatch.chdir(tmp_path)
    result = harness.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=2,
        output_path=tmp_path, use_store=False,
    )  # fmt: skip

    def said(analysis, *more):
        capsys.readouterr()
        assert main(["analyse", analysis, str(result.folder), *more]) == 2
        return capsys.readouterr().err

    return said


@pytest.mark.parametrize("labels", LABELS)
def test_labels_that_say_nothing_of_a_run(labels, told, tmp_path):
    (tmp_path / "labels.csv").write_text(labels)
    assert told("judge-agreement", "--labels", "labels.csv") == f"harness: {LABELS[labels]}"


def test_a_run_without_a_panel(told):
    assert (
        told("judge-panel")
        == """\
harness: no task of these runs was judged by a panel
  found:    interests
  expected: a run with --judge panel:SPEC+SPEC+…
"""
    )
