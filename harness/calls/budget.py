"""Enforces a run's budget of calls, tokens and money."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from harness.base.errors import BudgetSpent, UsageError, UsageUnreported
from harness.calls.policy import Budget
from harness.calls.pricing import Price, PriceTable, price_of
from harness.calls.usage import possibly_billed
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Reply, Request

TEMPLATE_TOKENS = 200
MESSAGE_TOKENS = 16
"""The most tokens that a server's template adds to a prompt, and to each of its messages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """Money reserved for one attempt, `most` of it; nothing is counted without a price."""

    price: Price | None = None
    most: float = 0.0


UNCOUNTED = Claim()


class Meter:
    """Counts attempts, tokens and money, and refuses attempts beyond the budget.

    Tokens are known only afterwards, so calls in flight may exceed their bound. Money is reserved
    before an attempt is sent, as much as the attempt may cost at most; `claims` counts the attempts
    in flight that have money reserved.
    """

    def __init__(self, budget: Budget, prices: PriceTable | None = None) -> None:
        self._budget = budget
        self._prices = prices
        self.claims = 0
        self._set_aside = 0.0
        self._freed = asyncio.Event()
        self.calls = 0
        self.tokens = 0
        self.spent = 0.0

    def check(self) -> None:
        """Raise BudgetSpent if no further attempt may be sent."""
        budget = self._budget
        if budget.calls is not None and self.calls >= budget.calls:
            raise _spent("calls", f"{self.calls} calls used", f"at most {budget.calls}")
        if budget.tokens is not None and self.tokens >= budget.tokens:
            raise _spent("tokens", f"{self.tokens} tokens used", f"at most {budget.tokens}")

    def claim(self, identity: Identity, request: Request) -> Claim | None:
        """Reserve the money for one attempt; None while other attempts have it reserved.

        Raises BudgetSpent if the attempt may cost more than is left.
        """
        limit = self._budget.cost
        claim = UNCOUNTED
        if limit is not None:
            price = self._price(identity)
            claim = Claim(price=price, most=dearest(price, request))
            if self.spent + self._set_aside + claim.most > limit:
                if self.claims:
                    return None
                raise self._unaffordable(claim.most, limit)
            self._set_aside += claim.most
            self.claims += 1
        self.calls += 1
        return claim

    async def freed(self) -> None:
        """Wait until an attempt with reserved money ends, or the run does."""
        await self._freed.wait()

    def wake(self) -> None:
        """Wake all attempts that wait for money."""
        self._freed.set()
        self._freed.clear()

    def settle(self, claim: Claim, outcome: Reply | CallError | None) -> None:
        """Count the cost of an attempt; None for one that was cancelled.

        An attempt that may have been billed and reported no usage counts at its reserved amount.
        """
        usage = None if outcome is None else outcome.usage
        if usage is not None:
            self.tokens += usage.prompt_tokens + usage.completion_tokens
        if claim.price is None:
            return
        self.claims -= 1
        # Without claims nothing is reserved: rounding errors must not add up.
        self._set_aside = self._set_aside - claim.most if self.claims else 0.0
        if usage is not None:
            self.spent += claim.price.cost_of(usage)
        elif possibly_billed(outcome):
            self.spent += claim.most
        self.wake()

    def unreported(self, claim: Claim, reply: Reply, identity: Identity) -> UsageUnreported | None:
        """The error for a priced reply without usage; None if the reply can be counted."""
        if claim.price is None or claim.price.free or reply.usage is not None:
            return None
        if reply.finish == "refused":
            return None  # a filter before the model: counted at the reserved amount
        return UsageUnreported(
            "--max_cost cannot be enforced for a server that reports no usage",
            where=identity.label,
            found="a reply without usage",
            expected="prompt_tokens and completion_tokens with every reply",
            hint="use --max_calls or --max_tokens, or give a price of 0 if the model is free",
        )

    def _price(self, identity: Identity) -> Price:
        price = price_of(identity, self._prices)
        if price is None:
            raise without_price([identity], self._prices)
        return price

    def _unaffordable(self, most: float, limit: float) -> BudgetSpent:
        currency = self._prices.currency if self._prices else ""
        return _spent(
            "money",
            f"{self.spent:.4g} {currency} spent, and the next call may cost {most:.4g}",
            f"at most {limit:.4g} {currency}",
        )


def dearest(price: Price, request: Request) -> float:
    """The most that one attempt may cost: one token per byte of the prompt, the longest reply."""
    prompt = TEMPLATE_TOKENS + sum(
        MESSAGE_TOKENS + len(message.content.encode("utf-8", "replace"))
        for message in request.messages
    )
    if request.schema is not None:
        prompt += len(msgspec.json.encode(request.schema))
    per_prompt_token = max(price.input, price.cached or 0.0)
    return Price(input=per_prompt_token, output=price.output).cost(
        prompt=prompt, cached=0, completion=request.sampling.limit
    )


def without_price(identities: list[Identity], prices: PriceTable | None) -> UsageError:
    """The error for a budget of money and models without a price."""
    names = sorted({identity.label for identity in identities})
    return UsageError(
        "--max_cost needs a price for every model that may be asked",
        where=prices.where if prices is not None else None,
        found=f"no price of {', '.join(names)}",
        expected=f'[prices."{names[0]}"] with input and output, in --prices FILE',
    )


def _spent(unit: str, found: str, expected: str) -> BudgetSpent:
    return BudgetSpent(
        f"the budget of {unit} is spent",
        found=found,
        expected=expected,
        hint="run the same command with a larger budget: it continues where this run stopped",
    )
