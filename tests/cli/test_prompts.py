"""`harness prompts`: what there is, and what one prompt is given."""

import json

import pytest

from harness.base.errors import PromptError
from harness.prompts import Templates
from harness.prompts.variable_docs import meanings


def test_only_tasks_that_ask_it_with_their_options_are_named(printed):
    said = printed("prompts", "perrecbench/compare.candidate", "--json").out
    [page] = json.loads(said)["prompts"]
    assert "perrec_easy_pairwise" in page["tasks"]
    assert not {"perrec_easy_pointwise", "perrec_easy_listwise", "perrec_rating"} & {*page["tasks"]}
    assert page["stages"] == ["compare"]


def test_a_name_that_several_benchmarks_have_is_listed_and_not_shown(site, printed):
    site.install("two", {"two": "two"}, {
        "two/__init__.py": "",
        "two/prompts/two/name.candidate.j2": "{{ word }}",
    })  # fmt: skip
    found = json.loads(printed("prompts", "name.candidate", "--json").out)["prompts"]
    assert [one["name"] for one in found] == ["interests/name.candidate", "two/name.candidate"]
    assert [one["sources"] for one in found] == [["harness"], ["two"]]
    assert all("text" not in one for one in found)


def test_a_variable_that_nobody_describes_is_told_so(site, printed):
    site.install("two", {"two": "two"}, {
        "two/__init__.py": "",
        "two/prompts/two/ask.candidate.j2": "{{ word }} {{ other }}",
        "two/prompts/two/variables.yaml": "word: what to say\nask.candidate: {other: what else}\n",
    })  # fmt: skip
    [page] = json.loads(printed("prompts", "two/ask.candidate", "--json").out)["prompts"]
    assert page["variables"] == {"other": "what else", "word": "what to say"}
    (site.folder / "two/prompts/two/variables.yaml").write_text("other: what else\n")
    assert "word   not described" in printed("prompts", "two/ask.candidate").out


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
