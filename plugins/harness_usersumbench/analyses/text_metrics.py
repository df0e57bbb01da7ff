"""Metrics that compare a summary with the user's activities: ROUGE, BLEU, BERTScore, BLEURT.

Their packages are no part of the installation; a metric without its package or weights has a
reason in the place of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.base.errors import UsageError
from harness.base.named_functions import named_function

Texts: TypeAlias = Sequence[str]
Column: TypeAlias = "tuple[float, ...] | Unavailable"
BLEURT_OPTION = "--bleurt"


@dataclass(frozen=True)
class Unavailable:
    """The reason why a metric cannot be computed here."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Models:
    """What BERTScore and BLEURT compute with: names or folders of weights, and a function."""

    bert: str = "roberta-large"
    bert_layer: int | None = None
    bleurt: str = ""


def text_metrics(summaries: Texts, activities: Texts, models: Models) -> dict[str, Column]:
    """Each metric of Table 3 that needs no human and no model of the run, by its name there."""
    columns: dict[str, Column] = {}
    for names, values in (
        (("ROUGE-2", "ROUGE-L"), lambda: rouge(summaries, activities)),
        (("BLEU",), lambda: (bleu(summaries, activities),)),
        (
            ("BERTScore-precision", "BERTScore-recall", "BERTScore-F1"),
            lambda: bert_score(summaries, activities, models),
        ),
        (("BLEURT",), lambda: (bleurt(summaries, activities, models),)),
    ):
        columns |= zip(names, _or_reason(values, len(names)), strict=True)
    return columns


def rouge(summaries: Texts, activities: Texts) -> tuple[Column, Column]:
    """ROUGE-2 and ROUGE-L of each summary: F1 over stems, by rouge-score."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge2", "rougeL"], use_stemmer=True)
    found = [scorer.score(*pair) for pair in zip(activities, summaries, strict=True)]
    two, longest = (tuple(one[name].fmeasure for one in found) for name in ("rouge2", "rougeL"))
    return two, longest


def bleu(summaries: Texts, activities: Texts) -> Column:
    """The smoothed BLEU of each summary as a sentence, from 0 to 100, by sacrebleu."""
    from sacrebleu import sentence_bleu

    pairs = zip(summaries, activities, strict=True)
    return tuple(sentence_bleu(one, [reference]).score for one, reference in pairs)


def bert_score(summaries: Texts, activities: Texts, models: Models) -> Sequence[Column]:
    """BERTScore's precision, recall and F1 of each summary, by bert-score."""
    from bert_score import BERTScorer

    try:
        scorer = BERTScorer(model_type=models.bert, num_layers=models.bert_layer)
    except (OSError, KeyError, ValueError) as error:  # no such weights, or no network for them
        first = str(error).strip().partition("\n")[0]
        reason = f"the weights {models.bert!r} cannot be loaded: {first or type(error).__name__}"
        return (Unavailable(reason),) * 3
    return [tuple(map(float, part)) for part in scorer.score(list(summaries), list(activities))]


def bleurt(summaries: Texts, activities: Texts, models: Models) -> Column:
    """BLEURT of each summary, by the function that the user named."""
    if not models.bleurt:
        return Unavailable(
            f"BLEURT has no package in the registry: name a function with {BLEURT_OPTION} "
            "module:function, which takes references= and candidates= as BleurtScorer.score does"
        )
    function = named_function(models.bleurt, option=BLEURT_OPTION)
    found = function(references=list(activities), candidates=list(summaries))
    try:
        values = tuple(map(float, found))
    except (TypeError, ValueError):
        values = ()
    if len(values) != len(summaries) or not all(map(math.isfinite, values)):
        raise UsageError(
            f"the function that {BLEURT_OPTION} names returned something else than scores",
            found=f"{models.bleurt}: {_shape(found)}",
            expected=f"a list of {len(summaries)} numbers, one for each candidate",
        )
    return values


def _or_reason(values: Callable[[], Sequence[Column]], many: int) -> Sequence[Column]:
    """The columns, or the package that is not installed as the reason for each."""
    try:
        return values()
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        package = PACKAGES.get(module, module)
        return (Unavailable(f"{package} is not installed: pip install {package}"),) * many


def _shape(found: Any) -> str:
    return f"{type(found).__name__} of {len(found)}" if hasattr(found, "__len__") else repr(found)


PACKAGES = {"rouge_score": "rouge-score", "sacrebleu": "sacrebleu", "bert_score": "bert-score"}
"""The module of each package, and the name under which it is installed."""
