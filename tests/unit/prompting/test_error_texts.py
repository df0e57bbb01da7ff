"""What is said of prompts that cannot be used, word for word; DIR is the folder of prompts."""

import pytest

from harness.errors import PromptError
from harness.prompting import Templates
from harness.prompting.overrides import overrides_in
from harness.prompting.variables import meanings

PROMPTS = {
    "outside {% block user %}inside{% endblock %}": """\
DIR/quiz/ask.user.j2: text stands outside the blocks that are messages
  found:    'outside'
  expected: all text inside {% block system %}, {% block user %} or the like""",
    "{# nothing #}": """\
DIR/quiz/ask.user.j2: the prompt came out empty
  expected: at least one message with text""",
    "fine\n\xff": """\
DIR/quiz/ask.user.j2:2: the template is no UTF-8 text
  found:    'utf-8' codec can't decode byte 0xff in position 5: invalid start byte
  to do:    save the file as UTF-8""",
    "one\n{% if %}": (
        "DIR/quiz/ask.user.j2:2: the template cannot be read: Expected an expression, got "
        "'end of statement block'"
    ),
    "{% include name %}": """\
DIR/quiz/ask.user.j2: a template names another one by an expression, so that it cannot be hashed
  expected: include, import and extends with plain names: {% include "a/_b.j2" %}""",
    "{% block user %}a\n{% block system %}b{% endblock %}{% endblock %}": """\
DIR/quiz/ask.user.j2:2: the message 'system' stands inside the message 'user'
  expected: blocks that are messages one after the other""",
    "{{ 1 // 0 }}": (
        "DIR/quiz/ask.user.j2:1: the prompt cannot be rendered: ZeroDivisionError: integer "
        "division or modulo by zero"
    ),
    "{{ who }}": """\
DIR/quiz/ask.user.j2:1: the prompt needs the variable 'who', which it was not given
  found:    no variables""",
}


def said(folder, call):
    with pytest.raises(PromptError) as caught:
        call()
    return str(caught.value).replace(str(folder), "DIR")


@pytest.mark.parametrize("text", PROMPTS)
def test_prompts(text, tmp_path):
    file = tmp_path / "quiz" / "ask.user.j2"
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))
    call = lambda: Templates([tmp_path]).need("quiz", "ask", "user").render({})  # noqa: E731
    assert said(tmp_path, call) == PROMPTS[text]


def test_one_prompt_of_two_plugins(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "quiz").mkdir(parents=True)
        (tmp_path / name / "quiz" / "ask.user.j2").write_text("x")
    both = Templates([tmp_path / "a", tmp_path / "b"])
    assert (
        said(tmp_path, lambda: both.need("quiz", "ask", "user"))
        == """\
quiz/ask.user.j2: two plugins bring a prompt of the same name
  found:    DIR/a/quiz/ask.user.j2 and DIR/b/quiz/ask.user.j2
  expected: one file for each prompt
  to do:    give the benchmark of one of them another name, or remove one of the plugins"""
    )


def test_prompts_of_ones_own_that_replace_none(tmp_path):
    for name in ("theirs/quiz/ask.user.j2", "mine/quiz/aks.user.j2"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    there = Templates([tmp_path / "theirs"])
    assert (
        said(tmp_path, lambda: overrides_in(tmp_path / "mine", there))
        == """\
DIR/mine/quiz/aks.user.j2: a file of --prompts replaces no prompt
  found:    quiz/aks.user.j2
  expected: BENCHMARK/PROMPT.ROLE.j2 of a prompt that there is; names of parts to include \
begin with _
  to do:    did you mean 'quiz/ask.user.j2'?"""
    )


def test_meanings_that_cannot_be_read(tmp_path):
    (tmp_path / "variables.yaml").write_text("name: [\n")
    text = said(tmp_path, lambda: meanings(tmp_path / "ask.user.j2", ["name"]))
    first, found, *_ = text.splitlines()
    assert first == "DIR/variables.yaml: the file of variables cannot be read"
    assert found == "  found:    while parsing a flow node"
