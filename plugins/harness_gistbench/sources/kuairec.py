"""KuaiRec 2.0: how long people watched videos, and the captions, tags and categories of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_gistbench.log_index import CODES, Log
from harness_gistbench.sources.cells import described
from harness_gistbench.sources.rules import Rule, check, not_blank
from harness_gistbench.sources.times import with_times

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table
    from harness_gistbench.records import Options

_LIKED_ABOVE = 0.9
_WATCHED_FROM = 0.3
_UNKNOWN = ("UNKNOWN", "[]")
_PARTS = (
    "[caption, manual_cover_text, topic_tag, first_level_category_name, "
    "second_level_category_name, third_level_category_name]"
)


def open_log(database: Database, tables: Mapping[str, Table], _: Options) -> Log:
    """The log of a matrix of watch ratios; both edges of the middle ones are implicit."""
    watched = tables["interactions"]
    timed = with_times(database, "interactions", watched, "timestamp")
    negative = Rule("watch_ratio < 0", "watch_ratio", "a share that was watched, 0 or more")
    check(database, "interactions", watched, negative, not_blank("user_id"), not_blank("video_id"))
    rows = (
        "SELECT row, user_id AS user, video_id AS object, moment AS time, NULL AS text, CASE "
        f"WHEN watch_ratio > {_LIKED_ABOVE} THEN {CODES['explicit_positive']} "
        f"WHEN watch_ratio >= {_WATCHED_FROM} THEN {CODES['implicit_positive']} "
        f"ELSE {CODES['implicit_negative']} END AS signal FROM ({timed})"
    )
    return Log(
        engagements=rows,
        texts=described("videos", "video_id", _PARTS, unknown=_UNKNOWN),
        joined=True,
        signals=("explicit_positive", "implicit_positive", "implicit_negative"),
    )
