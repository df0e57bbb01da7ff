"""The histories and splits of HORIZON by whole tables, as somebody who knows the tools makes them.

python benchmarks/contenders/tables_curation.py pandas|sql LOG OUT

Both write Parquet: histories, training data and cases with titles. Neither checks its input, keeps
a manifest, continues after a kill or looks for leaks.
"""

from __future__ import annotations

import sys
from pathlib import Path

TAU = 1_577_836_800_000
TENTH, TRAINED, TESTED = 10, 100_000, 25_000


def by_pandas(log: Path, out: Path) -> None:
    """Everything by columns of data frames, without a loop over rows."""
    import hashlib

    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read(folder: str) -> pd.DataFrame:
        files = sorted((log / folder).iterdir())
        frames = [pd.read_json(one, lines=True, convert_dates=False) for one in files]
        return pd.concat(frames, keys=range(len(files)), names=["place", "row"]).reset_index()

    meta = read("meta").dropna(subset="title").drop_duplicates("parent_asin")
    titles = meta.set_index("parent_asin")["title"].str.split().str.join(" ")
    reviews = read("reviews")
    reviews = reviews[reviews["parent_asin"].isin(titles.index)]
    order = ["user_id", "timestamp", "place", "row"]
    reviews = reviews.sort_values(order, kind="stable")
    reviews = reviews.drop_duplicates(["user_id", "parent_asin", "place"])
    reviews = reviews.drop_duplicates(["user_id", "parent_asin", "timestamp"])
    reviews["title"] = reviews["parent_asin"].map(titles)
    reviews["spot"] = reviews.groupby("user_id").cumcount()
    early = reviews["timestamp"] < TAU
    users = pd.DataFrame({"all": reviews["user_id"].value_counts()}).sort_index()
    users["before"] = reviews.loc[early, "user_id"].value_counts()
    users["before"] = users["before"].fillna(0).astype(int)
    users["hash"] = [hashlib.md5(f"0:{user}".encode()).hexdigest() for user in users.index]
    users = users.sort_values("hash")
    active = users[users["all"] > users["before"]]
    held = active.head(len(active) // TENTH)
    sample = users.drop(held.index).query("before >= 2").head(TRAINED)
    tested = sample[(sample["before"] >= 3) & (sample["all"] > sample["before"])].head(TESTED)
    stop = sample["before"] - 2 * sample.index.isin(tested.index)
    ends = {
        "train": stop,
        "1a": tested["before"],
        "1b": held["before"][held["before"] >= 2],
        "1c": tested["all"],
        "1d": held["all"],
    }
    reviews.drop(columns=["row", "place"]).to_parquet(out / "histories.parquet")
    for name, end in ends.items():
        rows = reviews[reviews["user_id"].isin(end.index)]
        rows = rows[rows["spot"] < rows["user_id"].map(end).astype(int)]
        of = rows.groupby("user_id", sort=False).size()
        ends_of = pa.array([0, *of.cumsum()], pa.int32())
        table = {"user_id": pa.array(of.index)}
        for column in ("parent_asin", "timestamp", "title"):
            values = rows[column].to_numpy()
            table[column] = pa.ListArray.from_arrays(ends_of, pa.array(values))
        pq.write_table(pa.table(table), out / f"{name}.parquet")


def by_sql(log: Path, out: Path) -> None:
    """Four statements of DuckDB, and a file for each setting."""
    import duckdb

    database = duckdb.connect(config={"temp_directory": str(out / "spill")})
    run = database.execute
    named = "regexp_extract(filename, '[^/]*$')"
    run(
        f"""
        CREATE TABLE titles AS SELECT parent_asin,
            arg_min(regexp_replace(trim(title), '\\s+', ' ', 'g'), {named}) AS title
        FROM read_json('{log}/meta/*', columns={{parent_asin: 'VARCHAR', title: 'VARCHAR'}},
            filename=true) WHERE title NOT IN ('', 'None') GROUP BY parent_asin
        """
    )
    run(
        f"""
        CREATE TABLE histories AS
        SELECT user_id, list(parent_asin ORDER BY time, file) AS items,
            list(time ORDER BY time, file) AS times,
            list(title ORDER BY time, file) AS titles
        FROM (SELECT user_id, parent_asin, time, min(file) AS file FROM (
            SELECT user_id, parent_asin, {named} AS file, min("timestamp") AS time
            FROM read_json('{log}/reviews/*', filename=true, columns={{user_id: 'VARCHAR',
                parent_asin: 'VARCHAR', "timestamp": 'BIGINT'}}) GROUP BY ALL) GROUP BY ALL)
        JOIN titles USING (parent_asin) GROUP BY user_id
        """
    )
    run(
        f"""
        CREATE TABLE users AS SELECT user_id, len(times) AS every,
            len(list_filter(times, lambda time: time < {TAU})) AS before,
            md5('0:' || user_id) AS hash
        FROM histories
        """
    )
    run(
        f"""
        CREATE TABLE roles AS
        WITH held AS (SELECT *, 'held' AS role FROM users WHERE every > before ORDER BY hash
            LIMIT (SELECT count(*) // {TENTH} FROM users WHERE every > before)),
        sample AS (SELECT * FROM users ANTI JOIN held USING (user_id) WHERE before >= 2
            ORDER BY hash LIMIT {TRAINED}),
        tested AS (SELECT user_id FROM sample WHERE before >= 3 AND every > before
            ORDER BY hash LIMIT {TESTED})
        FROM held UNION ALL SELECT *, CASE WHEN user_id IN (FROM tested) THEN 'tested'
            ELSE 'trained' END FROM sample
        """
    )
    ends = {
        "train": "before - 2 * (role = 'tested')::INT FROM {} WHERE role <> 'held'",
        "1a": "before FROM {} WHERE role = 'tested'",
        "1b": "before FROM {} WHERE role = 'held' AND before >= 2",
        "1c": "every FROM {} WHERE role = 'tested'",
        "1d": "every FROM {} WHERE role = 'held'",
    }
    run(f"COPY histories TO '{out}/histories.parquet' (COMPRESSION zstd)")
    for name, end in ends.items():
        of = end.format("histories JOIN roles USING (user_id)")
        run(
            f"COPY (SELECT user_id, items[:stop] AS items, times[:stop] AS times, titles[:stop] AS "
            f"titles FROM (SELECT *, {of.replace(' FROM', ' AS stop FROM', 1)})) "
            f"TO '{out}/{name}.parquet' (COMPRESSION zstd)"
        )


def main() -> None:
    """Reads a log and writes histories, training data and cases as Parquet."""
    way, log, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    out.mkdir()
    {"pandas": by_pandas, "sql": by_sql}[way](log, out)


if __name__ == "__main__":
    main()
