"""The price table that a user gives, and what calls cost; unknown costs are counted, never zero."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError, did_you_mean, one_of
from harness.contracts.identity import Identity
from harness.contracts.model import Usage

MILLION = 1_000_000
SECTION = "prices"
"""The table of a TOML file that holds prices."""

CURRENCY = "currency"
_CURRENCY = re.compile(r"\w{1,8}")
_EXAMPLE = f'a price for each model: [{SECTION}."openai:NAME"], input = 1.25, output = 10'


@dataclass(kw_only=True, slots=True)
class Spend:
    """The tokens of some calls; `unreported` calls reported no usage, at least for one attempt."""

    calls: int = 0
    unreported: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def add(self, usage: Usage | None) -> None:
        """Count the tokens of one attempt."""
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.cached_tokens += usage.cached_tokens
            self.completion_tokens += usage.completion_tokens


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prices of a million tokens of one model; `cached` is for cached prompt tokens."""

    input: float
    output: float
    cached: float | None = None

    @property
    def free(self) -> bool:
        """Whether all prices are 0."""
        return not (self.input or self.output or self.cached)

    def cost(self, *, prompt: int, cached: int, completion: int) -> float:
        """The cost of a number of tokens; `cached` is part of `prompt`."""
        cached = min(cached, prompt)
        at = self.input if self.cached is None else self.cached
        millionths = (prompt - cached) * self.input + cached * at + completion * self.output
        return millionths / MILLION

    def cost_of(self, usage: Usage) -> float:
        """The cost of one reply."""
        return self.cost(
            prompt=usage.prompt_tokens,
            cached=usage.cached_tokens,
            completion=usage.completion_tokens,
        )


FREE = Price(input=0.0, output=0.0)
"""The price of models that answer by rule or from a recording."""


