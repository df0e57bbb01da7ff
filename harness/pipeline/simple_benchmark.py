"""A benchmark of one stage, made from three plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.contracts.benchmark import Benchmark, Metric, NoOptions
from harness.contracts.outcomes import Failure, Parsed
from harness.contracts.records import Done, Records, Score
from harness.contracts.stage import Desk, Item, Stage
from harness.parsing import Reader

STAGE = "answer"


class Row(Item, frozen=True, kw_only=True):
    """One row of the data as an item."""

    row: dict[str, Any]


def simple(
    name: str,
    *,
    build: Callable[[dict[str, Any]], Mapping[str, Any]],
    read: Reader[Any],
    score: Callable[[dict[str, Any], Any], dict[str, float]],
    metrics: Mapping[str, Metric],
    main: tuple[str, ...] = (),
    version: int = 1,
    tries: int = 1,
    id_column: str = "id",
    user_column: str | None = None,
) -> Benchmark:
    """A benchmark that asks the candidate one question for each row of the data.

        simple("films", build=lambda row: {"film": row["title"]}, read=JsonReader(type=Answer),
               score=lambda row, answer: {"accuracy": float(answer.genre == row["genre"])},
               metrics={"accuracy": Metric(description="share of right genres")})

    `build` makes the variables of `prompts/<name>/answer.candidate.j2` from a row, `read` turns
    the reply into a value, `score` turns row and value into a number for each metric. `main` names
    the metrics that a short table shows, the main one first; a single metric needs no `main`.
    `version` has to be raised when one of these functions changes. `tries` is how often a question
    is asked until its reply can be read. `id_column` names the column of unique ids, `user_column`
    the column of users; without one every row is its own user.
    """

    def load(dataset: Any, options: Any) -> Any:
        table = dataset.table()
        return table, set(dataset.choose(str(row[id_column]) for _, row in table.rows()))

    def items(upstreams: Mapping[str, Records[Any, Any]], data: Any, options: Any) -> Iterator[Row]:
        table, chosen = data
        for _, row in table.rows():
            if (identifier := str(row[id_column])) in chosen:
                user = str(row[user_column]) if user_column else identifier
                yield Row(id=identifier, user=user, row=row)

    async def work(item: Row, desk: Desk) -> Any | Failure:
        answer = await desk.ask("candidate", STAGE, build(item.row), read=read, tries=tries)
        return answer.value if isinstance(answer, Parsed) else answer

    def scores(records: Mapping[str, Records[Any, Any]], options: Any) -> Iterator[Score[Any]]:
        for record in records[STAGE]:
            if isinstance(record.outcome, Done):
                values = score(record.item.row, record.outcome.value)
                yield Score(id=record.id, user=record.user, values=values)
            else:
                missing = dict.fromkeys(metrics, record.outcome.cause)
                yield Score(id=record.id, user=record.user, missing=missing)

    stage = Stage(
        STAGE, item=Row, value=Any, items=items, work=work, version=version, roles=("candidate",)
    )
    return Benchmark(
        name=name, version=version, stages=(stage,), load=load, score=scores, metrics=metrics,
        main=main or (tuple(metrics) if len(metrics) == 1 else ()), options=NoOptions,
    )  # fmt: skip
