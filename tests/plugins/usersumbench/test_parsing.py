"""What is read from answers to A.4, A.5 and A.6, from lists of entities, and from a letter."""

import msgspec
import pytest
from harness_usersumbench.parsing import (
    ConsistencyReader,
    EntityReader,
    Judgement,
    JudgementReader,
    OptionReader,
    PairReader,
    SummaryReader,
)
from harness_usersumbench.records import Pair, Summary
from hypothesis import given
from hypothesis import strategies as st

from harness import Parsed, Unreadable

HIKING = Pair("What is done outdoors?", "hiking")
MUSIC = Pair("What is heard?", "pop music")


@pytest.mark.parametrize(
    ("text", "summary"),
    [("\n**Summary**\nLikes tea. \n", "**Summary**\nLikes tea."), ("", ""), (" \n\t", "")],
)
def test_a_summary_is_the_whole_answer(text, summary):
    assert SummaryReader()(text) == Parsed(Summary(summary), "text")


# A.4: does the summary fit the query?


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("consistent", True),
        ("inconsistent", False),
        ('"consistent".', True),
        ("**inconsistent**", False),
        ("The summary is **consistent** with the query.", True),
        ("This summary is inconsistent with the query", False),
        ("Answer: inconsistent", False),
        ("It is consistent", True),
    ],
)
def test_a_word_or_a_plain_statement_says_whether_a_summary_fits(text, fits):
    assert ConsistencyReader()(text).value is fits


SUMMARY = "The user likes Hiking, pop music and the film “Alien”, and dislikes heart attacks."


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("Hiking\npop music", ("Hiking", "pop music")),
        ("- hiking\n- Hiking\n* Pop Music", ("hiking", "Pop Music")),
        ('1. "Alien"\n2. hiking', ("Alien", "hiking")),
        ("Hiking, pop music; jazz", ("Hiking", "pop music")),
        ("Here are the entities:\nhiking", ("hiking",)),
        ("hiking\nart\nalien", ("hiking", "alien")),
        ("NONE", ()),
        ("None.", ()),
    ],
)
def test_entities_are_those_of_the_list_that_the_summary_contains(text, entities):
    assert EntityReader(summary=SUMMARY, most=10)(text) == Parsed(entities, "text")
    assert EntityReader(summary=SUMMARY, most=1)(text).value == entities[:1], "no more than asked"


# A.5: question–answer pairs, and ways to damage them.


def two(pair, between="\n"):
    """A text with both pairs in this format."""
    said = ((1, HIKING), (2, MUSIC))
    return between.join(pair.format(n=n, m=n + 1, q=one.question, a=one.answer) for n, one in said)


ASKED = '[Question#{n}: "{q}", Answer#{n}: "{a}"]'
PAIRS = {
    "as asked": two(ASKED),
    "typographic quotation marks": two("[Question#{n}: “{q}”, Answer#{n}: “{a}”]"),
    "no quotation marks": two("[Question#{n}: {q}, Answer#{n}: {a}]"),
    "no brackets": two('Question#{n}: "{q}", Answer#{n}: "{a}"'),
    "no closing quotation mark": two('[Question#{n}: "{q}, Answer#{n}: "{a}]'),
    "one number for all": two('[Question#1: "{q}", Answer#1: "{a}"]'),
    "no numbers": two('[Question: "{q}", Answer: "{a}"]'),
    "small letters": two('[question#{n}: "{q}", answer#{n}: "{a}"]'),
    "pairs in one bracket": "[" + two('Question#{n}: "{q}", Answer#{n}: "{a}"', ", ") + "]",
    "an answer on a line of its own": two('[Question#{n}: "{q}",\n Answer#{n}: "{a}"]'),
    "prose around": f"Sure! Here are the pairs:\n\n{two(ASKED)}\n\nAsk for more at any time!",
    "prose behind the last pair": two('Question#{n}: "{q}", Answer#{n}: "{a}"') + "\nI hope so.",
    "bold labels": two('**Question#{n}:** "{q}"\n**Answer#{n}:** "{a}"', "\n\n"),
    "JSON": "[" + two('{{"Question#{n}": "{q}", "Answer#{n}": "{a}"}}', ",\n ") + "]",
    "the same answer twice": two('[Question#{n}: "{q}", Answer#{n}: "{a}", Answer#{n}: "{a}"]'),
}
SECOND = '\n[Question#2: "What is heard?", Answer#2: "pop music"]'
ALONE = {
    '[Question#1: "What is done outdoors?"]' + SECOND: MUSIC,
    '[Question#1: "What is done outdoors?", Answer#1: ""]' + SECOND: MUSIC,
    '[Question#1: "What is done?", Answer#1: "hiking", Answer#1: "camping"]' + SECOND: MUSIC,
    "[Question#1: “What?”, Answer#1: “the “Alien” films”]": Pair("What?", "the “Alien” films"),
    r'[Question#1: "What?", Answer#1: "the \"Alien\" films"]': Pair("What?", 'the "Alien" films'),
    '[Question#1: "What?", Answer#1: "Alien 3: The Cut, uncut"]': (
        Pair("What?", "Alien 3: The Cut, uncut")
    ),
    '[Question#1: "To the question: what is the answer: outdoors?", Answer#1: "hiking"]': (
        Pair("To the question: what is the answer: outdoors?", "hiking")
    ),
}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        *(pytest.param(text, (HIKING, MUSIC), id=damage) for damage, text in PAIRS.items()),
        *((text, (pair,)) for text, pair in ALONE.items()),
    ],
)
def test_pairs_are_read_in_spite_of_damage(text, pairs):
    assert PairReader()(text).value == pairs


