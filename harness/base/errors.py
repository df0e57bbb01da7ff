"""Errors that a person can act on: where, what was found, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

LONGEST_PART = 4_000
"""The most characters that an error repeats of its input in one place."""


@dataclass(eq=False, repr=False)
class HarnessError(Exception):
    """A failure that its reader can act on; printed without a traceback.

        raise HarnessError("no such file", where="a.yaml:3", found="b.csv", hint="name a CSV file")

    `problem`: what is wrong. `where`: file and line, option or model. `found`: the value that
    caused it. `expected`: what would be valid. `hint`: what to do. `others` are told with it.
    """

    problem: str
    _: KW_ONLY
    where: str | None = None
    found: str | None = None
    expected: str | None = None
    hint: str | None = None
    others: tuple[HarnessError, ...] = field(default=(), init=False)

    exit_code: ClassVar[int] = 1
    """The exit code of a command that ends with this error."""

    def __post_init__(self) -> None:
        self.args = (self.problem,)

    def __str__(self) -> str:
        problem = _cut(self.problem)
        parts = [f"{_cut(self.where)}: {problem}" if self.where else problem]
        rest = {"found:   ": self.found, "expected:": self.expected, "to do:   ": self.hint}
        parts += [f"  {name} {_cut(text)}" for name, text in rest.items() if text is not None]
        # An error repeats its input, which may hold keys.
        from harness.base.redaction import safe_text

        return "\n".join([safe_text("\n".join(parts)), *map(str, self.others)])


class UsageError(HarnessError):
    """A command, setting or call is invalid."""

    exit_code = 2


class TaskError(UsageError):
    """A task file or a choice of tasks is invalid."""


class DataError(HarnessError):
    """Data is missing or does not contain what the task needs."""


class Unavailable(DataError):
    """A source of data cannot give it now; another source may."""


class PluginError(HarnessError):
    """A plugin is missing or broken, or registers a name twice."""


class UnknownName(PluginError, UsageError):
    """No plugin offers a model or judge of that name."""


class PromptError(HarnessError):
    """A prompt template is missing or cannot be rendered."""


class ModelError(HarnessError):
    """A model cannot be reached or used at all, so the run ends."""


class BudgetSpent(HarnessError):
    """The run's budget of calls, tokens or money is used up."""


class UsageUnreported(BudgetSpent):
    """A server reports no usage, so that a budget of money cannot be enforced."""


class StorageError(HarnessError):
    """A result or reply could not be written."""


class TooManyFailures(HarnessError):
    """More items failed than the run allows."""

    exit_code = 3


class Interrupted(HarnessError):
    """The user stopped the run; finished items are kept."""

    exit_code = 130


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_PART else f"{text[:LONGEST_PART]}…"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the known name that is most similar to an unknown one, if any is."""
    from difflib import get_close_matches

    by_folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_folded, 1)
    return f"did you mean {by_folded[near[0]]!r}?" if near else None


def one_of(
    name: str, names: Iterable[str], problem: str, kind: type[HarnessError] = UsageError, *,
    listed: str = "{}", none: str | None = None, hint: str | None = None, **parts: str | None,
) -> str:  # fmt: skip
    """The name, if it is one of `names`; otherwise an error with them and the nearest one.

    `none` is expected if there are no names, `hint` is what to do if none is near.
    """
    known = list(names)
    if name in known:
        return name
    expected = listed.format(", ".join(known)) if known else none
    raise kind(problem, expected=expected, hint=did_you_mean(name, known) or hint, **parts)
