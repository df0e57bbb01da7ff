"""A made-up review log of any size, and the command that builds groups from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

REVIEWS, ITEMS = "reviews.jsonl", "items.jsonl"
RATINGS_A_USER = 25
RATINGS_AN_ITEM = 40
DAYS = 5 * 365
MILLISECONDS_A_DAY = 86_400_000
BATCH = 200_000
FEW = 100_000


def write(folder: Path, *, ratings: int) -> Path:
    """Writes a log of so many ratings with its items, a few users and items with most of them."""
    import numpy as np

    rng = np.random.default_rng(7)
    users, items = ratings // RATINGS_A_USER, ratings // RATINGS_AN_ITEM
    weights = rng.lognormal(sigma=1.2, size=users)
    biases = rng.normal(4.0, 0.6, size=users)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / REVIEWS).open("w", encoding="utf-8") as file:
        for start in range(0, ratings, BATCH):
            size = min(BATCH, ratings - start)
            user = np.searchsorted(np.cumsum(weights), rng.random(size) * weights.sum())
            item = (items * rng.random(size) ** 2.5).astype(np.int64)
            stars = np.clip(np.rint(biases[user] + rng.normal(0, 1.1, size)), 1, 5)
            time = 1_500_000_000_000 + (rng.random(size) * DAYS * MILLISECONDS_A_DAY)
            rows = zip(
                user.tolist(), item.tolist(), stars.tolist(), time.astype(np.int64).tolist(),
                strict=True,
            )  # fmt: skip
            file.writelines(
                f'{{"rating": {star}, "title": "Fine", "parent_asin": "B{thing:09d}", '
                f'"user_id": "AUSER{person:023d}", "timestamp": {when}}}\n'
                for person, thing, star, when in rows
            )
    with (folder / ITEMS).open("w", encoding="utf-8") as file:
        file.writelines(
            f'{{"parent_asin": "B{thing:09d}", "title": "Thing number {thing}"}}\n'
            for thing in range(items)
        )
    return folder


def command(data: Path, out: Path, *, ratings: int) -> Sequence[str]:
    """What builds the groups of such a log, given to Python; a few ratings need looser rules."""
    loose = ["--min_history", "5", "--least_members", "2"] if ratings < FEW else []
    return [
        "-m", "harness", "data", "perrec-groups", "--reviews", f"things={data / REVIEWS}",
        "--meta", str(data / ITEMS), "--out", str(out), *loose,
    ]  # fmt: skip
