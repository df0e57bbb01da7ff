"""Models against what is known elsewhere: interests that users stated, and figures of the models.

The paper does not say how its survey's labels were matched, so the matching is ours: the mapping
file where one is given, else the exact id or name of a category, else the category that the runs'
own taxonomist gave to the very same words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec

from harness.analysis.percentages import percent
from harness.analysis.user_tables import names_of, read_figures, table
from harness.base.errors import UsageError
from harness.contracts.report import Axis, Figure, Points, Report, Sheet
from harness_gistbench.analyses.compared_runs import (
    ComparisonOptions,
    Run,
    compare,
    published,
    rescored,
    results,
    withheld,
)
from harness_gistbench.categories import categories
from harness_gistbench.interests import folded

if TYPE_CHECKING:
    from harness import FinishedTask, Score
    from harness.contracts.report import Cell
    from harness.scoring.summary import MetricResult
    from harness_gistbench.records import Category, Profile

TITLES = {
    "s_prec": "S-Prec",
    "s_rec": "S-Rec",
    "ig_p": "IG P",
    "ig_r": "IG R",
    "ig_f1": "IG F1",
    "is": "IS",
}
STATISTICS: tuple[Literal["median", "mean"], ...] = ("median", "mean")
SHOWN = 10
"""How many stated interests without a category are named."""

SOURCES = MAPPING, TAXONOMY, RUNS, UNMAPPED = (
    "the mapping file", "the taxonomy", "the runs' mapping", "nothing"
)  # fmt: skip
MATCHING_NOTE = (
    "The matching is ours, as the paper does not describe its own. What has no category is "
    "left out; a user with nothing else is left out as well."
)


class SurveyOptions(ComparisonOptions, frozen=True, kw_only=True):
    """Where the stated interests are, and how they map to categories."""

    stated: Annotated[
        str, msgspec.Meta(description="table of stated interests: columns user, interest")
    ]
    mapping: Annotated[
        str,
        msgspec.Meta(
            description="table that maps stated interests: columns interest, category (id or name)"
        ),
    ] = ""
    published: Annotated[bool, msgspec.Meta(description="show the paper's table beside")] = False


class OutsideOptions(ComparisonOptions, frozen=True, kw_only=True):
    """Where the figures are, and which of them count."""

    figures: Annotated[str, msgspec.Meta(description="table with a row a model")]
    column: Annotated[str, msgspec.Meta(description="the column that holds the figure")]
    model: Annotated[str, msgspec.Meta(description="the column that names the model")] = "model"
    above: Annotated[
        float | None,
        msgspec.Meta(description="correlate also over the models whose figure is above this"),
    ] = None
    published: Annotated[bool, msgspec.Meta(description="show the paper's table beside")] = False


@dataclass(frozen=True)
class Stated:
    """The stated categories of each user who has any, and how the interests came to theirs."""

    categories: dict[str, set[int]] = field(default_factory=dict)
    matched: Counter[str] = field(default_factory=Counter)
    unmapped: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """One model by one statistic over the users who stated something; `found` are the results."""

    run: Run
    statistic: str
    users: int
    found: Mapping[str, MetricResult]

    @property
    def survey_f1(self) -> float | None:
        """The harmonic mean of the model's S-Prec and S-Rec."""
        precision, recall = self.found["s_prec"].value, self.found["s_rec"].value
        if precision is None or recall is None:
            return None
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    @property
    def own(self) -> float | None:
        """The geometric mean of the model's IG F1 and IS."""
        grounded, specific = self.found["ig_f1"].value, self.found["is"].value
        if grounded is None or specific is None:
            return None
        return math.sqrt(grounded * specific)


def survey(tasks: Sequence[FinishedTask], options: SurveyOptions) -> Report:
    """S-Prec and S-Rec of each model, and how survey F1 and √(IG F1 · IS) correlate: Table 5."""
    compared = compare(tasks, options)
    users = read_stated(options.stated)
    matching: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    lines: list[Line] = []
    for dataset, together in compared.by_dataset().items():
        stated = categories_of(users, together, options.mapping)
        counts = (stated.matched[name] for name in SOURCES)
        matching.append((dataset, len(users), len(stated.categories), *counts))
        if stated.unmapped:
            named = ", ".join(islice(stated.unmapped, SHOWN))
            notes.append(f"{dataset}: {len(stated.unmapped)} without a category, such as {named}")
        lines += lines_of(together, stated)
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for line in lines:
        both = pairs.setdefault((line.run.dataset, f"{line.statistic}s"), [])
        if line.survey_f1 is not None and line.own is not None:
            both.append((line.survey_f1, line.own))
    medians = (
        (line.run.dataset, line.run.model, percent(line.survey_f1), percent(line.own))
        for line in lines
        if line.statistic == "median"
    )
    return Report(
        sheets=(
            Sheet(
                title="Stated interests and where their categories come from",
                columns=("dataset", "users", "with a category", *SOURCES),
                rows=tuple(matching),
                notes=(MATCHING_NOTE, *notes),
            ),
            *(scores_sheet(lines, statistic) for statistic in STATISTICS),
            correlation_sheet("survey F1 and √(IG F1 · IS)", pairs),
            *published(options, "survey"),
        ),
        figures=tuple(
            model_dots(
                "Stated interests and scores, {}", medians, x="survey F1, %", y="√(IG F1 · IS), %"
            )
        ),
        notes=(*compared.oracle_notes(), *compared.notes),
    )


