"""What models cost: the price table that a user gives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError, did_you_mean
from harness.calls.usage import Spend
from harness.contracts.identity import Identity
from harness.contracts.model import Usage

MILLION = 1_000_000
SECTION = "prices"
"""The table of a settings file that holds prices."""

CURRENCY = "currency"
_CURRENCY = re.compile(r"\w{1,8}")
_QUOTED = f'a model with its prices: [{SECTION}."openai:NAME"], input = 1.25, output = 10'


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a million tokens of one model cost; `cached` are those of a prompt known before."""

    input: float
    output: float
    cached: float | None = None

    @property
    def free(self) -> bool:
        """Whether nothing costs anything, however many tokens there are."""
        return not (self.input or self.output or self.cached)

    def cost(self, *, prompt: int, cached: int, completion: int) -> float:
        """What so many tokens cost; `cached` ones are part of the prompt's."""
        known = min(cached, prompt)
        at = self.input if self.cached is None else self.cached
        millionths = (prompt - known) * self.input + known * at + completion * self.output
        return millionths / MILLION

    def cost_of(self, usage: Usage) -> float:
        """What one reply cost."""
        return self.cost(
            prompt=usage.prompt_tokens,
            cached=usage.cached_tokens,
            completion=usage.completion_tokens,
        )


FREE = Price(input=0.0, output=0.0)
"""What models cost that answer by rule, or from a recording: nobody is asked."""


class PriceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Prices by model, as `kind:name`, or by patterns of such names, in one currency.

    `where` tells people where the table stands.
    """

    models: dict[str, Price]
    currency: str = "USD"
    where: str = SECTION

    def of(self, name: str) -> Price | None:
        """The price under that very name, else that of the first pattern that fits."""
        exact = self.models.get(name)
        if exact is not None:
            return exact
        fitting = (price for known, price in self.models.items() if fnmatchcase(name, known))
        return next(fitting, None)


def price_of(identity: Identity, prices: PriceTable | None) -> Price | None:
    """What a model costs; None where nobody said. One that answers by rule costs nothing.

    Nor does a recording, whatever it costs to ask the model that was recorded.
    """
    if identity.recorded:
        return FREE
    price = None if prices is None else prices.of(identity.label)
    return FREE if price is None and identity.scope == "call" else price


def price_table(given: object) -> PriceTable:
    """The table that a file, named by its path, or a mapping holds."""
    if isinstance(given, PriceTable):
        return given
    if isinstance(given, str | Path):
        return read_price_file(Path(given))
    if isinstance(given, Mapping):
        return prices_from(given, where=SECTION)
    raise UsageError(
        "prices cannot be used", found=repr(given), expected="a file, or a mapping by model"
    )


def read_price_file(path: Path) -> PriceTable:
    """The table under `[prices]` in a TOML file; UsageError for what is no such table."""
    import tomllib

    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise UsageError(
            "the price table of --prices cannot be read", where=str(path), found=error.strerror
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            "the price table of --prices is no TOML",
            where=str(path),
            found=str(error),
            expected=_QUOTED,
            hint="a name with a colon or a dot stands in quotes",
        ) from error
    for name in content:
        if name != SECTION:
            raise UsageError(
                f"a price table has no {name!r}",
                where=str(path),
                expected=_QUOTED,
                hint=did_you_mean(name, [SECTION]),
            )
    table = content.get(SECTION)
    if not isinstance(table, Mapping):
        raise UsageError("the file of --prices holds none", where=str(path), expected=_QUOTED)
    return prices_from(table, where=str(path))


def prices_from(table: Mapping[str, Any], *, where: str) -> PriceTable:
    """The price table that a mapping holds: `currency`, and a mapping of prices by model."""
    currency = table.get(CURRENCY, "USD")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise UsageError(
            "the currency has no name", where=where, found=repr(currency), expected="USD, EUR, …"
        )
    models = {
        str(name): _price(str(name), value, where)
        for name, value in table.items()
        if name != CURRENCY
    }
    if not models:
        raise UsageError("the price table names no model", where=where, expected=_QUOTED)
    return PriceTable(models=models, currency=currency, where=where)


def _price(name: str, value: object, where: str) -> Price:
    place = f'{where}, [{SECTION}."{name}"]'
    if not isinstance(value, Mapping):
        raise UsageError(
            "no price of a model",
            where=place,
            found=repr(value),
            expected=_QUOTED,
            hint=did_you_mean(name, [CURRENCY]),
        )
    wanted = "input, output and perhaps cached, each for a million tokens"
    for field, given in value.items():
        if field not in Price.__struct_fields__:
            nested = isinstance(given, Mapping)
            raise UsageError(
                f"a price has no {field!r}",
                where=place,
                expected=wanted,
                hint="a name with a dot stands in quotes"
                if nested
                else did_you_mean(str(field), Price.__struct_fields__),
            )
    try:
        price = msgspec.convert(dict(value), Price)
    except msgspec.ValidationError as error:
        raise UsageError(
            "a price cannot be used", where=place, found=str(error), expected=wanted
        ) from error
    for field in Price.__struct_fields__:
        amount = getattr(price, field)
        if amount is not None and not 0 <= amount < math.inf:
            raise UsageError(
                "a price cannot be used",
                where=place,
                found=f"{field} = {amount}",
                expected="an amount of money from 0 on",
            )
    return price


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
