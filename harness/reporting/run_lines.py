"""Runs, rate limits, calls and amounts of money and tokens as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.calls.budget import player_name
from harness.calls.pricing import Cost, together
from harness.contracts.records import CallRecord
from harness.reporting.text import NOTHING, clean_text, count, counted, time_left
from harness.runs.manifest import Manifest
from harness.runs.progress_file import ProgressNote
from harness.scoring.grouping import grouped
from harness.scoring.summary import RoleUse


def status_text(status: str, at_work: bool | None) -> str:
    """How far a run is, where `at_work` says whether a process works in its folder."""
    if status == "running":
        return {True: "at work", False: "killed", None: "at work or killed"}[at_work]
    return status.replace("_", " ")


def progress_line(note: ProgressNote) -> str:
    """How far a run at work is: its stages, its rate, the time left, and what it paid."""
    stages = [
        f"{one.task}/{one.stage} "
        + (f"{one.done:,}" if one.total is None else f"{one.done:,} of {one.total:,}")
        + f", {one.missing:,} missing" * bool(one.missing)
        for one in note.stages
    ]
    facts = [f"{60 * note.items_per_second:,.0f} items/min"] if note.items_per_second else []
    facts += [time_left(note.seconds_left, at_least=note.at_least)]
    facts += [f"paid {paid(note.cost)} {note.cost.currency}"] if note.cost else []
    return f"{'; '.join(stages) or 'no stage'}: {', '.join(facts)}"


def rate_limited(sessions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each model whose server asked for fewer requests, from each session's `limits`."""
    every = (one for limits in sessions for one in limits.items())
    slowed = grouped((model, limiter) for model, limiter in every if limiter.get("cuts"))
    for model, limiters in slowed.items():
        times = sum(one["cuts"] for one in limiters)
        often = "once" if times == 1 else f"{times:,} times"
        lowest = min(one["lowest"] for one in limiters)
        ceiling = max(one["ceiling"] for one in limiters)
        yield clean_text(
            f"{model}: slowed by rate limits (HTTP 429) {often}, "
            f"down to {lowest:,} of {ceiling:,} requests in flight"
        )


