"""Amounts of money and tokens as text, which also shows what is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.calls.pricing import Cost, together
from harness.reporting.text import NOTHING, clean_text, count
from harness.scoring.summary import RoleUse

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
    sessions_without = "session that did not end" if without == 1 else "sessions that did not end"
    return f"{line}; unknown for {without:,} {sessions_without}"


def _unit(amount: float | None, currency: str) -> str:
    return "" if amount is None else f" {currency}"