class PriceTable(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of models, in one currency."""

    models: dict[str, Price]
    """Prices by `kind:name`, or by patterns of such names."""

    currency: str = "USD"
    """The currency's code."""

    where: str = SECTION
    """The origin of the table, for errors."""

    def of(self, name: str) -> Price | None:
        """The price under that exact name, or else under the first pattern that matches."""
        exact = self.models.get(name)
        if exact is not None:
            return exact
        matching = (price for known, price in self.models.items() if fnmatchcase(name, known))
        return next(matching, None)


def price_of(identity: Identity, prices: PriceTable | None) -> Price | None:
    """A model's price; None if it is unknown.

    Models that answer by rule cost nothing, and neither do recordings, whatever the recorded model
    costs.
    """
    if identity.recorded:
        return FREE
    price = None if prices is None else prices.of(identity.label)
    return FREE if price is None and identity.scope == "call" else price


def price_table(given: object) -> PriceTable:
    """The price table in a file, given by its path, or in a mapping."""
    if isinstance(given, PriceTable):
        return given
    if isinstance(given, str | Path):
        return read_price_file(Path(given))
    if isinstance(given, Mapping):
        return prices_from(given, where=SECTION)
    raise UsageError(
        "the prices are invalid", found=repr(given), expected="a TOML file, or a mapping by model"
    )


def read_price_file(path: Path) -> PriceTable:
    """The table under `[prices]` in a TOML file; UsageError if the file has no valid one."""
    import tomllib

    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise UsageError(
            "--prices: the file cannot be read", where=str(path), found=error.strerror
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            "--prices: the file is not valid TOML",
            where=str(path),
            found=str(error),
            expected=_EXAMPLE,
            hint="put names with a colon or a dot in quotes",
        ) from error
    for name in content:
        problem = f"--prices: unknown table {name!r}"
        one_of(name, [SECTION], problem, listed=_EXAMPLE, where=str(path))
    table = content.get(SECTION)
    if not isinstance(table, Mapping):
        raise UsageError(
            "--prices: the file has no [prices] table", where=str(path), expected=_EXAMPLE
        )
    return prices_from(table, where=str(path))


def prices_from(table: Mapping[str, Any], *, where: str) -> PriceTable:
    """The price table in a mapping of models to prices, with an optional `currency`."""
    currency = table.get(CURRENCY, "USD")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise UsageError(
            "the currency is invalid",
            where=where,
            found=repr(currency),
            expected="a code of up to 8 letters, such as USD",
        )
    models = {
        str(name): _price(str(name), value, where)
        for name, value in table.items()
        if name != CURRENCY
    }
    if not models:
        raise UsageError("the price table contains no models", where=where, expected=_EXAMPLE)
    return PriceTable(models=models, currency=currency, where=where)


def _price(name: str, value: object, where: str) -> Price:
    place = f'{where}, [{SECTION}."{name}"]'
    invalid = partial(UsageError, "the price of a model is invalid", where=place)
    if not isinstance(value, Mapping):
        hint = did_you_mean(name, [CURRENCY])
        raise invalid(found=repr(value), expected=_EXAMPLE, hint=hint)
    wanted = "input, output and optionally cached, each for a million tokens"
    for field, given in value.items():
        if field not in Price.__struct_fields__:
            hint = did_you_mean(str(field), Price.__struct_fields__)
            if isinstance(given, Mapping):
                hint = "put names with a dot in quotes"
            problem = f"unknown key {field!r} in a price"
            raise UsageError(problem, where=place, expected=wanted, hint=hint)
    try:
        price = msgspec.convert(dict(value), Price)
    except msgspec.ValidationError as error:
        raise invalid(found=str(error), expected=wanted) from error
    for field in Price.__struct_fields__:
        amount = getattr(price, field)
        if amount is not None and not 0 <= amount < math.inf:
            raise invalid(found=f"{field} = {amount}", expected="a finite number of 0 or more")
    return price


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of calls to one model.

    `paid` is the cost of `asked` calls, `saved` the original cost of `reused` replies, which came
    from the store or an identical call in flight. `paid_unknown` calls are missing from `paid`, in
    part or whole: the model is not `priced`, or the server reported no usage. `paid` is None if
    nothing is known. `saved` and `saved_unknown` likewise.
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
    """The cost of the tokens spent at a model; `price` is None if it is unknown."""
    amount, unknown = _amount(paid, price)
    saved_amount, unknown_saved = _amount(saved, price)
    return Cost(
        model=model,
        currency=currency,
        priced=price is not None,
        asked=paid.calls,
        paid=amount,
        paid_unknown=unknown,
        reused=saved.calls,
        saved=saved_amount,
        saved_unknown=unknown_saved,
    )


def costs_by_model(costs: Iterable[Cost]) -> dict[str, Cost]:
    """The total cost of each model, in order of first appearance."""
    models: dict[str, list[Cost]] = {}
    for cost in costs:
        models.setdefault(cost.model, []).append(cost)
    return {model: together(model, each) for model, each in models.items()}


def together(name: str, costs: Iterable[Cost]) -> Cost:
    """The total of several costs in one currency, under `name`."""
    costs = tuple(costs)
    asked, reused = sum(cost.asked for cost in costs), sum(cost.reused for cost in costs)
    unknown = sum(cost.paid_unknown for cost in costs)
    unknown_saved = sum(cost.saved_unknown for cost in costs)
    return Cost(
        model=name,
        currency=costs[0].currency,
        priced=all(cost.priced for cost in costs),
        asked=asked,
        paid=_known(sum(cost.paid or 0.0 for cost in costs), unknown, asked),
        paid_unknown=unknown,
        reused=reused,
        saved=_known(sum(cost.saved or 0.0 for cost in costs), unknown_saved, reused),
        saved_unknown=unknown_saved,
    )


def _amount(spend: Spend, price: Price | None) -> tuple[float | None, int]:
    """The known cost, and the number of calls whose cost is unknown."""
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
    return _known(amount, spend.unreported, spend.calls), spend.unreported


def _known(amount: float, unknown: int, calls: int) -> float | None:
    return None if calls and unknown == calls and not amount else amount
