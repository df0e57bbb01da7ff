"""How much of the oracle hangs on each model: agreement, sole providers, leave-one-out.

Runs of one model are one provider: a second would leave nothing that the model alone provides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from harness.analysis.percentages import share
from harness.contracts.report import Report, Sheet
from harness_gistbench.analyses.compared_runs import Run, TableOptions, compare, grouped, published
from harness_gistbench.metrics import verified_categories

if TYPE_CHECKING:
    from harness import FinishedTask

Pair: TypeAlias = tuple[str, int]
"""A user and a category."""


def run(tasks: Sequence[FinishedTask], options: TableOptions) -> Report:
    """For each dataset, pairs by the number of models that verify them, and by model."""
    compared = compare(tasks, options)
    sheets = [
        sheet
        for dataset, group in compared.by_dataset().items()
        for sheet in stability(dataset, providers(group), runs=len(group))
    ]
    sheets += published(options, "oracle_agreement", "oracle_by_model")
    return compared.report(sheets, recall=False)


def providers(runs: Iterable[Run]) -> list[tuple[str, set[Pair]]]:
    """Each model with all that its runs verified, in the order in which they came."""
    return [
        (
            own[0].model if len(own) == 1 else f"{own[0].task.summary.model}, {len(own)} runs",
            {
                (user, category)
                for run in own
                for user, profile in run.profiles()
                for category in verified_categories(profile, run.options.verification)
            },
        )
        for own in grouped(runs, lambda run: run.candidate).values()
    ]


def stability(
    dataset: str, pairs: Sequence[tuple[str, set[Pair]]], *, runs: int
) -> tuple[Sheet, Sheet]:
    """The two tables of one dataset."""
    verifiers: Counter[Pair] = Counter()
    for _, of_model in pairs:
        verifiers.update(of_model)
    sizes = Counter(verifiers.values())
    counts = range(1, len(pairs) + 1)
    total = len(verifiers)
    by_number = Sheet(
        title=f"{dataset}: oracle pairs by the number of models that verify them",
        columns=("models verifying", "pairs", "%"),
        rows=(
            *((count, sizes[count], share(sizes[count], total)) for count in counts),
            ("total", total, share(total, total)),
        ),
        notes=(f"a pair is a user and a category; runs: {runs}, models: {len(pairs)}",),
    )
    by_model = Sheet(
        title=f"{dataset}: what the oracle would lose without a model",
        columns=("model", "verified", "sole provider", "% of the oracle"),
        rows=tuple(
            (model, len(of_model), sole, share(sole, total))
            for model, of_model in sorted(pairs, key=lambda one: -len(one[1]))
            for sole in [sum(verifiers[pair] == 1 for pair in of_model)]
        ),
        notes=("sole provider: pairs that no other model verifies, lost if it is left out",),
    )
    return by_number, by_model
