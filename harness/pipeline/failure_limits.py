"""When too many items of a stage fell out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.base.errors import TooManyFailures
from harness.contracts.outcomes import FAMILIES, problem_in
from harness.contracts.task import Task
from harness.pipeline.settings import FailureLimits

FEWEST = 2
"""One bad item never ends a run, whatever its share."""

FEWEST_TO_STOP_EARLY = 20
"""Below this many a stage is worked to its end before it is judged."""


def limits_of(task: Task, given: Mapping[str, float]) -> FailureLimits:
    """The limits for a task: those given with the command, then its own, then the usual ones."""
    return FailureLimits(**{**task.max_failures, **given})


@dataclass(kw_only=True)
class FailureWatch:
    """Counts a stage's failures by family and cause and holds them against the limits."""

    limits: FailureLimits
    total: int
    families: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def failed(self, tag: str, cause: str, detail: str = "") -> None:
        """Count one failure, by the tag of its kind; the first detail of each kind is kept."""
        self.families[FAMILIES[tag]] += 1
        self.causes[cause] += 1
        if detail:
            self.first.setdefault(FAMILIES[tag], problem_in(detail))

    def too_many(self) -> bool:
        """Whether a family's share of all items is over its limit."""
        return self._over(FEWEST) is not None

    def hopeless(self) -> bool:
        """Whether the share will be over its limit however the rest goes."""
        return self._over(FEWEST_TO_STOP_EARLY) is not None

    def error(self, label: str) -> TooManyFailures:
        """The error that says which limit was passed and how to go on."""
        family = self._over(FEWEST) or "errors"
        causes = ", ".join(f"{cause} {count}" for cause, count in self.causes.most_common())
        limit = getattr(self.limits, family)
        return TooManyFailures(
            "too many items fell out",
            where=label,
            found=f"{self.families[family]} of {self.total} by {family} ({causes})"
            + (f"; the first: {first}" if (first := self.first.get(family)) else ""),
            expected=f"at most {limit:.0%} (--max_failures {family}={limit:g})",
            hint="everything is kept: `harness show RUN --failures` lists what failed, the same "
            "command with --retry_failures asks it again, with a larger --max_failures it goes on",
        )

    def _over(self, fewest: int) -> str | None:
        for family, count in self.families.items():
            if count >= fewest and count > getattr(self.limits, family) * self.total:
                return family
        return None
