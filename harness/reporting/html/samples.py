"""The samples of a report: what of them is kept, and how they are packed into the page."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from harness.base.errors import HarnessError
from harness.base.hashing import stable_int
from harness.calls.budget import player_name
from harness.contracts.judge import Selected
from harness.contracts.outcomes import NoVerdict
from harness.contracts.records import CallRecord, Judged
from harness.reporting.html.markup import Html, all_shown, element, joined
from harness.reporting.run_lines import describe_call
from harness.runs.journal import JournalIndex, JournalRecords, OutcomeTag
from harness.runs.manifest import StageEntry
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.summary import main_metrics

WORST = 0.1
"""The share of the units with a score that count as the worst."""

RULE = (
    "units with a failure in any run first, then the tenth with the worst scores, then the others "
    "by a stable hash of their id"
)


class Sample(msgspec.Struct, gc=False):
    """One unit of one task of one run; `places` are journals and positions of its records."""

    task: int
    id: str
    user: str
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    slices: dict[str, str] = {}
    failures: list[str] = []
    places: list[tuple[int, int]] = []


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line of a journal, its item and value as the JSON that they are written in."""

    class Outcome(msgspec.Struct, frozen=True, gc=False):
        """The value, or the failure."""

        type: str
        value: msgspec.Raw = msgspec.Raw()
        cause: str = ""
        detail: str = ""

    id: str
    item: msgspec.Raw
    outcome: Outcome
    calls: tuple[CallRecord, ...] = ()
    judged: tuple[Judged, ...] = ()


class _Verdict(msgspec.Struct, frozen=True, gc=False):
    role: str
    verdict: OutcomeTag
    votes: tuple[msgspec.Raw, ...] = ()


class _Bare(msgspec.Struct, frozen=True, gc=False):
    """The parts of a record by which it finds its unit, and by which verdicts are counted."""

    user: str
    id: str
    outcome: OutcomeTag
    judged: tuple[_Verdict, ...] = ()


class Journal:
    """The journal of one stage of one task of a report.

    `verdicts` counts what each role was asked, without a verdict and the votes, once it was read.
    """

    def __init__(self, task: FinishedTask, number: int, stage: StageEntry) -> None:
        self.task, self.number, self.stage = task, number, stage.name
        path = task.path / task.entry.folder / stage.file
        self.index = JournalIndex(path, stage.key, items=stage.items)
        self.verdicts: dict[str, Counter[str]] = {}

    def bare(self) -> Iterator[tuple[int, _Bare]]:
        """The position and the head of each record."""
        records: Any = JournalRecords(self.index.path, "", _Bare, index=self.index)
        self.verdicts = {}
        for position, record in enumerate(records.at(range(len(self.index)))):
            for one in record.judged:
                counts = self.verdicts.setdefault(one.role, Counter())
                counts["asked"] += 1
                counts["none"] += one.verdict.type == "no_verdict"
                counts["votes"] += len(one.votes)
            yield position, record

    def lines(self, positions: Sequence[int]) -> Iterator[Line]:
        """The whole records at these positions."""
        lines: Any = JournalRecords(self.index.path, "", Line, index=self.index)
        yield from lines.at(positions)


class Samples(NamedTuple):
    """The samples of some tasks, unit by unit in the order of the rule, and why some are missing.

    `tasks` are those whose samples there are; a sample has the number of its task in them.
    """

    tasks: list[FinishedTask]
    journals: list[Journal]
    units: list[list[Sample]]
    problems: list[str]

    def verdicts(self, task: FinishedTask, role: str) -> Counter[str]:
        """What a judge of a task was asked, how often it gave no verdict, and the votes."""
        found = (one.verdicts.get(role) for one in self.journals if one.task is task)
        return sum(filter(None, found), Counter[str]())


