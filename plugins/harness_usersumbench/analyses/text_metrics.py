"""Metrics of texts against references: ROUGE, BLEU, BERTScore, BLEURT.

Their packages are no part of the installation: a metric without its package or weights has a
reason in the place of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

from harness.base.errors import UsageError
from harness.base.named_functions import named_function

Texts: TypeAlias = Sequence[str]
Column: TypeAlias = "tuple[float, ...] | Unavailable"

BERT = "roberta-large"
"""The weights that BERTScore has for English unless others are named."""

PACKAGES = {"rouge_score": "rouge-score", "bert_score": "bert-score"}
"""The modules whose packages have another name."""


@dataclass(frozen=True)
class Unavailable:
    """The reason why a metric cannot be computed here."""

    reason: str


def text_metrics(
    texts: Texts, references: Texts, *, bert: str = BERT, bleurt: str = ""
) -> dict[str, Column]:
    """Each metric of each text against its reference, by the name of the metric."""
    columns: dict[str, Column] = {}
    made: list[tuple[tuple[str, ...], Callable[[], Sequence[Column]]]] = [
        (("ROUGE-2", "ROUGE-L"), lambda: rouge(texts, references)),
        (("BLEU",), lambda: (bleu(texts, references),)),
        (
            ("BERTScore-precision", "BERTScore-recall", "BERTScore-F1"),
            lambda: bert_score(texts, references, bert),
        ),
        (("BLEURT",), lambda: (bleurt_of(texts, references, bleurt),)),
    ]
    for names, compute in made:
        try:
            found = compute()
        except ImportError as error:
            module = (error.name or "").partition(".")[0]
            package = PACKAGES.get(module, module)
            reason = f"{package} is not installed: pip install {package}"
            found = (Unavailable(reason),) * len(names)
        columns |= zip(names, found, strict=True)
    return columns


def rouge(texts: Texts, references: Texts) -> tuple[Column, Column]:
    """ROUGE-2 and ROUGE-L of each text: F1 over stems, by rouge-score."""
    scorers = import_module("rouge_score.rouge_scorer")
    scorer = scorers.RougeScorer(["rouge2", "rougeL"], use_stemmer=True)
    found = [scorer.score(*pair) for pair in zip(references, texts, strict=True)]
    two, longest = (tuple(one[name].fmeasure for one in found) for name in ("rouge2", "rougeL"))
    return two, longest


def bleu(texts: Texts, references: Texts) -> Column:
    """The smoothed BLEU of each text as one sentence, from 0 to 100, by sacrebleu."""
    of_sentence = import_module("sacrebleu").sentence_bleu
    pairs = zip(texts, references, strict=True)
    return tuple(of_sentence(text, [reference]).score for text, reference in pairs)


def bert_score(texts: Texts, references: Texts, weights: str) -> Sequence[Column]:
    """BERTScore's precision, recall and F1 of each text, by bert-score."""
    scorers = import_module("bert_score")
    try:
        scorer = scorers.BERTScorer(model_type=weights)
    except (OSError, KeyError, ValueError) as error:  # no such weights, or no network for them
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        return (Unavailable(f"the weights {weights!r} cannot be loaded: {first}"),) * 3
    return [tuple(map(float, part)) for part in scorer.score(list(texts), list(references))]


def bleurt_of(texts: Texts, references: Texts, function: str) -> Column:
    """BLEURT of each text by the named function, which is called as `BleurtScorer.score` is."""
    if not function:
        return Unavailable(
            "BLEURT has no package in the registry: name a function with --bleurt module:function, "
            "which takes references= and candidates= and returns a number for each candidate"
        )
    score = named_function(function, option="--bleurt")
    found = score(references=list(references), candidates=list(texts))
    try:
        values = tuple(map(float, found))
    except (TypeError, ValueError):
        values = ()
    if len(values) != len(texts) or not all(map(math.isfinite, values)):
        kind = type(found).__name__
        shape = f"{kind} of {len(found)}" if hasattr(found, "__len__") else repr(found)
        raise UsageError(
            "the function that --bleurt names returned something else than scores",
            found=f"{function}: {shape}",
            expected=f"a list of {len(texts)} numbers, one for each candidate",
        )
    return values
