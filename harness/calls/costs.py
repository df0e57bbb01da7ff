"""What calls cost, as far as it is known: what is not known is counted and never zero."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harness.calls.prices import Price
from harness.calls.usage import Spend


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What calls to one model cost. `paid` is for `asked` calls, `saved` what `reused` had cost.

    Replies are reused from the store or from an identical call in flight. Of `paid_unknown` calls
    the cost is not known, or not all of it, and is not in `paid`: the model is not `priced`, or no
    usage was told. `paid` is None where nothing at all is known. The same goes for `saved`.
    """

    model: str
    currency: str
    priced: bool
    asked: int
    paid: float | None
    paid_unknown: int
    reused: int
    saved: float | None
    saved_unknown: int


def cost_of(model: str, price: Price | None, currency: str, *, paid: Spend, saved: Spend) -> Cost:
    """The cost of what was spent at a model that has this price, or none that is known."""
    amount, unknown = _amount(paid, price)
    spared, unknown_spared = _amount(saved, price)
    return Cost(
        model=model,
        currency=currency,
        priced=price is not None,
        asked=paid.calls,
        paid=amount,
        paid_unknown=unknown,
        reused=saved.calls,
        saved=spared,
        saved_unknown=unknown_spared,
    )


def costs_by_model(costs: Iterable[Cost]) -> dict[str, Cost]:
    """The costs of each model together, in the order of the models' first costs."""
    models: dict[str, list[Cost]] = {}
    for cost in costs:
        models.setdefault(cost.model, []).append(cost)
    return {model: together(model, each) for model, each in models.items()}


def together(name: str, costs: Iterable[Cost]) -> Cost:
    """Several costs in one currency as one, under a name of its own."""
    costs = tuple(costs)
    asked, reused = sum(cost.asked for cost in costs), sum(cost.reused for cost in costs)
    unknown = sum(cost.paid_unknown for cost in costs)
    unknown_spared = sum(cost.saved_unknown for cost in costs)
    return Cost(
        model=name,
        currency=costs[0].currency,
        priced=all(cost.priced for cost in costs),
        asked=asked,
        paid=_known(sum(cost.paid or 0.0 for cost in costs), unknown, asked),
        paid_unknown=unknown,
        reused=reused,
        saved=_known(sum(cost.saved or 0.0 for cost in costs), unknown_spared, reused),
        saved_unknown=unknown_spared,
    )


def _amount(spend: Spend, price: Price | None) -> tuple[float | None, int]:
    """What is known to have been spent, and of how many calls it is not known."""
    if not spend.calls:
        return 0.0, 0
    if price is None:
        return None, spend.calls
    if price.free:
        return 0.0, 0
    amount = price.cost(
        prompt=spend.prompt_tokens,
        cached=spend.cached_tokens,
        completion=spend.completion_tokens,
    )
    return _known(amount, spend.untold, spend.calls), spend.untold


def _known(amount: float, unknown: int, calls: int) -> float | None:
    return None if calls and unknown == calls and not amount else amount