def read_samples(tasks: Sequence[FinishedTask]) -> Samples:
    """The samples of these tasks; a task that cannot be read costs its own samples alone."""
    read: list[FinishedTask] = []
    journals: list[Journal] = []
    problems = []
    found: dict[tuple[str, str], list[Sample]] = {}
    for task in tasks:
        number = len(read)
        try:
            own = [Journal(task, number, stage) for stage in task.entry.stages]
            samples = list(_samples(number, task, own, len(journals)))
        except (HarnessError, OSError) as error:
            problems.append(f"The samples of {task.label} on {task.task.name} are missing: {error}")
            continue
        read.append(task)
        journals += own
        for sample in samples:
            found.setdefault((task.task.name, sample.id), []).append(sample)
    return Samples(read, journals, _in_order(read, found), problems)


def _in_order(
    tasks: Sequence[FinishedTask], found: dict[tuple[str, str], list[Sample]]
) -> list[list[Sample]]:
    """The samples of each unit, units with a failure first, then the worst, then by their hash."""
    worst = {name: _worst(name, tasks, found) for name in {task.task.name for task in tasks}}

    def place(key: tuple[str, str]) -> tuple[int, float, int]:
        name, unit = key
        if any(sample.failures for sample in found[key]):
            return 0, 0.0, stable_int("report", name, unit)
        rank = worst[name].get(unit)
        return (2, 0.0, stable_int("report", name, unit)) if rank is None else (1, rank, 0)

    return [found[key] for key in sorted(found, key=place)]


def main_columns(task: FinishedTask) -> list[str]:
    """The columns of a task's scores that its main metrics are made of, the main one first."""
    metrics = task.benchmark.metrics
    named = main_metrics(task.summary.main, task.summary.metrics)
    return [(metrics[name].of or name) if name in metrics else name for name in named]


def _samples(
    number: int, task: FinishedTask, journals: Sequence[Journal], first: int
) -> Iterator[Sample]:
    """The units of a task, each with its records, and records that belong to no unit.

    `first` is the number of its first journal among those of all tasks.
    """
    units: dict[str, Sample] = {}
    users: dict[str, list[Sample]] = {}
    main = main_columns(task)
    for score in task.scores():
        lost = {f"missing: {score.missing[name]}" for name in main if name in score.missing}
        sample = Sample(
            number, score.id, score.user, score.values, score.missing, score.slices or {},
            sorted(lost), [],
        )  # fmt: skip
        units[score.id] = sample
        users.setdefault(score.user, []).append(sample)
    for place, journal in enumerate(journals, first):
        for position, record in journal.bare():
            owners = users.get(record.user, ())
            owner = units.get(record.id) or (owners[0] if len(owners) == 1 else None)
            if owner is None:
                owner = units.setdefault(
                    record.id, Sample(number, record.id, record.user, failures=[], places=[])
                )
            owner.places.append((place, position))
            if record.outcome.type != "done":
                cause = f"{journal.stage}: {record.outcome.cause}"
                if cause not in owner.failures:
                    owner.failures.append(cause)
    yield from units.values()


def _worst(
    name: str, tasks: Sequence[FinishedTask], found: dict[tuple[str, str], list[Sample]]
) -> dict[str, float]:
    first = next(task for task in tasks if task.task.name == name)
    metric = next(iter(main_columns(first)), "")
    named = main_metrics(first.summary.main, first.summary.metrics)[:1]
    higher = all(first.summary.metrics[each].higher_is_better for each in named)
    scores: dict[str, float] = {}
    for (task, unit), samples in found.items():
        values = [each.values[metric] for each in samples if metric in each.values]
        if task == name and values:
            scores[unit] = min(values) if higher else -max(values)
    ordered = sorted(scores, key=lambda unit: (scores[unit], stable_int("report", name, unit)))
    return {unit: float(rank) for rank, unit in enumerate(ordered[: int(WORST * len(ordered))])}


LONG = 60
"""Texts from this length on are stored once."""

BLOCK = 400_000
"""The characters of a block before it is compressed: enough to compress well, quick to unpack."""

OPENING = 90
"""The characters of an answer that the list of samples shows."""

ITEM = 3_000
"""The characters of an item that are kept: prompts hold the rest of it."""

LAID_OUT = 80
"""Longer JSON stands on several lines."""

