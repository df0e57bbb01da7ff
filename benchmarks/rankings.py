"""Made-up answers to user behaviour prediction, and what reading and scoring them costs.

python benchmarks/rankings.py                  # 100,000 answers; about a minute
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from harness_behaviour.metrics import score
from harness_behaviour.parsing import RankingReader
from harness_behaviour.records import CANDIDATES, RANKED, Asked, Options, Ranking

from harness import Done, Record, Unreadable

PROMPTS = 1_000
"""How many different prompts there are."""


class Made(list[Record[Any, Any]]):
    """Records that are in memory."""

    def with_items(self, kind: type[Any]) -> Made:
        """The same records."""
        return self


def prompts() -> list[tuple[tuple[str, ...], Asked]]:
    """The candidates of each prompt, and what scores need to know of it."""
    rng = np.random.default_rng(17)
    found = []
    for number in range(PROMPTS):
        had = rng.permutation([*rng.integers(1, 7, CANDIDATES // 2), *(0,) * (CANDIDATES // 2)])
        of_all = tuple((had + rng.integers(0, 900, CANDIDATES)).tolist())
        titles = tuple(f"Movie {number * 7 % 97}-{place}, The (19{place})" for place in range(50))
        item = Asked(
            id="",
            user="",
            setting="a",
            proxy="all",
            length=5,
            probabilities=tuple((had / had.sum()).tolist()),
            users=7,
            popular=of_all,
            popular_in_group=tuple(had.tolist()),
        )
        found.append((titles, item))
    return found


def records(made: list[tuple[tuple[str, ...], Asked]], many: int) -> Iterator[Record[Any, Any]]:
    """Answers of which one in ten is short, and one in a hundred unreadable."""
    rng = np.random.default_rng(18)
    for number in range(many):
        named = RANKED if number % 10 else number // 10 % RANKED
        places = tuple(rng.permutation(CANDIDATES)[:named].tolist())
        name = f"movies/all/5/{number}"
        yield Record(
            key="",
            stage="recommend",
            user=name,
            id=name,
            item=made[number % PROMPTS][1],
            outcome=Unreadable("no_list")
            if number % 100 == 99
            else Done(Ranking(places, ("exact",) * named)),
        )


def replies(made: list[tuple[tuple[str, ...], Asked]], many: int) -> Iterator[tuple[str, Any]]:
    """Replies with their candidates: one in ten is a Python list, one in a hundred damaged."""
    rng = np.random.default_rng(19)
    for number in range(many):
        titles = made[number % PROMPTS][0]
        named = [titles[place] for place in rng.permutation(CANDIDATES)[:RANKED].tolist()]
        if number % 100 == 99:
            named[3] = named[3].replace("Movie", "Mvie")
        yield (repr(named) if number % 10 == 5 else json.dumps(named)), titles


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints what something took."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what}: {wall:.1f} s, {cpu:.1f} s of processor time")


def main() -> None:
    """Reads and scores the answers, and prints what each took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=100_000)
    many = parser.parse_args().answers
    made = prompts()
    asked = Made(records(made, many))
    given = list(replies(made, many))
    with timed(f"scoring {many:,} answers"):
        for _ in score({"recommend": asked}, Options()):  # type: ignore[dict-item]
            pass
    with timed(f"reading {many:,} answers"):
        for text, titles in given:
            RankingReader(candidates=titles, similarity=Options().similarity)(text)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
