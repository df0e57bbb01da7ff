import json

import pytest
from harness_judges.lexical import make as make_lexical
from harness_models.hf_args import OWN as HF_OWN
from harness_models.openai_args import OpenAIArgs
from harness_models.replay import ARGUMENTS as REPLAY
from harness_models.vllm_args import OWN

from harness.base.errors import PromptError
from harness.contracts.judge import JudgeParts
from harness.prompts import Templates
from harness.prompts.templates import meanings
from harness.registry import CHOSEN, load_plugins

ANY_OTHER = "any other"


def test_the_arguments_that_are_listed_are_those_that_are_taken():
    models, judges = load_plugins().models, load_plugins().judges
    assert set(models["openai"].arguments) == set(OpenAIArgs.__struct_fields__)
    assert set(models["vllm"].arguments) - {ANY_OTHER} == set(OWN)
    assert set(models["hf"].arguments) - {ANY_OTHER} == set(HF_OWN)
    assert set(models["baseline"].arguments) == {"respondent"}
    assert set(models["replay"].arguments) == set(REPLAY)
    for name in judges["lexical"].arguments:
        assert make_lexical(JudgeParts(args={name: "0.25"})).name == f"lexical:{name}=0.25"
    assert judges["llm"].arguments == {}


def test_how_a_model_or_judge_is_to_be_named_is_told(printed):
    said = printed("--model", "gpt-4", "--tasks", "interests", "--data", "sample", code=2).err
    assert "a model behind a server is openai:NAME" in said
    said = printed("list", "judges", "llm").out
    assert "llm:openai:model=NAME,base_url=URL" in said
    assert "its plugin declares no arguments" in said


def test_kinds_of_other_plugins_are_listed_as_ours_are(site, printed):
    code = """
        from harness import hookimpl

        @hookimpl
        def register_models(register):
            register("aardvark", str, description="Digs.", arguments={"depth": "in metres"})
    """
    site.install("zoo", {"zoo": "zoo"}, {"zoo.py": code})
    first = printed("list", "models").out.splitlines()[0]
    assert first.split(maxsplit=1) == ["aardvark", "Digs.; arguments depth; plugin zoo"]
    [model] = json.loads(printed("list", "models", "aardvark", "--json").out)["models"]
    assert model == {
        "name": "aardvark", "plugin": "zoo", "distribution": "zoo", "description": "Digs.",
        "arguments": {"depth": "in metres"},
    }  # fmt: skip


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
    said = printed("list", "plugins")
    lines = said.out.splitlines()
    assert lines[:2] == ["broken:", "  torn  torn-plugin 1.0, torn; OSError: no reel"]
    assert lines[2] == "plugins:"
    films = "  films         film-plugin 1.0, films; register_models (1), register_respondents (1)"
    assert films in lines
    assert "harness: plugin 'films' of film-plugin implements 'on_run_ends'" in said.err
    assert "did you mean 'on_run_end'?" in said.err


