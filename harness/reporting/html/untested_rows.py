"""Which runs were not tested against each other, and what would make them testable."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts.stage import CANDIDATE
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.run_differences import Differences
from harness.tasks.repeats import task_and_repeat

JUDGE = "judge"


def untested(runs: Sequence[ReportedRun], found: Differences) -> dict[str, str]:
    """By task the runs that stand apart, why, and what would make them comparable."""
    said: dict[str, str] = {}
    for one in found.document.comparisons:
        if not one.refused:
            continue
        whose = ", ".join(each.label for each in one.refused)
        start = "Not tested" if len(one.runs) < 2 else f"Not tested: {whose}"
        why = "; ".join(dict.fromkeys(each for of in one.refused for each in of.because))
        roles = [role for role in _unlike_roles(runs, one.task) if f"{role}'s " in why]
        if roles:
            options = " ".join(
                "--judge SPEC" if role == JUDGE else f"--role {role}=SPEC" for role in roles
            )
            own = f"each run has its own model as {' and '.join(roles)}"
            text = f"{start}, as {own}: to test it, give all runs the same, {options}."
        else:
            text = (
                f"{start}, as more than the candidate differs: {why}. To test it, make that alike."
            )
        said.setdefault(task_and_repeat(one.task)[0], text)
    return said


def _unlike_roles(runs: Sequence[ReportedRun], task: str) -> list[str]:
    """The roles of a task, except the candidate, in which runs have different models."""
    players: dict[str, set[str]] = {}
    for run in runs:
        for summary in run.summaries:
            if summary.task == task:
                for role, name in summary.roles.items():
                    players.setdefault(role, set()).add(name)
    return [role for role, names in players.items() if role != CANDIDATE and len(names) > 1]
