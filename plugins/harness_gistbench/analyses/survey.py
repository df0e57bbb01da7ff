"""Models against the interests that users stated themselves, and against their own scores."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from harness.results.report import Axis, Figure, Points, Report, Sheet
from harness_gistbench.analyses.comparing import (
    ComparisonOptions,
    Run,
    by_dataset,
    comparable,
    oracle_notes,
    percent,
    rescored,
    results,
    withheld,
)
from harness_gistbench.analyses.stated import (
    MAPPING,
    RUNS,
    TAXONOMY,
    UNMAPPED,
    Stated,
    mapped,
    named_in,
    names_of,
    read_mapping,
    read_stated,
)

if TYPE_CHECKING:
    from harness import KeptTask, Score
    from harness.results.report import Cell
    from harness_gistbench.records import Profile

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


class Options(ComparisonOptions, frozen=True, kw_only=True):
    """What is laid beside the runs."""

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


@dataclass(frozen=True, kw_only=True)
class Line:
    """One model's shares by one statistic; None where too few users have one to show it."""

    run: Run
    statistic: str
    users: int
    counted: Mapping[str, int]
    values: Mapping[str, float | None]
    withheld: tuple[str, ...]

    @property
    def survey_f1(self) -> float | None:
        """The harmonic mean of the model's S-Prec and S-Rec."""
        precision, recall = self.values["s_prec"], self.values["s_rec"]
        if precision is None or recall is None:
            return None
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    @property
    def own(self) -> float | None:
        """The geometric mean of the model's IG F1 and IS."""
        grounded, specific = self.values["ig_f1"], self.values["is"]
        if grounded is None or specific is None:
            return None
        return math.sqrt(grounded * specific)


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """S-Prec and S-Rec of each model, and how survey F1 and √(IG F1 · IS) correlate."""
    from harness_gistbench.published import published_sheet, rows

    runs, left_out = comparable(tasks, options)
    users = read_stated(options.stated)
    matching: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    lines: list[Line] = []
    for dataset, together in by_dataset(runs).items():
        stated = categories_of(users, together, options.mapping)
        counts = tuple(stated.matched[name] for name in (MAPPING, TAXONOMY, RUNS, UNMAPPED))
        matching.append((dataset, len(users), len(stated.categories), *counts))
        if stated.unmapped:
            named = ", ".join(stated.unmapped[:SHOWN])
            notes.append(f"{dataset}: {len(stated.unmapped)} without a category, such as {named}")
        lines += compared(together, stated)
    sheets = [matching_sheet(matching, notes)]
    sheets += [scores_sheet(lines, statistic) for statistic in STATISTICS]
    sheets.append(correlations(lines))
    if options.published:
        sheets.append(published_sheet(rows.Survey))
    return Report(
        sheets=tuple(sheets),
        figures=tuple(figures(lines)),
        notes=(*oracle_notes(runs), *left_out),
    )


def categories_of(
    users: Mapping[str, Collection[str]], runs: Sequence[Run], mapping: str
) -> Stated:
    """What was stated, as categories of the taxonomy that the runs of a dataset used."""
    from harness_gistbench.taxonomy import categories

    taxonomy = categories(runs[0].options.taxonomy)
    sources = [(TAXONOMY, names_of(taxonomy)), (RUNS, named_in(runs))]
    if mapping:
        sources.insert(0, (MAPPING, read_mapping(mapping, taxonomy)))
    return mapped(users, sources)


def compared(runs: Sequence[Run], stated: Stated) -> Iterator[Line]:
    """The lines of the runs of one dataset, scored against what they all verified."""
    for run, scores in rescored(runs):
        chosen = [
            surveyed(score, own.details, stated.categories[score.user])
            for score, own in zip(scores, run.scores(), strict=True)
            if score.user in stated.categories
        ]
        for statistic in STATISTICS:
            yield line(run, chosen, statistic)


