"""Made-up reviews in the layout of Amazon Reviews 2023, and what curating them costs.

    python benchmarks/curation.py                    # 5 million rows, three rounds
    python benchmarks/curation.py --rows 50_000_000 --rounds 1
    python benchmarks/curation.py --compare          # 2 million rows beside three plain scripts

Each build is a process of its own in a temporary folder; its peak of memory is the system's.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from measure import HERE, Cost, run_measured

ROWS, COMPARED_ROWS = 5_000_000, 2_000_000
ROWS_A_USER, ROWS_AN_ITEM = 9, 14
CATEGORIES = ("Books", "Electronics", "Games", "Home", "Pets", "Toys")
FIRST, LAST = 1_325_376_000_000, 1_690_000_000_000
TITLE = "A made-up thing for the house, with a title as long as those of shops, size"


def write_log(folder: Path, rows: int, form: str) -> None:
    """Writes reviews as CSV or as JSON lines, and metadata as packed JSON lines."""
    import duckdb

    for kind in ("reviews", "meta"):
        (folder / kind).mkdir(parents=True)
    users, items = rows // ROWS_A_USER, rows // ROWS_AN_ITEM // len(CATEGORIES)
    written = "HEADER" if form == "csv" else "FORMAT json"
    for place, name in enumerate(CATEGORIES):
        # Few users and items have most of the rows, as in the log of a shop.
        duckdb.execute(
            f"""
            COPY (
                SELECT 'A' || upper(substr(md5(floor({users} * power(r0, 2))::VARCHAR), 1, 27))
                        AS user_id,
                    '{place}' || lpad(floor({items} * power(r1, 3))::BIGINT::VARCHAR, 9, '0')
                        AS parent_asin,
                    5.0 AS rating, ({FIRST} + r2 * {LAST - FIRST})::BIGINT AS timestamp
                FROM (
                    SELECT hash(i || 'user') / 18446744073709551616.0 AS r0,
                        hash(i || 'item') / 18446744073709551616.0 AS r1,
                        hash(i || 'time') / 18446744073709551616.0 AS r2
                    FROM range({place}, {rows}, {len(CATEGORIES)}) AS numbers(i)
                )
            ) TO '{folder}/reviews/{name}.{form}' ({written})
            """
        )
        duckdb.execute(
            f"""
            COPY (
                SELECT '{name}' AS main_category, '{TITLE} ' || i AS title,
                    '{place}' || lpad(i::VARCHAR, 9, '0') AS parent_asin
                FROM range({items}) AS numbers(i)
            ) TO '{folder}/meta/meta_{name}.jsonl.gz' (FORMAT json, COMPRESSION gzip)
            """
        )


def curate(folder: Path, memory: str) -> Cost:
    """What a build of a log costs."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "harness", "data", "horizon", "--memory", memory]
    for name in ("reviews", "meta", "out"):
        command += [f"--{name}", str(folder / name)]
    return run_measured(command, log=folder / "log")


def compare(folder: Path, memory: str) -> None:
    """Prints what a build costs beside scripts by dictionaries, by data frames and by SQL."""
    costs = {"harness": curate(folder, memory)}
    scripts = {"dictionaries": (), "tables": ("pandas", "sql")}
    for name, ways in scripts.items():
        script = str(HERE / "contenders" / f"{name}_curation.py")
        for way in ways or ("",):
            given = [one for one in (way, str(folder), str(folder / (way or name))) if one]
            costs[way or name] = run_measured([sys.executable, script, *given], log=folder / "log")
    for name, cost in costs.items():
        times, cpu = cost.wall / costs["harness"].wall, cost.cpu / costs["harness"].cpu
        print(
            f"{name}: {cost.wall:.1f} s, {times:.1f} times; {cost.cpu:.1f} s of processor time, "
            f"{cpu:.1f} times; {cost.memory:,.0f} MiB",
            flush=True,
        )


def main() -> None:
    """Writes a log, curates it, and prints what that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[ROWS])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="8GB")
    parser.add_argument("--compare", action="store_true")
    chosen = parser.parse_args()
    for rows in [COMPARED_ROWS] if chosen.compare else chosen.rows:
        with tempfile.TemporaryDirectory(prefix="harness-bench-") as scratch:
            folder = Path(scratch) / "log"
            write_log(folder, rows, "jsonl" if chosen.compare else "csv")
            if chosen.compare:
                compare(folder, chosen.memory)
                continue
            costs = [curate(folder, chosen.memory) for _ in range(chosen.rounds)]
            wall = statistics.median(cost.wall for cost in costs)
            size = sum(file.stat().st_size for file in (folder / "out").rglob("*"))
            print(
                f"{rows:,} rows: {wall:.1f} s, {wall / rows * 1e6:.2f} µs a row, "
                f"{statistics.median(cost.cpu for cost in costs):.1f} s of processor time, "
                f"{max(cost.memory for cost in costs):,.0f} MiB at most, {size / 1e6:,.0f} MB left",
                flush=True,
            )


if __name__ == "__main__":
    main()
