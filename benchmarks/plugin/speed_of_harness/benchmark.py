"""One stage that sends a ready text and reads the whole reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness import (
    Benchmark,
    Done,
    Failure,
    Item,
    Metric,
    Parsed,
    Score,
    Stage,
    TextReader,
)
from speed_of_harness.clock import asking, begin_together

if TYPE_CHECKING:
    from harness import Dataset, Desk, Records

ITEMS_PER_USER = 10


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many short items to make up; none means those of the data."""

    made_up: int = 0


class Text(Item, frozen=True, kw_only=True):
    """A ready message."""

    text: str


def load(dataset: Dataset, options: Options) -> Any:
    """The table to read items from, or nothing where they are made up."""
    return None if options.made_up else dataset.table()


def items(_upstreams: Mapping[str, Records], data: Any, options: Options) -> Iterator[Text]:
    """One item a row, or as many as were asked for."""
    if data is None:
        for number in range(options.made_up):
            user = f"u{number // ITEMS_PER_USER}"
            yield Text(id=f"m{number}", user=user, text=f"message {number}")
    else:
        for _, row in data.rows():
            yield Text(id=row["id"], user=row["user"], text=row["text"])


async def work(item: Text, desk: Desk) -> str | Failure:
    """What the candidate answers to the text, as far as it comes."""
    await begin_together()
    asking()
    variables = {"text": item.text}
    answer = await desk.ask("candidate", "answer", variables, read=TextReader(), truncated="read")
    return answer.value if isinstance(answer, Parsed) else answer


def score(records: Mapping[str, Records], _options: Options) -> Iterator[Score]:
    """1 for the expected answer, 0 for any other."""
    for record in records["answer"]:
        if isinstance(record.outcome, Done):
            values = {"right": float(record.outcome.value == "ok")}
            yield Score(id=record.id, user=record.user, values=values)
        else:
            missing = {"right": record.outcome.cause}
            yield Score(id=record.id, user=record.user, missing=missing)


SPEED = Benchmark(
    name="speed",
    version=1,
    options=Options,
    load=load,
    stages=(
        Stage(
            name="answer",
            item=Text,
            value=str,
            items=items,
            work=work,
            roles=("candidate",),
            options=("made_up",),
        ),
    ),
    score=score,
    scored_by_user=("answer",),
    metrics={"right": Metric(description="Share of messages answered as expected.")},
    main=("right",),
)
