"""The published prompt word for word, and how settings, domains and demographies change it."""

import ast
import re
from pathlib import Path

import pytest

from harness.prompts import Templates

PROMPTS = Path(__file__).parents[3] / "prompts"
PRINTED = (Path(__file__).parent / "appendix_a1.txt").read_text("utf-8")
"""Appendix A.1 as its text was extracted: without line breaks, and with curly quotation marks."""

HISTORY, CANDIDATES = (
    ast.literal_eval(found.replace("’", "'")) for found in re.findall(r"\[.*?\]", PRINTED)
)
WHO = "The user is a 25-34 years old Male clerical/admin.\n"
SEEN = f"The user has previously watched the following movies: {HISTORY}.\n"


def rendered(**given):
    """The text of the prompt of the paper's worked example, or of one that differs from it."""
    variables = {
        "domain": "movies",
        "setting": "a",
        "proxy": "all",
        "group": ["25-34", "Male", "clerical/admin"],
        "history": HISTORY,
        "candidates": CANDIDATES,
    }
    template = Templates([PROMPTS]).need("behaviour", "recommend", "candidate")
    [message] = template.render({**variables, **given})
    assert message.role == "user"
    return message.content


def test_the_worked_example_of_the_paper_is_kept_word_for_word():
    assert (len(HISTORY), len(CANDIDATES)) == (5, 50)
    printed = PRINTED.removeprefix("Prompt ").replace("’", "'")
    assert rendered().split() == printed.split()


def test_settings_differ_by_the_sentences_on_the_user_and_the_history_and_nothing_else():
    a = rendered()
    assert a.count(WHO) == a.count(SEEN) == 1
    assert rendered(setting="b", proxy="none", group=[]) == a.replace(WHO, "")
    assert rendered(setting="c", history=[]) == a.replace(SEEN, "")
    nothing = rendered(setting="none", proxy="none", group=[], history=[])
    assert nothing == a.replace(WHO, "").replace(SEEN, "")


@pytest.mark.parametrize(
    ("proxy", "group", "who"),
    [
        ("age", ["56+"], "a 56+ years old"),
        ("occupation", ["K-12 student"], "a K-12 student"),
        ("country", ["Germany"], "from Germany"),
        ("gender_continent", ["Male", "Europe"], "a Male from Europe"),
    ],
)
def test_a_part_of_the_demography_leaves_the_words_of_the_others_out(proxy, group, who):
    assert rendered(proxy=proxy, group=group) == rendered().replace(WHO, f"The user is {who}.\n")


def test_lists_are_written_as_python_writes_them():
    titles = ["Schindler's List (1993)", "À nous la liberté", 'The "Great" One', "Heat (1995)"]
    text = rendered(candidates=titles, history=titles)
    assert text.endswith(f"Candidates: {titles!r}")
    assert f"following movies: {titles!r}." in text
    assert "\"Schindler's List (1993)\", 'À nous la liberté'" in text


def test_music_has_words_of_its_own():
    tracks = ["Creep — Radiohead"]
    text = rendered(
        domain="music", proxy="country", group=["Brazil"], history=tracks, candidates=tracks
    )
    assert not re.search(r"movie|watch|view", text)
    assert (
        "You are proficient in recommending new music for users to listen to based on their "
        "background, previous listening history, or a combination of both.\n"
        "The user is from Brazil.\n"
        "The user has previously listened to the following music: ['Creep — Radiohead'].\n"
        "From the candidates listed below, recommend the next 10 music for the user to listen to "
        "based on the user's background, previous listening history, or a combination of both."
    ) in text