def categories_of(
    users: Mapping[str, Collection[str]], runs: Sequence[Run], mapping: str
) -> Stated:
    """What was stated, as categories of the taxonomy that the runs of a dataset used."""
    taxonomy = categories(runs[0].options.taxonomy)
    known: dict[str, tuple[str, int | None]] = {}
    for source, ids in (
        (RUNS, named_in(runs)),
        (TAXONOMY, categories_by_name(taxonomy)),
        (MAPPING, read_mapping(mapping, taxonomy) if mapping else {}),
    ):
        known |= {name: (source, id) for name, id in ids.items()}
    stated = Stated()
    for user, interests in users.items():
        found = set()
        for interest in interests:
            source, id = known.get(folded(interest), (UNMAPPED, None))
            stated.matched[source] += 1
            if id is None:
                stated.unmapped[interest] = None
            else:
                found.add(id)
        if found:
            stated.categories[user] = found
    return stated


def lines_of(runs: Sequence[Run], stated: Stated) -> Iterator[Line]:
    """The lines of the runs of one dataset, scored against what they all verified."""
    for run, scores in rescored(runs):
        chosen = [
            surveyed(score, own.details, stated.categories[score.user])
            for score, own in zip(scores, run.scores(), strict=True)
            if score.user in stated.categories
        ]
        for statistic in STATISTICS:
            found = results(run, chosen, titles=TITLES, statistic=statistic)
            yield Line(run, statistic, len(chosen), found)


def surveyed(score: Score[Any], profile: Profile | None, stated: set[int]) -> Score[Any]:
    """A user's score with S-Prec and S-Rec among its values; 0 where nothing was named."""
    if profile is None:
        cause = score.missing.get("ig_p", "no profile")
        missing = {**score.missing, "s_prec": cause, "s_rec": cause}
        return msgspec.structs.replace(score, missing=missing)
    named = {one.category for one in profile.interests if one.category is not None}
    met = len(named & stated)
    shares = {"s_prec": met / len(named) if named else 0.0, "s_rec": met / len(stated)}
    return msgspec.structs.replace(score, values={**score.values, **shares})


def scores_sheet(lines: Sequence[Line], statistic: str) -> Sheet:
    """Table 5, by one statistic over the users who stated something."""
    chosen = [line for line in lines if line.statistic == statistic]
    return Sheet(
        title=f"Stated interests against scores, {statistic}s in %",
        columns=(
            "dataset", "model", "users", "read", "S-Prec", "S-Rec", "survey F1",
            "IG P", "IG R", "n IG", "IG F1", "n IS", "IS", "√(IG F1 · IS)",
        ),
        rows=tuple(cells(line) for line in chosen),
        notes=tuple(note for line in chosen for note in withheld(line.run, line.found, TITLES)),
    )  # fmt: skip


def cells(line: Line) -> tuple[Cell, ...]:
    """One line as a row of its table."""
    found = line.found
    shares = {name: percent(result.value) for name, result in found.items()}
    return (
        line.run.dataset, line.run.model, line.users, found["s_prec"].n,
        shares["s_prec"], shares["s_rec"], percent(line.survey_f1),
        shares["ig_p"], shares["ig_r"], found["ig_f1"].n, shares["ig_f1"],
        found["is"].n, shares["is"], percent(line.own),
    )  # fmt: skip


