"""What a run may use of calls, tokens and money, and what each role in each stage has used."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import msgspec

from harness.base.errors import BudgetSpent, UsageError, UsageUnreported
from harness.calls.pricing import Price, PriceTable, Spend, price_of
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Reply, Request, Usage

TEMPLATE_TOKENS = 200
MESSAGE_TOKENS = 16
"""The most tokens that a server's template adds to a prompt, and to each of its messages."""


Unit = Literal["calls", "tokens", "cost"]
UNITS: tuple[Unit, ...] = ("calls", "tokens", "cost")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a run's calls; None is no bound."""

    calls: int | None = None
    """The most attempts."""

    tokens: int | None = None
    """The most tokens, prompts and replies together."""

    cost: float | None = None
    """The most money, in the currency of the prices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """Money reserved for one attempt, `most` of it; nothing is counted without a price."""

    price: Price | None = None
    most: float = 0.0


UNCOUNTED = Claim()


class Meter:
    """Counts attempts, tokens and money, and refuses attempts beyond the `bound`.

    Tokens are known only afterwards, so calls in flight may exceed their bound. Money is reserved
    before an attempt is sent, as much as the attempt may cost at most; `claims` counts the attempts
    in flight that have money reserved. `short` is what the last refused attempt needed.
    """

    def __init__(self, bound: Budget, prices: PriceTable | None = None) -> None:
        self.bound = bound
        self._prices = prices
        self._told = False
        self.claims = 0
        self._set_aside = 0.0
        self._freed = asyncio.Event()
        self.calls = 0
        self.tokens = 0
        self.spent = 0.0
        self.short = Budget()

    def check(self) -> None:
        """Raise BudgetSpent if no further attempt may be sent, whatever it costs."""
        if (unit := self._lacking(self.spent)) is not None:
            raise self._refused(unit)

    def claim(self, identity: Identity, request: Request) -> Claim | None:
        """Reserve the money for one attempt; None while others have it reserved.

        Raises BudgetSpent if the attempt may cost more than is left.
        """
        claim = UNCOUNTED
        if self.bound.cost is not None:
            price = price_of(identity, self._prices)
            if price is None:
                raise without_price([identity], self._prices)
            claim = Claim(price=price, most=dearest(price, request))
        unit = self._lacking(self.spent + self._set_aside + claim.most)
        if unit is not None:
            if unit != "cost" or not self.claims:
                raise self._refused(unit, claim.most)
            return None
        if claim.price is not None:
            self._set_aside += claim.most
            self.claims += 1
        self.calls += 1
        return claim

    def waiting_line(self) -> str | None:
        """A line for the user, the first time that attempts wait for money."""
        if self._told:
            return None
        self._told = True
        calls = f"{self.claims} {'call' if self.claims == 1 else 'calls'}"
        return (
            f"what is left of --max_cost pays for {calls} at the highest possible cost: no more are"
            " sent at a time"
        )

    async def freed(self) -> None:
        """Wait until an attempt with reserved money ends, or the run does."""
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

    def grant(self, share: Budget) -> None:
        """Raise the bound."""
        self.bound = combined(operator.add, self.bound, share)

    def give_back(self, among: int) -> Budget:
        """Lower the bound by what is neither used nor reserved, divided `among` so many; below
        zero where tokens exceed the bound."""
        reserved = Budget(calls=self.calls, tokens=self.tokens, cost=self.spent + self._set_aside)
        unused = combined(operator.sub, self.bound, reserved)
        given = Budget(
            calls=None if unused.calls is None else unused.calls // among,
            tokens=None if unused.tokens is None else unused.tokens // among,
            cost=None if unused.cost is None else unused.cost / among,
        )
        self.bound = combined(operator.sub, self.bound, given)
        return given

    def _lacking(self, cost: float) -> Unit | None:
        """The first unit of which the next attempt would need more than the bound."""
        bound = self.bound
        if bound.calls is not None and self.calls >= bound.calls:
            return "calls"
        if bound.tokens is not None and self.tokens >= bound.tokens:
            return "tokens"
        return "cost" if bound.cost is not None and cost > bound.cost else None

    def _refused(self, unit: Unit, most: float = 0.0) -> BudgetSpent:
        short: dict[str, Any] = {unit: most if unit == "cost" else 1}
        self.short = Budget(**short)
        if unit != "cost":
            found = f"{getattr(self, unit)} {unit} used"
            return budget_spent(unit, found, f"at most {getattr(self.bound, unit)}")
        currency = self._prices.currency if self._prices else ""
        return budget_spent(
            unit,
            f"{self.spent:.4g} {currency} spent, and the next call may cost {most:.4g}",
            f"at most {self.bound.cost:.4g} {currency}",
        )


def combined(combine: Callable[[Any, Any], Any], bound: Budget, other: Budget) -> Budget:
    """The amounts of two budgets combined, of what the first one bounds."""
    return Budget(
        calls=None if bound.calls is None else combine(bound.calls, other.calls or 0),
        tokens=None if bound.tokens is None else combine(bound.tokens, other.tokens or 0),
        cost=None if bound.cost is None else combine(bound.cost, other.cost or 0.0),
    )


def budget_spent(unit: Unit, found: str, expected: str) -> BudgetSpent:
    """The error of a run whose budget pays for no further call."""
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


POSSIBLY_BILLED = frozenset({"timeout", "connection", "bad_response", "no_content"})
"""Causes of failed attempts that may have been billed; an error status means that none was."""


@dataclass(kw_only=True, slots=True)
class Use:
    """The totals of one role in one stage; tokens are the reported ones of new attempts.

    `asked` calls sent an attempt; `untold` of them had one that may have been billed but reported
    no usage. Fields that begin with `saved` count replies from the store or an identical call.
    """

    calls: int = 0
    asked: int = 0
    from_store: int = 0
    shared: int = 0
    failed: int = 0
    attempts: int = 0
    untold: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    saved_untold: int = 0
    saved_prompt_tokens: int = 0
    saved_completion_tokens: int = 0
    saved_cached_tokens: int = 0

    def save(self, reply: Reply | None) -> None:
        """Count a reply from the store or an identical call."""
        if reply is None:
            return
        usage = reply.usage
        if usage is None:
            self.saved_untold += 1
        else:
            self.saved_prompt_tokens += usage.prompt_tokens
            self.saved_completion_tokens += usage.completion_tokens
            self.saved_cached_tokens += usage.cached_tokens

    def paid(self) -> Spend:
        """The tokens of calls that were asked now."""
        return Spend(
            calls=self.asked,
            unreported=self.untold,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
        )

    def saved(self) -> Spend:
        """The tokens of replies that were reused."""
        return Spend(
            calls=self.from_store + self.shared,
            unreported=self.saved_untold,
            prompt_tokens=self.saved_prompt_tokens,
            cached_tokens=self.saved_cached_tokens,
            completion_tokens=self.saved_completion_tokens,
        )


class UsageBook:
    """Totals by (stage, role), of this process, and of the workers that report theirs."""

    def __init__(self) -> None:
        self.totals: defaultdict[tuple[str, str], Use] = defaultdict(Use)
        self._workers: dict[str, Mapping[str, Mapping[str, int]]] = {}

    def of(self, stage: str, role: str) -> Use:
        """The totals of one role in one stage."""
        return self.totals[stage, role]

    def take(self, worker: str, report: Mapping[str, Mapping[str, int]]) -> None:
        """Take the `as_json()` of a worker; it replaces the worker's earlier one."""
        self._workers[worker] = report

    def as_json(self) -> dict[str, dict[str, int]]:
        """All totals under `stage, role`, with those that every worker reported last."""
        totals = dict(self.totals)  # a display may ask in another thread
        summed = {
            usage_name(stage, role): Counter(asdict(use)) for (stage, role), use in totals.items()
        }
        for report in list(self._workers.values()):
            for name, use in report.items():
                summed.setdefault(name, Counter()).update(use)
        return {name: dict(use) for name, use in summed.items()}


