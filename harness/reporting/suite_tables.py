"""Suites as reports of plain data: what they would ask, and how their runs ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harness.contracts.report import Cell, Report, Sheet
from harness.pipeline.forecast import ExpectedCost, Forecast, all_together
from harness.pipeline.suite_runs import SuiteRun
from harness.reporting.money import UNKNOWN, money


class ModelForecast(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs of one model would ask; `cost` is None without a price for each model."""

    model: str
    runs: int
    calls: int
    prompt_tokens: int
    most_completion_tokens: int
    cost: ExpectedCost | None = None
    currency: str | None = None
    assumptions: tuple[str, ...] = ()


def forecast_rows(found: Iterable[tuple[str, int, Forecast]]) -> list[ModelForecast]:
    """The forecast of each model, from the number of its runs and the forecast of one of them."""
    rows = []
    for name, runs, forecast in found:
        roles = [role for stage in forecast.stages for role in stage.roles]
        costs = [role.cost for role in roles if role.cost is not None]
        priced = forecast.currency is not None and len(costs) == len(roles)
        rows.append(
            ModelForecast(
                model=name,
                runs=runs,
                calls=runs * sum(role.calls for role in roles),
                prompt_tokens=runs * sum(role.prompt_tokens for role in roles),
                most_completion_tokens=runs * sum(role.most_completion_tokens for role in roles),
                cost=all_together(costs * runs) if priced else None,
                currency=forecast.currency,
                assumptions=forecast.assumptions,
            )
        )
    return rows


def forecast_report(rows: Sequence[ModelForecast]) -> Report:
    """The forecasts of all models with their sum."""
    currency = next((row.currency for row in rows if row.currency is not None), None)

    def cells(name: str, of: Sequence[ModelForecast]) -> tuple[Cell, ...]:
        known = [row.cost for row in of if row.cost is not None]
        cost = all_together(known)
        costs = f"{money(cost.at_most)} {currency}", f"{money(cost.least)} to {money(cost.most)}"
        if len(known) < len(of):
            costs = UNKNOWN, UNKNOWN
        return (
            name,
            sum(row.runs for row in of),
            sum(row.calls for row in of),
            sum(row.prompt_tokens for row in of),
            sum(row.most_completion_tokens for row in of),
            *(costs if currency is not None else ()),
        )

    return Report(
        sheets=(
            Sheet(
                title="calls to expect; no model was asked",
                columns=(
                    "model",
                    "runs",
                    "calls",
                    "tokens in",
                    "tokens out, at most",
                    *(("cost, at most", "cost bounds") if currency is not None else ()),
                ),
                rows=(*(cells(row.model, [row]) for row in rows), cells("all", rows)),
                notes=(
                    "each model's first run was rehearsed; its runs with other seeds count the "
                    "same",
                    *dict.fromkeys(line for row in rows for line in row.assumptions),
                ),
            ),
        )
    )


def ending_report(suite: str, runs: Sequence[SuiteRun]) -> Report:
    """How each run of a suite ended, with its folder or its error."""
    return Report(
        sheets=(
            Sheet(
                title=f"suite {suite}",
                columns=("model", "seed", "ended", "folder, or what went wrong"),
                rows=tuple(
                    (
                        run.model,
                        run.seed,
                        run.status.replace("_", " ") + (", before" if run.before else ""),
                        "".join(run.errors[:1]).partition("\n")[0] or run.folder or "",
                    )
                    for run in runs
                ),
            ),
        )
    )