# A.6: judgements, matched to their pairs.

YES, NONE = Judgement(True), Judgement()


def no(reference):
    return Judgement(False, reference)


def status(*judged):
    """A judgement a line, from its number and the wrong pair's reference answer."""
    return "\n".join(
        f'[Status{number}: "{"in" * bool(reference)}consistent", '
        f'ReferenceAnswer{number}: "{reference or "none"}"]'
        for number, reference in judged
    )


JUDGED = {
    "as asked": (status(("#1", ""), ("#2", "jazz"), ("#3", "")), (YES, no("jazz"), YES)),
    "typographic marks and italics, as printed": (
        "[Status#1: “*consistent*”, ReferenceAnswer#1: “none”]\n"
        "[Status#2: “*inconsistent*”, ReferenceAnswer#2: “pop music”]",
        (YES, no("pop music"), NONE),
    ),
    "another order": (status(("#3", "jazz"), ("#1", ""), ("#2", "")), (YES, YES, no("jazz"))),
    "one without a judgement": (status(("#1", ""), ("#3", "jazz")), (YES, NONE, no("jazz"))),
    "numbers from 0, one left out": (status(("#0", "jazz"), ("#2", "")), (no("jazz"), NONE, YES)),
    "the number of the format for all": (
        status(("#2", "jazz"), ("#2", ""), ("#2", "")),
        (no("jazz"), YES, YES),
    ),
    "no numbers": (status(("", ""), ("", "jazz"), ("", "")), (YES, no("jazz"), YES)),
    "contradicting judgements of a pair": (
        status(("#1", ""), ("#2", ""), ("#2", "jazz"), ("#3", "")),
        (YES, NONE, YES),
    ),
    "a judgement of a pair that does not exist": (
        status(("#1", ""), ("#9", "jazz")),
        (YES, NONE, NONE),
    ),
    "another status": (
        '[Status#1: "isn’t consistent", ReferenceAnswer#1: "none"]\n'
        '[Status#2: "consistent", ReferenceAnswer#2: "none"]\n'
        '[Status#3: "consistent or inconsistent", ReferenceAnswer#3: "none"]',
        (NONE, YES, NONE),
    ),
    "an answer to a consistent pair": (
        '[Status#1: "consistent", ReferenceAnswer#1: "hiking"]\n'
        '[Status#2: "consistent"]\n[Status#3: "inconsistent"]',
        (YES, YES, no(None)),
    ),
    "other spellings of the label": (
        '[Status#1: "inconsistent", Reference Answer#1: "jazz"]\n'
        '[Status#2: "inconsistent", reference_answer#2: "folk"]',
        (no("jazz"), no("folk"), NONE),
    ),
}


@pytest.mark.parametrize("damage", JUDGED)
def test_judgements_are_matched_to_their_pairs_in_spite_of_damage(damage):
    text, judged = JUDGED[damage]
    assert JudgementReader(count=3)(text).value == judged


# t1 to t4: a letter, or an option's text.

OPTIONS = ("Alien (1979)", "Aliens (1986)", "Toy Story (1995)", "Bronx Tale, A (1993)", "Plan B")

READ = {
    "A": (
        "Taken together, these films point to space and fear, so the letter asked for is:\n\nA",
        "“A”", "Alien", "Answer：A", "They like Plan B too.\nThe answer is:\nA",
    ),
    "B": (
        "b", "B.", "The correct answer is (B)", "b. Aliens", "B – Aliens (1986)",
        "My choice is option B.", "So the answer is Aliens.",
    ),
    "C": (
        "C", "(C)", "**Answer:** C", "C) Toy Story (1995)", "**C. Toy Story (1995)**",
        "The most likely option is C: Toy Story (1995).",
        "The user mostly watches animation.\n\nTherefore, the best answer is **C**.", "Toy Story",
        "```\nC\n```", '"Toy Story (1995)"', "toy\n story", "Toy Story (1995) (C)",
        "C\nToy Story (1995)", "Option C", "The answer is C.\n\nC",
    ),
    "D": (
        "d", "Answer: **D**", "The correct answer is d.", "ANSWER IS D", "Bronx Tale, A", "[D]",
    ),
    "E": (
        "**E**", "The final answer is: E", "'E'", "Plan B.", "The answer is Plan B",
    ),
}  # fmt: skip
"""By letter, the replies from which a person reads it, of which each is read."""

