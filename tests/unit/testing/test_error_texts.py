"""What authors are told of plugins that cannot be checked or pinned, word for word."""

import sys

import pytest

from harness.errors import HarnessError
from harness.testing import check_plugin
from harness.testing.code import code_of
from harness.testing.subject import subject
from harness.testing.versions import main, pins_of


def said(call, *given, **options):
    with pytest.raises(HarnessError) as caught:
        call(*given, **options)
    return str(caught.value)


GIVEN = {
    "no check 'record'": (
        {"checks": ["record"]},
        """\
no check 'record'
  expected: loads, tasks, prompts, metrics, baseline, repeats, resumes, records, failures
  to do:    did you mean 'records'?""",
    ),
    "no task": (
        {"tasks": ["interest"]},
        """\
the plugin 'interests' has no task 'interest'
  expected: one of its 3, which `harness tasks` lists
  to do:    did you mean 'interests'?""",
    ),
    "no metric": (
        {"without_answers": ["suport"]},
        """\
the plugin 'interests' has no metric 'suport'
  expected: coverage, grounded, support
  to do:    did you mean 'support'?""",
    ),
}


@pytest.mark.parametrize("what", GIVEN)
def test_what_a_plugin_does_not_have(what):
    given, text = GIVEN[what]
    assert said(check_plugin, "interests", **given) == text


NOTHING = "from harness import hookimpl\n"


def test_names_that_no_plugin_or_several_have(site, monkeypatch):
    points = {"films": "acme.films", "books": "acme.books"}
    files = {"acme/__init__.py": "", "acme/films.py": NOTHING, "acme/books.py": NOTHING}
    site.install("acme-plugins", points, files)
    assert (
        said(subject, "acme")
        == """\
several plugins are called 'acme'
  found:    books = acme.books, films = acme.films
  expected: the name of one entry point of the group 'harness.plugins', or its package
  to do:    ask for one of them by its own name"""
    )
    none = said(subject, "zork").splitlines()
    assert none[0] == "no plugin is called 'zork'"
    assert "films = acme.films" in none[1].removeprefix("  found:    ").split(", ")
    assert none[2].startswith("  expected: the name of one entry point of the group ")
    assert none[3] == "  to do:    install the package first: pip install -e ."
    monkeypatch.setenv("HARNESS_PLUGINS", "models")
    assert (
        said(pins_of, subject("films"))
        == """\
the plugin 'films' is not loaded, and has no versions to pin
  to do:    `harness plugins films` tells why"""
    )


def test_code_that_no_pin_can_hold(site):
    site.install("bolts", {"bolts": "bolts"}, {"bolts.py": "f = lambda: 1\n"})
    import bolts

    assert (
        said(code_of, bolts.f, package="bolts")
        == """\
no code of bolts can be found to pin
  found:    bolts: <lambda>
  expected: functions and classes with `def` and `class` at the top level of a module"""
    )
    assert (
        said(code_of, len, package="bolts").splitlines()[1] == "  found:    <built-in function len>"
    )


def test_files_that_hold_no_pins(tmp_path, monkeypatch, capsys):
    def pinned(file):
        monkeypatch.setattr(sys, "argv", ["versions", "interests", str(file)])
        assert main() == 2
        return capsys.readouterr().err

    assert (
        pinned(tmp_path / "no" / "versions.json")
        == f"""\
error: no such folder
  found:    {tmp_path}/no
  expected: a folder that is there, for the file of versions
"""
    )
    file = tmp_path / "versions.json"
    file.write_text('{"respondents": 3}')
    assert (
        pinned(file)
        == f"""\
error: {file}: pinned versions cannot be read
  found:    Expected `object`, got `int` - at `$[...]`
  expected: a file that `python -m harness.testing.versions` wrote
  to do:    take its last good version, or remove it and pin anew
"""
    )
