"""Made-up logs of activities in the layouts of MovieLens 1M and Yelp, and what UserSumBench costs.

    python benchmarks/activities.py                # all: about 2 GB in a temporary folder

Each log is loaded by a process of its own, for all methods of a dataset of UserSumBench together.
The part `loop` asks for the summaries by segments of users of the first log, with a free model in
the same process, and scores that run again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import HERE, run_measured

MOVIELENS_RATINGS, YELP_REVIEWS = 1_000_209, 2_000_000
BATCH = 100_000
LOOPS = 4_167
"""Users of whom 12 questions each are 50,004 predictions."""
YEAR = 365 * 86_400
GENRES = tuple(f"Genre {number}" for number in range(18))
KINDS = tuple(f"Kind of Place {number}" for number in range(1_300))
TEXT = "We came for lunch and stayed for dinner. " * 14


def rows(
    *, many: int, users: int, things: int, least: int, spread: float
) -> Iterator[tuple[int, int, int]]:
    """User, thing and time of activities, `least` a user and the others as activity is spread."""
    import numpy as np

    rng = np.random.default_rng(16)
    weights = rng.lognormal(sigma=spread, size=users)
    of_users = np.concatenate(
        (
            np.repeat(np.arange(users), least),
            rng.choice(users, size=many - least * users, p=weights / weights.sum()),
        )
    )
    joined = rng.random(users) * YEAR
    for start in range(0, many, BATCH):
        part = of_users[start : start + BATCH]
        thing = (things * rng.random(len(part)) ** 2.5).astype(np.int64)
        time = 978_307_200 + joined[part] + rng.random(len(part)) * YEAR
        yield from zip(part.tolist(), thing.tolist(), time.astype(np.int64).tolist(), strict=True)


def write_movielens(folder: Path) -> None:
    """Writes 6,040 users' ratings of 3,883 movies, at least 20 each."""
    with (folder / "movies.dat").open("w", encoding="iso-8859-1") as file:
        file.writelines(
            f"{number}::Movie number {number} ({1950 + number % 50})::"
            f"{'|'.join(dict.fromkeys((GENRES[number % 18], GENRES[number % 7])))}\n"
            for number in range(3_883)
        )
    every = rows(many=MOVIELENS_RATINGS, users=6_040, things=3_883, least=20, spread=1.1)
    with (folder / "ratings.dat").open("w", encoding="iso-8859-1") as file:
        file.writelines(f"{user}::{thing}::4::{time}\n" for user, thing, time in every)


def write_yelp(folder: Path) -> None:
    """Writes 560,000 users' reviews of 150,000 businesses, at least one each."""
    from datetime import UTC, datetime

    with (folder / "yelp_academic_dataset_business.json").open("w", encoding="utf-8") as file:
        file.writelines(
            f'{{"business_id":"b{number:021}","name":"Place number {number}","stars":4.0,'
            f'"categories":"{KINDS[number % 1_300]}, {KINDS[number % 97]}, Restaurants"}}\n'
            for number in range(150_000)
        )
    every = rows(many=YELP_REVIEWS, users=560_000, things=150_000, least=1, spread=2.0)
    with (folder / "yelp_academic_dataset_review.json").open("w", encoding="utf-8") as file:
        file.writelines(
            f'{{"review_id":"r{place:021}","user_id":"u{user:021}","business_id":"b{thing:021}",'
            f'"stars":4.0,"useful":0,"funny":0,"cool":0,"text":"{TEXT}",'
            f'"date":"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}"}}\n'
            for place, (user, thing, time) in enumerate(every)
        )


def load(source: str, scratch: Path) -> None:
    """Loads a log, and prints what that took."""
    folder = scratch / source
    folder.mkdir()
    LOGS[source](folder)
    measured(source, "harness_usersum_data.py", source, str(folder), scratch=scratch)


def loop(scratch: Path) -> None:
    """Runs the loop for users of a log and scores the run again, and prints what each took."""
    folder = scratch / "movielens"
    folder.mkdir()
    write_movielens(folder)
    script = "harness_usersum_loop.py"
    measured(f"loop, {LOOPS:,} users", script, str(folder), str(LOOPS), scratch=scratch)
    measured("scores of that run", script, str(folder), scratch=scratch)


def measured(name: str, script: str, *arguments: str, scratch: Path) -> None:
    """Prints what a contender took, and its own last line."""
    log = scratch / "output"
    command = [sys.executable, str(HERE / "contenders" / script), *arguments]
    cost = run_measured(command, log=log, environment={"PYTHONPATH": str(HERE / "plugin")})
    last = log.read_text("utf-8").strip().rpartition("\n")[2]
    print(
        f"{name}: {cost.wall:.1f} s, {cost.cpu:.1f} s of processor time, "
        f"{cost.memory:,.0f} MiB; {last}"
    )


LOGS: dict[str, Callable[[Path], None]] = {"movielens": write_movielens, "yelp": write_yelp}
LOOP = "loop"


def main() -> None:
    """Measures each part, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=[*LOGS, LOOP], default=[*LOGS, LOOP])
    for part in parser.parse_args().only:
        with tempfile.TemporaryDirectory(prefix="harness-bench-") as scratch:
            if part == LOOP:
                loop(Path(scratch))
            else:
                load(part, Path(scratch))


if __name__ == "__main__":
    main()
