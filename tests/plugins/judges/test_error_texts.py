"""What is said of judges that cannot be made, word for word."""

import pytest
from inline_snapshot import snapshot

from harness import registry as plugin_manager
from harness.base.errors import UsageError
from harness.contracts.judge import JudgeParts
from harness.testing import ScriptedModel

CASES = {
    ("lexical", "shares", "1"): (None, "shares", snapshot("""\
the judge 'lexical' has no argument 'shares'
expected: share=NUMBER\
""")),
    ("lexical", "share", "most"): ("the judge 'lexical'", "share=most", snapshot("""\
the share of words that an option must hold cannot be used
expected: a number above 0, at most 1\
""")),
    ("llm", "", ""): (None, None, snapshot("""\
the judge 'llm' needs a model
expected: the SPEC of a model
to do: give one, as in --judge openai:model=NAME\
""")),
    ("panel", "", ""): (None, "none", snapshot("""\
a panel needs two judges or more
expected: panel:SPEC+SPEC+…, as in panel:openai:model=a+openai:model=b+openai:model=c\
""")),
}  # fmt: skip


@pytest.mark.parametrize(("judge", "name", "value"), CASES)
def test_arguments(judge, name, value, raised):
    factory = plugin_manager.load_plugins().judge(judge).factory
    parts = JudgeParts(args={name: value} if name else {})
    where, found, wording = CASES[judge, name, value]
    assert raised(UsageError, factory, parts, where=where, found=found) == wording


def test_arguments_of_a_judge_that_is_its_model(raised):
    factory = plugin_manager.load_plugins().judge("llm").factory
    parts = JudgeParts(model=ScriptedModel("yes"), args={"tries": "2"})
    assert raised(UsageError, factory, parts, found="tries") == snapshot("""\
the judge 'llm' has no arguments of its own
expected: arguments after its model, as in llm:openai:model=NAME\
""")


LABELS = {
    "item,label\nann/1,\n": ("labels.csv", None, snapshot("""\
the files contain no labels
expected: rows with an item and a label\
""")),
    "item,label\nann/9,yes\nann/9,yes\nann/8,no\nann/7,no\nann/6,no\n": (
        "labels.csv", "items ann/9, ann/8, ann/7, …",
        snapshot("""\
no label fits a decision of these runs
expected: the ids of items, as in `harness show RUN --sample ITEM`\
""")),
}  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
def test_labels_that_say_nothing_of_a_run(labels, small_run, tmp_path, monkeypatch, exits):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(labels)
    command = f"analyse judge-agreement {small_run} --labels labels.csv"
    where, found, wording = LABELS[labels]
    assert exits(2, UsageError, command, where=where, found=found) == wording


def test_a_run_without_a_panel(small_run, exits):
    command = f"analyse judge-panel {small_run}"
    assert exits(2, UsageError, command, found="interests") == snapshot("""\
no task of these runs has a panel as judge
expected: a run with --judge panel:SPEC+SPEC+…\
""")
