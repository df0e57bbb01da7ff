"""The answers in the records of items that are worked again, for the workers that do this."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.contracts.model import Reply
from harness.contracts.records import CallRecord
from harness.parsing import split_reasoning
from harness.pipeline.item_queue import BROKEN
from harness.runs.journal_index import OutcomeHead, scan
from harness.runs.journal_parts import JournalFiles


class _Calls(msgspec.Struct, frozen=True):
    """The part of a journal's line with the calls."""

    calls: tuple[CallRecord, ...] = ()


class EarlierAnswers:
    """The replies in the records of items that broke or lack an answer, read on first use."""

    def __init__(self, journal: Path, stage_key: str) -> None:
        self._journal = journal
        self._stage_key = stage_key
        self._places: dict[str, tuple[int, int]] | None = None

    def of(self, checksum: str) -> dict[str, Reply]:
        """The replies in the record with this checksum, by the keys of their calls."""
        if self._places is None:
            self._places = {
                head.crc32: (place, length)
                for place, length, head in scan(self._journal, OutcomeHead)
                if head.stage == self._stage_key
                and ((head.outcome and head.outcome.type == BROKEN) or head.unanswered)
            }
        if checksum not in self._places:
            return {}
        with JournalFiles(self._journal) as files:
            line = files.read(*self._places[checksum])
        return replies_in(msgspec.json.decode(line, type=_Calls).calls)


def replies_in(calls: Iterable[CallRecord]) -> dict[str, Reply]:
    """The replies of calls by key, of those that are read and recorded again as they were.

    What is lost is the server's id, and where the reasoning stood, within the text or apart.
    """
    found: dict[str, Reply] = {}
    for call in calls:
        text, finish = call.text, call.finish
        # The text of a refusal is quoted with the reasoning in it.
        mixed = finish == "refused" and call.reasoning is not None
        if text is None or finish is None or mixed or split_reasoning(text) != (text, None):
            continue
        found[call.key] = Reply(
            text=text,
            finish=finish,
            reasoning=call.reasoning,
            usage=call.usage,
            logprobs=call.logprobs,
        )
    return found
