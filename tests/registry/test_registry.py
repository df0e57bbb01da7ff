"""Plugins of made-up distributions: loaded, broken, misspelt, registered twice."""

import sys
from functools import partial
from importlib.metadata import EntryPoint
from textwrap import dedent
from types import ModuleType, SimpleNamespace

import pytest
from inline_snapshot import snapshot

from harness import hookimpl
from harness.base.errors import DataError, PluginError, UsageError
from harness.registry import GROUP, plugins_from
from harness.registry.hookspecs import hint_for, install_hint

BENCHMARK = """
    from types import SimpleNamespace
    from harness import hookimpl

    made = []

    def make():
        made.append(1)
        return SimpleNamespace(name="films")

    @hookimpl
    def register_benchmarks(register):
        register("films", make)
"""


@pytest.fixture
def films(site):
    site.install("film-benchmark", {"films": "films.plugin"}, {"films/plugin.py": BENCHMARK})
    return site


def plugins_of(site, **modules):
    """The plugins of a distribution that has these modules, each of them a plugin."""
    files = {f"{name}.py": f"from harness import hookimpl\n{dedent(text)}"
             for name, text in modules.items()}  # fmt: skip
    site.install("made-up", {name: name for name in modules}, files)
    return site.plugins()


def test_a_benchmark_is_made_at_first_use_and_kept_and_has_its_package_s_folder(films):
    plugins = films.plugins()
    made = sys.modules["films.plugin"].made
    assert made == []

    assert plugins.benchmark("films").name == "films"
    assert plugins.benchmark("films") is plugins.benchmark("films")
    assert made == [1]
    assert films.plugins().package_of("films") == films.folder / "films"


def test_every_kind_of_registration_is_kept_with_its_origin(site):
    plugins = plugins_of(site, kinds="""
        @hookimpl
        def register_models(register):
            register("echo", str, description="Says it again.", arguments=None)

        @hookimpl
        def register_judges(register):
            register("strict", str, on="model")

        @hookimpl
        def register_respondents(register):
            register("films", "name", "candidate", str, name="loud", version=3)
            register("films", "say", "candidate", str)

        @hookimpl
        def register_analyses(register):
            register("films", "film-years", str, description="Films by year.")

        @hookimpl
        def register_data_tools(register):
            register("count-films", int, description="How many films.")
    """)  # fmt: skip

    model = plugins.model("echo")
    assert (model.factory, model.description, model.arguments) == (str, "Says it again.", {})
    assert (model.origin.plugin, model.origin.distribution) == ("kinds", "made-up")
    assert plugins.judge("strict").on == "model"
    assert plugins.respondent("films", "name", "candidate", "loud").version == 3
    with pytest.raises(PluginError) as caught:
        plugins.respondent("films", "guess", "candidate")
    assert caught.value.expected == "one of name.candidate: loud; say.candidate: default"
    assert ("echo" in plugins.models, "echo" in plugins.judges) == (True, False)
    analysis = plugins.analysis("film-years")
    assert (analysis.benchmark, analysis.factory, analysis.description) == (
        "films", str, "Films by year.",
    )  # fmt: skip
    tool = plugins.data_tool("count-films")
    assert (tool.factory, tool.description) == (int, "How many films.")


TOOLS = """
    @hookimpl
    def register_data_tools(register):
        register("describe", int, command={command!r})
"""


def test_tools_of_different_commands_may_have_one_name(site):
    plugins = plugins_of(site, **{name: TOOLS.format(command=name) for name in ("films", "books")})
    assert plugins.problems == ()
    assert plugins.data_tool("describe", "films").origin.plugin == "films"
    assert plugins.data_tool("describe", "books").origin.plugin == "books"
    with pytest.raises(PluginError, match="no plugin offers the tool 'describ'"):
        plugins.data_tool("describ", "films")


@pytest.mark.parametrize("command", ["score", "validate", "--films", "", "My films", "a.yaml"])
def test_a_command_that_nobody_could_give_breaks_its_plugin(site, command):
    [broken] = plugins_of(site, films=TOOLS.format(command=command)).broken
    assert repr(command) in broken.error
    assert "the tool 'describe'" in broken.error


