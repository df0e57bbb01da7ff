"""The cost of a run: its stored usage at given prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from harness.calls.budget import Use, usage_name
from harness.calls.pricing import FREE, Cost, PriceTable, Spend, cost_of, price_of
from harness.contracts.identity import Identity
from harness.runs.manifest import Manifest, RoleEntry
from harness.scoring.summary import StageSummary

UNNAMED = "unknown"
"""The model of a role whose entry names none."""


def cost_of_role(entry: RoleEntry | None, prices: PriceTable, *, paid: Spend, saved: Spend) -> Cost:
    """The cost of one role, at the price of its model."""
    about = entry.identity.get("model") if entry is not None else None
    if entry is None or about is None:
        free = FREE if entry is not None and entry.by_rule else None
        return cost_of(UNNAMED, free, prices.currency, paid=paid, saved=saved)
    identity = Identity(
        kind=about["kind"],
        name=about["name"],
        details=about.get("details", {}),
        scope="call" if entry.by_rule else "everywhere",
    )
    price = price_of(identity, prices)
    return cost_of(identity.label, price, prices.currency, paid=paid, saved=saved)


def session_costs(
    manifest: Manifest, usage: Mapping[str, Mapping[str, int]], prices: PriceTable
) -> dict[str, Cost]:
    """The costs of one session's usage, under the same names of stages and roles."""
    # Entries of roles that belong to one task start with the task's name.
    roles = dict.fromkeys(manifest.roles)
    for task in manifest.tasks:
        own = (name for name in manifest.roles if name.startswith(f"{task}/"))
        roles |= {name.removeprefix(f"{task}/"): None for name in own}
    costs = {}
    for task, entry in manifest.tasks.items():
        for stage in entry.stages:
            for role in roles:
                name = usage_name(f"{task}/{stage.name}", role)
                if name in usage:
                    use = msgspec.convert(usage[name], Use)
                    costs[name] = cost_of_role(
                        manifest.player(task, role), prices, paid=use.paid(), saved=use.saved()
                    )
    return costs


def sessions_at(manifest: Manifest, prices: PriceTable) -> Manifest:
    """The manifest with the costs of its sessions at these prices."""
    sessions = tuple(
        msgspec.structs.replace(each, costs=session_costs(manifest, each.usage, prices))
        for each in manifest.sessions
    )
    return msgspec.structs.replace(manifest, sessions=sessions, prices=prices)


def costs_of(stages: Iterable[StageSummary]) -> list[Cost]:
    """Every cost in the stages."""
    uses = [use for stage in stages for use in stage.roles.values()]
    return [use.cost for use in uses if use.cost is not None]
