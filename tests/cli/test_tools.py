import json
from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec
import pytest
from builders.loops import Clock

from harness import registry as plugin_manager
from harness.base.errors import PluginError, UsageError
from harness.cli.command import Command, usage_error
from harness.cli.tools import options_of, shown_progress, struct_from

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
    found = json.loads(printed("words", "--json").out)
    assert found == {"words_tools": [{"name": "weigh", "description": "Weighs."}]}
    said = printed("data", "weigh", "--from", "tea", code=2).err
    assert "no plugin offers the tool 'weigh'" in said
    assert "expected: one of weigh" in printed("words", "count", "--from", "tea", code=2).err


def test_progress_is_a_line_a_minute_or_on_a_terminal_a_bar_that_goes_away(capsys, monkeypatch):
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
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with shown_progress(quiet=False) as progress:
        progress("users", 3, 10)
        progress("users", 5, 10)
    assert "users" in (drawn := capsys.readouterr().err)
    assert "5/10" in drawn


class Options(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    source: Annotated[str, msgspec.Meta(description="where it comes from")] = "log"
    min_users: Annotated[int, msgspec.Meta(ge=1, description="5% of them")] = 10
    share: float | None = None
    by: Literal["user", "model"] = "user"
    above: list[float] = []
    kinds: tuple[Literal["a", "b"], ...] = ("a",)
    many: Literal[1, 2] | None = None
    most: int | Literal["all"] = "all"
    out: Path | None = None
    published: bool = False
    folded: Annotated[bool, msgspec.Meta(description="keep case apart")] = True


class Required(msgspec.Struct, frozen=True, kw_only=True):
    human_labels: str


class Kebab(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    min_users: int = 1


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    low: int = 0
    high: int = 1

    def __post_init__(self):
        if self.low > self.high:
            raise ValueError("low is above high")
        if self.low < 0:
            raise TypeError("low is of the wrong kind")


def read(kind, *arguments):
    tool = Command("tool", params=options_of(kind))
    try:
        return struct_from(tool.make_context("harness data tool", [*arguments]).params, kind)
    except click.UsageError as error:
        raise usage_error(error) from error


def refused(kind, *arguments):
    with pytest.raises(UsageError) as caught:
        read(kind, *arguments)
    return str(caught.value)


def test_words_become_what_the_fields_are():
    given = read(Options, "--from", "5", "--share", "0.25", "--by", "model", "--out", "a/b.csv")
    assert given == Options(source="5", share=0.25, by="model", out=Path("a/b.csv"))
    given = read(Options, "--share", ".5", "--above", "1.", "--above=-.5", "--above", "1e3")
    assert given == Options(share=0.5, above=[1.0, -0.5, 1000.0])
    given = read(Options, "--above", "1", "--above", "2.5", "--kinds", "b", "--kinds", "a",
                 "--published", "--no-folded")  # fmt: skip
    assert given == Options(above=[1.0, 2.5], kinds=("b", "a"), published=True, folded=False)
    assert read(Options, "--many", "2", "--most", "5") == Options(many=2, most=5)
    assert read(Options, "--most", "all") == Options()
    assert read(Kebab, "--min-users", "3") == Kebab(min_users=3)


WHOLE = "a whole number, at least 1"


@pytest.mark.parametrize(
    ("arguments", "option", "found", "expected"),
    [
        (["--min-users", "many"], "--min_users", "many", WHOLE),
        (["--min-users", "0"], "--min_users", "0", WHOLE),
        (["--share", "half"], "--share", "half", "a number"),
        (["--above=nan"], "--above", "nan", "a number"),
        (["--above", "1", "--above", "x"], "--above", "x", "a number"),
        (["--kinds", "a", "--kinds", "c"], "--kinds", "c", "one of a, b"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_option(arguments, option, found, expected):
    assert refused(Options, *arguments) == (
        f"the value of {option} is not valid\n  found:    {found}\n  expected: {expected}"
    )


def test_options_that_are_missing_or_contradict_one_another_are_told():
    assert "--human_labels" in refused(Required)
    assert read(Required, "--human-labels", "x") == Required(human_labels="x")
    problem = "these options cannot be combined\n  found:    low is"
    assert refused(Paired, "--low", "3", "--high", "2") == f"{problem} above high"
    assert refused(Paired, "--low=-1") == f"{problem} of the wrong kind"


def test_the_help_says_what_a_field_is_and_its_default():
    tool = Command("tool", params=options_of(Options))
    words = " ".join(tool.get_help(click.Context(tool)).split())
    assert "--from TEXT where it comes from; default: log" in words
    assert "--min_users N 5% of them; default: 10" in words
    assert "--by model|user default: user" in words
    assert "--above X may be given again" in words
    assert "--kinds a|b may be given again; default: a" in words
    assert "--out FILE" in words
    assert "--no_folded keep case apart" in words


@pytest.mark.parametrize(
    "kind",
    [
        tuple[int, str],
        dict[str, int],
        Paired | None,
        list[list[int]],
        list[Annotated[dict[str, int], msgspec.Meta(description="counts")]],
        complex,
    ],
)
def test_a_field_that_no_word_can_give_is_the_plugins_error(kind):
    made = msgspec.defstruct("Made", [("field", kind, None)], kw_only=True)
    with pytest.raises(PluginError, match="the field 'field' of Made cannot be an option"):
        options_of(made)
