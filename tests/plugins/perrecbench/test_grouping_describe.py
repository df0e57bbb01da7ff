"""Statistics and histograms of a folder of groups written by hand."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest
from harness_perrecbench.grouping import describe as describe_tool
from harness_perrecbench.grouping.describe import Options

from harness.base.errors import DataError, UsageError

DAY = 86_400_000
ITEMS = {
    "tea": {"title": "Green tea leaves", "author": None},
    "cup": {"title": "Blue cup"},
    "book": {"title": "On tea", "author": {"name": "A. Tree"}},
}
NEW_YEAR, NEXT = 18_262 * DAY, 18_628 * DAY
"""2020-01-01 is day 18,262 since 1970; 2021-01-01 is 366 days later."""
HISTORIES = {
    "ann": [("cup", 5, NEW_YEAR), ("book", 4, NEW_YEAR + DAY), ("tea", 2, NEW_YEAR + 2 * DAY)],
    "bob": [("cup", 3, NEW_YEAR), ("tea", 4, NEXT)],
    "cem": [("book", 1, NEW_YEAR), ("cup", 3, NEXT)],
}
EASY = {"tea": [[("ann", 2, -1.6), ("bob", 1, 0.5)], [("cem", 1, 0.0), ("bob", 1, 0.5)]]}
HELD_OUT = {"cup": [[("cem", 1, 1.0), ("ann", 0, 1.3)]]}


@pytest.fixture
def data(publish, tmp_path):
    for level, held_out in {"easy": HELD_OUT, "medium": None}.items():
        groups = {"groups": EASY, "held_out": held_out}
        publish(HISTORIES, level=level, **groups, items=ITEMS, inside="all/all-processed")
    return tmp_path


def described(data, **options):
    return describe_tool.run(Options(data=data, **options))


def row(report, name):
    return next(one[1:] for one in report.sheets[0].rows if one[0] == name)


def test_statistics_are_of_the_first_group_of_each_item_beside_the_papers(data):
    report = described(data)
    # Ann saw "Blue cup" and "On tea" by "A. Tree", bob "Blue cup"; both "Green tea leaves".
    tea = (2, 2, 1, 3, 2 + 4 + 3 + 2 + 3, "2020-01-03", "2021-01-01")
    assert row(report, "easy, to test") == tea
    assert row(report, "all levels, to test") == tea, "each review once"
    assert row(report, "hard, to test") == (0, 0, 0, 0, 0, None, None)
    held = (2, 2, 1, 1, 4 + 2 + 2, "2020-01-01", "2021-01-01")
    assert row(report, "all levels, held out") == held
    assert row(report, "the paper, to test")[:5] == (1007, 986, 200, 61412, 111017)
    assert row(report, "the paper, held out")[:5] == (2438, 2140, 466, 157480, 289164)


def test_the_four_histograms_show_shares_of_each_split(data):
    def shares(figure):
        return {
            mark.label: {
                name: one for name, one in zip(mark.names, mark.values, strict=True) if one
            }
            for mark in figure.marks
        }

    ratings, relative, lengths, dates = described(data).figures
    assert shares(ratings) == {"to test": {"2": 50, "4": 50}, "held out": {"5": 50, "3": 50}}
    assert ratings.marks[0].names == ("1", "2", "3", "4", "5")
    assert shares(relative) == {"to test": {"-2": 50, "0.5": 50}, "held out": {"1": 100}}
    assert shares(lengths) == {"to test": {"0-20": 100}, "held out": {"0-20": 100}}
    assert shares(dates) == {
        "to test": {"2020": 50, "2021": 50},
        "held out": {"2020": 50, "2021": 50},
    }


@pytest.mark.parametrize(("inside", "domain"), [("", "tea"), ("tea", "tea"), ("tea", "all")])
def test_a_domain_is_described_from_its_folder_or_the_one_around_it(data, inside, domain):
    before = described(data).sheets
    (data / "all").rename(data / "tea")
    (data / "tea/all-processed").rename(data / "tea/tea-processed")
    assert described(data / inside, domain=domain).sheets == before


class Letters:
    """JudgeInput in for a tokenizer that makes a token of each character."""

    @classmethod
    def from_pretrained(cls, name):
        if name != "letters":
            raise OSError(f"no model {name}")
        return cls()

    def encode_batch(self, texts, *, add_special_tokens):
        assert not add_special_tokens
        return [SimpleNamespace(ids=list(text)) for text in texts]


def test_a_tokenizer_of_the_package_counts_and_is_named(data, monkeypatch):
    package = ModuleType("tokenizers")
    package.__spec__ = ModuleSpec("tokenizers", None)
    package.Tokenizer = Letters
    monkeypatch.setitem(sys.modules, "tokenizers", package)
    report = described(data, tokenizer="letters")
    assert report.sheets[0].notes[0].startswith("tokens: letters, ")
    # "Blue cup" 8, "On tea\\nA. Tree" 14, "Green tea leaves" 16.
    assert row(report, "easy, to test")[4] == 8 + 14 + 16 + 8 + 16
    with pytest.raises(DataError, match="the tokenizer cannot be loaded"):
        described(data, tokenizer="words")
    monkeypatch.setattr("harness_perrecbench.grouping.describe.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pip install tokenizers"):
        described(data, tokenizer="letters")


def test_reviews_that_a_history_does_not_hold_are_counted(data):
    file = data / "all/all-processed/held_out-easy.json"
    file.write_text(file.read_text().replace('"cup"', '"pot"'))
    report = described(data)
    assert report.notes[0].startswith("2 reviews without rating and time")
    assert row(report, "easy, held out")[5:] == (None, None)
