"""The runs in a folder, and how rate limits slowed a run, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.reporting.text import clean_text, number
from harness.scoring.grouping import grouped
from harness.scoring.run_list import ListedRun, ListedTask, Listing

MOST_TASKS = 10
"""The most tasks of a run that are listed one by one."""


def listing_lines(listing: Listing) -> Iterator[str]:
    """The lines about each run with its tasks, then about the folders that are no runs."""
    many = len(listing.runs)
    place = clean_text(listing.folder)
    if many:
        first = "1 run" if many == 1 else f"{many:,} runs, newest first"
        yield f"{first}; `harness show RUN` shows one in full"
    else:
        yield f"no runs in {place}"
    for run in listing.runs:
        yield ""
        yield from _run(run)
    if listing.damaged or listing.others:
        yield ""
    for one in listing.damaged:
        yield clean_text(f"cannot be read: {one.because}", lines=True)
    for one in listing.others:
        yield clean_text(f"no run: {one.folder}: {one.because}")


def status_text(status: str, at_work: bool | None) -> str:
    """How far a run is, where `at_work` says whether a process works in its folder."""
    if status == "running":
        return {True: "at work", False: "killed", None: "at work or killed"}[at_work]
    return status.replace("_", " ")


def _run(run: ListedRun) -> Iterator[str]:
    began = run.begun.replace("T", " ").replace("Z", " UTC") if run.begun else "at an unknown time"
    tags = [f"{name}={value}" for name, value in run.tags.items()]
    working = status_text(run.status, run.at_work)
    scored = sum(task.scored for task in run.tasks)
    finished = f", {scored:,} of {len(run.tasks):,} tasks finished"
    if run.status == "done" and scored == len(run.tasks):
        finished = ""
    about = [
        began,
        run.model,
        *tags,
        *([] if run.limit is None else [f"limit {run.limit}"]),
        f"{working}{finished}",
    ]
    yield clean_text(run.folder)
    yield clean_text(f"  {', '.join(about)}")
    if run.problem:
        yield clean_text(f"  {run.problem.splitlines()[0]}")
    shown = run.tasks if len(run.tasks) <= MOST_TASKS else run.tasks[: MOST_TASKS - 1]
    width = max((len(clean_text(task.task)) for task in shown), default=0)
    for task in shown:
        yield f"  {clean_text(task.task).ljust(width)}  {_result(task)}"
    if rest := run.tasks[len(shown) :]:
        scored = sum(task.scored for task in rest)
        yield f"  and {len(rest):,} more tasks, {scored:,} of them finished"


def _result(task: ListedTask) -> str:
    if task.stages_done < task.stages:
        return f"not finished: {task.stages_done:,} of {task.stages:,} stages done"
    if task.problem is not None:
        return clean_text(task.problem.splitlines()[0])
    if not task.scored:
        return "not scored: run `harness score`"
    if task.metric is None:
        return "no metric"
    arrow = "↑" if task.higher_is_better else "↓"
    result = f"{clean_text(task.metric)} {arrow} {number(task.value)}"
    missing = f", {task.missing:,} missing" if task.missing else ""
    if task.repeats > 1:
        return f"{result}, mean of {task.repeats:,} repeats{missing}"
    spread = f" [{number(task.interval[0])}, {number(task.interval[1])}]" if task.interval else ""
    return f"{result}{spread}, n {task.n:,}{missing}"


def rate_limited(sessions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each model whose server asked for fewer requests, from each session's `limits`."""
    every = (one for limits in sessions for one in limits.items())
    slowed = grouped((model, limiter) for model, limiter in every if limiter.get("cuts"))
    for model, limiters in slowed.items():
        times = sum(one["cuts"] for one in limiters)
        often = "once" if times == 1 else f"{times:,} times"
        lowest = min(one["lowest"] for one in limiters)
        ceiling = max(one["ceiling"] for one in limiters)
        yield clean_text(
            f"{model}: slowed by rate limits (HTTP 429) {often}, "
            f"down to {lowest:,} of {ceiling:,} requests in flight"
        )


def throttled(limits: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Which model takes fewer requests at once than it may, and why; None if none does."""
    lines = [
        f"throttled: {model} to {report['limit']:,} of {report['ceiling']:,} requests at once, "
        f"as {report['throttled']}"
        for model, report in limits.items()
        if report.get("throttled")
    ]
    more = f"; {len(lines) - 1:,} more" if len(lines) > 1 else ""
    return clean_text(lines[0]) + more if lines else None
