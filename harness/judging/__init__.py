"""Questions that a judge is asked and the verdicts it gives."""

from harness.judging.contract import Ask, Judge
from harness.judging.questions import (
    Classified,
    Classify,
    Question,
    Select,
    Selected,
    Verdict,
)

__all__ = [
    "Ask",
    "Classified",
    "Classify",
    "Judge",
    "Question",
    "Select",
    "Selected",
    "Verdict",
]
