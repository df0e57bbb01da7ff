from pathlib import Path

import msgspec
import pytest

from harness.calls.budget import Budget
from harness.calls.pricing import Price, PriceTable
from harness.calls.retry import Patience
from harness.cli.run import run
from harness.cli.run_options import settings_from
from harness.contracts.task import DataSpec, Task
from harness.pipeline.item_queue import limits_of
from harness.pipeline.settings import OF_EXECUTOR, FailureLimits, RunSettings

LEAST = ("--model", "baseline", "--tasks", "interests")
SHOWN_ONLY = {"dry_run", "quiet", "verbose", "json", "write_requests", "answers"}
"""The options that change what is shown or done, and nothing that a run is asked."""

SOURCES = {"file_hosts", "named_in"}
"""What no option sets: where the options' values come from."""

PRICE_FILE = Path(__file__).with_name("prices.toml")
FIELDS = {
    "judge": "roles", "role": "roles", "set": "changes", "gen_kwargs": "sampling", "tag": "tags",
    "attempts": "patience", "timeout": "patience", "total_timeout": "patience",
    "start_timeout": "patience", "max_calls": "budget", "max_tokens": "budget",
    "max_cost": "budget", "reuse": "use_store",
}  # fmt: skip
"""The settings that have another name than the option that reaches them."""

OPTIONS = {
    "model": (("openai",), "openai"),
    "model_args": (
        ("base_url=http://h/v1,model=m",), {"base_url": "http://h/v1", "model": "m"},
    ),
    "tasks": (("a,b", "--tasks", "c"), ("interests", "a", "b", "c")),
    "judge": (("openai:model=j",), {"judge": "openai:model=j"}),
    "role": (
        ("asker=openai:x=1,y=2", "--role", "judge=lexical"),
        {"asker": "openai:x=1,y=2", "judge": "lexical"},
    ),
    "data": (("here/rows.csv",), "here/rows.csv"),
    "columns": (
        ("user=customer_id", "--columns", "t.c=a = b"), {"user": "customer_id", "t.c": "a = b"},
    ),
    "values": (
        ("t.c.a view=liked", "--values", "t.c.a=b =liked"),
        {"t.c.a view": "liked", "t.c.a=b ": "liked"},
    ),
    "limit": (("20",), 20),
    "set": (
        ("window=8", "--set", "a.options.names=[x, y]"),
        {"window": 8, "a.options.names": ["x", "y"]},
    ),
    "gen_kwargs": (
        ("temperature=0.5,max_tokens=16,stop=[a]",),
        {"temperature": 0.5, "max_tokens": 16, "stop": ["a"]},
    ),
    "download": ((), True),
    "seed": (("-3",), -3),
    "structured": ((), True),
    "name": (("step-1000",), "step-1000"),
    "tag": (("week=47", "--tag", "who=ada b"), {"week": "47", "who": "ada b"}),
    "allow_self_judging": ((), True),
    "prompts": (("words",), Path("words")),
    "include_path": (("b/c",), (Path("b/c"),)),
    "output_path": (("kept-runs",), Path("kept-runs")),
    "resume": (("runs/one",), Path("runs/one")),
    "retry_failures": ((), True),
    "concurrency": (("7",), 7),
    "one_engine_at_a_time": ((), True),
    "executor": (("ray",), "ray"),
    "ray_address": (("auto",), "auto"),
    "workers": (("8",), 8),
    "engines": (("3",), 3),
    "num_repeats": (("3",), 3),
    "attempts": (("3",), Patience(attempts=3)),
    "timeout": (("2.5",), Patience(attempt_timeout=2.5)),
    "total_timeout": (("9",), Patience(total_timeout=9.0)),
    "start_timeout": (("5",), Patience(start_timeout=5.0)),
    "max_calls": (("10",), Budget(calls=10)),
    "max_tokens": (("1000",), Budget(tokens=1000)),
    "max_cost": (("2.5",), Budget(cost=2.5)),
    "prices": (
        (str(PRICE_FILE),),
        PriceTable(models={"openai:m": Price(input=1.0, output=2.0)}, where=str(PRICE_FILE)),
    ),
    "max_failures": (("calls=0.3",), {"calls": 0.3}),
    "store": (("calls.sqlite",), Path("calls.sqlite")),
    "reuse": (("run",), False),
}  # fmt: skip
"""By the name of an option: what follows it, and the value that its setting has then."""


def parsed(*options):
    return run.make_context("run", [*LEAST, *options]).params


def settings(*options):
    return settings_from(parsed(*options))


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_reaches_its_setting_and_no_other(name):
    words, value = OPTIONS[name]
    field = FIELDS.get(name, name)
    needed = ("--executor", "ray") if name in OF_EXECUTOR else ()
    usual, changed = settings(*needed), settings(*needed, f"--{name}", *words)
    assert getattr(usual, field) != value
    assert getattr(changed, field) == value
    others = {each: getattr(usual, each) for each in RunSettings.__struct_fields__ if each != field}
    assert {each: getattr(changed, each) for each in others} == others


