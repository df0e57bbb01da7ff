"""Messages as one text; the texts were written out by hand."""

import pytest
from harness_models.chat_template import plain_form, template_form

from harness.base.errors import UsageError
from harness.contracts.model import CallError, Message

SHOTS = (
    Message("system", "Add."),
    Message("user", "1 + 1?"),
    Message("assistant", "2"),
    Message("user", "2 + 3?"),
)

CHATML = """\
{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{%- endif %}
"""

IN_CHATML = (
    "<|im_start|>system\nAdd.<|im_end|>\n"
    "<|im_start|>user\n1 + 1?<|im_end|>\n"
    "<|im_start|>assistant\n2<|im_end|>\n"
    "<|im_start|>user\n2 + 3?<|im_end|>\n"
    "<|im_start|>assistant\n"
)


@pytest.fixture
def template(tmp_path):
    def template(text, **variables):
        file = tmp_path / "chat.jinja"
        file.write_text(text)
        return template_form(file, variables)

    return template


def test_the_plain_form_names_who_speaks_and_leaves_the_answer_open():
    form = plain_form()
    said = "Add.\n\nUser: 1 + 1?\n\nAssistant: 2\n\nUser: 2 + 3?\n\nAssistant:"
    assert form.render(SHOTS) == said
    assert form.stop == ("\n\nUser:",)


def test_a_template_is_filled_as_its_model_was_taught_and_a_begun_answer_gone_on_with(template):
    assert template(CHATML).render(SHOTS) == IN_CHATML
    assert template(CHATML).stop == ()
    begun = (*SHOTS, Message("assistant", "{"))
    assert template(CHATML).render(begun) == IN_CHATML + "{"
    assert plain_form().render(begun).endswith("User: 2 + 3?\n\nAssistant: {")


def test_a_template_gets_its_variables_and_no_second_beginning(template):
    form = template("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", eos_token="</s>")
    assert form.render((Message("user", "hi"),)) == "hi</s>"


def test_forms_are_told_apart(template):
    forms = [plain_form(), template(CHATML), template("{{ messages }}"), template(CHATML, a=1)]
    identities = [dict(form.identity) for form in forms]
    assert all(one not in identities[:place] for place, one in enumerate(identities))
    assert template(CHATML).identity == template(CHATML).identity


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{% if %}", "line 1: Expected an expression"),
        ("{{ raise_exception('never') }}", "never"),
        ("{{ messages[0].content }}{{ eos_token }}", "it uses eos_token"),
        ("", "its text lacks the user's message"),
        ("{% for m in message %}{{ m.content }}{% endfor %}Answer:", "message: 'Answer:'"),
        ("{{ messages.__class__.__mro__ }}", "access to attribute '__class__'"),
    ],
)
def test_a_template_that_cannot_be_used_says_why(template, tmp_path, text, found):
    with pytest.raises(UsageError, match=found) as caught:
        template(text)
    assert "chat.jinja" in str(caught.value)
    with pytest.raises(UsageError, match="No such file"):
        template_form(tmp_path / "none.jinja", {})


def test_a_conversation_that_the_template_refuses_is_a_failed_call(template):
    picky = template(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{{ messages[0].content }}"
    )
    with pytest.raises(CallError, match="no system") as caught:
        picky.render(SHOTS)
    assert (caught.value.cause, caught.value.retryable) == ("bad_request", False)
