"""The summaries of a run as examples for raters, with the activities that they summarise."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness_usersumbench.rendering import lines

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness_usersumbench.records import Activity

FINAL = {"single_step": "summarise", "hierarchy_critique": "combine"}
"""The methods that summarise, and the stage of the final summary."""

TOP = 3
"""How many categories of a user are top categories."""

StopShare = Annotated[
    float,
    Meta(
        gt=0, le=1, description="categories that are top for a larger share of users are left out"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A user's summary, with the lines of the past as one text and its top categories.

    `name` is the same in every run that has this summary of this user.
    """

    name: str
    user: str
    summary: str
    activities: str
    top: tuple[str, ...]

    @property
    def names_top(self) -> bool | None:
        """Whether the summary names one of the top categories; None if there is none."""
        summary = _folded(self.summary)
        return any(_folded(one) in summary for one in self.top) if self.top else None


def examples_of(
    tasks: Iterable[FinishedTask], *, stop_share: float
) -> list[tuple[FinishedTask, dict[str, Example]]]:
    """The tasks that summarise, each with its examples by name; UsageError if there is none."""
    every = list(tasks)
    found = [(task, _examples(task, stop_share)) for task in every if task.options.method in FINAL]
    if not found:
        raise UsageError(
            "no task makes summaries",
            found=", ".join(task.task.name for task in every),
            expected=f"a task with method: {' or '.join(FINAL)}",
            hint="name one with --task, or a run that has one",
        )
    return found


def top_categories(
    pasts: Mapping[str, Sequence[Activity]], *, stop_share: float
) -> dict[str, tuple[str, ...]]:
    """The three most frequent categories of each past.

    Categories that are among them for more than `stop_share` of the users are left out.
    """
    ranked = {}
    for user, past in pasts.items():
        counts = Counter(sorted(category for one in past for category in one.categories))
        ranked[user] = [category for category, _ in counts.most_common()]
    users = Counter(category for names in ranked.values() for category in names[:TOP])
    stopped = {category for category, many in users.items() if many > stop_share * len(pasts)}
    return {
        user: tuple([name for name in names if name not in stopped][:TOP])
        for user, names in ranked.items()
    }


def _examples(task: FinishedTask, stop_share: float) -> dict[str, Example]:
    pasts = _pasts(task)
    tops = top_categories(pasts, stop_share=stop_share)
    found = {}
    for item, value in task.records(FINAL[task.options.method]).values():
        user = item.user
        name = f"s{stable_int('usersum', task.task.name, user, value.text):016x}"
        found[name] = Example(
            name=name,
            user=user,
            summary=value.text,
            activities="\n".join(lines(pasts[user], task.options)),
            top=tops[user],
        )
    return found


def _pasts(task: FinishedTask) -> dict[str, tuple[Activity, ...]]:
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


def _folded(text: str) -> str:
    """The words of a text in lower case, with a blank before and after each."""
    words = " ".join(re.findall(r"\w+", text.casefold()))
    return f" {words} "
