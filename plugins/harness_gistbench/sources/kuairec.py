"""KuaiRec 2.0: how long people watched videos, and the captions, tags and categories of these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness_gistbench.log_index import CODES, Engagements, Log
from harness_gistbench.sources.cells import engagements_of, texts_of
from harness_gistbench.sources.times import Clock

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset, Table
    from harness_gistbench.records import Options

_LIKED_ABOVE = 0.9
_WATCHED_FROM = 0.3
_UNKNOWN = frozenset({"UNKNOWN", "[]"})
_PARTS = (
    "caption",
    "manual_cover_text",
    "topic_tag",
    "first_level_category_name",
    "second_level_category_name",
    "third_level_category_name",
)


def open_log(dataset: Dataset, _options: Options) -> Log:
    """The log of a matrix of watch ratios."""
    watched, videos = dataset.table("interactions"), dataset.table("videos")
    return Log(
        engagements=lambda: _engagements(watched),
        texts=lambda: texts_of(videos, "video_id", *_PARTS, unknown=_UNKNOWN),
        joined=True,
        signals=("explicit_positive", "implicit_positive", "implicit_negative"),
    )


def signal_code(ratio: float) -> int:
    """The code of the signal that it is to watch this share of a video; both edges are implicit."""
    if ratio > _LIKED_ABOVE:
        return CODES["explicit_positive"]
    return CODES["implicit_positive" if ratio >= _WATCHED_FROM else "implicit_negative"]


def _engagements(table: Table) -> Iterator[Engagements]:
    clock = Clock(table=table, column="timestamp")
    for batch in table.batches("user_id", "video_id", "watch_ratio", "timestamp"):
        ratios = batch.columns["watch_ratio"]
        if min(ratios) < 0:
            place = next(place for place, ratio in enumerate(ratios) if ratio < 0)
            expected = "a share that was watched, 0 or more"
            raise table.bad(batch.first + place, "watch_ratio", ratios[place], expected)
        signals = [signal_code(ratio) for ratio in ratios]
        yield engagements_of(
            table, batch, user="user_id", thing="video_id", signals=signals, clock=clock
        )