def test_an_unknown_name_is_told_with_the_nearest_known(films):
    with pytest.raises(PluginError) as caught:
        films.plugins().benchmark("film")
    assert str(caught.value) == (
        "no plugin offers the benchmark 'film'\n"
        "  expected: one of films\n"
        "  to do:    did you mean 'films'?"
    )


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("def (", "SyntaxError: invalid syntax (plugin.py, line 1)"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (
            "from harness import hookimpl\n@hookimpl\ndef register_models(registre): ...",
            "PluginValidationError: Plugin \"plugin 'bad' of bad-benchmark\" "
            "for hook 'register_models'; hookimpl definition: register_models(registre); "
            "Argument(s) {'registre'} are declared in the hookimpl but can not be found in the "
            "hookspec",
        ),
        *(
            (f"from harness import hookimpl\n@hookimpl\ndef register_models(register):\n    {call}",
             f"PluginError: {line}, which is no text")
            for call, line in (
                ("register(5, str)", "5 was registered with 5"),
                ("register('x', str, description=7)", "'x' was registered with 7"),
                ("register('x', str, arguments={'n': 7})", "'x' was registered with 7"),
            )
        ),
        (
            "from harness import hookimpl\n@hookimpl\ndef register_models(register):\n"
            "    register('half', str)\n    1 / 0",
            "ZeroDivisionError: division by zero",
        ),
    ],
)  # fmt: skip
def test_a_broken_plugin_costs_itself_alone(films, source, line):
    films.install("bad-benchmark", {"bad": "bad.plugin"}, {"bad/plugin.py": ""})
    (films.folder / "bad/plugin.py").write_text(source)

    plugins = films.plugins()

    (broken,) = plugins.broken
    assert (broken.plugin, broken.distribution, broken.error) == ("bad", "bad-benchmark", line)
    assert "Traceback" in broken.traceback
    assert plugins.benchmark("films").name == "films"
    assert "half" not in plugins.models


def test_a_wrong_registration_fails_where_it_is_used_and_names_its_plugin(films):
    films.install("wrong-one", {"wrong": "wrong"}, {"wrong.py": """
from harness import hookimpl

@hookimpl
def register_benchmarks(register):
    register("x", None)

@hookimpl
def register_respondents(register):
    register(5, "name", "candidate", str)
"""})  # fmt: skip
    plugins = films.plugins()
    assert (plugins.broken, plugins.problems) == ((), ())
    assert plugins.benchmark("films").name == "films"
    with pytest.raises(PluginError) as caught:
        plugins.benchmark("x")
    assert str(caught.value) == (
        "plugin 'wrong' of wrong-one: 'x' cannot be made\n"
        "  found:    TypeError: 'NoneType' object is not callable\n"
        "  to do:    fix the plugin, or report this to its developers"
    )


def test_what_a_broken_plugin_says_holds_no_secret(site, monkeypatch):
    monkeypatch.setenv("FILM_API_KEY", "open-sesame-1001")
    code = "import os\nraise ValueError('not ' + os.environ['FILM_API_KEY'])"
    [broken] = plugins_of(site, bad=code).broken
    assert broken.error == "ValueError: not [redacted]"
    assert broken.traceback.endswith("ValueError: not [redacted]\n")


def test_asking_for_what_a_broken_plugin_would_offer_tells_why(site):
    site.install("bad-benchmark", {"books": "bad"}, {"bad.py": "import no_such_thing"})
    with pytest.raises(PluginError) as caught:
        site.plugins().benchmark("books")
    assert caught.value.hint == (
        "plugin 'books' of bad-benchmark could not be loaded: "
        "ModuleNotFoundError: No module named 'no_such_thing'"
    )


def test_one_name_from_two_plugins_costs_that_name_alone(films, raised):
    code = BENCHMARK + '        register("others", make)\n'
    films.install("more-films", {"more": "more.plugin"}, {"more/plugin.py": code})
    plugins = films.plugins()
    line = (
        "the benchmark 'films' is registered more than once: "
        "by plugin 'films' of film-benchmark and by plugin 'more' of more-films"
    )
    assert plugins.problems == (line,)
    assert plugins.benchmarks["others"].origin.plugin == "more"
    with pytest.raises(PluginError) as caught:
        plugins.benchmark("films")
    error = caught.value
    assert (error.problem, error.hint) == (line, "uninstall one of the plugins")
    assert raised(PluginError, plugins.check_problems, found=line) == snapshot("""\
plugin problems found (--strict_plugins)
expected: plugins that load, hooks that exist, and names that one plugin registers
to do: `harness list plugins NAME` shows one plugin; HARNESS_PLUGINS=a,b loads only these\
""")


def test_a_chosen_plugin_that_is_not_installed_is_refused(films, raised):
    point = EntryPoint(name="films", value="films.plugin", group=GROUP)
    chosen = partial(plugins_from, [point], only="flims")
    assert raised(UsageError, chosen, found="flims") == snapshot("""\
HARNESS_PLUGINS names a plugin that is not installed: 'flims'
expected: films
to do: did you mean 'films'?\
""")


