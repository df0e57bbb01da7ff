"""How far two series agree, in rank or label by label. Imports scipy, scikit-learn when used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import INSTALL_ANALYSIS, UsageError


@dataclass(frozen=True)
class Undefined:
    """Why a statistic has no value for what it was given."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Yes-or-no labels held against a reference: the share that agrees, Cohen's κ, F1 of "yes"."""

    n: int
    share: float
    kappa: float | Undefined
    f1: float | Undefined


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | Undefined:
    """Spearman's ρ of paired values, ties ranked by their mean."""
    from scipy.stats import spearmanr

    if len(x) < 2:
        return Undefined("fewer than two pairs")
    if len(set(x)) == 1 or len(set(y)) == 1:
        return Undefined("all values of one side are the same")
    return float(spearmanr(x, y).statistic)


def agreement_of(labels: Sequence[bool], reference: Sequence[bool]) -> Agreement | Undefined:
    """How far labels agree with a reference; κ and F1 may be undefined where one label rules."""
    if not labels:
        return Undefined("nothing was labelled by both")
    metrics = _sklearn_metrics()
    if len(set(labels) | set(reference)) == 1:
        kappa: float | Undefined = Undefined("both gave one label alone, and the same")
    else:
        kappa = float(metrics.cohen_kappa_score(labels, reference))
    f1 = float(metrics.f1_score(reference, labels, zero_division=math.nan))
    return Agreement(
        n=len(labels),
        share=float(metrics.accuracy_score(reference, labels)),
        kappa=kappa,
        f1=Undefined("neither said yes to anything") if math.isnan(f1) else f1,
    )


def _sklearn_metrics() -> Any:
    try:
        import sklearn.metrics  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError(
            "agreement between labels needs scikit-learn, which is not installed",
            hint=INSTALL_ANALYSIS,
        ) from error
    return sklearn.metrics
