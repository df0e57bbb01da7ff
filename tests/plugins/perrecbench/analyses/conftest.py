"""Finished tasks of stored runs, written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from builders.runs import keep_task, make_summary, make_task
from harness_perrecbench.benchmark import PERRECBENCH
from harness_perrecbench.records import Options

from harness.contracts.records import Score
from harness.contracts.task import RoleSpec
from harness.runs.manifest import RoleEntry
from harness.scoring.finished_task import FinishedTask

AGREEMENT = ("ptc", "ptc_published", "like_higher_average")


def _score(item: str, found: Any, always: Mapping[str, float]) -> Score[Any]:
    """A number is both taus, a text the cause why there is none, a dict whatever it holds."""
    if isinstance(found, str):
        return Score(
            id=item, user=item, values=dict(always), missing=dict.fromkeys(AGREEMENT, found)
        )
    values = found if isinstance(found, dict) else {"ptc": found, "ptc_published": found}
    return Score(id=item, user=item, values={**always, **values})


@pytest.fixture
def kept(tmp_path):
    """A finished task, from what it found of each item.

    `always` are values that every item has, `because` says why it is not comparable, `more` are
    options. Each model has a run of its own, unless one is named.
    """

    def make(
        model: str,
        found: Mapping[str, Any],
        *,
        level: str = "easy",
        ask: str = "pointwise",
        always: Mapping[str, float] | None = None,
        run: str | None = None,
        label: str | None = None,
        name: str | None = None,
        limit: int | None = None,
        data: Mapping[str, Any] | None = None,
        because: tuple[str, ...] = (),
        prompts: Mapping[str, str] | None = None,
        sampling: Mapping[str, Any] | None = None,
        asked: Mapping[str, Any] | None = None,
        revision: str = "1",
        seed: int = 0,
        kind: type[Options] = Options,
        **more: Any,
    ) -> FinishedTask:
        options = kind(level=level, ask=ask, **more)
        task = make_task(
            name or "_".join(["perrec", level, ask, *map(str, more.values())]),
            benchmark="perrecbench",
            metrics=("ptc", "ptc_published"),
            options=msgspec.to_builtins(options),
            prompts=dict(prompts or {}),
            roles={"candidate": RoleSpec(sampling=dict(sampling or {}))},
        )
        return keep_task(
            tmp_path / (run or f"run-of-{model}"),
            task,
            scores=(_score(item, one, always or {}) for item, one in found.items()),
            entry={"data": dict(data or {})},
            label=label or model,
            model=model,
            seed=seed,
            limit=limit,
            asked=dict(asked or {}),
            roles={"candidate": _role(model, revision, run)},
            benchmark=PERRECBENCH,
            options=options,
            summary=make_summary(
                task.name,
                benchmark=task.benchmark,
                model=model,
                roles={"candidate": model},
                comparable=not because,
                not_comparable_because=because,
                limit=limit,
                units=len(found),
            ),
        )

    return make


def _role(model: str, revision: str, run: str | None) -> RoleEntry:
    identity = {"kind": "served", "name": model, "details": {"revision": revision}, "run": run}
    return RoleEntry(name=model, identity=identity)
