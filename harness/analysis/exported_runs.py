"""What every format of an export needs: folders of runs, names of files, the records of units."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.base.hashing import stable_int
from harness.contracts.records import CallRecord, JournalLine, Score
from harness.contracts.stage import CANDIDATE
from harness.runs.journal import JournalIndex, JournalRecords
from harness.runs.manifest import Manifest, StageEntry
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.score_run import chosen_metrics

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""The categories of characters that control a terminal or change the direction of writing."""


def folders_of_runs(
    folder: Path, tasks: Sequence[FinishedTask], name: Callable[[Manifest], str]
) -> Iterator[tuple[Path, list[FinishedTask]]]:
    """A new folder for each run, with the run's tasks: its name, and the run's if that is taken."""
    for run, own in grouped((task.run, task) for task in tasks).items():
        called = name(own[0].manifest)
        into = folder / in_file_name(called)
        if into.exists():
            into = folder / in_file_name(f"{called} {run}")
        into.mkdir(parents=True)
        yield into, own


def in_file_name(name: str) -> str:
    """The name of a model or task in the form for file names, without invisible characters."""
    name = "".join("\0" if unicodedata.category(one) in HIDDEN else one for one in name)
    return re.sub(r'["<>:/|\\?*\[\]\x00-\x1f]+', "__", name).strip(".") or "unnamed"


def model_name(manifest: Manifest) -> str:
    """The name of a run's model for other programs: that of --name, or the model's own."""
    args = manifest.settings.get("model_args", {})
    if name := manifest.settings.get("name"):
        return str(name)
    return str(args.get("pretrained") or args.get("model") or manifest.model)


def score_names(task: FinishedTask) -> list[str]:
    """The columns of scores that a task's metrics use."""
    metrics = chosen_metrics(task.task, task.benchmark)
    return list(dict.fromkeys(metric.of or name for name, metric in metrics.items()))


class _Owner(msgspec.Struct, frozen=True, gc=False):
    user: str


class UnitRecords:
    """The records of a task's units, which are read from the journals unit by unit."""

    def __init__(self, task: FinishedTask) -> None:
        self._stages: list[tuple[StageEntry, Any, dict[int, range]]] = []
        for stage in task.entry.stages:
            path = task.path / task.entry.folder / stage.file
            index = JournalIndex(path, stage.key, items=stage.items)
            spans = [range(*span) for span in index.users()]
            owners: Any = JournalRecords(path, stage.key, _Owner, index=index)
            users = owners.at(span.start for span in spans)
            lines: Any = JournalRecords(path, stage.key, JournalLine[Any, Any], index=index)
            places = {stable_int(one.user): span for one, span in zip(users, spans, strict=True)}
            self._stages.append((stage, lines, places))

    def of(self, score: Score[Any]) -> list[tuple[StageEntry, JournalLine[Any, Any]]]:
        """The records of a unit: the records with its id, or all of the user if it is a user."""
        found = []
        for stage, lines, places in self._stages:
            records = lines.at(places.get(stable_int(score.user), ()))
            own = [one for one in records if one.user == score.user]
            if score.id != score.user:
                own = [one for one in own if one.id == score.id]
            found += [(stage, one) for one in sorted(own, key=lambda one: str(one.id))]
        return found


def candidates_calls(stage: StageEntry, line: JournalLine[Any, Any]) -> list[CallRecord]:
    """The calls of a record to the candidate, in whichever role it played."""
    roles = stage.components.get("roles", {})
    model = roles.get(CANDIDATE, {}).get("model")
    if not model:
        return []
    return [call for call in line.calls if roles.get(call.role, {}).get("model") == model]
