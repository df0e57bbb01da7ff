"""The stages of the method, in their order."""

from harness_gistbench.stages.overlap import OVERLAP
from harness_gistbench.stages.predict import PREDICT
from harness_gistbench.stages.specificity import SPECIFICITY
from harness_gistbench.stages.taxonomy import TAXONOMY
from harness_gistbench.stages.verify import VERIFY

STAGES = (PREDICT, VERIFY, TAXONOMY, OVERLAP, SPECIFICITY)

__all__ = ["OVERLAP", "PREDICT", "SPECIFICITY", "STAGES", "TAXONOMY", "VERIFY"]
