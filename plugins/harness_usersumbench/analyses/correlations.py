"""How metrics of summaries correlate with people's ratings: Table 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
from msgspec import Meta

from harness.analysis.human_labels import votes_of
from harness.contracts.report import Report, Sheet
from harness_usersumbench.analyses.ratings import RatedTask, RatingOptions, rated_tasks
from harness_usersumbench.analyses.results import TITLES
from harness_usersumbench.analyses.text_metrics import BERT, Unavailable, text_metrics
from harness_usersumbench.paper import TABLES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

Values: TypeAlias = "Mapping[str, float] | Unavailable"
"""The values of a metric by example, or why there are none."""

NOTES = (
    "r: Pearson's, with the share of raters who call the summary good, over the rated examples; "
    "low and high: bootstrap over users; a draw without r lies beyond both",
    "ROUGE-2 and ROUGE-L: F1 over stems; BLEU: of the summary as one smoothed sentence; the "
    "reference is the activities, joined by newlines; BERTScore cuts both to what its weights "
    "allow, mostly 512 tokens",
    "published: other people's activities, summaries of Gemini Advanced, AutoEval and predictions "
    "of Gemini 1.5 Pro; for orientation, as nothing makes it comparable",
)


class MetricOptions(RatingOptions, frozen=True, kw_only=True):
    """The options of `usersum-metrics`."""

    bleurt: Annotated[str, Meta(description="function `module:function` that computes BLEURT")] = ""
    bert: Annotated[str, Meta(description="name or folder of BERTScore's weights")] = BERT


def metrics(tasks: Sequence[FinishedTask], options: MetricOptions) -> Report:
    """The report of `usersum-metrics`: a sheet for each task, with the paper's column."""
    found, notes = rated_tasks(tasks, options)
    return Report(sheets=tuple(sheet(one, options) for one in found), notes=notes)


def sheet(one: RatedTask, options: MetricOptions) -> Sheet:
    """The correlations of all metrics of one task."""
    dataset = TITLES[one.task.options.source]
    published = {row["metric"]: row[dataset] for row in TABLES.read("correlations").dicts()}
    rows: list[tuple[Cell, ...]] = []
    remarks: dict[str, list[str]] = {}
    for metric, values in values_of(one, options).items():
        cells, why = correlation(one, metric, values)
        rows.append((metric, *cells, published.get(metric)))
        remarks.setdefault(why, []).append(metric)
    remarks.pop("", None)
    return Sheet(
        title=f"Correlation with people's ratings: {', '.join(one.name)}",
        columns=("metric", "examples", "r", "low", "high", f"published: {dataset}"),
        rows=tuple(rows),
        notes=(*NOTES, *(f"{', '.join(of)}: {why}" for why, of in remarks.items())),
        digits=3,
    )


def values_of(one: RatedTask, options: MetricOptions) -> dict[str, Values]:
    """The values of each metric, in the order of Table 3; the recall of top categories is ours."""
    examples = one.examples
    columns = text_metrics(
        [each.summary for each in examples.values()],
        [each.activities for each in examples.values()],
        bert=options.bert,
        bleurt=options.bleurt,
    )
    texts: dict[str, Values] = {
        metric: found if isinstance(found, Unavailable) else dict(zip(examples, found, strict=True))
        for metric, found in columns.items()
    }
    tops = {name: each.names_top for name, each in examples.items()}
    return {
        **texts,
        "AutoEval": autoeval(one),
        "Top-category recall": {name: float(top) for name, top in tops.items() if top is not None},
        "Quality Q_s": {name: float(good) for name, good in one.good.items()},
    }


def autoeval(one: RatedTask) -> Values:
    """The mean of the judge's marks of each example."""
    marks = one.task.units("autoeval")
    if not marks:
        return Unavailable("no judge rated the summaries: run with --set autoeval=true and --judge")
    return {name: marks[each.user][1] for name, each in one.examples.items() if each.user in marks}


def correlation(one: RatedTask, metric: str, values: Values) -> tuple[tuple[Cell, ...], str]:
    """The number of examples and r with its bounds, and why r or the bounds are missing."""
    from harness.scoring.stats import Interval, Undefined, pearson, relation_interval

    if isinstance(values, Unavailable):
        return (0, None, None, None), values.reason
    votes = {name: given for name, given in votes_of(one.raters).items() if name in values}
    pairs = [values[name] for name in votes], [of[True] / of.total() for of in votes.values()]
    found = pearson(*pairs)
    if isinstance(found, Undefined):
        return (len(votes), None, None, None), f"undefined: {found.reason}"
    users = [one.examples[name].user for name in votes]
    settings = msgspec.structs.asdict(one.task.task.interval)
    drawn = relation_interval(*pairs, users, pearson, seed=one.seed(metric), **settings)
    if not isinstance(drawn, Interval):
        return (len(votes), found, None, None), f"no interval: {drawn.reason}"
    return (len(votes), found, drawn.low, drawn.high), ""
