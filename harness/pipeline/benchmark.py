"""What a benchmark is made of: stages with barriers between, and scores over their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from harness.data import Dataset
    from harness.pipeline.desk import Desk
    from harness.results.published import PublishedResult
    from harness.results.records import Records, Score


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of a stage's work: one question where it can be.

    Subclasses add what the work needs, whole: the hash of an item is the key of its record.
    `id` is unique in its stage; `user` is whom intervals are clustered by.
    """

    id: str
    user: str


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a benchmark that has none."""


@dataclass(frozen=True, kw_only=True)
class Calls:
    """How many calls an item makes at least and at most, when every answer can be read at once.

    `times` names a declared option, a whole number, that both are multiplied by.
    """

    least: int = 1
    most: int = 1
    times: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of a method: where its items come from and what is done with each.

    `items` sees the records of the stages in `after`, the data and the declared options. `work`
    turns one item into one value, or into the failure that kept it from one. Items wait in a JSON
    file, so each must be an `item` itself and equal to what JSON gives back. `roles` are asked
    with `desk.ask`, `judges` with `desk.judge`; `prompts` are the templates it may use, its own
    name unless said otherwise, and `asks` tells from all options which of them it does. `options`
    are the fields of the benchmark's options that `items` and `work` may read: nothing else enters
    its key. Raise `version` when the code changes what it does. `calls` may be a function of an
    item and the declared options. `when` says from the data and all options whether a task has the
    stage: without it there are no records, and a role that no other stage asks needs nobody behind
    it; `role_hint` is what to do where such a role is wanted and nothing is bound to it.
    """

    name: str
    _: KW_ONLY
    item: type[Item]
    value: Any
    items: Callable[[Mapping[str, Records[Any, Any]], Any, Any], Iterable[Item]]
    work: Callable[[Any, Desk], Any]
    version: int = 1
    roles: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    calls: Calls | Callable[[Any, Any], Calls] = Calls()
    when: Callable[[Any, Any], bool] | None = None
    asks: Callable[[Any], Collection[str]] | None = None
    role_hint: str = ""

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the templates the stage may ask with."""
        return self.prompts or (self.name,)

    def asked(self, options: Any) -> frozenset[str]:
        """The prompts that it may ask with these options, as `<prompt>.<role>`."""
        prompts = self.templates if self.asks is None else self.asks(options)
        roles = (*self.roles, *self.judges)
        return frozenset(f"{prompt}.{role}" for prompt in prompts for role in roles)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """How one column of scores becomes one number.

    `of` names the column, the metric's own name unless given, so that a column may have several
    metrics. `worst` is what a missing unit counts in the second column, or in the value itself
    where `missing` are "counted"; the value without them then stands beside. `statistic` is "mean",
    "median" or a function from a numpy column to a float. `note` is what a reader must know before
    the number is used. Where no value is worst, `worst` is None: missing units then count nowhere.
    A `baseline` is what an answer without any model scores: shown with its task, and not where
    tasks stand beside each other.
    """

    description: str
    worst: float | None = 0.0
    higher_is_better: bool = True
    statistic: Literal["mean", "median"] | Callable[[Any], float] = "mean"
    of: str = ""
    note: str = ""
    missing: Literal["left_out", "counted"] = "left_out"
    baseline: bool = False

    def __post_init__(self) -> None:
        if self.worst is None and self.missing == "counted":
            raise ValueError("a metric counts missing units as worst, and says that nothing is")


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """What a set of runs found together, and how each run is scored against it.

    `gather` unites what the runs' scores hold, with what a file held where one was given.
    `rescore` is a unit's score against all of it. `read` gets a file's bytes and the options of the
    runs, and raises DataError where it holds no oracle of theirs; `users` are whom it holds.
    `metrics` are those that change with the set; below `enough` models without a file, and with a
    file that does not hold all users, they carry a warning. `doubts` tells from
    the scores of all runs what speaks against putting them side by side.
    """

    gather: Callable[[Iterable[Score[Any]], Any | None], Any]
    rescore: Callable[[Score[Any], Any, Any], Score[Any]]
    read: Callable[[bytes, Any], Any]
    write: Callable[[Any], bytes]
    metrics: tuple[str, ...]
    users: Callable[[Any], Collection[str]] | None = None
    enough: int = 3
    doubts: Callable[[Iterable[Score[Any]]], Iterable[str]] | None = None


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A benchmark: options, data, stages, scores.

    `load` turns the opened tables into whatever the stages' `items` want, and raises DataError
    for rows it cannot use. `score` yields one Score a unit from stored records alone. Its numbers
    depend on no options but those in `scored_with`, which can be changed without asking anybody
    again. `details`
    is the type of a score's details. `oracle` is for scores that depend on a set of runs.
    `counts` tells from the same records what happened in the run as a whole, beside what its units
    count. `contents` names what its options only point to, by digest: runs are compared where it
    was the same. `published` gives what its paper reports for tasks of this benchmark, so that
    one's own results can stand beside it; the tables are read when it is called.
    """

    name: str
    version: int
    stages: tuple[Stage, ...]
    load: Callable[[Dataset, Any], Any]
    score: Callable[[Mapping[str, Records[Any, Any]], Any], Iterator[Score[Any]]]
    metrics: Mapping[str, Metric]
    options: type[msgspec.Struct] = NoOptions
    scored_with: tuple[str, ...] = ()
    details: Any = None
    oracle: Oracle | None = None
    counts: Callable[[Mapping[str, Records[Any, Any]], Any], Mapping[str, int]] | None = None
    contents: Callable[[Any], Mapping[str, str]] | None = None
    published: Callable[[], Sequence[PublishedResult]] | None = None
    description: str = ""
    paper: str = ""
    licence: str = ""

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def roles(self) -> frozenset[str]:
        """Every role that a stage asks or has judge."""
        return frozenset(role for each in self.stages for role in (*each.roles, *each.judges))

    def stages_for(self, data: Any, options: msgspec.Struct) -> tuple[Stage, ...]:
        """The stages that a task with this data and these options has."""
        return tuple(each for each in self.stages if each.when is None or each.when(data, options))
