"""The options of `harness data synthesize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The log, where its synthetic users go, and how they are built."""

    log: Annotated[
        Path, Meta(description="the log, in the plain schema: CSV, TSV, JSON, JSONL or Parquet")
    ] = msgspec.field(name="from")
    out: Annotated[Path, Meta(description="the folder that the synthetic users are written to")]
    clusters_column: Annotated[
        str | None,
        Meta(
            description="the column of the log that names the interest cluster of each object; "
            "without it clusters are made by k-means"
        ),
    ] = None
    clusters: Annotated[int, Meta(ge=2, description="how many clusters k-means makes")] = 100
    embedding: Annotated[
        str | None,
        Meta(
            description="an embedder for k-means (`harness list embedders`), or module:function of "
            "texts to rows, found in the current folder too; else TF-IDF with singular values"
        ),
    ] = None
    clusters_together: Annotated[
        int,
        Meta(ge=1, description="how many clusters the people of a cohort have all engaged with"),
    ] = 10
    least_people: Annotated[
        int, Meta(ge=2, description="a cohort with fewer people is not formed")
    ] = 10
    most_people: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(description="a cohort with more leaves the others to later cohorts"),
    ] = None
    cohorts: Annotated[
        int, Meta(ge=1, description="how many cohorts are formed at most, one synthetic user each")
    ] = 1000
    days: Annotated[
        int, Meta(ge=1, description="the window that is read, up to the latest time of the log")
    ] = 30
    time_unit: Annotated[
        Literal["auto", "seconds", "milliseconds", "microseconds"],
        Meta(description="what numbers in the log's times count; auto decides by their size"),
    ] = "auto"
    factor: Annotated[
        float, Meta(gt=0, description="synthetic lengths are lengths in the cohort times this")
    ] = 2.0
    filter: Annotated[
        str | None,
        Meta(
            description="module:function, from a row to the row to be written, or None to drop it"
        ),
    ] = None
    format: Annotated[
        Literal["csv", "parquet"], Meta(description="how the synthetic users are written")
    ] = "csv"
    seed: Annotated[int, Meta(description="another seed gives other synthetic users")] = 0

    def __post_init__(self) -> None:
        if self.most_people is not None and self.most_people < self.least_people:
            raise ValueError(
                f"at most {self.most_people} people a cohort, and at least {self.least_people}"
            )
