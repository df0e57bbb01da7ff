"""The gates of a suite: checked before its runs, and decided by `harness compare` after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from harness.base.errors import HarnessError, UsageError
from harness.cli.compare import GATE_FAILED, compare, compared_document
from harness.runs.manifest import Manifest, TaskEntry, task_definition

if TYPE_CHECKING:
    from harness.pipeline.suite_file import Suite
    from harness.pipeline.suite_runs import SuiteRun
    from harness.registry import Plugins
    from harness.registry.task_catalogue import Selection
    from harness.scoring.comparison import ComparisonDocument

CODES = {True: 0, False: GATE_FAILED, None: 1}
"""The exit code of a gate that holds, of one that does not, and of one that is undecided."""


def check_gates(suite: Suite, selection: Selection, plugins: Plugins) -> None:
    """Raise UsageError, with its place, for a gate that the tasks of the suite cannot have."""
    from harness.scoring.gates import GatedRun, gates_of

    tasks = {
        task.name: TaskEntry(
            folder=task.name, definition=task_definition(task), content="", stages=()
        )
        for task in selection.tasks
    }
    planned = Manifest(
        run_id="", run_key="", status="running", model="", seed=0, limit=None, asked={},
        settings={}, tasks=tasks,
        groups={group.name: group.members for group in selection.groups},
        without_mean=tuple(group.name for group in selection.groups if not group.mean),
    )  # fmt: skip
    benchmarks = {task.name: plugins.benchmark(task.benchmark) for task in selection.tasks}
    for number, text in enumerate(suite.file.gates):
        try:
            gates_of([text], [GatedRun(suite.name, planned, benchmarks, frozenset())])
        except UsageError as error:
            error.where = suite.document.where(["gates", number])
            raise


def decided_gates(
    suite: Suite, runs: Sequence[SuiteRun], bases: Mapping[int, str]
) -> tuple[list[ComparisonDocument], list[HarnessError], int]:
    """The comparison with its gates for each seed, the errors, and the exit code of all gates.

    `bases` has by seed the folder of the run that the others are compared with. Without gates,
    tasks that cannot be compared are no errors: how each run ended says why.
    """
    from harness.pipeline.suite_runs import exit_code_of

    documents: list[ComparisonDocument] = []
    errors: list[HarnessError] = []
    for seed in suite.file.seeds:
        of_seed = [run for run in runs if run.seed == seed and run.model != suite.file.against]
        others = [run.folder for run in of_seed if run.folder is not None]
        base = bases.get(seed)
        if suite.file.gates and of_seed and (not others or base is None):
            why = f"{suite.file.against} has no run" if others else "no model has a run"
            problem = f"the gates of seed {seed} are not decided, as {why}"
            errors.append(HarnessError(problem, where=suite.document.where(["gates"], of_key=True)))
            continue
        words = [base, *others, f"--against={base}"] if base else others
        if not others or len(words) < 2:
            continue
        words += [f"--gate={text}" for text in suite.file.gates]
        args = SimpleNamespace(**compare.make_context("compare", words).params)
        document, wrong = compared_document(args)
        documents.append(document)
        errors += wrong if suite.file.gates else []
    codes = [CODES[gate.holds] for document in documents for gate in document.gates or ()]
    return documents, errors, exit_code_of([*codes, *(error.exit_code for error in errors)])