def test_a_package_of_task_files_alone_is_no_plugin_without_hooks(site, printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    task = "task: tea\nextends: interests\noptions: {window: 5}\n"
    files = {"teas/__init__.py": "", "teas/task_configs/tea.yaml": task}
    site.install("tea-tasks", {"teas": "teas"}, files)
    site.install("empty-plugin", {"empty": "empty"}, {"empty.py": ""})
    lines = printed("list", "plugins").out.splitlines()
    assert "  teas          tea-tasks 1.0, teas; task files only" in lines
    assert "  empty         empty-plugin 1.0, empty; implements no hook" in lines
    assert printed("validate", "tea").out.startswith("tea: ok (")


def test_a_broken_plugin_is_shown_with_its_traceback_and_strict_fails(torn, printed):
    said = printed("list", "plugins", "torn-plugin").out
    assert "could not be loaded:\n  Traceback (most recent call last):" in said
    assert said.rstrip().endswith("OSError: no reel")
    said = printed("list", "plugins", "--strict-plugins", code=1)
    assert "plugin problems found" in said.err
    assert "plugin 'torn' of torn-plugin could not be loaded: OSError: no reel" in said.err
    assert "broken:" in said.out
    assert "no option '--strict-plugins'" in printed("tasks", "--strict-plugins", code=2).err


def test_what_plugins_say_of_themselves_does_not_steer_the_terminal(site, printed):
    code = FILMS.replace("A model of film.", "\\x1b[31mred\\nalert")
    site.install("loud", {"loud": "loud"}, {"loud.py": code})
    for command in ("list models", "list models reel", "list plugins loud"):
        said = printed(*command.split()).out
        assert "\x1b" not in said
        assert "red alert" in said


def test_only_the_chosen_plugins_are_loaded(films, torn, printed, monkeypatch):
    monkeypatch.setenv(CHOSEN, "models, film-plugin")
    document = json.loads(printed("list", "plugins", "--json").out)
    assert [one["plugin"] for one in document["plugins"]] == ["films", "models"]
    assert document["broken"] == [], "what is left out is not even imported"
    left = {one["plugin"] for one in document["left_out"]}
    assert {"torn", "judges", "interests"} <= left
    said = printed("list", "judges", "lexical", code=2)
    assert "HARNESS_PLUGINS leaves out" in said.err
    assert "judges" in said.err


def test_only_tasks_that_ask_it_with_their_options_are_named(printed):
    said = printed("list", "prompts", "perrecbench/compare.candidate", "--json").out
    [page] = json.loads(said)["prompts"]
    assert "perrec_easy_pairwise" in page["tasks"]
    assert not {"perrec_easy_pointwise", "perrec_easy_listwise", "perrec_rating"} & {*page["tasks"]}
    assert page["stages"] == ["compare"]


def test_a_name_of_several_benchmarks_is_not_shown_and_a_variable_that_nobody_describes_told_so(
    site, printed
):
    site.install("two", {"two": "two"}, {
        "two/__init__.py": "",
        "two/prompts/two/name.candidate.j2": "{{ word }}",
        "two/prompts/two/ask.candidate.j2": "{{ word }} {{ other }}",
        "two/prompts/two/variables.yaml": "word: what to say\nask.candidate: {other: what else}\n",
    })  # fmt: skip
    found = json.loads(printed("list", "prompts", "name.candidate", "--json").out)["prompts"]
    assert [one["name"] for one in found] == ["interests/name.candidate", "two/name.candidate"]
    assert [one["sources"] for one in found] == [["harness"], ["two"]]
    assert all("text" not in one for one in found)
    [page] = json.loads(printed("list", "prompts", "two/ask.candidate", "--json").out)["prompts"]
    assert page["variables"] == {"other": "what else", "word": "what to say"}
    (site.folder / "two/prompts/two/variables.yaml").write_text("other: what else\n")
    assert "word   not described" in printed("list", "prompts", "two/ask.candidate").out


MAPPING = "a mapping of variables to meanings"


@pytest.mark.parametrize(
    ("text", "says", "found", "expected"),
    [
        ("- a\n- b\n", "'the file' cannot be used", "['a', 'b']", MAPPING),
        ("word: [1]\n", "'word' cannot be used", "[1]", "its meaning as text"),
        ("ask.candidate: text\n", "'ask.candidate' cannot be used", "'text'", MAPPING),
        ("ask.candidate: {word: 7}\n", "'word' cannot be used", "7", "its meaning as text"),
    ],
)  # fmt: skip
def test_a_file_of_variables_that_cannot_be_used_is_named(tmp_path, text, says, found, expected):
    (tmp_path / "variables.yaml").write_text(text)
    with pytest.raises(PromptError, match=says) as caught:
        meanings(tmp_path / "ask.candidate.j2", ["word"])
    assert caught.value.where == str(tmp_path / "variables.yaml")
    assert (caught.value.found, caught.value.expected) == (found, expected)


def test_names_that_a_template_makes_itself_are_no_variables(tmp_path):
    folder = tmp_path / "quiz"
    folder.mkdir()
    (folder / "_parts.j2").write_text("{% macro shout(word) %}{{ word }}!{% endmacro %}")
    (folder / "_rest.j2").write_text("{{ shout(more) }} {{ greeting }}")
    (folder / "ask.candidate.j2").write_text(
        "{% from 'quiz/_parts.j2' import shout %}{% import 'quiz/_parts.j2' as parts %}"
        "{% set greeting = 'hello' %}{% block user %}{{ greeting }} {{ shout(name) }}"
        "{{ parts.shout(name) }}{% include 'quiz/_rest.j2' %}{% endblock %}"
    )
    template = Templates([tmp_path]).need("quiz", "ask", "candidate")
    assert template.variables == {"name", "more"}
