"""Statistics of scores. Imports numpy: import this room inside the functions that use it."""

from harness.scoring.stats.agreement import (
    Agreement,
    agreement_of,
    cohen_kappa,
    fleiss_kappa,
    kappa_interval,
)
from harness.scoring.stats.bootstrap import bootstrap_interval
from harness.scoring.stats.correlation import (
    fisher_interval,
    kendall_tau_b,
    pearson,
    relation_interval,
    spearman,
)
from harness.scoring.stats.intervals import Interval, Method, NoInterval, Undefined
from harness.scoring.stats.paired import paired_interval
from harness.scoring.stats.permutation import PValue, holm, paired_p
from harness.scoring.stats.statistic import Statistic, statistic_of

__all__ = [
    "Agreement",
    "Interval",
    "Method",
    "NoInterval",
    "PValue",
    "Statistic",
    "Undefined",
    "agreement_of",
    "bootstrap_interval",
    "cohen_kappa",
    "fisher_interval",
    "fleiss_kappa",
    "holm",
    "kappa_interval",
    "kendall_tau_b",
    "paired_interval",
    "paired_p",
    "pearson",
    "relation_interval",
    "spearman",
    "statistic_of",
]
