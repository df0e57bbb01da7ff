"""Enforces a run's budget of calls, tokens and money."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from harness.base.errors import BudgetSpent, UsageError, UsageUnreported
from harness.calls.leases import (
    Account,
    Lease,
    Recall,
    Spent,
    Unit,
    Used,
    none_of,
    pays_for,
)
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

    Without `more`, the whole budget is this meter's. With it the meter begins with nothing of what
    the budget bounds, and awaits `more(account, wanted)` for leases: one at a time, and only when
    an attempt needs more than is leased.
    """

    def __init__(
        self,
        budget: Budget,
        prices: PriceTable | None = None,
        *,
        more: Callable[[Account, Used], Awaitable[Lease | Spent]] | None = None,
    ) -> None:
        self._budget = budget
        self._prices = prices
        self._more = more
        self._lease = Lease(bound=budget) if more is None else none_of(budget)
        self._refused: Spent | None = None
        self._failed: Exception | None = None
        self._asking: asyncio.Task[None] | None = None
        self._told = False
        self.claims = 0
        self._set_aside = 0.0
        self._freed = asyncio.Event()
        self.calls = 0
        self.tokens = 0
        self.spent = 0.0

    def check(self) -> None:
        """Raise BudgetSpent if no further attempt may be sent, whatever it costs."""
        wanted = Used(calls=self.calls + 1, tokens=self.tokens + 1)
        unit = self._lease.lacks(wanted)
        if unit is not None and (refusal := self._refusal(unit, wanted)) is not None:
            raise self._spent(refusal)

    def claim(self, identity: Identity, request: Request) -> Claim | None:
        """Reserve the money for one attempt; None while others have it reserved, or more is coming.

        Raises BudgetSpent if the attempt may cost more than is left.
        """
        claim = UNCOUNTED
        if self._budget.cost is not None:
            price = price_of(identity, self._prices)
            if price is None:
                raise without_price([identity], self._prices)
            claim = Claim(price=price, most=dearest(price, request))
        cost = self.spent + self._set_aside + claim.most
        wanted = Used(calls=self.calls + 1, tokens=self.tokens + 1, cost=cost)
        unit = self._lease.lacks(wanted)
        if unit is not None:
            if self._failed is not None:
                raise self._failed.with_traceback(None)
            refusal = self._refusal(unit, wanted)
            if refusal is None:
                if self._asking is None:
                    self._asking = asyncio.get_running_loop().create_task(self._extend(wanted))
            elif refusal.unit != "cost" or not self.claims:
                raise self._spent(refusal, claim.most)
            return None
        if claim.price is not None:
            self._set_aside += claim.most
            self.claims += 1
        self.calls += 1
        return claim

    def waiting_line(self) -> str | None:
        """A line for the user, the first time that attempts wait for money; the owner of leases
        has its own."""
        if self._told or self._more is not None:
            return None
        self._told = True
        return pays_for(self.claims)

    async def freed(self) -> None:
        """Wait until an attempt with reserved money ends, more is leased or refused, or the run
        ends."""
        await self._freed.wait()

    def wake(self) -> None:
        """Wake all attempts that wait."""
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

    def used(self) -> Used:
        """What was used so far; attempts in flight count as calls only."""
        return Used(calls=self.calls, tokens=self.tokens, cost=self.spent)

    def account(self) -> Account:
        """The account for the owner of the leases."""
        return Account(lease=self._lease, used=self.used(), claims=self.claims)

    async def give_back(self, recall: Recall) -> Account:
        """Give back what is not used: the account without it. Waits as the recall says."""
        while self._lease.number < recall.number or (
            recall.settled and self.claims and self._kept() == self._lease
        ):
            await self._freed.wait()
            await asyncio.sleep(0)  # attempts that waited for the same go first
        self._lease = self._kept()
        return self.account()

    def close(self) -> None:
        """Wait for no lease any more."""
        if self._asking is not None:
            self._asking.cancel()

    def _kept(self) -> Lease:
        """The lease without what is not used."""
        reserved = self.spent + self._set_aside
        return self._lease.lowered(Budget(calls=self.calls, tokens=self.tokens, cost=reserved))

    def _refusal(self, unit: Unit, wanted: Used) -> Spent | None:
        """Why the lease cannot be raised for what lacks a unit; None if it may be."""
        if self._more is None:
            return Spent(unit=unit, wanted=wanted, used=self.used())
        refused = self._refused
        if refused is None:
            return None
        unit = refused.unit  # a lease of other units too would be refused because of this one
        return refused if getattr(wanted, unit) >= getattr(refused.wanted, unit) else None

    async def _extend(self, wanted: Used) -> None:
        """Ask for a lease that covers what is wanted, and wake the attempts that wait for it."""
        assert self._more is not None
        try:
            answer = await self._more(self.account(), wanted)
            if isinstance(answer, Spent):
                self._refused = answer
            elif answer.number > self._lease.number:
                self._lease = answer
        except Exception as error:
            self._failed = error
        finally:
            self._asking = None
            self.wake()

    def _spent(self, refusal: Spent, most: float = 0.0) -> BudgetSpent:
        unit, bound = refusal.unit, getattr(self._budget, refusal.unit)
        found, expected = f"{getattr(refusal.used, unit)} {unit} used", f"at most {bound}"
        withheld = f"{getattr(refusal.withheld, unit)} {unit}"
        if unit == "cost":
            currency = self._prices.currency if self._prices else ""
            found = (
                f"{refusal.used.cost:.4g} {currency} spent, and the next call may cost {most:.4g}"
            )
            expected = f"at most {bound:.4g} {currency}"
            withheld = f"{refusal.withheld.cost:.4g} {currency}"
        if getattr(refusal.withheld, unit):
            found += f"; {withheld} more count as used, as workers that were lost held them"
        return BudgetSpent(
            f"the budget of {'money' if unit == 'cost' else unit} is spent",
            found=found,
            expected=expected,
            hint="run the same command with a larger budget: it continues where this run stopped",
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
