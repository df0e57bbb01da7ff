"""Findings about what a run needs: shown by `harness doctor`, and before a run."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.base.errors import HarnessError, ModelError

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


MARKS = {"good": "✓", "doubtful": "!", "bad": "✗"}
WIDTH = 80


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check: `good("server", "answers")`."""

    about: str
    state: State
    says: str
    to_do: str | None = None


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


class NotReady(ModelError):
    """What prevents a run, each as a finding, and commands that can run instead; nothing was paid.

    `raise NotReady([bad("gpu", "no NVIDIA GPU is on this machine")])`
    """

    def __init__(self, findings: Sequence[Finding], ways: Sequence[str] = ()) -> None:
        super().__init__("this run cannot start here")
        self.findings, self.ways = tuple(findings), tuple(ways)

    def __str__(self) -> str:
        first = self.findings[0]
        if len(self.findings) == 1 and not self.ways:
            return str(ModelError(first.says, where=first.about, hint=first.to_do))
        lines = [self.problem]
        for one in self.findings:
            texts = {f"  {MARKS[one.state]} ": f"{one.about}: {one.says}"}
            texts |= {" " * 4: f"to do: {one.to_do}"} if one.to_do else {}
            for start, text in texts.items():
                lines += textwrap.wrap(
                    text, WIDTH, initial_indent=start, subsequent_indent=" " * 4,
                    break_long_words=False, break_on_hyphens=False,
                )  # fmt: skip
        from harness.base.redaction import safe_text

        return safe_text("\n".join([*lines, *self.ways]))
