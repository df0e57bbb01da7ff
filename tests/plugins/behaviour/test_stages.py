"""The published prompt word for word, its variants, and the stage in whole runs."""

import ast
import json
import re
from pathlib import Path

import pytest
from harness_behaviour.benchmark import BEHAVIOUR
from harness_behaviour.rules import recommend
from harness_behaviour.stages import RECOMMEND

from harness.prompts import Templates
from harness.testing import ScriptedModel, run_tasks

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
    variables = {"domain": "movies", "setting": "a", "proxy": "all",
                 "group": ["25-34", "Male", "clerical/admin"], "history": HISTORY,
                 "candidates": CANDIDATES}  # fmt: skip
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


TASK = "behaviour_movies_a"


def first_ten(request):
    """The first ten of the candidates that a prompt lists, read from its text alone."""
    [text] = [message.content for message in request.messages]
    return json.dumps(ast.literal_eval(re.search(r"Candidates: (\[.*\])$", text)[1])[:10])


def test_each_prompt_is_asked_once_at_temperature_0(tmp_path):
    model = ScriptedModel(first_ten)
    result = run_tasks(TASK, folder=tmp_path, model=model, limit=12, set=["kept=3", "tries=300"])
    assert model.count == 12
    assert {request.sampling.temperature for request in model.requests} == {0.0}
    assert RECOMMEND.calls.least == RECOMMEND.calls.most == 1
    assert (RECOMMEND.roles, BEHAVIOUR.scored_with) == (("candidate",), ("fills", "window"))
    journal = (result.folder / TASK / "1-recommend.jsonl").read_text("utf-8")
    for one in map(json.loads, journal.splitlines()):
        assert one["user"] == one["id"]
        assert one["outcome"]["value"]["places"] == list(range(10))
        assert one["item"]["setting"] == "a"
    manifest = json.loads((result.folder / "manifest.json").read_text("utf-8"))
    [stage] = manifest["tasks"][TASK]["stages"]
    # Similarity belongs to the stage, and what scores use does not.
    assert stage["components"]["options"] == {"domain": "movies", "similarity": 0.85}


def test_the_rule_sees_only_what_the_prompt_shows():
    candidates = [f"Film {place} (19{place})" for place in range(50, 99)] + ["Night Boat (1990)"]
    variables = {"history": ["The Night Train (1962)"], "candidates": candidates}
    said = json.loads(recommend(variables, None))
    # A word of the history first, then the nearest years.
    assert said[:3] == ["Night Boat (1990)", "Film 62 (1962)", "Film 61 (1961)"]
    assert json.loads(recommend({**variables, "history": []}, None)) == candidates[:10]
