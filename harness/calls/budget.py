"""What a run has spent, and the refusal to spend more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from harness.base.errors import BudgetSpent, UsageError, UsageUntold
from harness.calls.policy import Budget
from harness.calls.pricing import Price, PriceTable, price_of
from harness.calls.usage import in_the_dark
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Reply, Request, Usage

TEMPLATE_TOKENS = 200
MESSAGE_TOKENS = 16
"""Tokens at most that a server's template adds to a prompt, and to each of its messages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """Leave to send one attempt, which costs `most` at most; without a price nobody counts."""

    price: Price | None = None
    most: float = 0.0


UNCOUNTED = Claim()


class Meter:
    """Counts attempts sent, tokens used and money spent; refuses the next at a bound.

    Tokens are known only afterwards, so calls in flight when their bound is reached may exceed it.
    Money is set aside before an attempt is sent, as much as it may cost at most.
    """

    def __init__(self, budget: Budget, prices: PriceTable | None = None) -> None:
        self._budget = budget
        self._prices = prices
        self._claims = 0
        self._set_aside = 0.0
        self._freed = asyncio.Event()
        self.calls = 0
        self.tokens = 0
        self.spent = 0.0

    def check(self) -> None:
        """Raise BudgetSpent when no further attempt may be sent."""
        budget = self._budget
        if budget.calls is not None and self.calls >= budget.calls:
            raise _spent("calls", f"{self.calls} calls used", f"at most {budget.calls}")
        if budget.tokens is not None and self.tokens >= budget.tokens:
            raise _spent("tokens", f"{self.tokens} tokens used", f"at most {budget.tokens}")

    def claim(self, identity: Identity, request: Request) -> Claim | None:
        """Leave to send one attempt now; None while what it may cost is set aside for others.

        Raises BudgetSpent where it may cost more than is left.
        """
        limit = self._budget.cost
        claim = UNCOUNTED
        if limit is not None:
            price = self._price(identity)
            claim = Claim(price=price, most=dearest(price, request))
            if self.spent + self._set_aside + claim.most > limit:
                if self._claims:
                    return None
                raise self._too_dear(claim.most, limit)
            self._set_aside += claim.most
            self._claims += 1
        self.calls += 1
        return claim

    @property
    def claims(self) -> int:
        """Attempts in flight that money is set aside for."""
        return self._claims

    async def freed(self) -> None:
        """Return when an attempt that money was set aside for is over, or the run is."""
        await self._freed.wait()

    def wake(self) -> None:
        """Let all who wait for money look again."""
        self._freed.set()
        self._freed.clear()

    def settle(self, claim: Claim, outcome: Reply | CallError | None) -> None:
        """Count what an attempt cost; None was given up before it ended.

        Where nobody told, it is taken to have cost all that was set aside for it.
        """
        usage = None if outcome is None else outcome.usage
        self.add(usage)
        if claim.price is None:
            return
        self._claims -= 1
        # Without claims nothing is set aside: what rounding left over must not add up.
        self._set_aside = self._set_aside - claim.most if self._claims else 0.0
        if usage is not None:
            self.spent += claim.price.cost_of(usage)
        elif in_the_dark(outcome):
            self.spent += claim.most
        self.wake()

    def add(self, usage: Usage | None) -> None:
        """Count what a reply cost."""
        if usage is not None:
            self.tokens += usage.prompt_tokens + usage.completion_tokens

    def untold(self, claim: Claim, reply: Reply, identity: Identity) -> UsageUntold | None:
        """Why the run cannot go on where a server does not tell what its replies cost."""
        if claim.price is None or claim.price.free or reply.usage is not None:
            return None
        if reply.finish == "refused":
            return None  # a filter before the model: what was set aside stands for it
        return UsageUntold(
            "a server that tells no usage cannot be held to a budget of money",
            where=identity.label,
            found="a reply without its tokens",
            expected="prompt_tokens and completion_tokens with every reply, for --max_cost",
            hint="--max_calls or --max_tokens in its place; a price of 0 where nothing is paid",
        )

    def _price(self, identity: Identity) -> Price:
        price = price_of(identity, self._prices)
        if price is None:
            raise without_price([identity], self._prices)
        return price

    def _too_dear(self, most: float, limit: float) -> BudgetSpent:
        currency = self._prices.currency if self._prices else ""
        return _spent(
            "money",
            f"{self.spent:.4g} {currency} spent, and the next call may cost {most:.4g}",
            f"at most {limit:.4g} {currency}",
        )


def dearest(price: Price, request: Request) -> float:
    """What one attempt costs at most: a token a byte of the prompt, and the longest answer."""
    prompt = TEMPLATE_TOKENS + sum(
        MESSAGE_TOKENS + len(message.content.encode("utf-8", "replace"))
        for message in request.messages
    )
    if request.schema is not None:
        prompt += len(msgspec.json.encode(request.schema))
    dearer = max(price.input, price.cached or 0.0)
    return Price(input=dearer, output=price.output).cost(
        prompt=prompt, cached=0, completion=request.sampling.max_tokens
    )


def without_price(identities: list[Identity], prices: PriceTable | None) -> UsageError:
    """Why a budget of money cannot be kept: nobody said what these models cost."""
    names = sorted({identity.label for identity in identities})
    return UsageError(
        "--max_cost needs a price of every model that may be asked",
        where=prices.where if prices is not None else None,
        found=f"no price of {', '.join(names)}",
        expected=f'[prices."{names[0]}"] with input and output, in --prices FILE',
    )


def _spent(unit: str, found: str, expected: str) -> BudgetSpent:
    return BudgetSpent(
        f"the budget of {unit} is spent",
        found=found,
        expected=expected,
        hint="run the same command with a larger budget: it goes on where this one stopped",
    )
