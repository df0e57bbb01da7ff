"""A forest: the mean of each model with its interval over users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from harness.results.report import Axis, Figure, Report, Sheet, Spans
from harness_gistbench.analyses.comparing import (
    TITLES,
    ComparisonOptions,
    by_dataset,
    comparable,
    oracle_notes,
    people,
    percent,
    rescored,
    results,
    withheld,
)

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.summary import MetricResult


class Options(ComparisonOptions, frozen=True, kw_only=True):
    """What may be asked of the analysis."""

    score: Annotated[
        Literal["ig_f1", "is", "ig_p", "ig_r"], msgspec.Meta(description="which score")
    ] = "ig_f1"
    statistic: Annotated[
        Literal["mean", "median"], msgspec.Meta(description="of the users' scores")
    ] = "mean"


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """The models from best to worst with bootstrap intervals over users, a figure a dataset."""
    runs, notes = comparable(tasks, options)
    rows, figures = [], []
    hidden: list[str] = []
    title = f"{TITLES[options.score]} ({options.statistic})"
    for dataset, together in by_dataset(runs).items():
        spans = []
        for one, scores in rescored(together):
            draws = one.task.task.interval.draws
            found = results(one, scores, statistic=options.statistic, draws=draws)
            result = found[options.score]
            spans.append((one.model, result))
            hidden += withheld(one, {options.score: result})
            if result.no_interval is not None and result.value is not None:
                hidden.append(f"{one.model} on {dataset}: no interval, for {result.no_interval}")
        spans.sort(key=lambda span: -1.0 if span[1].value is None else span[1].value, reverse=True)
        rows += [(dataset, model, *row(result)) for model, result in spans]
        figures.append(figure(dataset, title, spans))
    sheet = Sheet(
        title=f"{title}, in %",
        columns=("dataset", "model", options.statistic, "low", "high", "users"),
        rows=tuple(rows),
        notes=(
            "low and high: bootstrap over users, of each model alone; whether two models differ "
            "is told by the paired comparison of `harness score`",
            *hidden,
        ),
    )
    return Report(
        sheets=(sheet, people(runs)), figures=tuple(figures), notes=(*oracle_notes(runs), *notes)
    )


def row(result: MetricResult) -> tuple[float | int | None, ...]:
    """Value, bounds and users of one model."""
    low, high = result.interval or (None, None)
    return percent(result.value), percent(low), percent(high), result.n


def figure(dataset: str, title: str, spans: Sequence[tuple[str, MetricResult]]) -> Figure:
    """The intervals of the models that have one."""
    drawn = [
        (model, result.interval[0], result.value, result.interval[1])
        for model, result in spans
        if result.value is not None and result.interval is not None
    ]
    names, low, value, high = zip(*drawn, strict=True) if drawn else ((), (), (), ())
    return Figure(
        title=f"{dataset}: {title}",
        x=Axis(label=title),
        y=Axis(label=""),
        marks=(Spans(label=title, names=names, low=low, value=value, high=high),),
    )