LEFT = (
    "Option A is unlikely; I pick B", "The answer is not B", "A-list movies; I cannot say",
    "It is not B, the answer is D", "Answer: It is not B, the answer is D",
    "Answer: rules out C, leaving D", "I think it is C", "Answer: $B", "\\boxed{C}",
    "I would pick B — a safe choice.", "ANSWER IS D. A is incorrect.",
    "I considered (A), but it is incorrect. Final answer: D.",
    "The answer is B because A is a sequel.", "The answer is B. Note that A often distracts.",
    "Given these ratings, I would predict that the next film is Aliens.",
    "Based on the summary, a user like this would watch a film", "C\n\nThe user does not like B.",
    "None of these options fit; the answer is 94.", "I cannot predict what a person will watch.",
    "Antwort: C", "Not B", "Anything but C.", "The answer isn't A", "The answer can't be A.",
    "B or C", "A, C", "B. Alien", "The answer is B: Toy Story (1995)", "Toy Story (1996)",
    "A user who likes space would take B.", "The least likely option is B", "F", "The Alienist",
    "C?",
)  # fmt: skip
"""Replies that are left unreadable, whatever a person would read from them."""


@pytest.mark.parametrize(
    ("letter", "text"), [(letter, text) for letter, texts in READ.items() for text in texts]
)
def test_an_answer_is_a_letter_or_an_option_or_states_it(text, letter):
    assert OptionReader(options=OPTIONS)(text).value == "ABCDE".index(letter)


def test_a_letter_that_is_the_text_of_another_option_names_two():
    read = OptionReader(options=("B", "A", "Z", "M (1931)", "E"))
    assert read("A").cause == read("b").cause == "several_named"
    assert [read(one).value for one in ("C", "Z", "M", "E", "D. M")] == [2, 2, 3, 4, 3]


def test_options_that_differ_in_marks_are_told_apart():
    options = ("Wonder", "Wonder!", "C++", "C#", "M*A*S*H (1970)")
    for said in ("", "The answer is "):
        for place, option in enumerate(options):
            assert OptionReader(options=options)(f"{said}{option}").value == place


def test_a_title_of_two_options_needs_its_year():
    options = ("Hamlet (1990)", "Hamlet (1996)", "Heat", "Heat (1995)", "Jaws (1975)")
    read = OptionReader(options=options)
    assert read("Hamlet").cause == read("The answer is Hamlet.").cause == "several_named"
    assert read("Hamlet (1991)").cause == "no_plain_answer"
    assert [read(one).value for one in ("Hamlet (1996)", "Heat", "Heat (1995)")] == [1, 2, 3]
    assert read("B. Hamlet").value == 1


READERS = (
    SummaryReader(),
    ConsistencyReader(),
    EntityReader(summary=SUMMARY, most=10),
    PairReader(),
    JudgementReader(count=3),
    OptionReader(options=OPTIONS),
)
_, FITS, ENTITIES, PAIRED, JUDGE, OPTION = READERS
NOTHING = {
    (FITS, "empty"): [""],
    (FITS, "no_single_verdict"): [
        "consistent or inconsistent", "consistently", "not consistent", "isn't consistent",
        "The summary isn’t consistent with the query.", "The summary is never consistent.",
        "I cannot say it is consistent", "consistent, except for the genres",
        "It would be consistent", "consistent?",
    ],
    (ENTITIES, "empty"): [""],
    (ENTITIES, "not_in_summary"): ["jazz\nopera"],
    (PAIRED, "no_pairs"): ["I cannot.", "Question#1: What is done?", "Answer#1: hiking", "[]"],
    (JUDGE, "no_judgements"): [
        "All are fine.", '[Status#1: "unclear", ReferenceAnswer#1: "none"]',
    ],
    (OPTION, "empty"): [" "],
    (OPTION, "several_named"): ["B\nC", "Answer: B\nAnswer: C"],
    (OPTION, "no_plain_answer"): LEFT,
}  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "cause", "text"), [(*key, text) for key, texts in NOTHING.items() for text in texts]
)
def test_a_text_without_what_was_asked_for_is_unreadable(reader, cause, text):
    assert reader(text) == Unreadable(cause, " ".join(text.split()))


PARTS = st.sampled_from(
    [
        *'[](){}"“”\'*_`,;:#-. \n\t\\',
        "Question", "Answer#1:", "Status#2", "ReferenceAnswer", "0", "12", "not ", "consistent",
        "in", "none", "The answer is ", "A", "b", "C or ", "Alien", "Toy Story (1995)", "Plan",
        "{{ x }}", "\ud800", "\0", "é",
    ]
)  # fmt: skip


@given(st.lists(PARTS, max_size=30).map("".join) | st.text())
def test_every_text_is_read_or_unreadable(text):
    for reader in READERS:
        found = reader(text)
        assert isinstance(found, Parsed | Unreadable)
        if isinstance(found, Parsed):
            msgspec.json.encode(found)


@pytest.mark.parametrize(
    "part",
    ["[", " ", '"', "*", "not ", "Question#1: ", 'Answer#1: "', "Status#1: [", "the answer is ",
     "A ", "a  ", "\n", "Alien ", '"]', "A\n", "so the ", "the answer is:\n", "consistent "],
)  # fmt: skip
def test_hostile_text_is_read_in_its_length(part):
    text = part * (100_000 // len(part))
    for reader in READERS:
        reader(text)
