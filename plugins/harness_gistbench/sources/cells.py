"""What the rows of a source's tables say: ids, engagements, and the parts of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness_gistbench.log_index import Engagements, Texts

if TYPE_CHECKING:
    from harness.contracts.dataset import Batch, Table
    from harness_gistbench.sources.times import Clock


def filled(table: Table, batch: Batch, column: str, *, what: str = "an id") -> list[str]:
    """The cells in a column of a batch; a blank one is an error that names its row."""
    found = batch.columns[column]
    if "" in found or any(map(str.isspace, found)):
        place = next(place for place, one in enumerate(found) if not one.strip())
        raise table.bad(batch.first + place, column, found[place], f"{what} that is not blank")
    return found


def engagements_of(
    table: Table,
    batch: Batch,
    *,
    user: str,
    thing: str,
    signals: Sequence[int | None],
    clock: Clock | None,
) -> Engagements:
    """The rows of a batch as engagements, with codes of their signals; no clock, no times."""
    import numpy as np

    times, timed = None, None
    if clock is not None:
        times, timed = clock.read(batch.columns[clock.column], first=batch.first)
    return Engagements(
        users=filled(table, batch, user),
        objects=filled(table, batch, thing),
        signals=np.array(signals, dtype=np.uint8),
        times=times,
        timed=timed,
    )


def texts_of(
    table: Table, thing: str, *parts: str, unknown: frozenset[str] = frozenset()
) -> Iterator[Texts]:
    """The objects of a table with what these columns say of them."""
    for batch in table.batches(thing, *parts):
        rows = zip(*(batch.columns[name] for name in parts), strict=True)
        texts = [described(one, unknown=unknown) for one in rows]
        yield Texts(objects=batch.columns[thing], texts=texts)


def described(parts: Iterable[str | None], *, unknown: frozenset[str] = frozenset()) -> str:
    """The parts that say something, on one line; `unknown` are marks of what a source knows not."""
    tidy = (" ".join(part.split()) for part in parts if part)
    return " | ".join(dict.fromkeys(part for part in tidy if part and part not in unknown))
