"""What is told where plugins are not in order, word for word."""

import sys
from functools import partial
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace

import pytest
from inline_snapshot import snapshot

from harness import hookimpl
from harness import registry as plugin_manager
from harness.base.errors import PluginError, UsageError
from harness.registry import CHOSEN, GROUP, plugins_from

FILMS = """
    from types import SimpleNamespace
    from harness import hookimpl

    @hookimpl
    def register_benchmarks(register):
        register("films", lambda: SimpleNamespace(name="films"))
"""


@pytest.fixture
def twins(site):
    site.install("film-one", {"one": "film_one"}, {"film_one.py": FILMS})
    site.install("film-two", {"two": "film_two"}, {"film_two.py": FILMS})
    return site.plugins()


def test_a_name_that_two_plugins_give(twins, raised):
    assert raised(PluginError, twins.benchmark, "films") == snapshot("""\
the benchmark 'films' is registered more than once: by plugin 'one' of film-one and by plugin 'two' of film-two
expected: each name from one plugin only
to do: uninstall one of the plugins\
""")


def test_plugins_that_are_refused_unless_in_order(twins, raised):
    found = (
        "the benchmark 'films' is registered more than once: by plugin 'one' of film-one and by "
        "plugin 'two' of film-two"
    )
    assert raised(PluginError, twins.check_problems, found=found) == snapshot("""\
plugin problems found (--strict_plugins)
expected: plugins that load, hooks that exist, and names that one plugin registers
to do: `harness list plugins NAME` shows one plugin; HARNESS_PLUGINS=a,b loads only these\
""")


def test_a_chosen_plugin_that_is_not_installed(site, raised):
    site.install("film-one", {"films": "film_one"}, {"film_one.py": FILMS})
    point = EntryPoint(name="films", value="film_one", group=GROUP)
    chosen = partial(plugins_from, [point], only="flims")
    assert raised(UsageError, chosen, found="flims") == snapshot("""\
HARNESS_PLUGINS names a plugin that is not installed: 'flims'
expected: films
to do: did you mean 'films'?\
""")
    assert CHOSEN == "HARNESS_PLUGINS"


def test_a_plugin_without_a_folder_has_no_sample_data(monkeypatch, raised):
    made = ModuleType("films_of_a_notebook")

    @hookimpl
    def register_benchmarks(register):
        register("films", lambda: SimpleNamespace(name="films"))

    made.register_benchmarks = register_benchmarks
    monkeypatch.setitem(sys.modules, "films_of_a_notebook", made)
    plugin_manager.reset()
    point = EntryPoint(name="films", value="films_of_a_notebook", group=GROUP)
    where, found = "plugin 'films' of an unknown distribution", "the module films_of_a_notebook"
    package_of = plugins_from([point]).package_of
    assert raised(PluginError, package_of, "films", where=where, found=found) == snapshot("""\
the plugin's package has no directory to read sample data from
expected: a plugin inside an installed package\
""")
