"""Made-up histories in the published layout of GISTBench, as one Parquet file."""

from __future__ import annotations

from pathlib import Path
from random import Random

TOPICS = (
    "night trains", "sourdough bread", "river birds", "jazz piano", "chess openings", "hill sheep",
    "salt glazes", "sea cliffs", "star maps", "old lenses", "rag rugs", "steam engines",
)  # fmt: skip
SIGNALS = ("implicit_positive", "implicit_negative", "explicit_positive")
BATCH = 100_000
WINDOW = 100
INTERESTS_A_QUESTION = 25
NAMES_A_USER = 40
"""What the model of the benchmark names of each user, however long the history is."""


def write(path: Path, *, users: int, engagements: int) -> Path:
    """Writes a file with so many users and engagements of each, every object once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = Random(7)
    columns = ("user_id", "object_id", "object_text", "interaction_type", "interaction_time")
    kinds = (pa.int64(), pa.int64(), pa.string(), pa.string(), pa.int64())
    schema = pa.schema(list(zip(columns, kinds, strict=True)))
    with pq.ParquetWriter(path, schema) as file:
        total = users * engagements
        for start in range(0, total, BATCH):
            numbers = range(start, min(start + BATCH, total))
            rows = (
                [number // engagements for number in numbers],
                list(numbers),
                [text(number) for number in numbers],
                [SIGNALS[int(rng.random() * len(SIGNALS))] for _ in numbers],
                [number % engagements for number in numbers],
            )
            file.write(pa.table(dict(zip(columns, rows, strict=True)), schema=schema))
    return path


def calls(*, users: int, engagements: int) -> dict[str, int]:
    """How many calls each stage of GISTBench makes over such a file, one interest a window."""
    windows = users * -(-engagements // WINDOW)
    names = users * min(-(-engagements // WINDOW), NAMES_A_USER)
    return {
        "predict": windows,
        "verify": names,
        "taxonomy": -(-names // INTERESTS_A_QUESTION),
        "overlap": users,
        "specificity": names,
    }


def rounds(*, users: int, engagements: int, at_once: int) -> int:
    """How often an answer has to be waited for, stage after stage, with so many calls at once."""
    counts = calls(users=users, engagements=engagements)
    return sum(-(-count // at_once) for count in counts.values())


def text(number: int) -> str:
    """What one object is about, some 130 characters."""
    topic = TOPICS[number % len(TOPICS)]
    tags = " ".join(f"#{word}" for word in topic.split())
    return (
        f"Clip {number} about {topic}, filmed at home and told slowly by somebody who has done "
        f"little else for years {tags}"
    )
