"""Segments, lines of activity, the rules that read them, and the prompts, published and ours."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from builders.stages import PROMPTS
from builders.usersumbench import DAY, options
from harness_usersumbench import rules
from harness_usersumbench.paper import TABLES, examples, results
from harness_usersumbench.records import Activity
from harness_usersumbench.rendering import lines, month, time_range
from harness_usersumbench.segments import by_count, by_months, segmented

from harness.prompts import Templates


def activity(*when, name="Heat (1995)"):
    return Activity(int(datetime(*when, tzinfo=UTC).timestamp()), name, ("Crime", "Drama"))


def test_a_line_names_the_object_its_categories_and_the_hour_in_utc():
    for when, moment in (
        ((2004, 5, 15, 16, 59), "Sat 05/15/2004 4PM"), ((2004, 6, 11, 18), "Fri 06/11/2004 6PM"),
        ((2000, 2, 29, 0, 30), "Tue 02/29/2000 12AM"), ((2000, 12, 31, 12), "Sun 12/31/2000 12PM"),
        ((2001, 1, 1, 11, 59), "Mon 01/01/2001 11AM"),
    ):  # fmt: skip
        [line] = lines([activity(*when)], options())
        assert line == f'watched "Heat (1995)" [Crime, Drama] around {moment}'


def test_a_line_is_the_same_wherever_the_computer_stands(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        [line] = lines([activity(2004, 5, 31, 23)], options())
        assert line.endswith("around Mon 05/31/2004 11PM")
        assert time_range([activity(2004, 5, 31, 23)]) == "05/31/2004"
        assert month(activity(2004, 5, 31, 23).time) == (2004, 5)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_range_goes_from_the_first_day_to_the_last():
    first, last = activity(2004, 5, 15, 1), activity(2005, 1, 2)
    assert time_range([first, activity(2004, 7, 1), last]) == "05/15/2004 to 01/02/2005"
    assert time_range([first, activity(2004, 5, 15, 23)]) == "05/15/2004"


def months(*counts):
    """So many activities in each of consecutive calendar months, from January 2001 on."""
    return [
        activity(2001 + place // 12, place % 12 + 1, 1 + number % 28, name=str(number))
        for place, count in enumerate(counts)
        for number in range(count)
    ]


def sizes(segments):
    return [len(one) for one in segments]


def test_months_are_merged_forward_and_a_small_tail_joins_the_one_before():
    for counts, merged in (
        ((19, 1, 20), [20, 20]), ((5, 5, 5, 5, 30), [20, 30]), ((10, 30, 10, 10), [40, 20]),
        ((20, 20, 19), [20, 39]), ((20, 1), [21]), ((5, 0, 0, 15, 25, 3, 0, 16), [20, 25 + 19]),
    ):  # fmt: skip
        past = months(*counts)
        found = by_months(past, least=20)
        assert sizes(found) == merged
        assert [one for segment in found for one in segment] == past


def test_months_are_those_of_utc_and_of_their_year():
    past = [activity(2001, 1, 31, 23), activity(2001, 2, 1), activity(2002, 2, 1)]
    assert sizes(by_months(past, least=1)) == [1, 1, 1]


def test_parts_are_equal_and_large_enough():
    for count, parts in ((199, [49, 50, 50, 50]), (79, [26, 26, 27]), (59, [29, 30]), (39, [39])):
        past = months(count)
        found = by_count(past, most=4, least=20)
        assert sorted(sizes(found)) == parts
        assert [one for segment in found for one in segment] == past


def test_a_past_without_months_to_divide_it_is_cut_by_count_or_if_asked():
    asked = options(segmenting="count", segments=3, min_segment_activities=10)
    for past, given, by, cut in (
        (months(180), options(), "count", [45, 45, 45, 45]),
        (months(160, 20), options(), "months", [160, 20]),
        (months(20, 20, 20), asked, "count", [20, 20, 20]),
    ):
        found = segmented(past, given)
        assert (found.by, sizes(found.segments)) == (by, cut)


SEGMENT = """\
watched "Dark Harbour (1994)" [Crime, Drama] around Mon 01/01/2001 4PM
watched "Harbour Lights" [Drama] around Tue 01/02/2001 4PM
watched "A Café" [Comedy] around Wed 01/03/2001 4PM"""


class Chance(Random):
    """Chance that always or never invents."""

    def __init__(self, *, invents):
        super().__init__(0)
        self.first = 0.0 if invents else 0.99

    def random(self):
        return self.first


def test_a_summary_counts_categories_and_words():
    past = [Activity(n * DAY, f"Silver Harbour {n}", ("Drama",)) for n in range(30)]
    past += [Activity((30 + n) * DAY, f"Night {n}", ("Crime", "Drama")) for n in range(12)]
    past += [Activity((42 + n) * DAY, f"Night {n}", ("Crime",)) for n in range(8)]
    text = rules.summarise({"user_activities": "\n".join(lines(past, options()))}, Random(0))
    assert text.splitlines() == [
        "**Summary**",
        "Activities: 50",
        "Categories: Drama (42), Crime (20)",
        "Words in names: harbour (30), silver (30), night (20)",
        "**Insights**",
        "* Most frequent in the long term: Drama",
        "* Most frequent lately: Crime",
    ]


def test_the_verifier_finds_what_a_segment_invents_and_the_revision_leaves_it_out():
    given = {"user_activities": SEGMENT, "max_words": 200}
    summary = rules.segment(given, Chance(invents=True))
    assert "Categories: Drama (2), Opera (2), Comedy (1), Crime (1)" in summary
    assert rules.fits_query({"summary": summary, "query": "q"}, Random(0)) == "consistent"
    entities = rules.entities({"summary": summary, "most": 3}, Random(0))
    assert entities.splitlines() == ["Drama", "Opera", "Comedy"]
    pairs = rules.questions({"kg_entities": entities, "summary": summary}, Random(0))
    assert pairs.splitlines()[1].startswith('[Question#2: "')
    assert pairs.splitlines()[1].endswith('Answer#2: "Opera"]')
    told = rules.judgements({"question_answer_pairs": pairs, "user_activities": SEGMENT}, Random(0))
    assert told.splitlines() == [
        '[Status#1: "consistent", ReferenceAnswer#1: "none"]',
        '[Status#2: "inconsistent", ReferenceAnswer#2: "Drama"]',
        '[Status#3: "consistent", ReferenceAnswer#3: "none"]',
    ]
    wrong = '[Question#1: "What?", Answer#1: "Opera", ReferenceAnswer#1: "Drama"]'
    asked = {**given, "previous_summary": summary, "previous_question_answer_pairs": wrong}
    assert "Opera" not in rules.revise(asked, Chance(invents=False))
    again = rules.revise(asked, Chance(invents=True))
    assert "Opera" not in again, "what was wrong is not repeated"


def test_segments_are_added_up():
    first = rules.segment({"user_activities": SEGMENT}, Chance(invents=False))
    later = SEGMENT.replace("Comedy", "War").replace("Drama", "War")
    second = rules.segment({"user_activities": later}, Chance(invents=False))
    segments = [{"time_range": "", "segment_summary": one} for one in (first, second)]
    text = rules.combine({"segments": segments}, Random(0))
    assert "Activities: 6" in text
    assert "Categories: War (3), Crime (2), Drama (2), Comedy (1)" in text
    assert "Words in names: harbour (4), café (2), dark (2), lights (2)" in text
    assert "* Most frequent in the long term: War" in text
    assert "* Most frequent lately: War" in text
    prose = [{"time_range": "", "segment_summary": "Likes films (3) and books."}]
    assert "* Most frequent lately: nothing" in rules.combine({"segments": prose}, Random(0))


FILMS = ["Quiet Valley", "Café Nights", "Dark Harbour Two", "Iron Road", "Lost Letters"]


def predict(options, summary=None, activities=""):
    given = {"summary": summary, "user_activities": activities}
    return rules.predict({**given, "options": list(zip("ABCDE", options, strict=True))}, Random(0))


def test_the_predictor_prefers_what_the_summary_says_first_and_then_the_activities():
    assert predict(FILMS, "Fond of harbour stories, and of a café.") == "C"
    assert predict(FILMS, "Fond of a café, less of letters.") == "B"
    assert predict(["War", "Film-Noir", "Drama", "Sci-Fi", "Crime"], "Film-Noir, then war.") == "B"
    # Activities decide where the summary does not.
    shown = SEGMENT + '\nwatched "Iron Horse" [War] around Thu 01/04/2001 4PM'
    assert predict(FILMS, None, shown) == "C"
    assert predict(FILMS, "Nothing known.", shown) == "C"
    assert predict(FILMS, "Fond of iron.", shown) == "D"
    assert predict(["Crime", "War", "Comedy", "Drama", "Western"], "", shown) == "D"


def test_without_anything_the_predictor_guesses_alike_in_any_order():
    chosen = {order["ABCDE".index(predict(order))] for order in (FILMS, FILMS[::-1], sorted(FILMS))}
    assert len(chosen) == 1
    assert {predict([f"{word} {n}" for word in "abcde"]) for n in range(50)} == set("ABCDE")


FOLDER = PROMPTS / "usersumbench"
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
    [message] = Templates([PROMPTS]).need("usersumbench", prompt, role).render(variables)
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


def test_a_question_shows_a_summary_and_activities_where_it_has_them_or_a_user_all_the_same():
    more = {"summary": "Likes tea.", "user_activities": "watched “Heat”"}
    assert rendered("predict", "predictor", **QUESTION | more) == (
        "This is a summary of a user's past activities:\n\nLikes tea.\n\n"
        "These are the user's most recent activities, the oldest first:\n\nwatched “Heat”\n\n"
        "Which movie is the user's next activity about?\n\nA. Heat\nB. Big\n\n"
        "Choose the most likely option. Answer with its letter and nothing else."
    )
    assert rendered("predict", "predictor", **QUESTION | {"asked": "category"}) == (
        "The user's next activity is about a movie. Which genre does it have?\n\n"
        "A. Heat\nB. Big\n\n"
        "Choose the most likely option. Answer with its letter and nothing else."
    )


def test_the_four_tables_are_there_and_only_qm_of_table_4_can_be_comparable():
    sources = {TABLES.read(name).source for name in TABLES.names()}
    assert sources == {"Table 1", "Table 2", "Table 3", "Table 4"}
    assert examples() == {"MovieLens": 4297, "Yelp": 6798, "Amazon Review": 5046}
    found = results()
    assert len(found) == 18
    yelp = {one.metric: one.value for one in found if one.task == "usersum_yelp_hc"}
    assert yelp == {"qm": 0.512, "ifm": 0.992, "idm": 4.721}
    for one in found:
        assert one.comparable_if.startswith("never: ") == (one.metric != "qm")