def test_a_plugin_without_a_folder_has_no_sample_data(monkeypatch, raised):
    made = ModuleType("films_of_a_notebook")

    @hookimpl
    def register_benchmarks(register):
        register("films", lambda: SimpleNamespace(name="films"))

    made.register_benchmarks = register_benchmarks
    monkeypatch.setitem(sys.modules, "films_of_a_notebook", made)
    point = EntryPoint(name="films", value="films_of_a_notebook", group=GROUP)
    where, found = "plugin 'films' of an unknown distribution", "the module films_of_a_notebook"
    package_of = plugins_from([point]).package_of
    assert raised(PluginError, package_of, "films", where=where, found=found) == snapshot("""\
the plugin's package has no directory to read sample data from
expected: a plugin inside an installed package\
""")


def test_one_plugin_under_two_names_is_loaded_once(films):
    films.install("again", {"again": "films.plugin"}, {})
    plugins = films.plugins()
    [twin] = plugins.broken
    assert str(twin) == (
        "plugin 'films' of film-benchmark could not be loaded: "
        "PluginError: the plugin is the same object as plugin 'again' of again, which is loaded"
    )
    assert plugins.benchmark("films").name == "films"


def test_a_misspelt_hook_is_a_problem_with_the_nearest_name(site):
    plugins = plugins_of(site, typo="""
        @hookimpl
        def register_benchmark(register): ...

        @hookimpl(optionalhook=True)
        def register_dreams(register): ...
    """)  # fmt: skip
    assert plugins.broken == ()
    assert plugins.problems == (
        "plugin 'typo' of made-up implements 'register_benchmark', which is no hook: "
        "did you mean 'register_benchmarks'?",
    )


def test_a_factory_that_fails_names_its_plugin(site):
    plugins = plugins_of(site, late="""
        from types import SimpleNamespace
        from harness import DataError

        def lacks_data():
            raise DataError("no licence file")

        @hookimpl
        def register_benchmarks(register):
            register("broken", lambda: 1 / 0)
            register("renamed", lambda: SimpleNamespace(name="other"))
            register("lacking", lacks_data)
    """)  # fmt: skip
    with pytest.raises(PluginError) as caught:
        plugins.benchmark("broken")
    assert caught.value.where == "plugin 'late' of made-up"
    assert caught.value.found == "ZeroDivisionError: division by zero"
    with pytest.raises(PluginError, match="registered as 'renamed' has the name 'other'"):
        plugins.benchmark("renamed")
    with pytest.raises(DataError, match="no licence file"):
        plugins.benchmark("lacking")


def test_one_that_raises_keeps_no_observer_from_hearing_and_a_broken_plugin_hears_nothing(site):
    plugins = plugins_of(site, deaf="""
        @hookimpl
        def on_run_start(event):
            raise OSError("no disk")
    """, keen="""
        @hookimpl
        def on_run_start(event):
            event.heard.append("keen")

        @hookimpl
        def on_run_end():
            pass
    """, half="""
        @hookimpl
        def register_models(register):
            1 / 0

        @hookimpl
        def on_run_start(event):
            event.heard.append("half")
    """)  # fmt: skip
    event = SimpleNamespace(heard=[])

    found = plugins.notify("on_run_start", event)
    assert found == ["plugin 'deaf' of made-up failed in on_run_start: OSError: no disk"]
    assert event.heard == ["keen"]
    assert plugins.notify("on_run_end", event) == []


OURS = "user-understanding-harness"


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("sklearn.cluster", "analysis"),
        ("faiss", "cpu"),  # and not gpu, which brings a package of another name
        ("sentence_transformers.util", "embed"),
        ("rouge_score", "texts"),  # and not dev, which brings more
    ],
)
def test_the_smallest_extra_with_a_package(module, extra):
    assert install_hint(module, OURS) == f"pip install '{OURS}[{extra}]'"


@pytest.mark.parametrize(
    ("module", "where"), [("matplotlib.axes", OURS), ("attic", OURS), ("numpy", "attic")]
)
def test_no_extra_brings_what_is_always_there_or_unknown(module, where):
    assert install_hint(module, where) is None


def test_a_plugins_own_extra_comes_before_the_harnesss(site):
    site.install("acme", {}, {}, extras={"topics": "scikit-learn"})
    absent = ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    assert hint_for(absent, "acme") == "pip install 'acme[topics]'"
    assert hint_for(absent, "nobody") == f"pip install '{OURS}[analysis]'"
    assert hint_for(ValueError("another failure"), "acme") is None
