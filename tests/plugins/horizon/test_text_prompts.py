"""The prompts of Tasks 2 and 3: those of appendix G word for word, and ours."""

import json
from pathlib import Path

import pytest
from harness_horizon.text.searching import PROMPTS

from harness.prompts import Templates

FOLDER = Path(__file__).parents[3] / "prompts"
PLACEHOLDER = "I1 <SEP> I2 <SEP> ..... <In>"


@pytest.fixture(scope="session")
def paper(real_data):
    file = real_data.parent / "papers" / "horizon.txt"
    if not file.is_file():
        pytest.skip(f"no text of the paper at {file}")
    return file.read_text("utf-8")


def rendered(prompt, history=("A pot", "A kite")):
    template = Templates([FOLDER]).need("horizon_text", prompt, "candidate")
    return template.render({"history": list(history)})


def words(text):
    """The words of a prompt, without the lines of its JSON that print lost."""
    lines = (line.strip() for line in text.splitlines())
    return " ".join(" ".join(line for line in lines if line not in ("{", "}", "]", "...,")).split())


@pytest.mark.parametrize(("prompt", "begin"), [("next", "PROMPT FOR TASK 2"),
                                               ("long", "PROMPT for Task 3")])  # fmt: skip
def test_the_published_prompts_are_those_of_appendix_g(paper, prompt, begin):
    printed = paper.partition(begin)[2].partition("\n")[2].partition("```")[0]
    printed = printed.replace("onesentence", "one-sentence")  # a hyphen at the end of a line
    assert PLACEHOLDER in printed
    [message] = rendered(prompt)
    assert message.role == "user"
    assert words(message.content) == words(printed.replace(PLACEHOLDER, "A pot <SEP> A kite"))


@pytest.mark.parametrize(
    ("prompt", "fields"),
    [("next", ["queries"]), ("long", ["item_descriptions_timewise"]), ("one", ["queries"]),
     ("next_code", ["guideline", "queries"]),
     ("long_code", ["guideline", "item_descriptions_timewise"])],
)  # fmt: skip
def test_each_prompt_shows_the_json_that_it_asks_for(prompt, fields):
    text = rendered(prompt)[-1].content
    shown = text[text.index("{") :].replace("...,", "").removesuffix("```")
    assert list(json.loads(shown)) == fields


def test_the_layout_of_the_code_has_a_system_message_and_another_separator():
    assert {*PROMPTS} == {"next", "next_code", "long", "long_code", "one"}
    for prompt in ("next_code", "long_code"):
        system, user = rendered(prompt)
        assert (system.role, user.role) == ("system", "user")
        assert user.content.startswith("History: A pot |<SEP>| A kite |<SEP>| ")


def test_a_title_is_shown_as_it_is():
    [message] = rendered("next", ["{{ 7 }} <b> \" ' & é"])
    assert "History: {{ 7 }} <b> \" ' & é\n" in message.content
