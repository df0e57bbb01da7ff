"""Samples packed into a page: compressed blocks, of which a reader unpacks those that are drawn.

A block holds some samples and their long texts, each text once. A text of several blocks is stored
in a block of its own, which all share.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.calls.usage import player_name
from harness.contracts.judge import Selected
from harness.contracts.outcomes import NoVerdict
from harness.contracts.records import Done, JournalLine, Judged
from harness.reporting.call_lines import describe_call, laid_out
from harness.reporting.html.markup import Html, element, joined, shown
from harness.reporting.html.samples import Journal, Sample, main_columns
from harness.scoring.finished_task import FinishedTask

LONG = 60
"""Texts from this length on are stored once."""

BLOCK = 400_000
"""The characters of a block before it is compressed: enough to compress well, quick to unpack."""

OPENING = 90
"""The characters of an answer that the list of samples shows."""

ITEM = 3_000
"""The characters of an item that are kept: prompts hold the rest of it."""

WIDTH = 88


@dataclass(frozen=True, kw_only=True)
class Packed:
    """The packed samples as elements of a page, and how many of all samples there are."""

    blocks: Html
    kept: int
    of: int


def pack(
    units: Sequence[Sequence[Sample]],
    tasks: Sequence[FinishedTask],
    journals: Sequence[Journal],
    *,
    most: int | None,
    size: int,
) -> Packed:
    """The first samples, at most so many if `most` is given, else as fit into `size` bytes."""
    total = sum(map(len, units))
    packer = _Packer(tasks, journals)
    kept = 0
    for unit in units:
        if kept + len(unit) > (total if most is None else most):
            break
        if most is None and packer.size > size:
            break
        packer.add(unit)
        kept += len(unit)
    return Packed(blocks=packer.blocks(), kept=kept, of=total)


class _Packer:
    """Collects samples into blocks."""

    def __init__(self, tasks: Sequence[FinishedTask], journals: Sequence[Journal]) -> None:
        self._tasks, self._journals = tasks, journals
        self._done: list[Html] = []
        self._packed = 0
        self._waiting: list[Sample] = []
        self._records: list[list[dict[str, Any]]] = []
        self._texts: dict[str, int] = {}
        self._length = 0
        self._seen: dict[int, int] = {}
        self._shared: dict[str, int] = {}
        self._index = _Index(tasks)

    @property
    def size(self) -> int:
        """About how many bytes the page will hold."""
        waiting = (self._length + sum(map(len, self._shared))) // 3
        return self._packed + waiting + 60 * self._index.number

    def add(self, samples: Sequence[Sample]) -> None:
        """Add the samples of a unit."""
        for sample in samples:
            lines = [self._line(*place) for place in sample.places]
            self._index.add(sample, len(self._done), len(self._waiting), _opening(lines))
            self._records.append([self._record(stage, line, sample.task) for stage, line in lines])
            self._waiting.append(sample)
        if self._length > BLOCK:
            self._end_block()

    def blocks(self) -> Html:
        """All blocks: the index first, then the shared texts."""
        self._end_block()
        shared = _block("shared", list(map(shown, self._shared)))
        return joined([_block("index", self._index.columns), shared, *self._done])

    def _line(self, journal: int, position: int) -> tuple[str, JournalLine[Any, Any]]:
        one = self._journals[journal]
        return one.stage, next(iter(one.lines([position])))

    def _end_block(self) -> None:
        if not self._waiting:
            return
        samples = [
            {"values": sample.values, "missing": causes, "records": records}
            for sample, records in zip(self._waiting, self._records, strict=True)
            for causes in [{name: shown(cause) for name, cause in sample.missing.items()}]
        ]
        block = _block(
            f"block-{len(self._done)}", {"texts": list(map(shown, self._texts)), "samples": samples}
        )
        self._done.append(block)
        self._packed += len(block)
        self._waiting, self._records, self._texts, self._length = [], [], {}, 0

    def _record(self, stage: str, line: JournalLine[Any, Any], task: int) -> dict[str, Any]:
        outcome = line.outcome
        manifest, name = self._tasks[task].manifest, self._tasks[task].task.name
        found: dict[str, Any] = {"stage": stage, "id": shown(line.id)}
        found["item"] = self._text(_cut(_json(line.item)))
        calls = []
        for call in line.calls:
            by_rule = manifest.by_rule(name, player_name(call.role, call.member))
            kept: dict[str, Any] = {"about": shown(describe_call(call, by_rule=by_rule))}
            kept["messages"] = [(one.role, self._text(one.content)) for one in call.messages]
            for part in ("reasoning", "text"):
                if getattr(call, part) is not None:
                    kept[part] = self._text(getattr(call, part))
            if call.failure is not None:
                kept["failure"] = self._text(f"{call.failure.cause}: {call.failure.detail}")
            calls.append(kept)
        found["calls"] = calls
        found["judged"] = [self._judged(one) for one in line.judged or ()]
        if isinstance(outcome, Done):
            found["value"] = self._text(_json(outcome.value))
        else:
            found["failure"] = self._text(f"{outcome.cause}: {outcome.detail}")
        return found

    def _judged(self, one: Judged) -> dict[str, Any]:
        subject = f" on “{one.subject}”" if one.subject else ""
        return {
            "about": shown(f"{one.role}, prompt {one.prompt}{subject}"),
            "verdict": self._text(_verdict(one.verdict, one.labels)),
            "votes": [
                (shown(vote.member), self._text(_verdict(vote.verdict, one.labels)))
                for vote in one.votes
            ],
        }

    def _text(self, text: str) -> str | int:
        """The text, or its place among the texts of the block, or below 0 among the shared."""
        if len(text) < LONG:
            return shown(text)
        if text in self._shared:
            return -1 - self._shared[text]
        if text in self._texts:
            return self._texts[text]
        before = self._seen.setdefault(hash(text), len(self._done))
        if before != len(self._done):
            return -1 - self._shared.setdefault(text, len(self._shared))
        self._length += len(text)
        return self._texts.setdefault(text, len(self._texts))


class _Index:
    """The columns by which samples are listed, filtered and found."""

    def __init__(self, tasks: Sequence[FinishedTask]) -> None:
        names = list(dict.fromkeys(task.task.name for task in tasks))
        labels = list(dict.fromkeys(task.label for task in tasks))
        self._of = [(labels.index(each.label), names.index(each.task.name)) for each in tasks]
        self._main = [next(iter(main_columns(task)), "") for task in tasks]
        metrics = {task.task.name: main for task, main in zip(tasks, self._main, strict=True)}
        self._failures: dict[str, int] = {}
        self._slices: dict[str, int] = {}
        self._rows: dict[str, list[Any]] = {name: [] for name in (
            "run", "task", "id", "user", "score", "failures", "slices", "block", "place", "opening"
        )}  # fmt: skip
        self._head = {
            "runs": [shown(label) for label in labels],
            "tasks": [shown(name) for name in names],
            "metrics": [shown(metrics[name]) for name in names],
        }

    @property
    def number(self) -> int:
        """How many samples there are."""
        return len(self._rows["id"])

    @property
    def columns(self) -> dict[str, Any]:
        """The index as it is packed."""
        causes = {"failure": list(self._failures), "slice": list(self._slices)}
        return {**self._head, **causes, **self._rows}

    def add(self, sample: Sample, block: int, place: int, opening: str) -> None:
        """Add a sample at a place of a block."""
        run, task = self._of[sample.task]
        slices = [f"{name}: {value}" for name, value in sample.slices.items()]
        row = (
            run, task, shown(sample.id), shown(sample.user),
            sample.values.get(self._main[sample.task]),
            [self._failures.setdefault(shown(one), len(self._failures)) for one in sample.failures],
            [self._slices.setdefault(shown(one), len(self._slices)) for one in slices],
            block, place, opening,
        )  # fmt: skip
        for column, value in zip(self._rows.values(), row, strict=True):
            column.append(value)


def _opening(lines: Sequence[tuple[str, JournalLine[Any, Any]]]) -> str:
    """The beginning of the first answer of a sample."""
    texts = (call.text for _, line in lines for call in line.calls if call.text)
    return shown(" ".join(next(texts, "")[: 2 * OPENING].split())[:OPENING])


def _verdict(verdict: Any, labels: Sequence[str]) -> str:
    if isinstance(verdict, NoVerdict):
        return f"no verdict: {verdict.cause}: {verdict.detail}"
    if isinstance(verdict, Selected):
        chosen = ", ".join(labels[place] for place in verdict.chosen if place < len(labels))
        return f"chosen: {chosen or 'none'}; of: {', '.join(labels)}; read as {verdict.rung}"
    return f"labels: {', '.join(label or 'none' for label in verdict.labels)}; " + (
        f"read as {verdict.rung}")  # fmt: skip


def _json(value: Any) -> str:
    return laid_out(msgspec.to_builtins(value), width=WIDTH)


def _cut(text: str) -> str:
    if len(text) <= ITEM:
        return text
    left = len(text) - ITEM
    return f"{text[: ITEM // 2]}\n… {left:,} characters left out …\n{text[-ITEM // 2 :]}"


def _block(name: str, value: Any) -> Html:
    """A value as JSON in a compressed block, which no text in it can end."""
    data = gzip.compress(msgspec.json.encode(value), compresslevel=6, mtime=0)
    return element("script", Html(b64encode(data).decode()), type="application/gzip", id=name)
