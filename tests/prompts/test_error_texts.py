"""What is said of prompts that cannot be used, word for word; DIR is the folder of prompts."""

import re

import pytest
from inline_snapshot import snapshot

from harness.base.errors import PromptError
from harness.prompts import Templates
from harness.prompts.task_prompts import overrides_in
from harness.prompts.templates import meanings

PROMPTS = {
    "outside {% block user %}inside{% endblock %}": ("DIR/quiz/ask.user.j2", "'outside'",
        snapshot("""\
the template has text outside the blocks that are messages
expected: all text inside a block named system, user or assistant\
""")),
    "{# nothing #}": ("DIR/quiz/ask.user.j2", None, snapshot("""\
the rendered prompt is empty
expected: at least one message with text\
""")),
    "fine\n\xff": (
        "DIR/quiz/ask.user.j2:2", "'utf-8' codec can't decode byte 0xff in position 5: invalid start byte",
        snapshot("""\
the template is not valid UTF-8
to do: save the file as UTF-8\
""")),
    "one\n{% if %}": ("DIR/quiz/ask.user.j2:2", None,
        snapshot("the template has a syntax error: Expected an expression, got 'end of statement block'")),
    "{% include name %}": ("DIR/quiz/ask.user.j2", None, snapshot("""\
a template names another one by an expression, so its files cannot be hashed
expected: include, import and extends with literal names: {% include "a/_b.j2" %}\
""")),
    "{% block user %}a\n{% block system %}b{% endblock %}{% endblock %}": (
        "DIR/quiz/ask.user.j2:2", None,
        snapshot("""\
the message 'system' is inside the message 'user'
expected: one message after the other, not nested\
""")),
    "{{ 1 // 0 }}": ("DIR/quiz/ask.user.j2:1", None,
        snapshot("the prompt cannot be rendered: ZeroDivisionError: integer division or modulo by zero")),
    "{{ who }}": ("DIR/quiz/ask.user.j2:1", None, snapshot(
        "the prompt needs the variable 'who', which was not given (given: no variables)"
    )),
}  # fmt: skip


@pytest.mark.parametrize("text", PROMPTS)
def test_prompts(text, tmp_path, raised):
    file = tmp_path / "quiz" / "ask.user.j2"
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))

    def rendered():
        Templates([tmp_path]).need("quiz", "ask", "user").render({})

    where, found, wording = PROMPTS[text]
    assert raised(PromptError, rendered, where=where, found=found) == wording


def test_one_prompt_of_two_plugins(tmp_path, raised):
    for name in ("a", "b"):
        (tmp_path / name / "quiz").mkdir(parents=True)
        (tmp_path / name / "quiz" / "ask.user.j2").write_text("x")
    need = Templates([tmp_path / "a", tmp_path / "b"]).need
    where, found = "quiz/ask.user.j2", "DIR/a/quiz/ask.user.j2 and DIR/b/quiz/ask.user.j2"
    assert raised(PromptError, need, "quiz", "ask", "user", where=where, found=found) == snapshot("""\
two plugins have a prompt of the same name
expected: one file for each prompt
to do: rename the benchmark of one plugin, or uninstall one of the plugins\
""")


def test_prompts_of_ones_own_that_replace_none(tmp_path, raised):
    for name in ("theirs/quiz/ask.user.j2", "mine/quiz/aks.user.j2"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    given = tmp_path / "mine", Templates([tmp_path / "theirs"])
    where, found = "DIR/mine/quiz/aks.user.j2", "quiz/aks.user.j2"
    assert raised(PromptError, overrides_in, *given, where=where, found=found) == snapshot("""\
a file of --prompts replaces no prompt
expected: BENCHMARK/PROMPT.ROLE.j2 of an existing prompt; names of parts to include begin with _
to do: did you mean 'quiz/ask.user.j2'?\
""")


def test_meanings_that_cannot_be_read(tmp_path, raised):
    (tmp_path / "variables.yaml").write_text("name: [\n")
    where = "DIR/variables.yaml"
    # What was found is told in the words of the library that reads YAML.
    found = re.compile("while parsing a flow node\n.*", re.DOTALL)
    given = tmp_path / "ask.user.j2", ["name"]
    told = raised(PromptError, meanings, *given, where=where, found=found)
    assert told == snapshot("the file of variables cannot be read")
    (tmp_path / "variables.yaml").write_text("name: " + "[" * 100_000)
    with pytest.raises(PromptError, match="the file of variables cannot be read"):
        meanings(*given)
