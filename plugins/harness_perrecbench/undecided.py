"""What each rule for undecided comparisons makes of them, where they are many."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.base.hashing import stable_int
from harness_perrecbench.ranking import as_published, by_heapsort, by_wins, ptc
from harness_perrecbench.records import Compared, Comparison, Group, Options

if TYPE_CHECKING:
    from harness import Records

MANY = 0.1
"""The share of undecided comparisons above which the rule for them matters."""

RULES = ("heapsort", "published", "all_pairs")


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
    by = {
        "heapsort": by_heapsort(members, of_two, rng),
        "published": as_published(members, of_two),
        "all_pairs": by_wins(members, of_two, rng),
    }
    ranked = {rule: done(ranking) for rule, ranking in by.items()} | {own: compared}
    return {rule: ptc(ranked[rule].ranks, truth) for rule in RULES}


def done(ranking: Coroutine[Any, Any, Compared]) -> Compared:
    """The result of a ranking that waits for nothing: all its comparisons are known."""
    try:
        ranking.send(None)
    except StopIteration as finished:
        value: Compared = finished.value
        return value
    raise RuntimeError("a ranking of known comparisons waits for something")
