"""The summaries of a run as examples for raters, with the activities that they summarise."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness_usersumbench.rendering import lines

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness_usersumbench.records import Activity

FINAL = {"single_step": "summarise", "hierarchy_critique": "combine"}
"""The stage that makes the final summary, by method; other methods make no summary of their own."""

TOP = 3
"""How many categories of a user are top categories."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A user's summary with the lines of the past and its top categories.

    `name` is the same in every run that has this summary of this user.
    """

    name: str
    user: str
    summary: str
    activities: tuple[str, ...]
    top: tuple[str, ...]

    @property
    def reference(self) -> str:
        """The activities as one text."""
        return "\n".join(self.activities)

    @property
    def names_top(self) -> bool:
        """Whether the summary names one of the top categories."""
        summary = _folded(self.summary)
        return any(_folded(category) in summary for category in self.top)


def summarising(tasks: Iterable[FinishedTask]) -> list[FinishedTask]:
    """The tasks that make summaries; UsageError if there is none."""
    every = list(tasks)
    found = [task for task in every if task.options.method in FINAL]
    if not found:
        raise UsageError(
            "no task makes summaries",
            found=", ".join(task.task.name for task in every),
            expected=f"a task with method: {' or '.join(FINAL)}",
        )
    return found


def examples_of(task: FinishedTask, *, stop_share: float) -> list[Example]:
    """Every summary of a task, in the order of users' ids.

    Categories of a larger share of users than `stop_share` are no top categories.
    """
    pasts = pasts_of(task)
    tops = top_categories(pasts, stop_share=stop_share)
    summaries = {
        item.user: value.text for item, value in task.records(FINAL[task.options.method]).values()
    }
    return [
        Example(
            name=f"s{stable_int('usersum', task.task.name, user, summaries[user]):016x}",
            user=user,
            summary=summaries[user],
            activities=lines(pasts[user], task.options),
            top=tops[user],
        )
        for user in sorted(summaries)
    ]


def pasts_of(task: FinishedTask) -> dict[str, tuple[Activity, ...]]:
    """The past of each user whose past was to be summarised."""
    if task.options.method == "single_step":
        return {record.user: record.item.activities for record in task.records("summarise")}
    segments: dict[str, dict[int, tuple[Activity, ...]]] = defaultdict(dict)
    for record in task.records("segment"):
        segments[record.user][record.item.number] = record.item.activities
    return {
        user: tuple(one for number in sorted(parts) for one in parts[number])
        for user, parts in segments.items()
    }


def top_categories(
    pasts: Mapping[str, Sequence[Activity]], *, stop_share: float
) -> dict[str, tuple[str, ...]]:
    """The three most frequent categories of each past, without those of too many users."""
    counted = {
        user: Counter(category for one in past for category in one.categories)
        for user, past in pasts.items()
    }
    users = Counter(category for counts in counted.values() for category in counts)
    stopped = {category for category, many in users.items() if many > stop_share * len(pasts)}
    return {
        user: tuple(
            sorted(counts.keys() - stopped, key=lambda name, of=counts: (-of[name], name))[:TOP]
        )
        for user, counts in counted.items()
    }


def _folded(text: str) -> str:
    """The words of a text in lower case, each between blanks."""
    words = " ".join(re.findall(r"\w+", text.casefold()))
    return f" {words} "