@dataclass(kw_only=True, slots=True)
class Attempts:
    """The attempts of one call.

    `wasted`: the tokens of attempts that brought no reply. `unreported`: attempts, with or without
    a reply, that may have been billed but reported no usage. `causes` are those of the failed ones.
    """

    sent: int = 0
    causes: tuple[str, ...] = ()
    wasted: Usage | None = None
    unreported: int = 0

    def begin(self, use: Use) -> None:
        """Count one that is sent."""
        self.sent += 1
        use.attempts += 1
        use.asked += self.sent == 1

    def count(self, outcome: Reply | CallError | None, use: Use) -> None:
        """Count the usage of an attempt; None for one that was cancelled."""
        if isinstance(outcome, CallError):
            self.causes = (*self.causes, outcome.cause)
        usage = None if outcome is None else outcome.usage
        if usage is None:
            if possibly_billed(outcome):
                use.untold += not self.unreported
                self.unreported += 1
            return
        use.prompt_tokens += usage.prompt_tokens
        use.completion_tokens += usage.completion_tokens
        use.cached_tokens += usage.cached_tokens
        use.reasoning_tokens += usage.reasoning_tokens
        if isinstance(outcome, CallError):
            before = self.wasted or Usage()
            self.wasted = Usage(**{
                name: getattr(before, name) + getattr(usage, name)
                for name in Usage.__struct_fields__
            })  # fmt: skip


def possibly_billed(outcome: Reply | CallError | None) -> bool:
    """Whether the attempt may have been billed although no usage was reported."""
    return not isinstance(outcome, CallError) or outcome.cause in POSSIBLY_BILLED


def player_name(role: str, member: str = "") -> str:
    """The name under which a role is counted; members of a panel are counted apart."""
    return f"{role} {member}" if member else role


def usage_name(stage: str, role: str) -> str:
    """The key of a role's totals in one stage, in manifests."""
    return f"{stage}, {role}"
