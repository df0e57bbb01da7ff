"""What a run would cost: the calls of a forecast, priced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harness.calls.prices import Price

ASSUMPTIONS = (
    "`cost, at most`: these calls, completions as long as they may get",
    "`cost bounds`: from the fewest calls, prompts alone, to the most calls, longest completions",
)


class ExpectedCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one role of one stage would cost.

    `at_most` is for the calls expected, each answer as long as it may get. `least` is for the
    fewest calls and their prompts alone, `most` for the most calls and the longest answers.
    """

    at_most: float
    least: float
    most: float


def expected_cost(
    price: Price | None,
    *,
    calls: int,
    prompt_tokens: int,
    completion_tokens: int,
    bounds: tuple[float, float],
) -> ExpectedCost | None:
    """What calls of that price would cost, of which there are between the bounds.

    None where it is not known: without a price, or where no call shows how long prompts are.
    """
    least, most = bounds
    if not most and not calls:
        return ExpectedCost(at_most=0.0, least=0.0, most=0.0)
    if price is None or not calls:
        return None
    at_most = price.cost(prompt=prompt_tokens, cached=0, completion=completion_tokens)
    cheapest = price.input if price.cached is None else min(price.input, price.cached)
    prompts = Price(input=cheapest, output=0.0).cost(prompt=prompt_tokens, cached=0, completion=0)
    return ExpectedCost(at_most=at_most, least=prompts * least / calls, most=at_most * most / calls)


def shared(costs: Sequence[ExpectedCost]) -> ExpectedCost:
    """What calls cost that several models share evenly, from what each would ask for all."""
    whole = all_together(costs)
    many = len(costs)
    return ExpectedCost(at_most=whole.at_most / many, least=whole.least / many,
                        most=whole.most / many)  # fmt: skip


def all_together(costs: Iterable[ExpectedCost]) -> ExpectedCost:
    """Several expected costs as one."""
    costs = tuple(costs)
    return ExpectedCost(
        at_most=sum(cost.at_most for cost in costs),
        least=sum(cost.least for cost in costs),
        most=sum(cost.most for cost in costs),
    )
