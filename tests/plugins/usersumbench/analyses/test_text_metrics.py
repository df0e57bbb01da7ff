import math
import sys
from types import SimpleNamespace

import pytest
from harness_usersumbench.analyses import text_metrics
from harness_usersumbench.analyses.text_metrics import Unavailable

from harness.base.errors import UsageError

PAIRS = [
    # Summary, activities.
    ("a b d", "a b c d"),
    ("They liked running shoes", "bought “Running shoe” [Sports]\nbought “Shoe” [Sports]"),
    ("a b c d", "a b c d e f g h"),
    ("watched “Clue” [Comedy]", "watched “Clue” [Comedy]"),
    ("", "watched “Heat” [Action, Crime, Thriller] around Sat 05/15/2004 4PM"),
]
SUMMARIES, ACTIVITIES = zip(*PAIRS, strict=True)


def test_rouge_by_hand():
    pytest.importorskip("rouge_score")
    # "a b d" and "a b c d" share one bigram, of two and of three: 2/5; a b d is common: 2·3/7.
    two, longest = text_metrics.rouge(SUMMARIES, ACTIVITIES)
    assert (two[0], longest[0]) == (pytest.approx(2 / 5), pytest.approx(6 / 7))
    # Stems: "shoes" and "shoe" are one. Of 4 and 7 words, running and shoe are common in order.
    assert longest[1] == pytest.approx(2 * 2 / 11)
    assert (two[3], longest[3], two[4], longest[4]) == (1, 1, 0, 0)


def test_bleu_by_hand():
    pytest.importorskip("sacrebleu")
    found = text_metrics.bleu(SUMMARIES, ACTIVITIES)
    # All of the summary is in the activities, which are twice as long: exp(1 - 8/4).
    assert found[2] == pytest.approx(100 * math.exp(-1))
    assert (found[3], found[4]) == (pytest.approx(100), 0)


@pytest.mark.parametrize(
    ("module", "package", "names"),
    [
        ("sacrebleu", "sacrebleu", ("BLEU",)),
        ("bert_score", "bert-score", ("BERTScore-precision", "BERTScore-recall", "BERTScore-F1")),
    ],
)
def test_a_package_that_is_missing_is_named(monkeypatch, module, package, names):
    for name in [module, *(name for name in sys.modules if name.startswith(f"{module}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    found = text_metrics.text_metrics(SUMMARIES, ACTIVITIES)
    reason = f"{package} is not installed: pip install {package}"
    assert [found[name] for name in names] == [Unavailable(reason)] * len(names)


MISSING = "the weights 'mine' cannot be loaded:"


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (None, ((0.1, 0.1), (2, 1), (3, 0))),
        (
            OSError("no file weights.bin\nand much more"),
            (Unavailable(f"{MISSING} no file weights.bin"),) * 3,
        ),
        (OSError(), (Unavailable(f"{MISSING} OSError"),) * 3),
    ],
)
def test_bertscore_reads_the_summary_as_candidate_or_names_missing_weights(
    monkeypatch, problem, expected
):
    class Scorer:
        """In the place of bert-score's: three numbers a pair, or no weights."""

        def __init__(self, *, model_type):
            if problem:
                raise problem

        def score(self, candidates, references):
            return [0.1] * len(candidates), [*map(len, candidates)], [*map(len, references)]

    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(BERTScorer=Scorer))
    assert tuple(text_metrics.bert_score(["ab", "c"], ["xyz", ""], "mine")) == expected


@pytest.fixture
def bleurt(tmp_path, monkeypatch):
    """BLEURT by a function with this body, of a module in the current folder."""
    monkeypatch.chdir(tmp_path)

    def of(body):
        name = f"of_{tmp_path.name}"
        (tmp_path / f"{name}.py").write_text(f"def score(*, references, candidates):\n    {body}\n")
        return text_metrics.bleurt_of(["ab", "c"], ["xyz", ""], f"{name}:score")

    return of


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return [1.0]", "list of 1"),
        ("return [1.0, float('nan')]", "list of 2"),
    ],
)
def test_a_function_that_returns_no_scores_is_an_error(bleurt, body, found):
    with pytest.raises(UsageError) as raised:
        bleurt(body)
    assert raised.value.found.endswith(f":score: {found}")
    assert raised.value.expected == "a list of 2 numbers, one for each candidate"


def test_without_a_function_bleurt_says_what_to_name():
    found = text_metrics.bleurt_of(["a"], ["b"], "")
    assert isinstance(found, Unavailable)
    assert "--bleurt module:function" in found.reason
