"""Amounts of money and tokens as people read them, with what is not known of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.calls.pricing import Cost, together
from harness.reporting.text import NOTHING, clean_text, count
from harness.scoring.summary import RoleUse

UNKNOWN = "unknown"


def money(amount: float) -> str:
    """An amount with two decimals, or with as many as a small one needs to be seen."""
    if not amount:
        return "0"
    if amount >= 1:
        return f"{amount:,.2f}"
    return f"{amount:.4f}" if amount >= 0.0001 else f"{amount:.1e}"


def known(amount: float | None, unknown: int) -> str:
    """An amount, the least that it can be where some is not known, or that none of it is."""
    if amount is None:
        return UNKNOWN
    return f"≥ {money(amount)}" if unknown else money(amount)


def tokens(amount: float | None, untold: int) -> str:
    """So many tokens, at least so many where some replies told none, or that none are known."""
    if amount is None or (untold and not amount):
        return UNKNOWN
    return f"≥ {count(amount)}" if untold else count(amount)


def paid(cost: Cost | None) -> str:
    """What was paid."""
    return NOTHING if cost is None else known(cost.paid, cost.paid_unknown)


def saved(cost: Cost | None) -> str:
    """What reused replies had cost."""
    return NOTHING if cost is None else known(cost.saved, cost.saved_unknown)


def cost_notes(name: str, cost: Cost | None) -> list[str]:
    """What is not known of a cost, and why."""
    if cost is None:
        return []
    asked, reused = cost.paid_unknown, cost.saved_unknown
    if not cost.priced:
        calls = asked + reused
        return [f"{name}: no price of {clean_text(cost.model)}, for {calls:,} calls"] * bool(calls)
    notes = []
    if asked:
        notes.append(f"{name}: for {asked:,} of {cost.asked:,} calls no usage was told, or not all")
    if reused:
        notes.append(f"{name}: of {reused:,} of {cost.reused:,} reused replies no usage is known")
    return notes


def token_notes(name: str, use: RoleUse) -> list[str]:
    """Of how many replies no tokens are known, where what is not known of the cost does not say."""
    cost = use.cost
    said = cost is not None and cost.priced and (cost.paid_unknown or cost.saved_unknown)
    if not use.untold or said:
        return []
    return [f"{name}: for {use.untold:,} of {use.calls:,} calls no usage was told"]


def cost_line(costs: Iterable[Cost]) -> str | None:
    """What some calls cost together, in one line; None where nobody said what anything costs."""
    costs = tuple(costs)
    if not costs:
        return None
    cost = together("", costs)
    currency = clean_text(cost.currency)
    parts = [f"paid {paid(cost)}{_unit(cost.paid, currency)} for {cost.asked:,} calls"]
    if cost.paid_unknown:
        parts.append(f"not known of {cost.paid_unknown:,}")
    if cost.reused:
        parts.append(f"saved {saved(cost)}{_unit(cost.saved, currency)} by {cost.reused:,} reused")
    return ", ".join(parts)


def session_line(sessions: Iterable[Mapping[str, Cost]], *, without: int = 0) -> str | None:
    """What all sessions of a run paid; `without` of them have not ended, and cannot say."""
    costs = [cost for session in sessions for cost in session.values()]
    line = cost_line(costs)
    if line is None or not without:
        return line
    return f"{line}; nothing is known of {without:,} without an end"


def _unit(amount: float | None, currency: str) -> str:
    return "" if amount is None else f" {currency}"
