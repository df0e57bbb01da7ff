"""The keywords of `harness.evaluate` are the options of a run, with the same defaults."""

import inspect

import pytest
from click._utils import UNSET

import harness
from harness.cli.run_options import run_options

OF_THE_COMMAND_LINE = {
    "dry_run",  # it runs nothing
    "verbose", "json", "version",  # they are about what is printed
    "write_requests", "answers",  # the next command is printed
}  # fmt: skip
OPTIONS = {option.name: option for option in run_options()}


@pytest.fixture(params=["evaluate", "aevaluate"])
def parameters(request):
    return inspect.signature(getattr(harness, request.param)).parameters


def test_each_option_is_a_keyword_and_each_keyword_an_option(parameters):
    assert OPTIONS.keys() - parameters.keys() == OF_THE_COMMAND_LINE
    assert parameters.keys() - OPTIONS.keys() == set()
    kinds = {name: one.kind.name for name, one in parameters.items()}
    assert kinds.pop("tasks") == "POSITIONAL_OR_KEYWORD"
    assert set(kinds.values()) == {"KEYWORD_ONLY"}


def default_of(option):
    """The value of an option that is not given, None if it is empty."""
    if option.default is UNSET:
        return False if option.is_flag else None
    return option.default if option.default != "" else None


def test_a_keyword_has_the_default_of_its_option(parameters):
    given = {name: one.default for name, one in parameters.items()}
    assert given.pop("tasks") is given.pop("model") is inspect.Parameter.empty
    found = {name: None if one in ("", ()) else one for name, one in given.items()}
    assert found == {name: default_of(OPTIONS[name]) for name in found}


def test_one_is_awaited_and_the_other_is_not():
    assert inspect.iscoroutinefunction(harness.aevaluate)
    assert not inspect.iscoroutinefunction(harness.evaluate)
    assert harness.evaluate.__name__ == "evaluate"
    assert "evaluate(" in inspect.getdoc(harness.evaluate)
