"""`--set`: paths, values, and whom they are meant for."""

import pytest

from harness.base.errors import UsageError
from harness.contracts.task import HubSpec, SourceSpec
from harness.tasks.changes import apply_changes, format_changes, parse_change


@pytest.fixture
def tasks(catalogue):
    one = """
        task: one
        extends: base
        options: {window: 20, weights: {near: 1}, only_one: 1}
        roles: {judge: {sampling: {temperature: 0}}}
        stages: {check: {judge: {max_tokens: 5}}}
    """
    two = "task: two\nextends: base\nbenchmark: books\noptions: {window: 5}"
    return catalogue(one=one, two=two).select(["one", "two"]).tasks


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("window=3", ("window", 3)),
        ("rate=1e-5", ("rate", 1e-5)),
        ("a.b = x=y", ("a.b", "x=y")),
        ("names=[a, b]", ("names", ["a", "b"])),
        ("weights={near: 2}", ("weights", {"near": 2})),
        ("note=one: two", ("note", "one: two")),
        ("none=", ("none", None)),
    ],
)
def test_a_change_is_a_path_and_a_value(text, change):
    assert parse_change(text) == change


@pytest.mark.parametrize("text", ["window", "=3", "a..b=3", ".a=3", "a.=3", ""])
def test_what_is_no_change_is_refused(text):
    with pytest.raises(UsageError, match="not of the form PATH=VALUE"):
        parse_change(text)


def options(tasks, changes):
    return [task.options for task in apply_changes(tasks, changes)]


def test_a_change_is_made_in_every_task_that_has_its_path_and_later_ones_win(tasks):
    one, two = options(tasks, {"window": 1, "only_one": 2})
    assert (one["window"], one["only_one"]) == (1, 2)
    assert two == {"window": 1}
    assert tasks[0].options["window"] == 20
    one, two = options(tasks, {"window": 1, "one.window": 2})
    assert (one["window"], two["window"]) == (2, 1)


@pytest.mark.parametrize("path", ["two.window", "books.window", "two.options.window"])
def test_a_path_may_begin_with_a_task_or_a_benchmark(tasks, path):
    one, two = options(tasks, {path: 1})
    assert (one["window"], two["window"]) == (20, 1)


def test_a_path_reaches_into_every_part(tasks):
    one, two = apply_changes(
        tasks,
        {
            "data.size": 7,
            "data.sources": [{"hub": {"repo": "o/n"}}],
            "data.tables.seen.files": ["a.csv"],
            "data.tables.seen.required": False,
            "data.tables.seen.entries": ["user", "seen"],
            "one.roles.judge.default": "strict",
            "roles.judge.sampling.temperature": 1e-5,
            "stages.check.judge.max_tokens": 9,
            "interval.draws": 10,
            "two.metrics": ["misses"],
        },
    )
    assert (one.data.size, two.data.size) == (7, 7)
    assert one.data.sources == (SourceSpec(hub=HubSpec(repo="o/n")),)
    assert one.data.tables["seen"].files == ("a.csv",)
    assert one.data.tables["seen"].required is False
    assert one.data.tables["seen"].entries == ("user", "seen")
    assert one.roles["judge"].default == "strict"
    assert one.roles["judge"].sampling == {"temperature": 1e-5}
    assert one.stages == {"check": {"judge": {"max_tokens": 9}}}
    assert (one.interval.draws, one.interval.confidence) == (10, 0.95)
    assert (one.metrics, two.metrics) == (("hits",), ("misses",))
    assert two.roles == {}


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("two.only_one", None),
        ("data.sise", "data.size"),
        ("roles.juge.default", "roles.judge.default"),
        ("window.deeper", "window"),
        ("interval.draw", "interval.draws"),
    ],
)
def test_what_is_near_depends_on_whom_the_path_means(tasks, path, nearest):
    with pytest.raises(UsageError) as caught:
        apply_changes(tasks, {path: 3})
    hint = nearest and f"did you mean '{nearest}'?"
    assert (caught.value.where, caught.value.hint) == (f"--set {path}", hint)


def test_the_benchmark_knows_what_the_yaml_is_silent_about(catalogue, site):
    tasks = catalogue().select(["base"]).tasks
    benchmark = site.plugins().benchmark
    changes = {
        "threshold": 0.1,
        "weights.near": 2,
        "extra.any": 1,
        "names": ["a"],
        "roles.judge.default": "strict",
        "stages.guess.candidate.temperature": 1,
    }
    (task,) = apply_changes(tasks, changes, benchmark=benchmark)
    assert task.options == {
        "threshold": 0.1, "weights": {"near": 2}, "extra": {"any": 1}, "names": ["a"],
    }  # fmt: skip
    assert task.roles["judge"].default == "strict"
    assert task.stages == {"guess": {"candidate": {"temperature": 1}}}
    for path in ("weights.far", "window.deeper", "names.a", "stages.guess.judge.temperature"):
        with pytest.raises(UsageError, match="no chosen task has"):
            apply_changes(tasks, {path: 1}, benchmark=benchmark)
    with pytest.raises(UsageError, match="no chosen task has"):
        apply_changes(tasks, {"threshold": 1})


def test_a_part_goes_before_a_task_of_its_name(catalogue):
    tasks = catalogue(data="task: data\nextends: base").select(["base", "data"]).tasks
    assert [task.data.size for task in apply_changes(tasks, {"data.size": 3})] == [3, 3]


def test_changes_are_told_as_they_were_given_without_what_is_named_like_a_key():
    changes = {"ask": "listwise", "a.window": 5, "on": True, "t.api_key": "hunter2",
               "deep": {"password": "hunter3", "n": 1}, "long": "x" * 99}  # fmt: skip
    assert format_changes(changes) == (
        "ask=listwise, a.window=5, on=true, t.api_key=[redacted], "
        'deep={"password": "[redacted]", "n": 1}, long=' + "x" * 59 + "…"
    )
