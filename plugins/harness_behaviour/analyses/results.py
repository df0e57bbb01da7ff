"""The prompts of stored runs as columns, with how the rankings of models and baselines fit them.

Imports numpy; the hooks of the plugin import analyses when they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.analysis.result_grid import GridRow, ResultGrid
from harness.analysis.task_setting import TaskSetting
from harness.base.errors import DataError
from harness.base.hashing import stable_int
from harness.scoring.stats import Undefined, pearson
from harness_behaviour.curve import Floats, Window, edges_of
from harness_behaviour.metrics import MORE_USERS, THIRDS, USERS
from harness_behaviour.records import LENGTHS, PROXIES, Domain, Fit, Setting

if TYPE_CHECKING:
    from harness import FinishedTask

Truths: TypeAlias = NDArray[np.bool_]
Row = GridRow[Setting]
Quantity: TypeAlias = Literal["cross", "cross_1e3", "displaced"]

SETTINGS: dict[Setting, str] = {
    "a": "a: demography and history",
    "b": "b: history",
    "c": "c: demography",
}
"""Each setting as headings say it."""

BASELINES = {"random": "random", "popular": "popular", "popular_in_group": "popular in group"}
"""The rankings without a model, as in the fields of `Fit`, and as tables say them."""

PROXY_NAMES: dict[str, str] = {
    "none": "no proxy",
    "all": "all three",
    "gender_continent": "gender & continent",
}
"""The proxies that headings write in another way."""

UNREAD = "unreadable"
"""The cause of a score without cross-entropy and without a cause."""

WAYS: dict[str, tuple[str, ...]] = {
    "proxy": tuple(dict.fromkeys(proxy for proxies in PROXIES.values() for proxy in proxies)),
    "history": tuple(map(str, LENGTHS)),
    "users": (*(name for _, name in USERS), MORE_USERS),
    "entropy": THIRDS,
}
"""The slices of scores, each with its parts in order."""

SETTING = TaskSetting(
    passed_over={"domain", "setting"}, sampling={"temperature": 0.0, "max_tokens": 1024}
)

GRID = ResultGrid[Setting](
    name="behaviour",
    headings=SETTINGS,
    cell=lambda task: task.options.setting,
    setting=SETTING.describe,
    alike=lambda task: (task.entry.data.get("origin"), task.manifest.limit),
    units="prompts",
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of analyses that draw or tell the curve."""

    window: Annotated[
        Window | None, msgspec.Meta(description="the moving mean, instead of the task's own")
    ] = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """The prompts of a task as columns, in the order of intervals; NaN where nothing was read.

    `quantities` are those of the task's model under "", and of each baseline under its name.
    `causes` say why nothing was read.
    """

    ids: Sequence[str]
    causes: Sequence[str | None]
    settings: NDArray[Any]
    proxies: NDArray[Any]
    lengths: NDArray[Any]
    slices: Mapping[str, NDArray[Any]]
    users: Floats
    entropy: Floats
    quantities: Mapping[str, Mapping[Quantity, Floats]]

    def same_prompts(self, other: Answers) -> bool:
        """Whether another task has the same prompts."""
        return self.ids == other.ids and np.allclose(self.entropy, other.entropy)

    def by(self, way: str) -> dict[str, Truths]:
        """The prompts of each part of a slice that has any."""
        parts = {name: self.slices[way] == name for name in WAYS[way]}
        return {name: part for name, part in parts.items() if part.any()}

    def of_setting(self, setting: Setting) -> Answers:
        """The prompts that belong to a setting."""
        there = self.settings == setting
        return replace(
            self,
            ids=[*compress(self.ids, there)],
            causes=[*compress(self.causes, there)],
            settings=self.settings[there],
            proxies=self.proxies[there],
            lengths=self.lengths[there],
            slices={way: values[there] for way, values in self.slices.items()},
            users=self.users[there],
            entropy=self.entropy[there],
            quantities={
                name: {quantity: values[there] for quantity, values in of.items()}
                for name, of in self.quantities.items()
            },
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """How the rankings of a model or baseline fit the prompts of a panel; NaN where unread."""

    name: str
    task: FinishedTask
    baseline: str
    window: Window
    causes: Mapping[str, int]
    entropy: Floats
    quantities: Mapping[Quantity, Floats]

    @property
    def cross(self) -> Floats:
        """The cross-entropies at the smaller epsilon."""
        return self.quantities["cross"]

    @property
    def read(self) -> Truths:
        """Whether the ranking of each prompt could be read."""
        return np.isfinite(self.cross)

    def of(self, quantity: Quantity) -> Floats:
        """The gap at an epsilon, or the displaced mass, of each prompt."""
        values = self.quantities[quantity]
        return values if quantity == "displaced" else values - self.entropy

    def seed(self, *what: str) -> int:
        """The seed of an interval; that of a metric is the same as in the table of the run."""
        return stable_int("bootstrap", self.task.manifest.seed, self.task.task.name, *what)


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """One setting of a domain: its prompts, and how each ranking of them fits."""

    setting: Setting
    prompts: Answers
    models: tuple[Ranking, ...]
    baselines: tuple[Ranking, ...]

    @property
    def rankings(self) -> tuple[Ranking, ...]:
        """The rankings of models, then those of baselines."""
        return *self.models, *self.baselines

    @cached_property
    def edges(self) -> Floats:
        """The ends of the bins of the curve."""
        return edges_of(self.prompts.entropy)

    def parts(self) -> Iterator[tuple[str, str, Truths]]:
        """Each way to part the prompts, with the name of a part and the prompts in it.

        Ways that part nothing are left out.
        """
        for way in WAYS:
            parts = self.prompts.by(way)
            if len(parts) > 1:
                yield from ((way, name, part) for name, part in parts.items())

    @property
    def relation(self) -> float | None:
        """The correlation of H with log |u_h|; None if it is undefined."""
        r = pearson(self.prompts.entropy, np.log(self.prompts.users))
        return None if isinstance(r, Undefined) else r


@dataclass(frozen=True, eq=False, kw_only=True)
class Page:
    """Models that were asked the same prompts of a domain, each with its answers by setting."""

    title: str
    domain: Domain
    members: Sequence[tuple[Row, Mapping[Setting, Answers]]]

    def panels(self, window: Window | None = None) -> list[Panel]:
        """A panel for each setting with prompts; `window` instead of that of the tasks."""
        found = []
        for setting in SETTINGS:
            known = [
                (row, answers[setting].of_setting(setting))
                for row, answers in self.members
                if setting in answers
            ]
            if known and len(known[0][1].ids):
                models = [
                    _ranking(row.name, row.tasks[setting], own, window=window) for row, own in known
                ]
                prompts = known[0][1]
                baselines = [
                    _ranking(name, models[0].task, prompts, window=window, baseline=baseline)
                    for baseline, name in BASELINES.items()
                ]
                panel = Panel(
                    setting=setting,
                    prompts=prompts,
                    models=tuple(models),
                    baselines=tuple(baselines),
                )
                found.append(panel)
        return found


def pages_of(tasks: Iterable[FinishedTask]) -> list[Page]:
    """The tasks by domain; models share a page if the prompts of their settings are the same.

    DataError if there is no score.
    """
    every = list(tasks)
    pages: list[Page] = []
    for domain in PROXIES:
        of_domain: list[list[tuple[Row, dict[Setting, Answers]]]] = []
        for row in GRID.rows([task for task in every if task.options.domain == domain], ()):
            found = {setting: read_answers(task) for setting, task in row.tasks.items()}
            own = {setting: answers for setting, answers in found.items() if len(answers.ids)}
            if own:
                page = next((page for page in of_domain if _fits(own, page)), None)
                if page is None:
                    of_domain.append([(row, own)])
                else:
                    page.append((row, own))
        for page in of_domain:
            names = f" ({', '.join(row.name for row, _ in page)})" if len(of_domain) > 1 else ""
            pages.append(Page(title=f"{domain.capitalize()}{names}", domain=domain, members=page))
    if not pages:
        raise DataError(
            "the tasks have no scores",
            found=", ".join(task.task.name for task in every),
            expected="a task with a score",
        )
    return pages


def read_answers(task: FinishedTask) -> Answers:
    """The answers of a task from its scores."""
    scores = [score for score in task.scores() if isinstance(score.details, Fit)]
    # In the order in which the intervals of metrics draw.
    scores.sort(key=lambda score: stable_int(score.user))
    fits = [score.details for score in scores]
    return Answers(
        ids=[score.id for score in scores],
        causes=[
            None if score.details.cross is not None else score.missing.get("gap", UNREAD)
            for score in scores
        ],
        settings=np.array([fit.setting for fit in fits], dtype=object),
        proxies=np.array([fit.proxy for fit in fits], dtype=object),
        lengths=np.array([fit.length for fit in fits], dtype=np.int64),
        slices={
            way: np.array([(score.slices or {}).get(way) for score in scores], dtype=object)
            for way in WAYS
        },
        users=_column(fits, "users"),
        entropy=_column(fits, "entropy"),
        quantities={
            name: {
                quantity: _column(fits, f"{quantity}_{name}".rstrip("_"))
                for quantity in ("cross", "cross_1e3", "displaced")
            }
            for name in ("", *BASELINES)
        },
    )


def _column(fits: Iterable[Fit], name: str) -> Floats:
    values = (getattr(fit, name) for fit in fits)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _ranking(
    name: str, task: FinishedTask, of: Answers, *, window: Window | None, baseline: str = ""
) -> Ranking:
    """The rankings of a task's model, or of a baseline on its prompts."""
    return Ranking(
        name=name,
        task=task,
        baseline=baseline,
        window=window or task.options.window,
        causes={} if baseline else Counter(filter(None, of.causes)),
        entropy=of.entropy,
        quantities=of.quantities[baseline],
    )


def _fits(
    own: Mapping[Setting, Answers], page: Iterable[tuple[Row, dict[Setting, Answers]]]
) -> bool:
    """Whether a page has a setting of a row, and the same prompts wherever both have one."""
    pairs = [(own[one], of[one]) for _, of in page for one in own if one in of]
    return bool(pairs) and all(one.same_prompts(other) for one, other in pairs)