BATCH = 500
"""So many samples are read at once."""

FIRST = 20
"""So many samples are read first."""

ROW = 60
"""About how many bytes a sample takes in the packed index."""

TEXTS = ("id", "user", "opening")
"""The columns of the index that hold texts of the runs."""


def pack(samples: Samples, *, most: int | None, size: int) -> tuple[Html, int]:
    """The samples of the first units as elements of a page, and how many they are.

    They are at most so many if `most` is given, but at least one unit unless it is 0; else as fit
    into `size` bytes.
    """
    packer = _Packer(samples)
    kept, units = 0, deque(samples.units)
    # The first few show how large a sample is; then as many are read at once as surely fit.
    fit, first = 0 if most == 0 else FIRST, 0
    while units:
        batch: list[Sample] = []
        while units and len(batch) < fit:
            if most and (kept or batch) and kept + len(batch) + len(units[0]) > most:
                break
            batch += units.popleft()
        if not batch:
            break
        packer.add(batch)
        kept += len(batch)
        first = first or kept
        room = (size - packer.size) * kept // packer.size
        fit = BATCH if most is not None else min(room, BATCH)
    blocks = packer.blocks()
    if most is None and kept == first and len(blocks) > size:
        return Html(""), 0
    return blocks, kept


class _Packer:
    """Collects samples into blocks."""

    def __init__(self, samples: Samples) -> None:
        self._tasks, self._journals = samples.tasks, samples.journals
        self._done: list[Html] = []
        self._packed = 0
        self._waiting: list[dict[str, Any]] = []
        self._texts: dict[str, int] = {}
        self._length = 0
        self._seen: dict[int, int] = {}
        self._shared: dict[str, int] = {}
        self._index = _Index(samples.tasks)

    @property
    def size(self) -> int:
        """About how many bytes the page will hold."""
        shared = sum(map(len, self._shared)) // 2
        return self._packed + self._length + shared + ROW * self._index.number

    def add(self, samples: Sequence[Sample]) -> None:
        """Add samples."""
        wanted = grouped(place for sample in samples for place in sample.places)
        lines = {
            (journal, position): line
            for journal, positions in wanted.items()
            for position, line in zip(
                positions, self._journals[journal].lines(positions), strict=True
            )
        }
        for sample in samples:
            own = [(self._journals[place[0]].stage, lines[place]) for place in sample.places]
            texts = (call.text for _, line in own for call in line.calls if call.text)
            opening = " ".join(next(texts, "")[: 2 * OPENING].split())[:OPENING]
            self._index.add(sample, len(self._done), len(self._waiting), opening)
            self._waiting.append({
                "values": sample.values,
                "missing": [(name, self._text(one)) for name, one in sample.missing.items()],
                "records": [self._record(stage, line, sample.task) for stage, line in own],
            })  # fmt: skip
            if self._length > BLOCK:
                self._end_block()

    def blocks(self) -> Html:
        """All blocks: the index first, then the shared texts."""
        self._end_block()
        shared = _block("shared", all_shown(list(self._shared)))
        return joined([_block("index", self._index.columns), shared, *self._done])

    def _end_block(self) -> None:
        if not self._waiting:
            return
        value = {"texts": all_shown(list(self._texts)), "samples": self._waiting}
        self._done.append(_block(f"block-{len(self._done)}", value))
        self._packed += len(self._done[-1])
        self._waiting, self._texts, self._length = [], {}, 0

    def _record(self, stage: str, line: Line, task: int) -> dict[str, Any]:
        found: dict[str, Any] = {"stage": stage, "id": self._text(line.id)}
        item = _json(line.item)
        if (left := len(item) - ITEM) > 0:
            item = f"{item[: ITEM // 2]}\n… {left:,} characters left out …\n{item[-ITEM // 2 :]}"
        found["item"] = self._text(item)
        if line.calls:
            found["calls"] = [self._call(call, task) for call in line.calls]
        if line.judged:
            found["judged"] = [self._judged(one) for one in line.judged]
        if line.outcome.type == "done":
            found["value"] = self._text(_json(line.outcome.value))
        else:
            found["failure"] = self._text(f"{line.outcome.cause}: {line.outcome.detail}")
        return found

    def _call(self, call: CallRecord, task: int) -> dict[str, Any]:
        manifest, name = self._tasks[task].manifest, self._tasks[task].task.name
        by_rule = manifest.by_rule(name, player_name(call.role, call.member))
        found: dict[str, Any] = {"about": self._text(describe_call(call, by_rule=by_rule))}
        found["messages"] = [(one.role, self._text(one.content)) for one in call.messages]
        for part, text in (("reasoning", call.reasoning), ("text", call.text)):
            if text is not None:
                found[part] = self._text(text)
        if call.failure is not None:
            found["failure"] = self._text(f"{call.failure.cause}: {call.failure.detail}")
        return found

    def _judged(self, one: Judged) -> dict[str, Any]:
        subject = f" on “{one.subject}”" if one.subject else ""
        found: dict[str, Any] = {
            "about": self._text(f"{one.role}, prompt {one.prompt}{subject}"),
            "verdict": self._text(_verdict(one.verdict, one.labels)),
        }
        if one.votes:
            votes = [(vote.member, _verdict(vote.verdict, one.labels)) for vote in one.votes]
            found["votes"] = [(self._text(member), self._text(said)) for member, said in votes]
        return found

    def _text(self, text: str) -> int:
        """The place of a text among those of the block, or, below 0, among the shared ones."""
        if text in self._texts:
            return self._texts[text]
        if len(text) >= LONG:
            if text in self._shared:
                return -1 - self._shared[text]
            if self._seen.setdefault(hash(text), len(self._done)) != len(self._done):
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
            "runs": all_shown(labels),
            "tasks": all_shown(names),
            "metrics": all_shown([metrics[name] for name in names]),
        }

    @property
    def number(self) -> int:
        """How many samples there are."""
        return len(self._rows["id"])

    @property
    def columns(self) -> dict[str, Any]:
        """The index as it is packed."""
        rows = {**self._rows, **{name: all_shown(self._rows[name]) for name in TEXTS}}
        found = {"failure": self._failures, "slice": self._slices}
        return {**self._head, **{name: all_shown(list(one)) for name, one in found.items()}, **rows}

    def add(self, sample: Sample, block: int, place: int, opening: str) -> None:
        """Add a sample at a place of a block."""
        run, task = self._of[sample.task]
        slices = [f"{name}: {value}" for name, value in sample.slices.items()]
        row = (
            run, task, sample.id, sample.user, sample.values.get(self._main[sample.task]),
            [self._failures.setdefault(one, len(self._failures)) for one in sample.failures],
            [self._slices.setdefault(one, len(self._slices)) for one in slices],
            block, place, opening,
        )  # fmt: skip
        for column, value in zip(self._rows.values(), row, strict=True):
            column.append(value)


@lru_cache(maxsize=4096)
def _verdict(verdict: Any, labels: tuple[str, ...]) -> str:
    if isinstance(verdict, NoVerdict):
        return f"no verdict: {verdict.cause}: {verdict.detail}"
    if isinstance(verdict, Selected):
        chosen = ", ".join(labels[place] for place in verdict.chosen if place < len(labels))
        return f"chosen: {chosen or 'none'}; of: {', '.join(labels)}; read as {verdict.rung}"
    said = ", ".join(label or "none" for label in verdict.labels)
    return f"labels: {said}; read as {verdict.rung}"


def _json(raw: msgspec.Raw) -> str:
    text = bytes(raw)
    if len(text) > LAID_OUT:
        text = msgspec.json.format(text, indent=1)
    return text.decode("utf-8", "replace")


def _block(name: str, value: Any) -> Html:
    """A value as JSON in a compressed block, which no text in it can end."""
    data = gzip.compress(msgspec.json.encode(value), compresslevel=6, mtime=0)
    return element("script", Html(b64encode(data).decode()), type="application/gzip", id=name)
