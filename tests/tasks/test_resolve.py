"""Tasks over their bases."""

import pytest

from harness.base.errors import TaskError
from harness.tasks.resolve import merge


def resolved(catalogue, name):
    (document,) = catalogue.find(name)
    return catalogue.resolved(document)


def test_mappings_merge_deep_and_everything_else_is_replaced():
    base = {"a": {"x": 1, "y": [1, 2]}, "b": [1], "c": {"z": 1}, "d": 1}
    over = {"a": {"y": [3]}, "b": [2], "c": None, "d": {"w": 1}}
    assert merge(base, over) == {"a": {"x": 1, "y": [3]}, "b": [2], "c": None, "d": {"w": 1}}
    assert base["a"] == {"x": 1, "y": [1, 2]}


def test_later_bases_win_over_earlier_ones_and_what_is_a_files_own_is_not_inherited(catalogue):
    found = catalogue(
        one="task: one\nabstract: true\nextends: base\noptions: {window: 1, names: [a, b]}",
        two="task: two\nextends: base\noptions: {window: 2}\ntags: [t]",
        both="task: both\nextends: [one, two]\ndescription: mine",
    )
    values = resolved(found, "both").values
    assert values["options"] == {"window": 2, "names": ["a", "b"]}
    assert (values["task"], values["extends"], values["tags"]) == ("both", ["one", "two"], ["t"])
    assert values["description"] == "mine"
    assert "abstract" not in values


def test_the_base_of_a_diamond_is_merged_once_and_first_however_it_is_listed(catalogue):
    found = catalogue(
        base="task: base\noptions: {window: 0, threshold: 0}",
        left="task: left\nextends: base\noptions: {window: 1}",
        right="task: right\nextends: base\noptions: {threshold: 1}",
        tip="task: tip\nextends: [left, right]",
        late="task: late\nextends: [left, base]",
    )
    tip = resolved(found, "tip")
    assert [document.name for document in tip.documents] == ["base", "left", "right", "tip"]
    assert tip.values["options"] == {"window": 1, "threshold": 1}
    assert [one.name for one in resolved(found, "late").documents] == ["base", "left", "late"]


def test_a_circle_is_named_with_the_place_that_closes_it(catalogue):
    found = catalogue(
        a="task: a\nextends: b", b="task: b\nextends: [base, c]", c="task: c\nextends: b.yaml"
    )
    with pytest.raises(TaskError, match="tasks extend each other in a circle") as caught:
        resolved(found, "a")
    assert (caught.value.found, caught.value.where) == ("b -> c -> b", "c.yaml:2:10")


def test_a_file_may_extend_a_task_of_its_own_name(catalogue, tmp_path):
    found = catalogue()
    mine = tmp_path / "mine.yaml"
    mine.write_text("task: base\nextends: base\noptions: {window: 3}")
    (task,) = found.select([str(mine)]).tasks
    assert (task.name, task.options, task.version) == ("base", {"window": 3}, 1)


@pytest.mark.parametrize(
    ("extends", "problem", "hint"),
    [
        ("bose", "no task, group or tag is called 'bose'", "did you mean 'base'?"),
        ("gone.yaml", "no such file", None),
        ("all", "`extends` names the group 'all'", None),
        ("{a: b}", "`extends` is invalid", None),
    ],
)
def test_a_base_that_is_none_is_an_error_with_its_place(catalogue, extends, problem, hint):
    found = catalogue(all="group: all\ntasks: [base]", heir=f"task: heir\nextends: {extends}")
    with pytest.raises(TaskError) as caught:
        resolved(found, "heir")
    error = caught.value
    assert (error.problem, error.where, error.hint) == (problem, "heir.yaml:2:10", hint)


def test_a_place_is_that_of_the_file_that_spoke_last(catalogue):
    found = catalogue(
        base="task: base\noptions:\n  window: 1\n  threshold: 1",
        heir="task: heir\nextends: base\noptions:\n  window: 2",
    )
    heir = resolved(found, "heir")
    assert heir.where(["options", "window"]) == "heir.yaml:4:11"
    assert heir.where(["options", "threshold"]) == "base.yaml:4:14"
    assert heir.where(["options", "absent"]) == "heir.yaml:4:3"
    assert heir.where(["metrics"]) == "heir.yaml:1:7"
