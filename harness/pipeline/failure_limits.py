"""Ends a stage when too many of its items failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.base.errors import TooManyFailures
from harness.contracts.outcomes import FAMILIES, NO_ANSWER, problem_in
from harness.contracts.task import Task
from harness.pipeline.settings import FailureLimits

FEWEST = 2
"""Failures that it takes to exceed a limit: one bad item never ends a run."""

FEWEST_TO_STOP_EARLY = 20
"""Failures that it takes to stop a stage before its last item."""


def limits_of(task: Task, given: Mapping[str, float]) -> FailureLimits:
    """The limits for a task: from the command, else from the task, else the defaults."""
    return FailureLimits(**{**task.max_failures, **given})


def how_to_ask_again(causes: Mapping[str, int], *, asks: bool = True) -> str:
    """What a user can do about failures of these causes, in a stage that asks somebody or nobody.

    >>> how_to_ask_again({"truncated": 8, "schema": 1})[:42]
    'most answers would be cut again at the sam'
    """
    shown = "`harness show RUN --failures` lists the failures"
    if not asks:
        return f"{shown}; repeat the command with another model in the role that answered"
    if causes and max(causes, key=causes.__getitem__) == "truncated":
        return (
            f"most answers would be cut again at the same limit: {shown} and how to raise it for "
            "the next command"
        )
    plain = f"as it is where no answer came ({', '.join(sorted(NO_ANSWER))})"
    return f"{shown}; to ask again, repeat the command: {plain}, with --retry_failures for the rest"


@dataclass(kw_only=True)
class FailureWatch:
    """Counts a stage's failures by family and cause, and compares them with the limits.

    Unreadable answers that are not `scored`, as of a profiler, count with those of judges.
    """

    limits: FailureLimits
    total: int
    scored: bool = True
    asks: bool = True
    families: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def failed(self, tag: str, cause: str, detail: str = "") -> None:
        """Count one failure by its record's tag; the first detail of each family is kept."""
        family = FAMILIES[tag]
        if family == "parsing" and not self.scored:
            family = "judging"
        self.families[family] += 1
        self.causes[cause] += 1
        if detail:
            self.first.setdefault(family, problem_in(detail))

    def too_many(self) -> bool:
        """Whether a family's share of all items exceeds its limit."""
        return self._over(FEWEST) is not None

    def hopeless(self) -> bool:
        """Whether the share will exceed its limit even if all other items succeed."""
        return self._over(FEWEST_TO_STOP_EARLY) is not None

    def error(self, label: str) -> TooManyFailures:
        """The error with the limit that was exceeded and the ways to continue."""
        family = self._over(FEWEST) or "errors"
        causes = ", ".join(f"{cause} {count}" for cause, count in self.causes.most_common())
        limit = getattr(self.limits, family)
        again = how_to_ask_again(self.causes, asks=self.asks)
        return TooManyFailures(
            "too many items failed",
            where=label,
            found=f"{self.families[family]} of {self.total} by {family} ({causes})"
            + (f"; the first: {first}" if (first := self.first.get(family)) else ""),
            expected=f"at most {limit:.0%} (--max_failures {family}={limit:g})",
            hint=f"all records are kept; {again}, or with a larger --max_failures to accept them",
        )

    def _over(self, fewest: int) -> str | None:
        for family, count in self.families.items():
            if count >= fewest and count > getattr(self.limits, family) * self.total:
                return family
        return None
