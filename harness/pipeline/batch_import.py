"""Imports the answers of batches into the folder of the run that asked the questions."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import DataError, UsageError
from harness.calls.batch_answers import BatchAnswer, BatchAnswers
from harness.calls.store import Store
from harness.contracts.model import CallError, Model
from harness.contracts.outcomes import CallFailed
from harness.pipeline.batch_requests import BatchQuestion, batch_questions
from harness.pipeline.roles import RoleBinder, players_of
from harness.pipeline.settings import RunSettings
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.registry import Plugins

NAMED = 3


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of an import of answers.

    `replies`: new replies. `final`: new failures that are final, by cause. `failed`: failures after
    which the question is asked again, by cause. `known`: lines whose question was already answered.
    `waiting`: questions of the run without an answer.
    """

    replies: int
    final: dict[str, int]
    failed: dict[str, int]
    known: int
    waiting: int


def import_answers(folder: RunFolder, files: Sequence[Path], plugins: Plugins) -> ImportResult:
    """Import the answers in files of batches into a locked run folder.

    Raises DataError, and imports nothing, where a line is no answer of a batch or belongs to no
    question of this run.
    """
    manifest = folder.manifest()
    asked = batch_questions(folder.asked)
    if not asked:
        raise DataError(
            "this run has written no questions for batches",
            where=str(folder.path),
            hint="`harness batch write` writes the questions of a run to files",
        )
    _check_lines(files, asked)
    model_of = models_of(manifest, plugins)
    with closing(Store.open(folder.answers)) as store:
        mailbox = BatchAnswers(store)
        known = _with_answer(mailbox, asked)
        causes: dict[str, str | None] = {}
        failed: dict[str, str] = {}
        again = set()
        for path in files:
            for _, line in _lines(path):
                key = line["custom_id"]
                found = _outcome(line, model_of(asked[key]))
                if key in known:
                    again.add(key)
                elif isinstance(found, CallError):
                    failed[key] = min(found.cause, failed.get(key, found.cause))
                else:
                    # Of several answers to one question the same one is kept, whatever their order.
                    several = found, mailbox.answer(key) or found
                    held = min(
                        several, key=lambda one: (one.reply is None, msgspec.json.encode(one))
                    )
                    mailbox.put(key, held)
                    causes[key] = None if held.failure is None else held.failure.cause
    return ImportResult(
        replies=sum(cause is None for cause in causes.values()),
        final=_counted(causes.values()),
        failed=_counted(cause for key, cause in failed.items() if key not in causes),
        known=len(again),
        waiting=len(asked) - len(known) - len(causes),
    )


def answered_keys(folder: RunFolder) -> set[str]:
    """The keys of the questions that have an answer in the run folder."""
    if not folder.answers.exists():
        return set()
    with closing(Store.open(folder.answers)) as store:
        return _with_answer(BatchAnswers(store), batch_questions(folder.asked))


def _with_answer(mailbox: BatchAnswers, keys: Iterable[str]) -> set[str]:
    return {key for key in keys if mailbox.answer(key) is not None}


def _check_lines(files: Iterable[Path], asked: Mapping[str, BatchQuestion]) -> None:
    unusable: list[str] = []
    strange: list[str] = []
    for path in files:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(
                "answers cannot be read from a pipe",
                where=str(path), found="a pipe or a device",
                expected="a regular file, which is read twice",
            )  # fmt: skip
        for number, line in _lines(path):
            problem = _problem_with(line)
            if problem is not None:
                unusable.append(f"{path}:{number}: {problem}")
            elif line["custom_id"] not in asked:
                strange.append(f"{path}:{number}: {line['custom_id']!r}")
    if unusable:
        raise DataError(
            f"{_lines_that(len(unusable), 'hold')} no answer of a batch; nothing was imported",
            found=_preview(unusable),
            expected='lines as {"custom_id": …, "response": {"status_code": …, "body": …}, '
            '"error": …}',
        )
    if strange:
        raise DataError(
            f"{_lines_that(len(strange), 'answer')} no question of this run; nothing was imported",
            found=_preview(strange),
            expected="a custom_id that `harness batch write` wrote for this run",
            hint="give each run the answers to its own requests",
        )


def _lines_that(many: int, do: str) -> str:
    return f"1 line {do}s" if many == 1 else f"{many:,} lines {do}"


def _counted(causes: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(cause for cause in causes if cause is not None).items()))


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The number and JSON value of every line that is not empty; None for a line without JSON."""
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
        return json.loads(line)  # accepts halves of surrogate pairs, which some servers send
    except (ValueError, RecursionError):
        return None


def _problem_with(line: Any) -> str | None:
    """Why a line is no answer of a batch; None for an answer."""
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


def _outcome(line: dict[str, Any], model: Model) -> BatchAnswer | CallError:
    """The outcome in a line: a reply, a final failure, or a CallError that may pass."""
    response, error = line.get("response"), line.get("error")
    if not isinstance(response, dict):
        code = error.get("code") if isinstance(error, dict) else None
        return CallError(str(code or "batch_error"), str(error), retryable=True)
    try:
        return BatchAnswer(reply=model.read_batch(response["status_code"], response["body"]))
    except CallError as failure:
        if failure.retryable or failure.fatal:
            return failure
        return BatchAnswer(failure=CallFailed(failure.cause, failure.detail))


def models_of(manifest: Manifest, plugins: Plugins) -> Callable[[BatchQuestion], Model]:
    """Finds the model of a question from the settings in the run's manifest, on first use."""
    settings = msgspec.convert(
        manifest.settings, RunSettings, dec_hook=lambda kind, value: kind(value)
    )
    binder = RoleBinder(settings, plugins)

    @functools.cache
    def model(task_name: str, role: str) -> Model:
        entry = manifest.tasks[task_name]
        task = entry.task()
        benchmark = plugins.benchmark(task.benchmark)
        kept = {stage.name for stage in entry.stages}
        stages = [stage for stage in benchmark.stages if stage.name in kept]
        found = players_of(binder.bind(task, benchmark, stages))[role].model
        assert found is not None, "only questions to models are written to files"
        return found

    return lambda asked: model(asked.task, asked.role)


def _preview(lines: Sequence[str]) -> str:
    more = f"\n            … and {len(lines) - NAMED:,} more" if len(lines) > NAMED else ""
    return "\n            ".join(lines[:NAMED]) + more
