"""The errors a person can act on: where, what was found, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Iterable

INSTALL_ANALYSIS = "pip install 'user-understanding-harness[analysis]'"
"""The hint where figures or agreement need a package that is not installed."""


class HarnessError(Exception):
    """A failure with a cause that its reader can mend; printed without a traceback."""

    exit_code = 1

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.found = found
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        first = f"{self.where}: {self.problem}" if self.where else self.problem
        parts = [first]
        if self.found is not None:
            parts.append(f"  found:    {self.found}")
        if self.expected is not None:
            parts.append(f"  expected: {self.expected}")
        if self.hint is not None:
            parts.append(f"  to do:    {self.hint}")
        # An error repeats what was given, and keys may have been.
        from harness.base.redaction import safe_text

        return safe_text("\n".join(parts))


class UsageError(HarnessError):
    """A command, setting or call that cannot mean anything as it stands."""

    exit_code = 2


class TaskError(UsageError):
    """A task file, or a choice of tasks, that cannot be used."""


class DataError(HarnessError):
    """Data that is absent or does not hold what the task needs."""


class PluginError(HarnessError):
    """A plugin that is absent, broken or registers a name twice."""


class UnknownName(PluginError, UsageError):
    """A model or judge that no plugin offers."""


class PromptError(HarnessError):
    """A prompt template that is absent or cannot be rendered."""


class ModelError(HarnessError):
    """A model that cannot be reached or used at all, so that going on makes no sense."""


class BudgetSpent(HarnessError):
    """The run asked for more calls, tokens or money than it was given."""


class UsageUntold(BudgetSpent):
    """A server does not tell what its replies cost, and the run was given so much money only."""


class StorageError(HarnessError):
    """A result or answer that could not be written."""


class TooManyFailures(HarnessError):
    """More samples fell out than the run allows."""

    exit_code = 3


class Interrupted(HarnessError):
    """The run was stopped by its user; what was finished is kept."""

    exit_code = 130


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint that names the known name nearest to one that is not known, if any is near."""
    from difflib import get_close_matches

    by_folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_folded, 1)
    return f"did you mean {by_folded[near[0]]!r}?" if near else None
