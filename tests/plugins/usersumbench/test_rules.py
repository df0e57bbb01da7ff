"""The rules that stand for models: they read what their prompts show."""

from random import Random

from builders.usersumbench import DAY, options
from harness_usersumbench import rules
from harness_usersumbench.records import Activity
from harness_usersumbench.rendering import lines

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
    judged = rules.judgements(
        {"question_answer_pairs": pairs, "user_activities": SEGMENT}, Random(0)
    )
    assert judged.splitlines() == [
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
    pairs = list(zip("ABCDE", options, strict=True))
    return rules.predict({**given, "options": pairs}, Random(0))


def test_the_predictor_prefers_what_the_summary_says_first():
    assert predict(FILMS, "Fond of harbour stories, and of a café.") == "C"
    assert predict(FILMS, "Fond of a café, less of letters.") == "B"
    assert predict(["War", "Film-Noir", "Drama", "Sci-Fi", "Crime"], "Film-Noir, then war.") == "B"


def test_activities_decide_where_the_summary_does_not():
    shown = SEGMENT + '\nwatched "Iron Horse" [War] around Thu 01/04/2001 4PM'
    assert predict(FILMS, None, shown) == "C"
    assert predict(FILMS, "Nothing known.", shown) == "C"
    assert predict(FILMS, "Fond of iron.", shown) == "D"
    assert predict(["Crime", "War", "Comedy", "Drama", "Western"], "", shown) == "D"


def test_without_anything_the_predictor_guesses_alike_in_any_order():
    chosen = {order["ABCDE".index(predict(order))] for order in (FILMS, FILMS[::-1], sorted(FILMS))}
    assert len(chosen) == 1
    guesses = {predict([f"{word} {n}" for word in "abcde"]) for n in range(50)}
    assert guesses == set("ABCDE")
