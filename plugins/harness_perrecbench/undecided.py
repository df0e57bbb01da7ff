"""What each rule for undecided comparisons makes of them, where they are many."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.base.hashing import stable_int
from harness_perrecbench.ranking import RULES, ptc
from harness_perrecbench.records import Compared, Comparison, Group, Options

if TYPE_CHECKING:
    from harness import Records

MANY = 0.1
"""The share of undecided comparisons above which the rule for them matters."""


def notes(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[str]:
    """The ptc by all three rules, if more than a tenth of the comparisons are undecided."""
    made = undecided = groups = 0
    found: dict[str, list[float]] = {rule: [] for rule in RULES}
    for group, compared in records["compare"].values() if "compare" in records else ():
        groups += 1
        made += len(compared.comparisons)
        undecided += sum(one.preferred is None for one in compared.comparisons)
        for rule, value in ptc_by_rule(group, compared, options.comparing).items():
            found[rule].append(value)
    if made and undecided / made > MANY:
        whole = len(found[options.comparing])
        means = ", ".join(f"{rule} {fmean(values):.3f}" for rule, values in found.items() if values)
        yield (
            f"{undecided / made:.0%} of the comparisons are undecided, so that ptc depends on the "
            f"rule for them (option `comparing`, here {options.comparing}); in {whole:,} of "
            f"{groups:,} groups every pair was compared"
            + (f", and ptc of these is: {means}" if means else "")
        )


def ptc_by_rule(group: Group, compared: Compared, own: str) -> dict[str, float]:
    """The ptc of a group by each rule; empty without a true order or with a pair not compared."""
    members = len(group.members)
    truth = [member.rank for member in group.members if member.rank is not None]
    known = {(one.first, one.second): one for one in compared.comparisons}
    if len(truth) < members or len(known) < members * (members - 1) // 2:
        return {}

    async def of_two(first: int, second: int) -> Comparison:
        return known[first, second]

    rng = Random(stable_int("undecided", group.id))
    ranked = {rule: done(by_rule(members, of_two, rng)) for rule, by_rule in RULES.items()}
    return {rule: ptc(one.ranks, truth) for rule, one in {**ranked, own: compared}.items()}


def done(ranking: Awaitable[Compared]) -> Compared:
    """The result of a ranking that waits for nothing: all its comparisons are known."""
    try:
        next(ranking.__await__())
    except StopIteration as finished:
        value: Compared = finished.value
        return value
    raise RuntimeError("a ranking of known comparisons waits for something")
