"""The fields of a struct as options of a command, and what is said of values that do not fit."""

from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec
import pytest

from harness.base.errors import PluginError, UsageError
from harness.cli.command import Command, usage_error
from harness.cli.tools import options_of, struct_from


class Options(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    source: Annotated[str, msgspec.Meta(description="where it comes from")] = "log"
    min_users: Annotated[int, msgspec.Meta(ge=1, description="5% of them")] = 10
    share: float | None = None
    by: Literal["user", "model"] = "user"
    above: list[float] = []
    kinds: tuple[Literal["a", "b"], ...] = ("a",)
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
    assert read(Kebab, "--min-users", "3") == Kebab(min_users=3)


WHOLE = "a whole number, at least 1"


@pytest.mark.parametrize(
    ("arguments", "option", "found", "expected"),
    [
        (["--min-users", "many"], "--min_users", "many", WHOLE),
        (["--min-users", "0"], "--min_users", "0", WHOLE),
        (["--share", "half"], "--share", "half", "a number"),
        (["--above=nan"], "--above", "nan", "a finite number"),
        (["--above", "1", "--above", "x"], "--above", "1, x", "a number"),
        (["--kinds", "a", "--kinds", "c"], "--kinds", "a, c", "one of a, b"),
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
