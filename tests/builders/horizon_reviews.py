"""Real reviews of Amazon in the official layout, for tests that need them."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from builders.horizon import write_lines


def amazon_in(real_data: Path) -> Path:
    """The folder of the reviews; the test is skipped, and says so, without them."""
    folder = real_data / "amazon-2023"
    if not folder.is_dir():
        pytest.skip(f"no reviews in {folder}")
    return folder


def inputs_of(amazon: Path, log: str, folder: Path) -> list[str]:
    """The options of a build that name a log: All_Beauty, or multicat, which a folder will hold."""
    reviews = meta = amazon / "All_Beauty" / "raw"
    if log == "multicat":
        write_multicat(amazon, folder, untitled="A thing")
        reviews, meta = folder / "reviews", folder / "meta"
    return [f"--reviews={reviews}", f"--meta={meta}"]


def write_multicat(amazon: Path, folder: Path, *, untitled: str | None) -> None:
    """Writes the log of 24 categories in the official layout; `untitled` replaces no title."""
    reviews: dict[str, list[Any]] = defaultdict(list)
    meta: dict[str, dict[str, Any]] = defaultdict(dict)
    for file in sorted((amazon / "multicat").iterdir()):
        for row in map(json.loads, gzip.decompress(file.read_bytes()).splitlines()):
            for one in (*row["history"], row["heldout"]):
                reviews[row["category"]].append(
                    {
                        "rating": one["rating"],
                        "title": one["review_title"],
                        "text": one["review_full"],
                        "parent_asin": one["parent_asin"],
                        "user_id": row["user_id"],
                        "timestamp": one["timestamp_ms"],
                    }
                )
                meta[row["category"]][one["parent_asin"]] = {
                    "main_category": one["product"]["main_category"],
                    "title": one["product"]["title"] or untitled,
                    "parent_asin": one["parent_asin"],
                }
    for kind in ("reviews", "meta"):
        (folder / kind).mkdir()
    for name, rows in reviews.items():
        write_lines(folder / "reviews" / f"{name}.jsonl.gz", rows)
        write_lines(folder / "meta" / f"meta_{name}.jsonl.gz", list(meta[name].values()))