def throttled(limits: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Which model takes fewer requests at once than it may, and why; None if none does."""
    lines = [
        f"throttled: {model} to {report['limit']:,} of {report['ceiling']:,} requests at once, "
        f"as {report['throttled']}"
        for model, report in limits.items()
        if report.get("throttled")
    ]
    more = f"; {len(lines) - 1:,} more" if len(lines) > 1 else ""
    return clean_text(lines[0]) + more if lines else None


def describe_call(call: CallRecord, manifest: Manifest, *, task: str) -> str:
    """Who was asked in a task of a run, where the reply came from, and how it was read."""
    who = f"{call.role} {call.member}" if call.member else call.role
    parts = [f"{who}, prompt {call.prompt}, from {call.source}"]
    if call.repeat:
        parts.append(f"repeat {call.repeat}")
    if call.finish is not None:
        parts.append(f"ended by {call.finish}")
    if call.rung is not None:
        parts.append(f"read as {call.rung}")
    if call.asked_schema:
        parts.append("schema requested")
    if call.attempts > 1:
        parts.append(f"{call.attempts} attempts")
    if call.usage is not None:
        parts.append(f"{call.usage.prompt_tokens} + {call.usage.completion_tokens} tokens")
    elif call.finish is not None:
        by_rule = manifest.by_rule(task, player_name(call.role, call.member))
        parts += [] if by_rule else ["tokens unknown"]
    if call.source == "model":
        parts.append(f"{call.seconds:.1f} s")
    return ", ".join(parts)


def laid_out(value: Any, *, width: int, before: int = 0) -> str:
    """A JSON value on one line if it fits into the width, otherwise with one member per line.

    `before` is the number of characters before the value on its line.

    >>> laid_out({"a": [1, 2]}, width=80)
    '{"a": [1, 2]}'
    """
    flat = json.dumps(value, ensure_ascii=False)
    if before + len(flat) <= width or not value or not isinstance(value, (dict, list)):
        return flat
    if isinstance(value, dict):
        opened, closed = "{", "}"
        members = [(f"{json.dumps(str(name), ensure_ascii=False)}: ", one)
                   for name, one in value.items()]  # fmt: skip
    else:
        opened, closed, members = "[", "]", [("", one) for one in value]
    # Members are indented by two, and followed by a comma.
    parts = [name + laid_out(one, width=width - 2, before=len(name) + 1) for name, one in members]
    inside = ",\n".join(parts).replace("\n", "\n  ")
    return f"{opened}\n  {inside}\n{closed}"


UNKNOWN = "unknown"


def money(amount: float) -> str:
    """An amount with two decimals, or more if it is small."""
    if not amount:
        return "0"
    if amount >= 1:
        return f"{amount:,.2f}"
    return f"{amount:.4f}" if amount >= 0.0001 else f"{amount:.1e}"


def known(amount: float | None, unknown: int) -> str:
    """An amount as text: with `≥` if a part is unknown, or `unknown`."""
    if amount is None:
        return UNKNOWN
    return f"≥ {money(amount)}" if unknown else money(amount)


def tokens(amount: float | None, unreported: int) -> str:
    """A number of tokens as text: with `≥` if some replies had no usage, or `unknown`."""
    if amount is None or (unreported and not amount):
        return UNKNOWN
    return f"≥ {count(amount)}" if unreported else count(amount)


def paid(cost: Cost | None) -> str:
    """The amount paid, as text."""
    return NOTHING if cost is None else known(cost.paid, cost.paid_unknown)


def saved(cost: Cost | None) -> str:
    """The amount that reused replies had cost, as text."""
    return NOTHING if cost is None else known(cost.saved, cost.saved_unknown)


def cost_notes(name: str, cost: Cost | None) -> list[str]:
    """Notes on the unknown parts of a cost, with reasons."""
    if cost is None:
        return []
    asked, reused = cost.paid_unknown, cost.saved_unknown
    if not cost.priced:
        calls = asked + reused
        return [f"{name}: no price for {clean_text(cost.model)}, {calls:,} calls"] * bool(calls)
    notes = []
    if asked:
        notes.append(f"{name}: usage unknown or incomplete for {asked:,} of {cost.asked:,} calls")
    if reused:
        notes.append(f"{name}: usage unknown for {reused:,} of {cost.reused:,} reused replies")
    return notes


def token_notes(name: str, use: RoleUse) -> list[str]:
    """The note on replies without usage, unless the notes on the cost have it already."""
    cost = use.cost
    noted = cost is not None and cost.priced and (cost.paid_unknown or cost.saved_unknown)
    if not use.untold or noted:
        return []
    return [f"{name}: usage unknown for {use.untold:,} of {use.calls:,} calls"]


def cost_line(costs: Iterable[Cost]) -> str | None:
    """The total cost of some calls in one line; None without prices."""
    costs = tuple(costs)
    if not costs:
        return None
    cost = together("", costs)
    currency = clean_text(cost.currency)
    parts = [f"paid {paid(cost)}{_unit(cost.paid, currency)} for {cost.asked:,} calls"]
    if cost.paid_unknown:
        parts.append(f"unknown for {cost.paid_unknown:,}")
    if cost.reused:
        parts.append(f"saved {saved(cost)}{_unit(cost.saved, currency)} by {cost.reused:,} reused")
    return ", ".join(parts)


def session_line(sessions: Iterable[Mapping[str, Cost]], *, without: int = 0) -> str | None:
    """The total cost of a run's sessions in one line; `without` more sessions did not end."""
    costs = [cost for session in sessions for cost in session.values()]
    line = cost_line(costs)
    if line is None or not without:
        return line
    return f"{line}; unknown for {counted(without, 'session')} that did not end"


def _unit(amount: float | None, currency: str) -> str:
    return "" if amount is None else f" {currency}"
