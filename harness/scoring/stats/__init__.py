"""Statistics of scores. Imports numpy: import this room inside the functions that use it."""

from harness.scoring.stats.agreement import Agreement as Agreement
from harness.scoring.stats.agreement import agreement_of as agreement_of
from harness.scoring.stats.agreement import cohen_kappa as cohen_kappa
from harness.scoring.stats.agreement import fleiss_kappa as fleiss_kappa
from harness.scoring.stats.agreement import kappa_interval as kappa_interval
from harness.scoring.stats.bootstrap import Interval as Interval
from harness.scoring.stats.bootstrap import Method as Method
from harness.scoring.stats.bootstrap import NoInterval as NoInterval
from harness.scoring.stats.bootstrap import Part as Part
from harness.scoring.stats.bootstrap import Statistic as Statistic
from harness.scoring.stats.bootstrap import Undefined as Undefined
from harness.scoring.stats.bootstrap import bootstrap_interval as bootstrap_interval
from harness.scoring.stats.bootstrap import interval_together as interval_together
from harness.scoring.stats.bootstrap import paired_interval as paired_interval
from harness.scoring.stats.bootstrap import part_of as part_of
from harness.scoring.stats.bootstrap import statistic_of as statistic_of
from harness.scoring.stats.correlation import fisher_interval as fisher_interval
from harness.scoring.stats.correlation import kendall_tau_b as kendall_tau_b
from harness.scoring.stats.correlation import pearson as pearson
from harness.scoring.stats.correlation import relation_interval as relation_interval
from harness.scoring.stats.correlation import spearman as spearman
from harness.scoring.stats.permutation import PValue as PValue
from harness.scoring.stats.permutation import holm as holm
from harness.scoring.stats.permutation import paired_p as paired_p
