"""The results of a run on a terminal, as an overview if there are many tasks.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from harness.reporting.tables import (
    candidate_of,
    data_name,
    known_notes,
    missing_notes,
    own_metrics,
    print_costs,
    print_side_by_side,
    print_summaries,
    result_console,
    run_notes,
    stamp,
    thinking_notes,
)
from harness.reporting.text import clean_text
from harness.scoring.summary import TaskSummary

MOST_IN_FULL = 4
"""The most tasks of a run that are shown in full."""


def print_results(
    summaries: Sequence[TaskSummary], run: str, console: Console | None = None
) -> None:
    """Print the results of a run: each task in full, or an overview of many tasks.

    Repeats always get the overview: their means count.
    """
    console = console or result_console()
    if len(summaries) <= MOST_IN_FULL and all(each.repeat == 1 for each in summaries):
        print_summaries(summaries, console)
        return
    models = ", ".join(dict.fromkeys(candidate_of(each) for each in summaries))
    title = Text(f"{len(summaries)} tasks", style="bold")
    console.print(title.append(f"  {models}", style="dim"))
    for line in _roles_and_data(summaries):
        console.print(Text(line, style="dim"))
    if reasons := _reasons(summaries):
        console.print(stamp(reasons))
    console.print()
    print_side_by_side(summaries, console)
    for note in known_notes({n: one for each in summaries for n, one in own_metrics(each).items()}):
        console.print(note)
    for summary in summaries:
        name = clean_text(summary.task)
        for note in (*missing_notes(own_metrics(summary), name), *run_notes(summary, name)):
            console.print(note)
        for note in thinking_notes(summary):
            console.print(note)
    print_costs(summaries, console)
    console.print(Text(f"`harness show {clean_text(run)}` shows each task in full"))
    console.print()


def _roles_and_data(summaries: Sequence[TaskSummary]) -> list[str]:
    roles = [
        f"{role}: {model}"
        for each in summaries
        for role, model in each.roles.items()
        if role != "candidate"
    ]
    data = [f"data: {data_name(each.data)}" for each in summaries]
    return [clean_text(line) for line in dict.fromkeys((*roles, *data))]


def _reasons(summaries: Sequence[TaskSummary]) -> list[str]:
    """Why results are not comparable: each reason once, with its tasks unless all share it."""
    tasks: dict[str, list[str]] = {}
    for summary in summaries:
        for reason in summary.not_comparable_because:
            tasks.setdefault(reason, []).append(summary.task)
    return [
        reason if len(names) == len(summaries) else f"{reason} ({', '.join(names)})"
        for reason, names in tasks.items()
    ]
