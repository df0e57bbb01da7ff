"""The prompts of stored runs by setting, and how rankings of models and baselines fit them.

Imports numpy; the hooks of the plugin import analyses when they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.analysis.result_grid import GridRow, ResultGrid
from harness.analysis.task_setting import TaskSetting
from harness.base.errors import DataError
from harness.base.hashing import stable_int
from harness_behaviour.curve import Floats, edges_of
from harness_behaviour.metrics import MORE_USERS, THIRDS, USERS
from harness_behaviour.records import LENGTHS, PROXIES, Domain, Fit, Setting

if TYPE_CHECKING:
    from harness import FinishedTask, Score

Truths: TypeAlias = NDArray[np.bool_]
Row = GridRow[Setting]

SETTINGS: dict[Setting, str] = {
    "a": "a: demography and history",
    "b": "b: history",
    "c": "c: demography",
}
"""Each setting as headings say it."""

BASELINES = {"random": "random", "popular": "popular", "popular_in_group": "popular in group"}
"""The rankings without a model, as in the fields of `Fit`, and as tables say them."""

PROXY_NAMES: dict[str, str] = {
    **{proxy: proxy for proxies in PROXIES.values() for proxy in proxies},
    "none": "no proxy",
    "all": "all three",
    "gender_continent": "gender & continent",
}
"""The proxies of all domains as headings write them."""

WAYS: dict[str, tuple[str, ...]] = {
    "proxy": tuple(PROXY_NAMES),
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
)


@dataclass(frozen=True, eq=False)
class Answers:
    """The prompts of a task with their scores, in the order in which intervals draw."""

    scores: Sequence[Score[Fit]]

    def column(self, name: str) -> Floats:
        """A field of the details of each prompt; NaN where nothing was read."""
        values = (getattr(score.details, name) for score in self.scores)
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    @cached_property
    def entropy(self) -> Floats:
        return self.column("entropy")

    def of_setting(self, setting: Setting) -> Answers:
        return Answers(
            [one for one in self.scores if one.details and one.details.setting == setting]
        )

    def by(self, way: str) -> dict[str, Truths]:
        """The prompts of each part of a slice that has any."""
        own = [score.slices[way] if score.slices else None for score in self.scores]
        return {name: np.array([each == name for each in own]) for name in WAYS[way] if name in own}

    def same_prompts(self, other: Answers) -> bool:
        ids, others = ([score.id for score in of.scores] for of in (self, other))
        return ids == others and np.allclose(self.entropy, other.entropy)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """How the rankings of a task's model, or of a baseline, fit the prompts of a setting."""

    name: str
    task: FinishedTask
    prompts: Answers
    baseline: str = ""

    def column(self, quantity: Literal["cross", "cross_1e3", "displaced"]) -> Floats:
        """A cross-entropy or the displaced mass of each prompt; NaN where nothing was read."""
        return self.prompts.column("_".join(filter(None, (quantity, self.baseline))))

    @cached_property
    def cross(self) -> Floats:
        return self.column("cross")

    @property
    def gap(self) -> Floats:
        return self.cross - self.prompts.entropy

    @property
    def gap_1e3(self) -> Floats:
        return self.column("cross_1e3") - self.prompts.entropy

    @cached_property
    def draws(self) -> Floats:
        """The cross-entropies of several random rankings, a row each; of `random` alone."""
        every = self.prompts.scores if self.baseline == "random" else ()
        return np.array([score.details.cross_draws for score in every if score.details]).T

    @property
    def read(self) -> Truths:
        return np.isfinite(self.cross)

    @property
    def points(self) -> tuple[Floats, Floats]:
        return self.prompts.entropy[self.read], self.cross[self.read]

    def seed(self, *what: str) -> int:
        """The seed of an interval; that of a metric is the same as in the table of the run."""
        return stable_int("bootstrap", self.task.manifest.seed, self.task.task.name, *what)


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """One setting of a domain: its prompts, and how each ranking of them fits.

    The first baselines are `random` and `popular`.
    """

    setting: Setting
    models: Sequence[Ranking]
    baselines: Sequence[Ranking]

    @property
    def prompts(self) -> Answers:
        """Those of the first model; others have the same, with scores of their own."""
        return self.models[0].prompts

    @property
    def rankings(self) -> tuple[Ranking, ...]:
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Page:
    """Models that were asked the same prompts of a domain, each with its answers by setting."""

    title: str
    domain: Domain
    members: Sequence[tuple[Row, Mapping[Setting, Answers]]]

    def panels(self) -> list[Panel]:
        """A panel for each setting with prompts."""
        found = []
        for setting in SETTINGS:
            models = [
                Ranking(name=row.name, task=row.tasks[setting], prompts=own.of_setting(setting))
                for row, answers in self.members
                if (own := answers.get(setting))
            ]
            if models and models[0].prompts.scores:
                baselines = [
                    replace(models[0], name=name, baseline=baseline)
                    for baseline, name in BASELINES.items()
                    if baseline != "popular_in_group" or setting == "a"
                ]
                found.append(Panel(setting=setting, models=models, baselines=baselines))
        return found


def pages_of(tasks: Iterable[FinishedTask]) -> list[Page]:
    """The tasks by domain; models share a page if the prompts of their settings are the same.

    DataError if there is no score.
    """
    every, pages = list(tasks), list[Page]()
    for domain in PROXIES:
        of_domain: list[list[tuple[Row, dict[Setting, Answers]]]] = []
        for row in GRID.rows([task for task in every if task.options.domain == domain], ()):
            own = dict[Setting, Answers]()
            for setting, task in row.tasks.items():
                if scores := [score for score in task.scores() if score.details is not None]:
                    scores.sort(key=lambda score: stable_int(score.user))
                    own[setting] = Answers(scores)
            if own:
                page = next((page for page in of_domain if _fits(own, page)), [])
                if not page:
                    of_domain.append(page)
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


def mean_of(values: Floats) -> float | None:
    """The mean of the values that are there; None if none is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _fits(
    own: Mapping[Setting, Answers], page: Iterable[tuple[Row, dict[Setting, Answers]]]
) -> bool:
    """Whether a page has a setting of a row, and the same prompts wherever both have one."""
    pairs = [(own[one], of[one]) for _, of in page for one in own if one in of]
    return bool(pairs) and all(one.same_prompts(other) for one, other in pairs)
