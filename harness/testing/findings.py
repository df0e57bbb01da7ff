"""What a check of a plugin finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.testing.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One promise that is not kept: where, what is wrong, and what to do."""

    check: str
    where: str
    problem: str
    to_do: str

    def __str__(self) -> str:
        problem = self.problem.replace("\n", "\n    ")
        return f"[{self.check}] {self.where}: {problem}\n    to do: {self.to_do}"


Check = Callable[[Trial], Iterator[Finding]]
"""A promise that is looked at on a trial; it gives a finding for each place that breaks it."""
