"""Questions that a judge is asked and the verdicts it gives."""

from harness.judging.contract import Ask, Judge, JudgeParts, Member, Stands
from harness.judging.questions import (
    Classified,
    Classify,
    Question,
    Select,
    Selected,
    Verdict,
    Vote,
)

__all__ = [
    "Ask",
    "Classified",
    "Classify",
    "Judge",
    "JudgeParts",
    "Member",
    "Question",
    "Select",
    "Selected",
    "Stands",
    "Verdict",
    "Vote",
]
