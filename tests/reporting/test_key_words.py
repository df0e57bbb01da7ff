"""The keys beneath the parts of a report: which words they explain, and which they leave out."""

from types import SimpleNamespace

import msgspec
import pytest
from builders.report_pages import ReportPage
from builders.runs import make_metric, make_summary
from builders.stages import make_benchmark

from harness.reporting.html.key_words import MOST_OPEN, KeyWords, Word, key_words
from harness.reporting.html.markup import breakable, element, page_html, section_html


class Options(msgspec.Struct):
    threshold: int = 3


WORDS = {
    "no_list": "the reply has no list",
    "none": "nothing in place of a summary",
    "other": "another user",
    "IG P": "precision",
    "_hc": "by segments",
}


def words(*, benchmark="b", metric="at least `threshold` of four", threshold=3, **fields):
    made = make_benchmark(name=benchmark, words=WORDS, **fields)
    task = SimpleNamespace(benchmark=made, options=Options(threshold))
    summary = make_summary(
        "films_hc@2", benchmark=benchmark, roles={"candidate": "m", "judge": "lexical"},
        metrics={"is": make_metric(0.5, n=9, description="specificity"),
                 "qm": make_metric(0.5, n=9, description=metric)},
    )  # fmt: skip
    run = SimpleNamespace(tasks=(task,), summaries=(summary,))
    judge = SimpleNamespace(description="word overlap")
    return key_words([run], SimpleNamespace(judges={"lexical": judge}))


def key(part, known=None, said=None):
    """The words of the key beneath a part, with their meanings."""
    text = (known or words()).key(element("div", part), set() if said is None else said)
    page = ReportPage(page_html("A page", [section_html("part", "Part", text)]))
    assert page.texts["part"]
    found = {}
    for pair in text.partition('<dl class="key">')[2].split("<div>")[1:]:
        word, _, means = pair.partition("</dt><dd>")
        found[word.removeprefix("<dt>")] = means.partition("<")[0]
    return found


def cell(text):
    return element("table", element("tbody", element("tr", element("td", text))))


@pytest.mark.parametrize(("part", "explained"), [
    ("ask/no_list 4", {"no_list": "the reply has no list"}),
    ("the median of IG P", {"IG P": "precision"}),
    ("is ↑", {"is": "specificity"}),
    ("is ↑ as IS in papers", {"is, IS": "specificity"}),
    (element("dfn", "is"), {"is": "specificity"}),
    ("THIS", {}),
    ("this is a sentence about none and other things", {}),
    ("films_hc", {"…_hc": "by segments"}),
    ("ask/timeout", {"timeout": "no reply came in time"}),
    ("a timeout", {}),
    ("judged by lexical", {"lexical": "judge: word overlap"}),
    (breakable("films_hc"), {"…_hc": "by segments"}),
    (cell(breakable("films_none")), {}),
    (cell("none"), {"none": "nothing in place of a summary"}),
])  # fmt: skip
def test_a_word_is_explained_where_it_stands_as_one(part, explained):
    assert key(part) == explained


def test_a_metric_has_the_values_of_the_options_that_its_description_names():
    assert key("qm ↑") == {"qm": "at least 3 of four"}
    assert key("qm ↑", words(threshold=2)) == {"qm": "at least 2 of four"}


def test_what_is_said_already_or_of_another_benchmark_is_left_out():
    said = set()
    assert key("no_list: the reply has no list") == {}
    assert key("no_list", said=said) == {"no_list": "the reply has no list"}
    assert key("no_list and IG P", said=said) == {"IG P": "precision"}
    assert key("no_list, ask/timeout", words().of("another")) == {
        "timeout": "no reply came in time"
    }
    assert "no_list" in key("no_list", words().of("b"))


def test_a_word_with_several_meanings_has_each_with_where_it_means_it():
    known = KeyWords(
        Word("no_list", *means, "no_list") for means in (("no titles", "a"), ("no queries", "b"))
    )
    assert key("no_list", known) == {"no_list": "no titles (a); no queries (b)"}
    summaries = [
        make_summary(task, benchmark="b",
                     metrics={"recall_10": make_metric(0.5, n=9, description=f"of {what}")})
        for task, what in (("a", "items"), ("b", "texts"), ("c", "items"), ("c@2", "items"))
    ]  # fmt: skip
    known = key_words([SimpleNamespace(tasks=(), summaries=summaries)], SimpleNamespace(judges={}))
    assert key("recall_10 ↑", known) == {"recall_10": "of items (a, c); of texts (b)"}


def test_a_long_key_is_folded():
    many = [f"w_{number}" for number in range(MOST_OPEN + 1)]
    known = KeyWords(Word(name, f"meaning of {name}", "", name) for name in many)
    assert f"What {MOST_OPEN + 1} words here mean" in known.key(element("p", " ".join(many)), set())
    few = known.key(element("p", " ".join(many[1:])), set())
    assert "<details" not in few
