"""What authors are told of plugins that cannot be checked or pinned, word for word."""

import re
import sys
from functools import partial

import pytest
from inline_snapshot import snapshot

from harness.base.errors import PluginError, UsageError
from harness.registry import reset
from harness.testing import check_plugin
from harness.testing.trial import plugin_under_test
from harness.testing.versions import code_of, main, pins_of

GIVEN = {
    "no check 'record'": ({"checks": ["record"]}, snapshot("""\
no check is named 'record'
expected: loads, tasks, prompts, published, options, rows, metrics, baseline, repeats, shares, resumes, records, failures, garbage, batches
to do: did you mean 'records'?\
""")),
    "no task": ({"tasks": ["interest"]}, snapshot("""\
the plugin 'interests' has no task 'interest'
expected: one of its 3 tasks, which `harness tasks` lists
to do: did you mean 'interests'?\
""")),
    "no metric": ({"without_answers": ["suport"]}, snapshot("""\
the plugin 'interests' has no metric 'suport'
expected: coverage, grounded, support
to do: did you mean 'support'?\
""")),
}  # fmt: skip


@pytest.mark.parametrize("what", GIVEN)
def test_what_a_plugin_does_not_have(what, raised):
    given, wording = GIVEN[what]
    assert raised(UsageError, partial(check_plugin, "interests", **given)) == wording


NOTHING = "from harness import hookimpl\n"


def test_names_that_no_plugin_or_several_have(site, monkeypatch, raised):
    points = {"films": "acme.films", "books": "acme.books"}
    files = {"acme/__init__.py": "", "acme/films.py": NOTHING, "acme/books.py": NOTHING}
    site.install("acme-plugins", points, files)
    found = "books = acme.books, films = acme.films"
    assert raised(PluginError, plugin_under_test, "acme", found=found) == snapshot("""\
several plugins are named 'acme'
expected: the name of one entry point of the group 'harness.plugins', or its package
to do: give the name of one entry point\
""")
    found = re.compile(r"(.+, )?films = acme\.films(, .+)?")
    assert raised(PluginError, plugin_under_test, "zork", found=found) == snapshot("""\
no plugin is named 'zork'
expected: the name of one entry point of the group 'harness.plugins', or its package
to do: install the package first: pip install -e .\
""")
    monkeypatch.setenv("HARNESS_PLUGINS", "models")
    reset()
    assert raised(PluginError, pins_of, plugin_under_test("films")) == snapshot("""\
the plugin 'films' is not loaded, so its versions cannot be pinned
to do: `harness list plugins films` shows the reason\
""")


def test_code_that_no_pin_can_hold(raised):
    code = partial(code_of, package="bolts")
    assert raised(PluginError, code, len, found="<built-in function len>") == snapshot("""\
no code of bolts can be found to pin
expected: functions and classes of the plugin's own package\
""")


def test_files_that_hold_no_pins(tmp_path, monkeypatch, exits):
    def pinned(arguments):
        monkeypatch.setattr(sys, "argv", arguments)
        return main()

    pins = partial(exits, 2, UsageError, run=pinned, says="error")
    command = f"versions interests {tmp_path}"
    assert pins(f"{command}/no/versions.json", found="DIR/no") == snapshot("""\
the folder of the file of versions does not exist
expected: FILE in an existing folder\
""")
    (tmp_path / "versions.json").write_text('{"respondents": 3}')
    where, found = "DIR/versions.json", "Expected `object`, got `int` - at `$[...]`"
    assert pins(f"{command}/versions.json", where=where, found=found) == snapshot("""\
pinned versions cannot be read
expected: a file that `python -m harness.testing.versions` wrote
to do: restore its last valid version, or delete it and pin again\
""")
    assert (tmp_path / "versions.json").read_text() == '{"respondents": 3}'