def correlation_sheet(
    what: str, groups: Mapping[tuple[str, str], Sequence[tuple[float, float]]]
) -> Sheet:
    """Spearman's ρ over the models of each group, named by dataset and part."""
    from harness.scoring.stats import Undefined, spearman

    rows: list[tuple[Cell, ...]] = []
    notes = []
    for (dataset, part), pairs in groups.items():
        rho = spearman([x for x, _ in pairs], [y for _, y in pairs])
        if isinstance(rho, Undefined):
            notes.append(f"{dataset}, {part}: no ρ: {rho.reason}")
        rows.append((dataset, part, len(pairs), None if isinstance(rho, Undefined) else rho))
    return Sheet(
        title=f"Spearman's ρ of {what}, over models",
        columns=("dataset", "of", "models", "ρ"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=2,
    )


def model_dots(
    title: str, models: Iterable[tuple[str, str, float | None, float | None]], *, x: str, y: str
) -> Iterator[Figure]:
    """A figure a dataset with a dot for each model that has both numbers."""
    dots: dict[str, list[Points]] = {}
    for dataset, model, across, up in models:
        if across is not None and up is not None:
            dot = Points(label=model, x=(across,), y=(up,), names=(model,))
            dots.setdefault(dataset, []).append(dot)
    for dataset, marks in dots.items():
        title_of = title.format(dataset)
        yield Figure(title=title_of, x=Axis(label=x), y=Axis(label=y), marks=tuple(marks))


def read_stated(path: str) -> dict[str, tuple[str, ...]]:
    """What each user stated, each interest once."""
    from harness.contracts.task import Column

    users: dict[str, dict[str, str]] = {}
    for _, row in table(path, "stated", {"user": Column(), "interest": Column()}).rows():
        users.setdefault(row["user"], {}).setdefault(folded(row["interest"]), row["interest"])
    return {user: tuple(interests.values()) for user, interests in users.items()}


def read_mapping(path: str, taxonomy: Iterable[Category]) -> dict[str, int]:
    """The category of each interest that a mapping file names, by folded interest."""
    from harness.contracts.task import Column

    known = categories_by_name(taxonomy)
    mapping: dict[str, int] = {}
    rows = table(path, "mapping", {"interest": Column(), "category": Column()})
    for number, row in rows.rows():
        category = known.get(folded(row["category"]))
        if category is None:
            raise rows.bad(number, "category", row["category"], "the id or name of a category")
        if mapping.setdefault(folded(row["interest"]), category) != category:
            raise rows.bad(number, "interest", row["interest"], "one category an interest")
    return mapping


def categories_by_name(taxonomy: Iterable[Category]) -> dict[str, int]:
    """Each category by its id as text and by its folded name."""
    return {name: one.id for one in taxonomy for name in (str(one.id), folded(one.name))}


def named_in(runs: Iterable[Run]) -> dict[str, int]:
    """The category that the runs' taxonomist gave to each interest, by folded interest.

    Where runs differ, the first one counts.
    """
    mapping: dict[str, int] = {}
    for interest in (interest for run in runs for interest in run.interests()):
        if interest.category is not None:
            mapping.setdefault(folded(interest.name), interest.category)
    return mapping


class ModelFigures(NamedTuple):
    """One model on one dataset: its median IG F1 in per cent, and its figure elsewhere."""

    dataset: str
    model: str
    users: int
    ig_f1: float | None
    figure: float | None


def outside(tasks: Sequence[FinishedTask], options: OutsideOptions) -> Report:
    """Spearman's ρ over models of median IG F1 and a figure that they have elsewhere."""
    compared = compare(tasks, options)
    figures = read_figures(options.figures, model=options.model, column=options.column)
    models: list[ModelFigures] = []
    notes: list[str] = []
    for dataset, run, users in compared.rescored():
        found = results(run, users)
        notes += withheld(run, found)
        names = names_of(run.model, run.task.manifest.model)
        figure = next((figures[name] for name in names if name in figures), None)
        ig_f1 = found["ig_f1"]
        models.append(ModelFigures(dataset, run.model, ig_f1.n, percent(ig_f1.value), figure))
    if all(one.figure is None for one in models):
        raise UsageError(
            "no model of the runs has a figure",
            where=options.figures,
            found=", ".join(figures),
            expected=", ".join(dict.fromkeys(one.model for one in models)),
            hint="name the models as the runs do",
        )
    without = ", ".join(dict.fromkeys(one.model for one in models if one.figure is None))
    if without:
        notes.append(f"no figure, and so left out of the correlation: {without}")
    table = Sheet(
        title=f"Median IG F1 in % and {options.column}",
        columns=("dataset", "model", "users", "IG F1", options.column),
        rows=tuple(models),
        notes=tuple(notes),
    )
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for one in models:
        both = [(one.figure, one.ig_f1)] if one.figure is not None and one.ig_f1 is not None else []
        groups.setdefault((one.dataset, "all"), []).extend(both)
        if options.above is not None:
            name = f"{options.column} above {options.above:g}"
            above = [pair for pair in both if pair[0] > options.above]
            groups.setdefault((one.dataset, name), []).extend(above)
    return Report(
        sheets=(
            table,
            correlation_sheet(f"{options.column} and median IG F1", groups),
            *published(options, "instruction_following"),
        ),
        figures=tuple(
            model_dots(
                f"{options.column} and median IG F1, {{}}",
                ((one.dataset, one.model, one.figure, one.ig_f1) for one in models),
                x=options.column,
                y="median IG F1, %",
            )
        ),
        notes=(*compared.oracle_notes(), *compared.notes),
    )
