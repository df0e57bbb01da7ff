"""How metrics of summaries correlate with people's ratings: Table 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness_usersumbench.analyses.agreement import bounds
from harness_usersumbench.analyses.rated import RatedTask, RatingOptions, rated_tasks
from harness_usersumbench.analyses.results import TITLES
from harness_usersumbench.analyses.text_metrics import Models, Unavailable, text_metrics
from harness_usersumbench.paper import TABLES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

QUALITY, AUTOEVAL, TOP_CATEGORY = "Quality Q_s", "AutoEval", "Top-category recall (ours)"

NOTES = (
    "Pearson's r of each metric with the share of raters who call the summary good, over the rated "
    "examples that have the metric; low and high: bootstrap over users",
    "ROUGE-2 and ROUGE-L: F1 over stems; BLEU: of the summary as one smoothed sentence; each of "
    "the activities, joined by newlines, as the reference, and the summary. BERTScore reads no "
    "more of both than its weights allow, mostly 512 tokens",
    "the paper's summaries are of Gemini Advanced, its predictor and AutoEval are Gemini 1.5 Pro, "
    "and its activities are of other people: its numbers are for orientation, not for comparison",
)


class MetricOptions(RatingOptions, frozen=True, kw_only=True):
    """The options of `usersum-metrics`."""

    bleurt: Annotated[str, Meta(description="function `module:function` that computes BLEURT")] = ""
    bert: Annotated[str, Meta(description="name or folder of BERTScore's weights")] = Models.bert
    bert_layer: Annotated[
        int | None, Meta(ge=1, description="layer of these weights, if bert-score does not know it")
    ] = None


def metrics(tasks: Sequence[FinishedTask], options: MetricOptions) -> Report:
    """The report of `usersum-metrics`: a sheet for each task, with the paper's column."""
    found, notes = rated_tasks(tasks, options)
    models = Models(bert=options.bert, bert_layer=options.bert_layer, bleurt=options.bleurt)
    return Report(sheets=tuple(_sheet(one, models) for one in found), notes=notes)


def _sheet(one: RatedTask, models: Models) -> Sheet:
    """The correlations of all metrics of one task."""
    dataset = TITLES[one.task.options.source]
    published = {row["metric"]: row[dataset] for row in TABLES.read("correlations").dicts()}
    rows: list[tuple[Cell, ...]] = []
    remarks: list[str] = []
    for metric, values in columns(one, models).items():
        if isinstance(values, Unavailable):
            cells, why = (0, None, None, None), values.reason
        else:
            cells, why = correlation_cells(one, metric, values)
        rows.append((metric, *cells, published.get(metric)))
        remarks += [f"{metric}: {why}"] if why else []
    return Sheet(
        title=f"Correlation with people's ratings, {', '.join(one.name)}",
        columns=("metric", "examples", "r", "low", "high", f"published: {dataset}"),
        rows=tuple(rows),
        notes=(*NOTES, *remarks),
        digits=3,
    )


def columns(one: RatedTask, models: Models) -> dict[str, Mapping[str, float] | Unavailable]:
    """The values of each metric by example, in the order of Table 3, or why there are none."""
    examples = one.examples.values()
    texts = text_metrics(
        [each.summary for each in examples], [each.reference for each in examples], models
    )
    return {
        **{
            metric: values
            if isinstance(values, Unavailable)
            else dict(zip(one.examples, values, strict=True))
            for metric, values in texts.items()
        },
        AUTOEVAL: autoeval(one),
        TOP_CATEGORY: {name: float(each.names_top) for name, each in one.examples.items()},
        QUALITY: {name: float(good) for name, good in one.good.items()},
    }


def autoeval(one: RatedTask) -> Mapping[str, float] | Unavailable:
    """The mean of the judge's marks of each example."""
    if not any(entry.name == "rate" for entry in one.task.entry.stages):
        return Unavailable("no judge rated the summaries: run with --set autoeval=true and --judge")
    marks = {
        item.user: (marked.coherence + marked.relevance) / 2
        for item, marked in one.task.records("rate").values()
    }
    return {name: marks[each.user] for name, each in one.examples.items() if each.user in marks}


def correlation_cells(
    one: RatedTask, metric: str, values: Mapping[str, float]
) -> tuple[tuple[Cell, ...], str]:
    """Examples and r with its interval, and why r or its interval is missing."""
    from harness.scoring.stats import NoInterval, Undefined, pearson, relation_interval

    human = {name: share for name, share in one.shares().items() if name in values}
    pairs = [values[name] for name in human], list(human.values())
    found = pearson(*pairs)
    if isinstance(found, Undefined):
        return (len(human), None, None, None), f"undefined: {found.reason}"
    interval = one.task.task.interval
    drawn = relation_interval(
        *pairs,
        [one.examples[name].user for name in human],
        pearson,
        seed=stable_int("correlation", one.task.manifest.seed, *one.name, metric),
        draws=interval.draws,
        confidence=interval.confidence,
        method=interval.method,
    )
    why = f"no interval, for {drawn.reason}" if isinstance(drawn, NoInterval) else ""
    return (len(human), found, *bounds(drawn)), why
