"""Answers of batches taken into the run folder whose questions they answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import DataError, UsageError
from harness.calls.batch_answers import Arrived, Mailbox
from harness.calls.store import Store
from harness.contracts.model import CallError, Model
from harness.contracts.outcomes import CallFailed
from harness.pipeline.batch_requests import Asked, asked_in
from harness.pipeline.roles import RoleBinder, players_of
from harness.pipeline.settings import RunSettings
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.registry import Plugins

NAMED = 3
"""How many of the lines that cannot be taken in an error names."""

ModelOf = Callable[[Asked], Model]
"""From a question to the model that was to answer it."""


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """What came of taking answers in.

    `replies` and `final` failures, by cause, are new: the run uses them. `known` were there before.
    `failed`, by cause, are asked next time. `waiting` questions of the run have no answer yet.
    """

    replies: int
    final: dict[str, int]
    failed: dict[str, int]
    known: int
    waiting: int


def take_in(folder: RunFolder, files: Sequence[Path], plugins: Plugins) -> Intake:
    """Keep the answers in files of batches for the run in a locked folder.

    Raises DataError, and keeps nothing, where a line is none of a batch's answers or answers
    nothing that this run asked.
    """
    manifest = folder.manifest()
    asked = asked_in(folder.asked)
    if not asked:
        raise DataError(
            "this run has asked nothing in batches",
            where=str(folder.path),
            hint="`harness batch write` writes the questions of a run down",
        )
    _refuse_foreign(files, asked)
    model_of = models_of(manifest, plugins)
    store = Store.open(folder.answers)
    try:
        mailbox = Mailbox(store)
        known = _answered(mailbox, asked)
        causes: dict[str, str | None] = {}
        failed: dict[str, str] = {}
        again = set()
        for path in files:
            for _, line in _lines(path):
                key = line["custom_id"]
                found = _meaning(line, model_of(asked[key]))
                if key in known:
                    again.add(key)
                elif isinstance(found, CallError):
                    failed[key] = min(found.cause, failed.get(key, found.cause))
                else:
                    # Of several answers to one question one holds, whatever their order.
                    held = min(found, mailbox.answer(key) or found, key=_rank)
                    mailbox.put(key, held)
                    causes[key] = None if held.failure is None else held.failure.cause
    finally:
        store.close()
    return Intake(
        replies=sum(cause is None for cause in causes.values()),
        final=_counted(causes.values()),
        failed=_counted(cause for key, cause in failed.items() if key not in causes),
        known=len(again),
        waiting=len(asked) - len(known) - len(causes),
    )


def answered(folder: RunFolder) -> set[str]:
    """The keys of the questions that have an answer in the run folder."""
    if not folder.answers.exists():
        return set()
    store = Store.open(folder.answers)
    try:
        return _answered(Mailbox(store), asked_in(folder.asked))
    finally:
        store.close()


def _answered(mailbox: Mailbox, keys: Iterable[str]) -> set[str]:
    return {key for key in keys if mailbox.answer(key) is not None}


def _refuse_foreign(files: Iterable[Path], asked: Mapping[str, Asked]) -> None:
    unusable: list[str] = []
    strange: list[str] = []
    for path in files:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(
                "answers are read twice", where=str(path), found="a pipe or a device",
                expected="a file",
            )  # fmt: skip
        for number, line in _lines(path):
            problem = _problem_with(line)
            if problem is not None:
                unusable.append(f"{path}:{number}: {problem}")
            elif line["custom_id"] not in asked:
                strange.append(f"{path}:{number}: {line['custom_id']!r}")
    if unusable:
        raise DataError(
            f"{_lines_that(len(unusable), 'hold')} no answer of a batch; nothing was taken in",
            found=_some(unusable),
            expected='lines as {"custom_id": …, "response": {"status_code": …, "body": …}, '
            '"error": …}',
        )
    if strange:
        raise DataError(
            f"{_lines_that(len(strange), 'answer')} nothing that this run asked; "
            "nothing was taken in",
            found=_some(strange),
            expected="a custom_id that `harness batch write` wrote for this run",
            hint="give each run the answers to its own requests",
        )


def _lines_that(many: int, do: str) -> str:
    return f"1 line {do}s" if many == 1 else f"{many:,} lines {do}"


def _counted(causes: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(cause for cause in causes if cause is not None).items()))


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number and JSON value of every line that is not empty; None where it holds no JSON."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _decoded(line)
    except OSError as error:
        raise UsageError(
            "a file of answers cannot be read", where=str(path), found=error.strerror,
            expected="a file of JSON lines, as a batch service writes it",
        ) from error  # fmt: skip


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(line)  # takes halves of characters as well, which servers do send
    except (ValueError, RecursionError):
        return None


def _problem_with(line: Any) -> str | None:
    """Why a line is no answer of a batch; None where it is one."""
    if not isinstance(line, dict):
        return "no JSON object"
    if not isinstance(line.get("custom_id"), str):
        return "no custom_id"
    if "body" in line and "response" not in line:
        return "a request, not an answer"
    response = line.get("response")
    if isinstance(response, dict):
        is_status = isinstance(response.get("status_code"), int)
        return None if is_status and "body" in response else "no status_code and body in response"
    return None if line.get("error") else "neither a response nor an error"


def _meaning(line: dict[str, Any], model: Model) -> Arrived | CallError:
    """What a line says: a reply, a failure that asking again cannot mend, or one that it may."""
    response, error = line.get("response"), line.get("error")
    if not isinstance(response, dict):
        code = error.get("code") if isinstance(error, dict) else None
        return CallError(str(code or "batch_error"), str(error), retryable=True)
    try:
        return Arrived(reply=model.read_batch(response["status_code"], response["body"]))
    except CallError as failure:
        if failure.retryable or failure.fatal:
            return failure
        return Arrived(failure=CallFailed(failure.cause, failure.detail))


def models_of(manifest: Manifest, plugins: Plugins) -> ModelOf:
    """The models that the run's roles are bound to, as its manifest tells; found when wanted."""
    settings = msgspec.convert(
        manifest.settings, RunSettings, dec_hook=lambda kind, value: kind(value)
    )
    binder = RoleBinder(settings, plugins)
    found: dict[tuple[str, str], Model] = {}

    def model_of(asked: Asked) -> Model:
        place = (asked.task, asked.role)
        if place not in found:
            entry = manifest.tasks[asked.task]
            task = entry.task()
            benchmark = plugins.benchmark(task.benchmark)
            kept = {stage.name for stage in entry.stages}
            stages = [stage for stage in benchmark.stages if stage.name in kept]
            model = players_of(binder.bind(task, benchmark, stages))[asked.role].model
            assert model is not None, "only models' questions are written down"
            found[place] = model
        return found[place]

    return model_of


def _rank(arrived: Arrived) -> tuple[bool, bytes]:
    return arrived.reply is None, msgspec.json.encode(arrived)


def _some(lines: Sequence[str]) -> str:
    more = f"\n            … and {len(lines) - NAMED:,} more" if len(lines) > NAMED else ""
    return "\n            ".join(lines[:NAMED]) + more
