"""The published prompts word for word, ours as they are rendered, and the published tables."""

import re
from pathlib import Path

import pytest
from builders.stages import PROMPTS
from harness_usersumbench.paper import TABLES, examples, results

from harness.prompts import Templates

FOLDER = PROMPTS / "usersumbench"
TEMPLATES = Templates([PROMPTS])
APPENDIX = (Path(__file__).parent / "appendix_a.md").read_text("utf-8")
"""The prompts of appendix A of arXiv:2408.16966, as its text was extracted; each up to the words
"Here we define:"."""

PUBLISHED = {
    "A.1": "summarise.candidate",
    "A.2": "segment.candidate",
    "A.3": "revise.candidate",
    "A.4": "fits_query.verifier",
    "A.5": "questions.verifier",
    "A.6": "judgements.verifier",
    "A.7": "combine.candidate",
}
OURS = ("entities.verifier", "predict.predictor", "rate.judge")
ESCAPED = "\N{OBJECT REPLACEMENT CHARACTER}"


def printed(section):
    """The words of a published prompt without the artefacts of its print."""
    [_, text] = re.split(rf"^## {re.escape(section)} .*$", APPENDIX, flags=re.M)
    text = re.split(r"^## ", text, flags=re.M)[0]
    text = text.replace("\\*", ESCAPED).replace("\\_", "_")
    text = text.replace("**", "")  # bold type
    text = re.sub(r"“\*(\w+)\*”", r"“\1”", text)  # italic type
    text = text.replace("“", '"').replace("”", '"').replace(ESCAPED, "*")
    text = re.sub(r"—\s*(\w[\w ]*?)\s*—", r"— \1 —", text)
    return text.split()


def kept(name):
    """The words of a prompt's file, its variables written as in the paper."""
    text = (FOLDER / f"{name}.j2").read_text("utf-8")
    if name == PUBLISHED["A.7"]:
        text = re.sub(r"{% for .*? %}\n(.*)\n{% endfor %}", r"\1\n...", text)
    return re.sub(r"{{ (?:segment\.)?(\w+) }}", r"{\1}", text).split()


@pytest.mark.parametrize("section", PUBLISHED)
def test_a_published_prompt_is_kept_word_for_word(section):
    assert kept(PUBLISHED[section]) == printed(section)


def test_every_other_prompt_is_marked_as_ours():
    files = {file.name.removesuffix(".j2") for file in FOLDER.glob("*.j2")}
    assert files == {*PUBLISHED.values(), *OURS}
    for name in OURS:
        assert (FOLDER / f"{name}.j2").read_text("utf-8").startswith("{# Ours: ")


def rendered(prompt, role, **variables):
    [message] = TEMPLATES.need("usersumbench", prompt, role).render(variables)
    assert message.role == "user"
    return message.content


QUESTION = {
    "summary": None,
    "user_activities": "",
    "asked": "activity",
    "thing": "movie",
    "category": "genre",
    "options": [["A", "Heat"], ["B", "Big"]],
}


def test_a_question_shows_a_summary_and_activities_where_it_has_them():
    more = {"summary": "Likes tea.", "user_activities": "watched “Heat”"}
    assert rendered("predict", "predictor", **QUESTION | more) == (
        "This is a summary of a user's past activities:\n\nLikes tea.\n\n"
        "These are the user's most recent activities, the oldest first:\n\nwatched “Heat”\n\n"
        "Which movie is the user's next activity about?\n\nA. Heat\nB. Big\n\n"
        "Choose the most likely option. Answer with its letter and nothing else."
    )


def test_a_question_without_context_is_about_a_user_all_the_same():
    assert rendered("predict", "predictor", **QUESTION | {"asked": "category"}) == (
        "The user's next activity is about a movie. Which genre does it have?\n\n"
        "A. Heat\nB. Big\n\n"
        "Choose the most likely option. Answer with its letter and nothing else."
    )


def test_the_four_tables_are_there():
    sources = {TABLES.read(name).source for name in TABLES.names()}
    assert sources == {"Table 1", "Table 2", "Table 3", "Table 4"}
    assert examples() == {"MovieLens": 4297, "Yelp": 6798, "Amazon Review": 5046}


def test_table_4_is_published():
    found = results()
    assert len(found) == 18
    yelp = {one.metric: one.value for one in found if one.task == "usersum_yelp_hc"}
    assert yelp == {"qm": 0.512, "ifm": 0.992, "idm": 4.721}


def test_only_qm_can_be_comparable():
    for one in results():
        assert one.comparable_if.startswith("never: ") == (one.metric != "qm")
