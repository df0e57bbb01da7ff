"""The data tool that describes built prompts, and checks whether proxies help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import Meta

from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.base.seeded_random import shuffled
from harness.contracts.report import Report, Sheet
from harness_behaviour import data
from harness_behaviour.building.prompt_files import RECORD
from harness_behaviour.building.tool import digests, notes, opened, table1
from harness_behaviour.records import AtLeastOne, Recipe

if TYPE_CHECKING:
    from harness_behaviour.building.draws import Had
    from harness_behaviour.building.log import Group, Log
    from harness_behaviour.building.prompt_files import Record


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of built prompts, and the log that they came from."""

    data: Annotated[Path, Meta(description="the folder of built prompts")]
    source: Annotated[
        Path | None,
        Meta(description="the folder of the log, for the check of proxies; left out without it"),
    ] = msgspec.field(name="from", default=None)
    random_sets: Annotated[
        AtLeastOne, Meta(description="random sets of users that a proxy's groups are held against")
    ] = 100


def run(settings: Settings) -> Report:
    """Table 1 of built prompts, and with their log the entropy of groups and random users."""
    record, _ = data.built_prompts(
        opened("movies", settings.data, option="--data")  # the files of both domains are alike
    )
    recipe = msgspec.convert(record.options, Recipe)
    sheets = [table1(record)]
    if settings.source is not None:
        dataset = opened(recipe.domain, settings.source, option="--from")
        log = data.read_log(dataset, recipe)
        check_log(record, digests(dataset, recipe.domain), where=str(settings.source))
        sheets.append(check_of_proxies(log, draws=settings.random_sets, seed=recipe.seed))
    return Report(sheets=tuple(sheets), notes=notes(record))


def check_log(record: Record, found: Mapping[str, str], *, where: str) -> None:
    """Raise UsageError if the prompts came from other files than those with these digests."""
    other = sorted(name for name in found if found[name] != record.files.get(name))
    if other:
        raise UsageError(
            "the prompts were not built from this log",
            where=f"--from {where}",
            found=f"other content in {', '.join(other)}",
            expected=f"the files whose digests stand in {RECORD}",
        )


def check_of_proxies(log: Log, *, draws: int, seed: int) -> Sheet:
    """The mean entropy of each proxy's groups, and how it differs from random users' (3.2).

    The users of a proxy are cut at random into sets of its groups' sizes, many times. The interval
    has 95% of the differences from one such cut.
    """
    rows = []
    for proxy, groups in log.groups.items():
        if len(groups) == 1:
            continue
        own = mean_entropy(log.had, [one.users for one in groups])
        users = [user for one in groups for user in one.users]
        rng = Random(stable_int("behaviour proxies", seed, log.domain, proxy))
        differences = [
            own - mean_entropy(log.had, cut(shuffled(rng, users), groups)) for _ in range(draws)
        ]
        low, high = np.quantile(differences, (0.025, 0.975)).tolist()
        rows.append((proxy, len(groups), own, float(np.mean(differences)), low, high))
    return Sheet(
        title=f"Entropy of the behaviour of groups, {log.domain}",
        columns=("proxy", "groups", "mean entropy", "less random users'", "from", "to"),
        rows=tuple(rows),
        digits=3,
        notes=(
            "below 0: a group is easier to predict than as many random users of the same proxy",
            f"from, to: 95% of {draws:,} random cuts into sets of the same sizes",
        ),
    )


def cut(users: Sequence[int], groups: Sequence[Group]) -> list[list[int]]:
    """Users in the order given, cut into sets as large as the groups."""
    left = iter(users)
    return [[*islice(left, len(one.users))] for one in groups]


def mean_entropy(had: Had, sets: Sequence[Sequence[int]]) -> float:
    """The mean over sets of users of the entropy of what they have."""
    return float(np.mean([entropy(had, one) for one in sets]))


def entropy(had: Had, users: Sequence[int]) -> float:
    """The entropy of the items that users have, each weighted by how many of them have it."""
    counts = np.bincount(np.concatenate([had.of(user) for user in users]))
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
