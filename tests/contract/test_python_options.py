"""`harness.evaluate` takes the options of a run, by one definition, or settings as a whole."""

import pytest

import harness
from harness.base.errors import UsageError
from harness.cli.run_options import RunOptions, options_of_python, run_options
from harness.pipeline.settings import make_settings

OF_THE_COMMAND_LINE = {
    "dry_run",  # it runs nothing
    "verbose", "json", "version",  # they are about what is printed
    "write_requests", "answers",  # the next command is printed
}  # fmt: skip


def test_each_option_is_one_of_python_or_only_makes_sense_for_the_command():
    names = {str(option.name) for option in run_options()}
    assert names - RunOptions.__annotations__.keys() == OF_THE_COMMAND_LINE
    assert RunOptions.__annotations__.keys() - names == {"offline"}  # spelled so by `download`


def test_options_that_python_does_not_give_have_the_defaults_of_the_command():
    found = options_of_python({"model": "baseline", "limit": 3, "set": {"window": 8}})
    assert (found["model"], found["limit"], found["set"]) == ("baseline", 3, {"window": 8})
    assert (str(found["output_path"]), found["reuse"], found["seed"]) == ("runs", "store", 0)
    assert (found["download"], found["structured"], found["judge"]) == (None, False, None)


def test_fields_of_0_1_0_are_read_and_say_nothing_where_they_are_off():
    fields = {"fresh": False, "no_store": True, "offline": False, "download": False}
    found = options_of_python(fields)
    assert (found["reuse"], found["download"]) == ("run", None)
    assert options_of_python({"fresh": True})["reuse"] == "none"
    assert options_of_python({"offline": True})["download"] is False


def test_a_misspelt_option_is_refused_with_the_nearest():
    with pytest.raises(UsageError) as caught:
        harness.evaluate("interests", model="baseline", limits=3)
    assert "'limits'" in str(caught.value)
    assert caught.value.hint == "did you mean 'limit'?"
    assert "evaluate" not in str(caught.value)


def test_settings_are_run_as_they_are(tmp_path):
    settings = make_settings(
        {"tasks": "interests", "model": "baseline", "roles": {"judge": "lexical"},
         "data": "sample", "limit": 2, "output_path": tmp_path, "use_store": False}
    )  # fmt: skip
    done = harness.evaluate(settings, quiet=True)
    assert done.status == "done"
    assert done.manifest.limit == 2
    with pytest.raises(UsageError, match="given whole"):
        harness.evaluate(settings, limit=3)