def test_an_option_of_several_words_reaches_two_settings():
    assert settings("--offline").offline is True
    assert settings("--download", "--offline").download is False
    assert settings("--reuse", "none").fresh is True
    assert settings("--reuse", "none").use_store is True
    assert settings("--reuse", "store").fresh is False


def test_every_option_is_a_setting_or_only_shows_something_and_every_setting_has_one():
    assert parsed().keys() == OPTIONS.keys() | SHOWN_ONLY | SOURCES
    others = {*SOURCES, "elsewhere", "offline", "fresh"}
    fields = {FIELDS.get(name, name) for name in OPTIONS}
    assert fields | others == set(RunSettings.__struct_fields__)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], None),
        (["here/date=2024/rows.csv"], "here/date=2024/rows.csv"),
        (["./date=2024"], "./date=2024"),
        (["a=one", "b-2=~/x=1"], {"a": "one", "b-2": "~/x=1"}),
        (["a=one", "sample"], {"a": "one", "*": "sample"}),
    ],
)
def test_data_are_in_one_place_or_in_a_place_a_task(given, wanted):
    assert settings(*(f"--data={text}" for text in given)).data == wanted


@pytest.mark.parametrize(
    ("model", "args", "kind", "wanted"),
    [
        ("openai:org/gpt,revision=1", "", "openai", {"model": "org/gpt", "revision": "1"}),
        ("openai:model=gpt", "base_url=u", "openai", {"model": "gpt", "base_url": "u"}),
        ("openai:gpt", "model=other", "openai", {"model": "other"}),
    ],
)
def test_a_model_may_be_a_spec_and_its_arguments_win(model, args, kind, wanted):
    asked = settings("--model", model, "--model_args", args)
    assert (asked.model, asked.model_args) == (kind, wanted)


@pytest.mark.parametrize(
    ("text", "calls", "parsing", "judging", "errors"),
    [
        ("", 0.1, 0.5, 0.2, 0.05),
        ("0.3", 0.3, 0.3, 0.3, 0.3),
        ("judging=1", 0.1, 0.5, 1.0, 0.05),
        ("calls=0,parsing=0.25,judging=0.75,errors=1", 0.0, 0.25, 0.75, 1.0),
    ],
)
def test_failures_are_bounded_for_all_families_or_for_some(text, calls, parsing, judging, errors):
    given = settings("--max_failures", text).max_failures
    task = Task(name="t", version=1, benchmark="b", data=DataSpec(tables={}), metrics=())
    found = limits_of(task, given)
    assert found == FailureLimits(calls=calls, parsing=parsing, judging=judging, errors=errors)


@pytest.mark.parametrize(
    "text",
    ["1.5", "-0.1", "nan", "inf", "many", "calls=", "calls=2", "cals=0.1", "calls=0,calls=1"],
)
def test_a_bound_of_failures_that_means_nothing_is_refused(text, printed):
    assert text.partition("=")[0] in printed(*LEAST, f"--max_failures={text}", code=2).err


@pytest.mark.parametrize(
    "name",
    ["limit", "concurrency", "attempts", "max_calls", "max_tokens", "workers", "engines"],
)
@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_count_below_one_is_refused(name, value, printed):
    needed = ("--executor", "ray") if name in OF_EXECUTOR else ()
    said = printed(*LEAST, *needed, f"--{name}", value, code=2).err
    assert f"--{name} must be at least 1" in said
    assert f"found:    {value}" in said


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["--executor", "rya"], "--executor rya"),
        (["--executor", "rya", "--dry_run"], "--executor rya"),
        ([], "harness.toml:1 (--executor rya)"),
    ],
)
def test_an_executor_that_no_plugin_has_is_refused_before_anything_is_opened(
    words, place, printed, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harness.toml").write_text("" if words else "executor = 'rya'\n")
    needed = ("--data", "sample", "--judge", "lexical")
    said = printed(*LEAST, *needed, *words, code=2).err
    assert f"harness: {place}: no plugin offers the executor 'rya'" in said
    assert "expected: one of local, ray" in said
    assert "did you mean 'ray'?" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["timeout", "total_timeout"])
@pytest.mark.parametrize("value", ["0", "-1.5", "nan", "inf"])
def test_seconds_that_never_end_or_never_begin_are_refused(name, value, printed):
    said = printed(*LEAST, f"--{name}", value, code=2).err
    assert f"--{name} must be a number of seconds above 0" in said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--data", "a=x", "--data", "a=y"], "--data sets 'a' twice"),
        (["--gen_kwargs", "seed=1,seed=2"], "'seed' is given twice"),
        (["--limit", "--seed", "3"], "option '--limit' requires an argument"),
    ],
)
def test_what_means_nothing_ends_with_the_code_of_a_wrong_command(arguments, told, printed):
    assert told in printed(*LEAST, *arguments, code=2).err


def test_settings_that_a_caller_gives_are_those_of_the_command():
    """What stands in a manifest is plain JSON, and means the same run again."""
    asked = settings("--limit", "3", "--judge", "lexical", "--gen_kwargs", "temperature=0.5")
    again = msgspec.convert(asked.as_json(), RunSettings, dec_hook=lambda kind, value: kind(value))
    assert again == asked
