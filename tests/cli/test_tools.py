"""`harness data`: tools are listed, used with their own options, and their reports shown."""

import json

import pytest
from builders.loops import Clock

from harness import registry as plugin_manager
from harness.cli.tools import shown_progress

PLUGIN = """
from typing import Annotated

import msgspec

from harness import DataError, DataTool, hookimpl
from harness.contracts.report import Report, Sheet


class Options(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    source: Annotated[str, msgspec.Meta(description="the file to count in")]
    words: list[str] = []


def count(options, progress):
    progress("words", 1, 3)
    if options.source == "nowhere":
        raise DataError("there is no such file", found=options.source)
    if options.source == "unlearned":
        raise ModuleNotFoundError("No module named 'sklearn.cluster'", name="sklearn.cluster")
    rows = tuple((word, options.source.count(word), None) for word in options.words)
    sheet = Sheet(title="Words", columns=("word", "times", "share"), rows=rows, digits=2,
                  notes=("Counted once.",))
    return Report(sheets=(sheet,))


@hookimpl
def register_data_tools(register):
    register("count", lambda: DataTool(name="count", description="Counts words.", run=count,
                                       options=Options), description="Counts words.")
    register("gone", lambda: 1 / 0, description="Cannot be made.")
    register("weigh", lambda: DataTool(name="weigh", description="Weighs words.", run=count,
                                       options=Options), description="Weighs.", command="words")
"""


@pytest.fixture(autouse=True)
def tools(site, monkeypatch):
    """An installed distribution with two tools, and no others."""
    site.install("counting", {"counting": "counting_plugin"}, {"counting_plugin.py": PLUGIN})
    monkeypatch.setenv("HARNESS_PLUGINS", "counting")


def test_without_plugins_the_harness_has_its_own_commands(monkeypatch, printed):
    monkeypatch.undo()
    monkeypatch.setattr(plugin_manager.registry, "entry_points", lambda group: ())
    assert [line.split()[0] for line in printed("data").out.splitlines()] == ["fetch", "where"]


def test_a_tool_is_used_with_its_options(printed):
    given = ["--from", "tea, milk, tea", "--words", "tea", "--words", "milk"]
    assert [line.rstrip() for line in printed("data", "count", *given).out.splitlines()] == [
        "Words",
        "word  times  share",
        "──────────────────",
        "tea       2      —",
        "milk      1      —",
        "  Counted once.",
    ]


def test_what_a_tool_says_is_wrong_is_printed_as_it_says_it_and_else_its_plugin_failed(printed):
    assert printed("data", "count", "--from", "nowhere", code=1).err == (
        "harness: there is no such file\n  found:    nowhere\n"
    )
    assert printed("data", "count", "--from", "unlearned", code=1).err == (
        "harness: plugin 'counting' of counting: 'count' failed\n"
        "  found:    No module named 'sklearn.cluster'\n"
        "  to do:    pip install 'user-understanding-harness[analysis]'\n"
    )
    err = printed("data", "gone", code=1).err
    assert "plugin 'counting' of counting: 'gone' cannot be made" in err
    assert "ZeroDivisionError" in err


def test_a_file_that_no_figure_can_be_drawn_into_is_refused_before_the_work(tmp_path, printed):
    plot = ["--plot", str(tmp_path / "a.gif")]
    err = printed("data", "count", "--from", "nowhere", *plot, code=2).err
    assert "figures cannot be drawn in this format" in err


def test_a_plugin_may_have_a_command_of_its_own_whose_tools_are_no_others(printed):
    assert printed("words").out == "  weigh  Weighs.\n"
    said = printed("words", "weigh", "--json", "--from", "tea", "--words", "tea").out
    assert json.loads(said)["tool"] == "weigh"
    assert json.loads(printed("words", "--json").out) == {
        "words_tools": [{"name": "weigh", "description": "Weighs."}]
    }
    said = printed("data", "weigh", "--from", "tea", code=2).err
    assert "no plugin offers the tool 'weigh'" in said
    assert "expected: one of weigh" in printed("words", "count", "--from", "tea", code=2).err


def test_progress_without_a_terminal_is_a_line_a_minute(capsys):
    clock = Clock()
    with shown_progress(quiet=False, clock=clock) as progress:
        progress("users", 1)
        clock.now = 59.0
        progress("users", 2)
        assert capsys.readouterr().err == ""
        clock.now = 60.0
        progress("users", 3_000, 10_000)
        clock.now = 100.0
        progress("users", 4_000, 10_000)
        clock.now = 120.0
        progress("items\x1b[2J", 7)
    err = capsys.readouterr().err
    assert err == "  users: 3,000 of 10,000\n  items\\x1b[2J: 7\n"


def test_progress_on_a_terminal_is_a_bar_that_goes_away(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with shown_progress(quiet=False) as progress:
        progress("users", 3, 10)
        progress("users", 5, 10)
    assert "users" in (drawn := capsys.readouterr().err)
    assert "5/10" in drawn
