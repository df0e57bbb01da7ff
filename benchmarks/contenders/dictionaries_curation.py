"""The histories and splits of HORIZON in dictionaries, as a short script makes them.

python benchmarks/contenders/dictionaries_curation.py LOG OUT
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections import defaultdict
from pathlib import Path

TAU = 1_577_836_800_000
TENTH, TRAINED, TESTED = 10, 100_000, 25_000


def read_titles(folder: Path) -> dict[str, str]:
    """The title of each item."""
    titles: dict[str, str] = {}
    for file in sorted(folder.iterdir()):
        with gzip.open(file, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                if row["title"]:
                    titles.setdefault(row["parent_asin"], " ".join(row["title"].split()))
    return titles


def read_histories(folder: Path, titles: dict[str, str]) -> dict[str, list[tuple[int, str]]]:
    """The items of each user, oldest first."""
    histories: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for file in sorted(folder.iterdir()):
        earliest: dict[tuple[str, str], int] = {}
        with file.open() as lines:
            for line in lines:
                row = json.loads(line)
                pair, time = (row["user_id"], row["parent_asin"]), row["timestamp"]
                if row["parent_asin"] in titles:
                    earliest[pair] = min(earliest.get(pair, time), time)
        for (user, item), time in earliest.items():
            if (time, item) not in histories[user]:
                histories[user].append((time, item))
    for rows in histories.values():
        rows.sort(key=lambda row: row[0])
    return histories


def main() -> None:
    """Reads a log and writes histories, training data and cases as JSON."""
    log, out = Path(sys.argv[1]), Path(sys.argv[2])
    titles = read_titles(log / "meta")
    histories = read_histories(log / "reviews", titles)
    before = {user: sum(t < TAU for t, _ in rows) for user, rows in histories.items()}

    def place(user: str) -> str:
        return hashlib.md5(f"0:{user}".encode()).hexdigest()

    active = sorted((user for user, rows in histories.items() if rows[-1][0] >= TAU), key=place)
    held = active[: len(active) // TENTH]
    rest = set(histories) - set(held)
    sample = sorted((user for user in rest if before[user] >= 2), key=place)[:TRAINED]
    tested = [user for user in sample if before[user] >= 3 and before[user] < len(histories[user])][
        :TESTED
    ]
    test = set(tested)
    files = {
        "histories": histories,
        "train": {u: histories[u][: before[u] - 2 * (u in test)] for u in sample},
        "1a": {u: shown(histories[u][: before[u]], titles) for u in tested},
        "1b": {u: shown(histories[u][: before[u]], titles) for u in held if before[u] >= 2},
        "1c": {u: shown(histories[u], titles) for u in tested},
        "1d": {u: shown(histories[u], titles) for u in held},
    }
    out.mkdir()
    for name, value in files.items():
        with (out / f"{name}.json").open("w") as file:
            json.dump(value, file)


def shown(rows: list[tuple[int, str]], titles: dict[str, str]) -> list[tuple[int, str, str]]:
    """Rows with titles."""
    return [(time, item, titles[item]) for time, item in rows]


if __name__ == "__main__":
    main()
