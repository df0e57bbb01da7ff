"""A benchmark: stages with barriers between them, and scores computed from their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from harness.contracts.dataset import Dataset
from harness.contracts.identity import Identity
from harness.contracts.published import PublishedResult
from harness.contracts.records import Records, Score
from harness.contracts.stage import CANDIDATE, Stage


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a benchmark that has none."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """How one column of scores becomes one number.

    Metric(description="share of interests with evidence", worst=0.0)
    """

    description: str
    worst: float | None = 0.0
    """What a missing unit, or the missing part of a unit, counts in the second column, or in the
    value itself if `missing` is "counted". None where no value is the worst: what is missing then
    counts nowhere, unless each score that lacks something has a `worst` of its own."""

    higher_is_better: bool = True
    statistic: Literal["mean", "median"] | Callable[[Any], float] = "mean"
    """How units are combined: by name, or by a function from a numpy column to a float."""

    of: str = ""
    """The column that the metric reads, by default the one with its own name; several metrics can
    read one column."""

    range: tuple[float | None, float | None] = (0.0, 1.0)
    """The lowest and the highest value that it can have; None where there is no bound."""

    needs: tuple[str, ...] = ()
    """The columns that `compute` reads. A unit that lacks one lacks this metric too, by the same
    cause; a part that is missing of one is missing of this metric."""

    compute: Callable[[Score[Any]], float] | None = None
    """Makes the metric's column from the rest of a unit's score: a function of a module. A number
    that is not finite is missing."""

    note: str = ""
    """What a reader must know before using the number."""

    missing: Literal["left_out", "counted"] = "left_out"
    """Whether the value leaves out what is missing or counts it as `worst`; the other policy's
    value is shown next to it. A unit that is missing because a stage failed that does not ask the
    candidate, as its cause `stage/cause` says, is left out in any case."""

    counts_as: str = "worst"
    """As what a missing unit counts where it counts, in a word or two: `"ranked at random"`; to be
    given where that is not the worst value that the metric can have."""

    baseline: bool | str = False
    """Whether this is the score of an answer without any model: shown with its task, and not where
    tasks are compared. The name of a metric says that it is a value of that one, such as `"ptc"`:
    a report shows it next to those of models."""

    def __post_init__(self) -> None:
        if self.worst is None and self.missing == "counted":
            raise ValueError("a metric that counts missing units needs a worst value")
        if self.of and self.compute is not None:
            raise ValueError("a metric reads a column or computes one, and cannot do both")


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """What a set of runs found together, and how each run is scored against it.

    Oracle(gather=unite, rescore=against, read=from_json, write=to_json, metrics=("recall",))
    """

    gather: Callable[[Iterable[Score[Any]], Any | None], Any]
    """Unites what the runs' scores hold with what a file held, if one was given."""

    rescore: Callable[[Score[Any], Any, Any], Score[Any]]
    """`rescore(score, oracle, options)` returns one unit's score against the oracle."""

    read: Callable[[bytes, Any], Any]
    """Reads an oracle from a file's bytes, given the runs' options; raises DataError if the file
    holds no oracle of theirs."""

    write: Callable[[Any], bytes]
    metrics: tuple[str, ...]
    """The metrics that change with the set of runs."""

    main: tuple[str, ...] = ()
    """The metrics that stand after the main ones where runs share an oracle."""

    users: Callable[[Any], Collection[str]] | None = None
    enough: int = 3
    """With fewer models and no file, the metrics carry a warning; so they do with a file that
    does not cover all users."""

    doubts: Callable[[Iterable[Score[Any]]], Iterable[str]] | None = None
    """From the scores of all runs: reasons against comparing them."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A benchmark: options, data, stages, scores.

    Benchmark(
        name="moods", version=1, stages=(ask, check), load=load, score=score,
        metrics={"accuracy": Metric(description="share of moods that were guessed")},
    )
    """

    name: str
    """The name that task files use."""

    version: int
    """Raise it when results are no longer comparable with older ones."""

    stages: tuple[Stage, ...]
    load: Callable[[Dataset, Any], Any]
    """`load(dataset, options)` returns what the stages' `items` receive as data; raises DataError
    for rows that it cannot use."""

    score: Callable[[Mapping[str, Records[Any, Any]], Any], Iterator[Score[Any]]]
    """`score(records by stage, options)` yields one Score a unit, from stored records alone."""

    metrics: Mapping[str, Metric]
    main: tuple[str, ...] = ()
    """The metrics that a short table shows, the main one first; by default the first metric that is
    no baseline."""

    options: type[msgspec.Struct] = NoOptions
    """The type of the options; each field is one."""

    scored_with: tuple[str, ...] = ()
    """The only options that the numbers depend on; they can be changed without asking any model
    again."""

    adding: tuple[str, ...] = ()
    """The options that only ask for more: other results do not depend on them, and so stay
    comparable with published ones."""

    scored_by_user: Collection[str] = ()
    """The stages of which the scores of a user need that user's records alone. If there are any,
    `score` is a function of a module and yields scores in the order of users: of a large task,
    several processes score some users each, with all records of the other stages."""

    details: Any = None
    """The type of a score's details."""

    oracle: Oracle | None = None
    """For scores that depend on a set of runs."""

    counts: Callable[[Mapping[str, Records[Any, Any]], Any], Mapping[str, int]] | None = None
    """From the same records: what happened in the run as a whole, next to what its units count."""

    notes: Callable[[Mapping[str, Records[Any, Any]], Any], Iterable[str]] | None = None
    """From the same records: what people must know about the numbers of this very run."""

    contents: Callable[[Any], Mapping[str, str]] | None = None
    """Digests of the files that options only name; runs are comparable if these are equal."""

    suits: Callable[[Any, Any, Mapping[str, Identity]], None] | None = None
    """`suits(data, options, identities)` raises UsageError or DataError if the models of the roles
    do not suit the task; called once a task before anything is asked."""

    published: Callable[[], Sequence[PublishedResult]] | None = None
    """The results that the paper reports for tasks of this benchmark, read when called."""

    tokens_as_published: bool = False
    """Whether published results had the `max_tokens` of the tasks in all, so that those of a model
    with tokens for its reasoning on top are not comparable with them."""

    words: Mapping[str, str] = field(default_factory=dict)
    """What short words in tables mean, each in a few words: causes of missing values, parts of the
    data, the names of analyses. One that begins with `_` is the end of a task's name. A report
    explains those that it shows; metrics have their own descriptions."""

    description: str = ""
    paper: str = ""
    licence: str = ""

    @property
    def stages_of_others(self) -> frozenset[str]:
        """The stages that do not ask the candidate: their failures are not the candidate's."""
        return frozenset(each.name for each in self.stages if CANDIDATE not in each.roles)

    @property
    def roles(self) -> frozenset[str]:
        """Every role that a stage asks."""
        return frozenset(role for each in self.stages for role in (*each.roles, *each.judges))

    def stages_for(self, data: Any, options: msgspec.Struct) -> tuple[Stage, ...]:
        """The stages that a task with this data and these options has."""
        return tuple(each for each in self.stages if each.when is None or each.when(data, options))