def surveyed(score: Score[Any], profile: Profile | None, stated: frozenset[int]) -> Score[Any]:
    """A user's score with S-Prec and S-Rec among its values; 0 where nothing was named."""
    if profile is None:
        cause = score.missing.get("ig_p", "no profile")
        missing = {**score.missing, "s_prec": cause, "s_rec": cause}
        return msgspec.structs.replace(score, missing=missing)
    named = {one.category for one in profile.interests if one.category is not None}
    met = len(named & stated)
    values = {
        **score.values,
        "s_prec": met / len(named) if named else 0.0,
        "s_rec": met / len(stated),
    }
    return msgspec.structs.replace(score, values=values)


def line(run: Run, scores: Sequence[Score[Any]], statistic: Literal["median", "mean"]) -> Line:
    """One statistic of a run over the users who stated something."""
    found = results(run, scores, titles=TITLES, statistic=statistic)
    return Line(
        run=run,
        statistic=statistic,
        users=len(scores),
        counted={name: result.n for name, result in found.items()},
        values={name: result.value for name, result in found.items()},
        withheld=withheld(run, found, TITLES),
    )


def matching_sheet(rows: Sequence[tuple[Cell, ...]], notes: Sequence[str]) -> Sheet:
    """How the stated interests became categories."""
    return Sheet(
        title="Stated interests and where their categories come from",
        columns=("dataset", "users", "with a category", MAPPING, TAXONOMY, RUNS, UNMAPPED),
        rows=tuple(rows),
        notes=(
            "The matching is ours, for the paper does not tell its own. What has no category is "
            "left out; a user with nothing else is left out as well.",
            *notes,
        ),
    )


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
        notes=tuple(note for line in chosen for note in line.withheld),
    )  # fmt: skip


def cells(line: Line) -> tuple[Cell, ...]:
    """One line as a row of its table."""
    shares = {name: percent(value) for name, value in line.values.items()}
    return (
        line.run.dataset,
        line.run.model,
        line.users,
        line.counted["s_prec"],
        shares["s_prec"],
        shares["s_rec"],
        percent(line.survey_f1),
        shares["ig_p"],
        shares["ig_r"],
        line.counted["ig_f1"],
        shares["ig_f1"],
        line.counted["is"],
        shares["is"],
        percent(line.own),
    )


def correlations(lines: Sequence[Line]) -> Sheet:
    """Spearman's ρ over models, for each dataset and statistic."""
    from harness.stats import Undefined, spearman

    rows: list[tuple[Cell, ...]] = []
    notes = []
    for (dataset, statistic), pairs in pairs_of(lines).items():
        rho = spearman(*zip(*pairs, strict=True)) if pairs else Undefined("no models")
        if isinstance(rho, Undefined):
            notes.append(f"{dataset}, {statistic}s: no ρ: {rho.reason}")
        value = None if isinstance(rho, Undefined) else rho
        rows.append((dataset, f"{statistic}s", len(pairs), value))
    return Sheet(
        title="Spearman's ρ of survey F1 and √(IG F1 · IS), over models",
        columns=("dataset", "of", "models", "ρ"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=2,
    )


def pairs_of(lines: Sequence[Line]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Survey F1 and √(IG F1 · IS) of each model that has both, by dataset and statistic."""
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for line in lines:
        both = pairs.setdefault((line.run.dataset, line.statistic), [])
        if line.survey_f1 is not None and line.own is not None:
            both.append((line.survey_f1, line.own))
    return pairs


def figures(lines: Sequence[Line]) -> Iterator[Figure]:
    """A dot a model: survey F1 against √(IG F1 · IS), medians."""
    shown = [line for line in lines if line.statistic == "median"]
    for dataset in dict.fromkeys(line.run.dataset for line in shown):
        marks = tuple(
            Points(label=line.run.model, x=(survey,), y=(own,), names=(line.run.model,))
            for line in shown
            if line.run.dataset == dataset
            and (survey := percent(line.survey_f1)) is not None
            and (own := percent(line.own)) is not None
        )
        if marks:
            yield Figure(
                title=f"Stated interests and scores, {dataset}",
                x=Axis(label="survey F1, %"),
                y=Axis(label="√(IG F1 · IS), %"),
                marks=marks,
            )
