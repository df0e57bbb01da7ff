"""What runs and suites are expected to ask, and how the runs of a suite ended, on a terminal.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from harness.contracts.report import Cell, Report, Sheet
from harness.pipeline.forecast import ExpectedCost, Forecast, RoleForecast, all_together
from harness.pipeline.suite import SuiteRun
from harness.reporting.grid import INDENT, Row, grid, indented, result_console, room_on, show
from harness.reporting.run_lines import UNKNOWN, money
from harness.reporting.text import clean_text, count
from harness.tasks.repeats import task_and_repeat

NOT_REACHED = "no prompt: no item of the rehearsal reached this stage"


def print_forecast(forecast: Forecast, console: Console | None = None) -> None:
    """Print the first prompt of every stage and role, then the calls to expect."""
    console = console or result_console()
    for stage in forecast.stages:
        for role in stage.roles if task_and_repeat(stage.task)[1] == 1 else ():
            console.print(_rule(f"{stage.task}, {stage.stage}: {role.role} ({role.label})"))
            if not role.first_prompt:
                console.print(Text(NOT_REACHED, style="yellow"))
            for message in role.first_prompt:
                console.print(Text(f"[{message.role}]", style="bold"))
                console.print(Text(clean_text(message.content, lines=True)))
    console.print(_rule("calls to expect; no model was asked"))
    show(console, _calls(forecast, room_on(console)))
    for line in (*_total_lines(forecast), *_cost_lines(forecast)):
        console.print(Text(line))
    console.print(Text("estimated from:"))
    show(console, indented(forecast.assumptions, "", room_on(console)))


def _rule(title: str) -> Text:
    return Text(f"── {clean_text(title)} ──", style="dim")


def _calls(forecast: Forecast, width: int | None) -> list[Text]:
    heads = ["task, stage, role", "items", "calls", "bounds", "tokens in", "out, at most"]
    priced = forecast.currency is not None
    if priced:
        heads += ["cost, at most", "cost bounds"]
    rows: list[Row] = []
    for stage in forecast.stages:
        items = UNKNOWN if stage.items is None else f"{'' if stage.exact else '~'}{stage.items:,}"
        name = clean_text(f"{stage.task}, {stage.stage}")
        bounds = f"{stage.least_calls:,} to {stage.most_calls:,}"
        if not stage.roles:
            free = ("0", "0") if priced else ()
            rows.append((f"{name}, by rule", items, "0", "0", "0", "0", *free))
        elif stage.items is None:
            roles = ", ".join(clean_text(role.role) for role in stage.roles)
            rows.append((f"{name}, {roles}", *(UNKNOWN,) * (len(heads) - 1)))
            continue
        elif len(stage.roles) > 1:
            # The bounds are those of all roles together.
            rows.append((name, items, f"~{_sums(stage.roles)[0]:,}", bounds))
            name, items, bounds = INDENT + name, "", ""
        for role in stage.roles:
            tokens = (f"~{count(role.prompt_tokens)}", count(role.most_completion_tokens))
            row = [f"{name}, {clean_text(role.role)}", items, f"~{role.calls:,}", bounds, *tokens]
            if priced and role.cost is not None:
                least, most = money(role.cost.least), money(role.cost.most)
                row += [money(role.cost.at_most), f"{least} to {most}"]
            elif priced:
                row += [UNKNOWN, UNKNOWN]
            rows.append(row)
    return grid(heads, rows, numbers=len(heads) - 1, width=width, cut=False)


def _total_lines(forecast: Forecast) -> Iterator[str]:
    """The sums over what models write, and what is not in them."""
    roles = [role for stage in forecast.stages for role in stage.roles]
    looked_up = [role for role in roles if not role.writes]
    unknown = [stage for stage in forecast.stages if stage.items is None and stage.roles]
    if len(roles) > 1:
        written = [stage for stage in forecast.stages if any(role.writes for role in stage.roles)]
        least = sum(stage.least_calls for stage in written)
        most = sum(stage.most_calls for stage in written)
        calls, prompts, completions = _sums([role for role in roles if role.writes])
        yield (
            f"in total ~{calls:,} calls ({least:,} to {most:,}), ~{count(prompts)} tokens in, "
            f"at most {count(completions)} out"
        )
    if looked_up:
        names = ", ".join(dict.fromkeys(clean_text(role.role) for role in looked_up))
        calls = sum(role.calls for role in looked_up)
        yield f"not in the total: ~{calls:,} calls of {names}, which looks its answers up"
    for stage in unknown:
        name = clean_text(f"{stage.task}, {stage.stage}")
        yield f"not in the total: {name}, as the rehearsal has no items for it"


def _sums(of: Sequence[RoleForecast | ModelForecast]) -> tuple[int, int, int]:
    """The calls, the tokens of prompts and the most tokens of completions of all together."""
    return (
        sum(one.calls for one in of),
        sum(one.prompt_tokens for one in of),
        sum(one.most_completion_tokens for one in of),
    )


def _cost_lines(forecast: Forecast) -> Iterator[str]:
    if forecast.currency is None:
        return
    roles = [role for stage in forecast.stages for role in stage.roles]
    known = [role.cost for role in roles if role.cost is not None]
    unknown = len(roles) - len(known)
    total, currency = all_together(known), clean_text(forecast.currency)
    line = "the cost is unknown"
    if known or not unknown:
        line = f"in total at most {money(total.at_most)} {currency} for the expected calls, "
        line += f"between {money(total.least)} and {money(total.most)} {currency} by the bounds"
    yield line + (f"; without the {unknown} marked as unknown" if known and unknown else "")
    limit = forecast.max_cost
    if limit is not None:
        enough = "is" if total.at_most <= limit and not unknown else "may not be"
        yield f"--max_cost {limit:g} {enough} enough for the expected calls"


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
        calls, prompts, completions = _sums([role for role in roles if role.writes])
        rows.append(
            ModelForecast(
                model=name,
                runs=runs,
                calls=runs * calls,
                prompt_tokens=runs * prompts,
                most_completion_tokens=runs * completions,
                cost=all_together(costs * runs) if priced else None,
                currency=forecast.currency,
                assumptions=forecast.assumptions,
            )
        )
    return rows


def forecast_report(rows: Sequence[ModelForecast]) -> Report:
    """The forecasts of all models with their sum."""
    currency = next((row.currency for row in rows if row.currency is not None), None)
    columns = ["model", "runs", "calls", "tokens in", "tokens out, at most"]
    columns += ["cost, at most", "cost bounds"] if currency is not None else []
    cells: list[tuple[Cell, ...]] = []
    for name, of in [*((row.model, [row]) for row in rows), ("all", rows)]:
        known = [row.cost for row in of if row.cost is not None]
        cost = all_together(known)
        costs = f"{money(cost.at_most)} {currency}", f"{money(cost.least)} to {money(cost.most)}"
        if len(known) < len(of):
            costs = UNKNOWN, UNKNOWN
        runs = sum(row.runs for row in of)
        cells.append((name, runs, *_sums(of), *(costs if currency is not None else ())))
    again = "each model's first run was rehearsed; its runs with other seeds count the same"
    notes = (again, *dict.fromkeys(line for row in rows for line in row.assumptions))
    title = "calls to expect; no model was asked"
    sheet = Sheet(title=title, columns=tuple(columns), rows=tuple(cells), notes=notes)
    return Report(sheets=(sheet,))


def ending_report(suite: str, runs: Sequence[SuiteRun]) -> Report:
    """How each run of a suite ended, with its folder or its error."""
    rows = []
    for run in runs:
        ended = run.status.replace("_", " ") + (", before" if run.before else "")
        what = "".join(run.errors[:1]).partition("\n")[0] or run.folder or ""
        rows.append((run.model, run.seed, ended, what))
    columns = ("model", "seed", "ended", "folder, or what went wrong")
    return Report(sheets=(Sheet(title=f"suite {suite}", columns=columns, rows=tuple(rows)),))
