"""Findings about what a run needs: shown by `harness doctor`, and before a run."""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.base.errors import HarnessError

State = Literal["good", "doubtful", "bad"]
"""No problem; a problem that a run may survive; a problem that makes a run fail."""

NAME = "name"
"""What findings are about that say whether a server knows the model by its name.

One that is not good, about a model that only a task names, is shown with the way to name another.
"""

WEIGHTS = "weights"
"""What findings are about that say whether a model's weights can be had, and fit on the GPUs.

A bad one about a judge is shown with the ways to name another judge.
"""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check: `good("server", "answers")`."""

    about: str
    """The thing that was checked."""

    state: State
    """How it is."""

    says: str
    """What was found."""

    to_do: str | None = None
    """How to fix it."""


def good(about: str, says: str) -> Finding:
    """A finding without a problem."""
    return Finding(about=about, state="good", says=says)


def doubtful(about: str, says: str, to_do: str | None = None) -> Finding:
    """A finding of a problem that a run may survive."""
    return Finding(about=about, state="doubtful", says=says, to_do=to_do)


def bad(about: str, says: str, to_do: str | None = None) -> Finding:
    """A finding of a problem that makes every run fail that needs the thing."""
    return Finding(about=about, state="bad", says=says, to_do=to_do)


def bad_by(about: str, error: HarnessError) -> Finding:
    """A bad finding with the content of an error."""
    problem = f"{error.where}: {error.problem}" if error.where else error.problem
    details = [
        f"{word} {text}"
        for word, text in (("found", error.found), ("expected", error.expected))
        if text
    ]
    return bad(about, "; ".join([problem, *details]), error.hint)
