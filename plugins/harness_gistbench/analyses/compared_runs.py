"""Stored runs side by side: the runs of each dataset, and their scores against what all found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from harness import Metric, Score
from harness.base.errors import UsageError
from harness.contracts.report import Figure, Line, Report, Sheet
from harness_gistbench.metrics import scores_of, split_missing, verified_categories
from harness_gistbench.oracle import ORACLE
from harness_gistbench.paper import TABLES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.scoring.summary import MetricResult
    from harness_gistbench.records import Judged, Options, Profile

TITLES = {"ig_f1": "IG F1", "is": "IS", "ig_p": "IG P", "ig_r": "IG R"}
"""The column titles of the scores."""


class ComparisonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an analysis that compares runs."""

    force: Annotated[
        bool, msgspec.Meta(description="take in runs that were not asked or judged as the others")
    ] = False


class TableOptions(ComparisonOptions, frozen=True, kw_only=True):
    """The options of an analysis that has a table in the paper."""

    published: Annotated[bool, msgspec.Meta(description="show the paper's numbers below")] = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of one dataset, called by its model; by its label where a model has several."""

    model: str
    dataset: str
    task: FinishedTask
    options: Options
    scores: Callable[[], Iterable[Score[Profile]]]

    @property
    def candidate(self) -> str:
        """The identity of the model, the same in all its runs."""
        from harness.comparison.matching import candidate_of

        return candidate_of(self.task)

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        """Each user with a readable answer, and the user's profile."""
        for score in self.scores():
            if score.details is not None:
                yield score.user, score.details

    def interests(self) -> Iterator[Judged]:
        """The interests of all users."""
        for _, profile in self.profiles():
            yield from profile.interests


@dataclass(frozen=True)
class ComparedRuns:
    """Runs that may be compared within their datasets, and a note on each that may not."""

    runs: Sequence[Run]
    notes: tuple[str, ...]

    def by_dataset(self) -> dict[str, list[Run]]:
        """The runs of each dataset, both in the order in which they came."""
        return grouped(self.runs, lambda run: run.dataset)

    def by_model(self) -> dict[str, list[Run]]:
        """The runs of each model, both in the order in which they came."""
        return grouped(self.runs, lambda run: run.model)

    def rescored(self) -> Iterator[tuple[str, Run, Iterator[Score[Any]]]]:
        """Each run with its users' scores against what all runs of its dataset verified."""
        for dataset, together in self.by_dataset().items():
            for run, scores in rescored(together):
                yield dataset, run, scores

    def oracle_notes(self) -> tuple[str, ...]:
        """A note on the runs of each dataset that recall is measured against."""
        notes = []
        for dataset, together in self.by_dataset().items():
            count, models = len(together), len({run.candidate for run in together})
            those = "this run" if count == 1 else f"these {count} runs"
            if models < count:
                those += f" of {models} {'model' if models == 1 else 'models'}"
            line = f"{dataset}: IG R and IG F1 are against what {those} verified"
            if models < ORACLE.enough:
                line += f"; below {ORACLE.enough} models there is little to miss"
            notes.append(line)
        return tuple(notes)

    def report(
        self, sheets: Iterable[Sheet], figures: Iterable[Figure] = (), *, recall: bool = True
    ) -> Report:
        """The report of an analysis; with notes on the oracle where it shows `recall`."""
        return Report(
            sheets=(*sheets, people(self.runs)),
            figures=tuple(figures),
            notes=(*(self.oracle_notes() if recall else ()), *self.notes),
        )


def grouped(runs: Iterable[Run], key: Callable[[Run], str]) -> dict[str, list[Run]]:
    """The runs by their key, in the order in which they came."""
    groups = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return groups


def runs_of(tasks: Sequence[FinishedTask]) -> list[Run]:
    """Each task as a run of its dataset, in the order in which they were named."""
    times = Counter((task.task.name, task.summary.model) for task in tasks)
    return [
        Run(
            model=model if times[task.task.name, model] == 1 else task.label,
            dataset=task.task.name.removeprefix("gist_").replace("_", " "),
            task=task,
            options=task.options,
            scores=task.scores,
        )
        for task in tasks
        for model in [task.summary.model]
    ]


