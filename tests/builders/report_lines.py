"""Runs and lines of a report: give what the test is about, the rest is as usual."""

from pathlib import Path
from typing import Any

from builders.runs import make_entry, make_manifest, make_task

from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.result_lines import Line, Rule, Value
from harness.runs.manifest import Manifest, RoleEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.summary import TaskSummary

BY_RULE = {"candidate": RoleEntry(name="baseline", by_rule=True)}


def make_run(label: str, *summaries: TaskSummary, **fields: Any) -> ReportedRun:
    """A finished run with these summaries, of the task `t` if there are none."""
    names = [each.task for each in summaries] or ["t"]
    manifest: Manifest = make_manifest(
        model=label, tasks={name: make_entry(make_task(name)) for name in names}, **fields
    )
    return ReportedRun(
        label=label, folder=RunFolder(Path(label)), manifest=manifest, tasks=(),
        summaries=summaries,
    )  # fmt: skip


def make_line(name: str, *, rule: float | None = None, **values: float | Value) -> Line:
    """The line of a task, with the value of each run by its label, and that of a rule."""
    known = {
        label: one if isinstance(one, Value) else Value(value=one, n=40, of=40)
        for label, one in values.items()
    }
    rules = () if rule is None else (Rule("chance", rule),)
    return Line(name=name, metric="ptc", tasks=frozenset({name}), values=known, rules=rules)
