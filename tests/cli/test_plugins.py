"""`harness plugins`, `--strict_plugins` and HARNESS_PLUGINS."""

import json

import pytest

from harness.registry import CHOSEN

FILMS = """
    from harness import hookimpl

    @hookimpl
    def register_models(register):
        register("reel", str, description="A model of film.", arguments={"length": "in metres"})

    @hookimpl
    def register_respondents(register):
        register("films", "name", "candidate", str)

    @hookimpl
    def on_run_ends(event):
        pass
"""


@pytest.fixture
def films(site):
    site.install("film-plugin", {"films": "films"}, {"films.py": FILMS})
    return site


@pytest.fixture
def torn(site):
    site.install("torn-plugin", {"torn": "torn"}, {"torn.py": "raise OSError('no reel')"})
    return site


def test_the_table_has_broken_plugins_first_and_counts_what_others_registered(
    films, torn, printed, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    said = printed("plugins")
    lines = said.out.splitlines()
    assert lines[:2] == ["broken:", "  torn  torn-plugin 1.0, torn; OSError: no reel"]
    assert lines[2] == "plugins:"
    assert (
        "  films         film-plugin 1.0, films; register_models (1), register_respondents (1)"
        in lines
    )
    assert "harness: plugin 'films' of film-plugin implements 'on_run_ends'" in said.err
    assert "did you mean 'on_run_end'?" in said.err


def test_a_package_of_task_files_alone_is_no_plugin_without_hooks(site, printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    task = "task: tea\nextends: interests\noptions: {window: 5}\n"
    files = {"teas/__init__.py": "", "teas/task_configs/tea.yaml": task}
    site.install("tea-tasks", {"teas": "teas"}, files)
    site.install("empty-plugin", {"empty": "empty"}, {"empty.py": ""})
    lines = printed("plugins").out.splitlines()
    assert "  teas          tea-tasks 1.0, teas; task files only" in lines
    assert "  empty         empty-plugin 1.0, empty; implements no hook" in lines
    assert printed("validate", "tea").out.startswith("tea: ok (")


def test_a_broken_plugin_is_shown_with_its_traceback(torn, printed):
    said = printed("plugins", "torn-plugin").out
    assert "could not be loaded:\n  Traceback (most recent call last):" in said
    assert said.rstrip().endswith("OSError: no reel")


def test_strict_tells_what_there_is_and_fails(torn, printed):
    said = printed("plugins", "--strict-plugins", code=1)
    assert "plugin problems found" in said.err
    assert "plugin 'torn' of torn-plugin could not be loaded: OSError: no reel" in said.err
    assert "broken:" in said.out
    assert "no option '--strict-plugins'" in printed("tasks", "--strict-plugins", code=2).err


def test_what_plugins_say_of_themselves_does_not_steer_the_terminal(site, printed):
    code = FILMS.replace("A model of film.", "\\x1b[31mred\\nalert")
    site.install("loud", {"loud": "loud"}, {"loud.py": code})
    for command in (["models"], ["models", "reel"], ["plugins", "loud"]):
        said = printed(*command).out
        assert "\x1b" not in said
        assert "red alert" in said


def test_only_the_chosen_plugins_are_loaded(films, torn, printed, monkeypatch):
    monkeypatch.setenv(CHOSEN, "models, film-plugin")
    document = json.loads(printed("plugins", "--json").out)
    assert [one["plugin"] for one in document["plugins"]] == ["films", "models"]
    assert document["broken"] == [], "what is left out is not even imported"
    left = {one["plugin"] for one in document["left_out"]}
    assert {"torn", "judges", "interests"} <= left
    said = printed("judges", "lexical", code=2)
    assert "HARNESS_PLUGINS leaves out" in said.err
    assert "judges" in said.err