def compare(tasks: Sequence[FinishedTask], options: ComparisonOptions) -> ComparedRuns:
    """The runs of each dataset that may be compared; UsageError where there is none."""
    from harness.comparison.matching import comparison_set

    datasets: dict[str, list[FinishedTask]] = defaultdict(list)
    for task in tasks:
        datasets[task.task.name].append(task)
    members: list[FinishedTask] = []
    notes: list[str] = []
    for name, together in datasets.items():
        found = comparison_set(together, force=options.force)
        members += found.members
        notes += [
            f"{name}: {one.label} is left out: {'; '.join(one.because)}" for one in found.refused
        ]
        notes += [
            f"{name}: {task.label} is taken in by force: {'; '.join(found.marks[task.run])}"
            for task in found.members
            if found.marks[task.run]
        ]
    if not members:
        raise UsageError(
            "no run is left to analyse",
            found="; ".join(notes),
            expected="a run whose candidate is not its judge",
            hint="--force takes runs in all the same",
        )
    return ComparedRuns(runs_of(members), tuple(notes))


def rescored(runs: Sequence[Run]) -> Iterator[tuple[Run, Iterator[Score[Any]]]]:
    """Each run with its users' scores against what all these runs verified together."""
    oracle: dict[str, set[int]] = defaultdict(set)
    for run in runs:
        for user, profile in run.profiles():
            oracle[user].update(verified_categories(profile, run.options.verification))
    for run in runs:
        yield run, (against(oracle, score, run.options) for score in run.scores())


def against(oracle: Mapping[str, set[int]], score: Score[Profile], options: Options) -> Score[Any]:
    """A user's scores with recall of the oracle; a user without a profile stays as they are."""
    if score.details is None:
        return score
    values, missing = split_missing(scores_of(score.details, options, oracle.get(score.user, ())))
    return Score(id=score.id, user=score.user, values=values, missing=missing, lost=score.lost)


def results(
    run: Run,
    scores: Iterable[Score[Any]],
    *,
    titles: Mapping[str, str] = TITLES,
    statistic: Literal["median", "mean"] = "median",
    draws: int = 0,
) -> dict[str, MetricResult]:
    """The scores of a run over its users, with intervals if `draws` are requested.

    They are drawn by the metric's name: those of a metric of the task are its own.
    """
    from harness.scoring.aggregate import Columns, sound

    prefix = "mean_" if statistic == "mean" else ""
    filled = Columns(
        {
            f"{prefix}{name}": Metric(of=name, description=title, statistic=statistic)
            for name, title in titles.items()
        }
    )
    for score in scores:
        filled.add(sound(score))
    task = run.task.task
    found = filled.results(
        interval=msgspec.structs.replace(task.interval, draws=draws),
        seed=run.task.manifest.seed,
        task=task.name,
        least_scored=task.least_scored,
    )
    return dict(zip(titles, found.values(), strict=True))


def curves(points: Mapping[str, Iterable[tuple[float, float | None]]]) -> tuple[Line, ...]:
    """A curve a label over the points that have a value; none where no point has one."""
    known = {name: [(x, y) for x, y in pairs if y is not None] for name, pairs in points.items()}
    return tuple(
        Line(label=name, x=tuple(float(x) for x, _ in pairs), y=tuple(float(y) for _, y in pairs))
        for name, pairs in known.items()
        if pairs
    )


def people(runs: Iterable[Run]) -> Sheet:
    """The users of each run: how many have scores, and why the others have none."""
    rows = []
    for run in runs:
        users = grounded = specific = 0
        causes: Counter[str] = Counter()
        for score in run.scores():
            users += 1
            grounded += "ig_f1" in score.values
            specific += "is" in score.values
            causes.update({cause for name in ("ig_f1", "is") if (cause := score.missing.get(name))})
        why = ", ".join(f"{cause} {count:,}" for cause, count in sorted(causes.items()))
        rows.append((run.dataset, run.model, users, grounded, specific, why or None))
    return Sheet(
        title="Users counted",
        columns=("dataset", "model", "users", "with IG", "with IS", "why not"),
        rows=tuple(rows),
    )


def withheld(
    run: Run, found: Mapping[str, MetricResult], titles: Mapping[str, str] = TITLES
) -> tuple[str, ...]:
    """A note on each score of a run that is not shown, with the reason."""
    return tuple(
        f"{run.model} on {run.dataset}: no {titles[name]}, for {result.undefined}"
        for name, result in found.items()
        if result.undefined is not None
    )


def published(options: Any, *names: str, digits: int = 1) -> list[Sheet]:
    """The paper's tables of these names, where the option `published` asks for them."""
    if not options.published:
        return []
    return [TABLES.read(name).sheet(digits=digits) for name in names]
