"""The environment variables of the harness and its plugins: none is an option's by accident."""

import re
from pathlib import Path

import click
import pytest

from harness.cli.main import harness
from harness.cli.settings import PREFIX, Setting, misspelt

ROOT = Path(__file__).parents[2]
NO_OPTIONS = {
    "HARNESS_CACHE",
    "HARNESS_COMPLETE",  # what click calls the variable of completion, with _ before it
    "HARNESS_DOWNLOADS",
    "HARNESS_HF_PYTHON",
    "HARNESS_PLUGINS",
    "HARNESS_PRETRAINED",
    "HARNESS_VLLM_PYTHON",
}
"""Each variable that the code reads or sets, except those of options."""


def named():
    files = [*(ROOT / "harness").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]
    return {
        name for file in files for name in re.findall(r"HARNESS_[A-Z]\w*[A-Z]", file.read_text())
    }


def options(command, context):
    """The options of a command and of the commands in it."""
    yield from (one for one in command.params if isinstance(one, click.Option))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from options(inner, click.Context(inner, parent=context))


@pytest.fixture(scope="module")
def known():
    """All options of all commands by the variable that has their name."""
    found: dict[str, list[click.Option]] = {}
    for option in options(harness, click.Context(harness)):
        for spelled in option.opts:
            found.setdefault(PREFIX + spelled.lstrip("-").replace("-", "_").upper(), []).append(
                option
            )
    return found


def test_each_variable_has_the_name_of_its_setting_or_is_known_to_be_no_options(known):
    settings = {one.envvar for each in known.values() for one in each if isinstance(one, Setting)}
    assert {"HARNESS_DATA", "HARNESS_MODEL", "HARNESS_SEED"} <= settings
    assert named() - settings == NO_OPTIONS
    assert NO_OPTIONS & known.keys() == set()
    for variable, each in known.items():
        for option in each:
            if isinstance(option, Setting) and f"--{option.name}" in option.opts:
                assert option.envvar == f"{PREFIX}{str(option.name).upper()}", variable


def test_no_variable_is_taken_for_a_misspelt_option(known, monkeypatch):
    settings = {
        str(one.name): one for each in known.values() for one in each if isinstance(one, Setting)
    }
    for variable in NO_OPTIONS:
        monkeypatch.setenv(variable, "x")
    assert misspelt(settings) == {}
