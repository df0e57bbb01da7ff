"""Questions that an engine elsewhere answers: written to files, and its answers read from files."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import DataError, HarnessError, Interrupted, UsageError
from harness.calls.client import ANYONE, Answer, OwnAnswers
from harness.calls.store import Store
from harness.contracts.model import CallError, Model, Request
from harness.contracts.outcomes import CallFailed
from harness.runs.atomic_files import RUNS, make_folder, storage_error, sync_folder
from harness.runs.request_file import RequestFile
from harness.runs.run_folder import RunFolder

OPTION = "--write_requests"
NAMED = 3

_encode = msgspec.json.Encoder().encode


class RequestsWritten(Interrupted):
    """The session ends, as all questions that can be asked now are in files."""

    exit_code = 0


class RequestFiles:
    """Writes the questions of a model to new files in a folder; `written` counts them by file.

    The keys are noted in the run folder before a file gets its name, so that every answer finds its
    question.
    """

    def __init__(self, model: Model, place: Path, folder: RunFolder) -> None:
        self._model, self._place, self._folder = model, place, folder
        self._seen: set[str] = set()
        self._file: RequestFile | None = None
        self.written: dict[Path, int] = {}

    def takes(self, model: Model) -> bool:
        """Whether the model's questions go to files."""
        return model is self._model

    def write(self, model: Model, key: str, request: Request) -> None:
        """Write a question; one of the same key is written once."""
        if key in self._seen:
            return
        self._seen.add(key)
        line = model.batch_line(request)
        try:
            if self._file is None or not self._file.add(key, line):
                self._close()
                make_folder(self._place, option=OPTION)
                self._file = RequestFile(self._place / f".requests.{os.getpid()}.tmp")
                self._file.add(key, line)
        except OSError as error:
            raise storage_error(self._place, error, option=OPTION) from error

    def finish(self) -> HarnessError | None:
        """Finish the files; why the session ends with them, if any was written."""
        try:
            self._close()
        except OSError as error:
            raise storage_error(self._place, error, option=OPTION) from error
        return RequestsWritten("the questions are in files") if self.written else None

    def drop(self) -> None:
        """Remove a file that was not finished; may be called again."""
        if self._file is not None:
            self._file.drop()

    def _close(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        file.finish()
        make_folder(self._folder.asked.parent)
        with self._folder.asked.open("ab") as notes:
            notes.write(b"\n")  # a crash may have left the last line unfinished
            notes.writelines(_encode({"key": key}) + b"\n" for key in file.keys)
            notes.flush()
            os.fsync(notes.fileno())
        numbers = (number for number in range(1, 1 << 30))
        names = (self._place / f"requests-{number}.jsonl" for number in numbers)
        path = next(name for name in names if not name.exists())  # one may have been sent
        file.path.replace(path)
        sync_folder(self._place)
        self.written[path] = len(file.keys)


def asked_keys(folder: RunFolder) -> list[str]:
    """The keys of the questions that a run wrote to files; a torn line names no file."""
    found = []
    with suppress(FileNotFoundError), folder.asked.open("rb") as lines:
        for line in lines:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(msgspec.json.decode(line, type=dict[str, str])["key"])
    return found


def take_over(folder: RunFolder, own: OwnAnswers) -> None:
    """Take the answers that version 0.1 collected from batches among the run's own."""
    if not folder.answers.exists():
        return
    with closing(Store.open(folder.answers, option=RUNS)) as collected:
        for key in asked_keys(folder):
            value = collected.get(bytes.fromhex(key))
            if value is not None and not own.has(key):
                answer = {"key": key, "source": "model", "attempts": 1, "reply": None}
                own.keep(ANYONE, msgspec.convert(answer | msgspec.json.decode(value), Answer))


def import_answers(
    files: Sequence[Path], folder: RunFolder, model: Model, own: OwnAnswers
) -> Iterator[str]:
    """Import the answers in files of a batch engine; yields what is to be said of them.

    Raises DataError, and imports nothing, where a line is no answer of a batch or belongs to no
    question of this run.
    """
    asked = set(asked_keys(folder))
    _check_lines(files, asked)
    found: dict[str, Answer] = {}
    failed: dict[str, str] = {}
    for _, line in _lines(files):
        key = line["custom_id"]
        try:
            outcome: dict[str, Any] = {"reply": model.read_line(line)}
        except CallError as error:
            if error.retryable or error.fatal:
                failed[key] = min(error.cause, failed.get(key, error.cause))
                continue
            outcome = {"reply": None, "failure": CallFailed(error.cause, error.detail)}
        answer = Answer(key=key, source="model", attempts=1, **outcome)
        if not own.has(key):
            # Of several answers to one question the same one is kept, whatever their order.
            several = answer, found.get(key, answer)
            found[key] = min(several, key=lambda one: (one.reply is None, _encode(one)))
    left = sum(key not in found and not own.has(key) for key in asked)
    for answer in found.values():
        own.keep(ANYONE, answer)
    final = [one.failure.cause for one in found.values() if one.failure is not None]
    yield f"{len(found) - len(final):,} replies imported"
    again = [cause for key, cause in failed.items() if key not in found]
    for causes, what in ((final, "failed permanently"), (again, "failed, to be asked again")):
        if causes:
            counted = sorted(Counter(causes).items())
            yield f"{what}: " + ", ".join(f"{cause} {many:,}" for cause, many in counted)
    if left:
        yield f"not answered yet: {left:,}"


def _check_lines(files: Sequence[Path], asked: Collection[str]) -> None:
    if not asked:
        raise DataError(
            "this run has written no questions to files", where="--answers",
            hint=f"{OPTION} DIR writes them; the answers belong to the same command",
        )  # fmt: skip
    unusable, strange = [], []
    for place, line in _lines(files):
        try:
            found = msgspec.convert(line, _Answered)
            if found.response is None and not found.error:
                unusable.append(f"{place}: neither a response nor an error")
            elif found.custom_id not in asked:
                strange.append(f"{place}: {found.custom_id!r}")
        except msgspec.ValidationError as error:
            unusable.append(f"{place}: {error}")
    if unusable:
        raise DataError(
            f"lines that are no answers of a batch: {len(unusable):,}; nothing was imported",
            found=_preview(unusable),
            expected='lines as {"custom_id": …, "response": {"status_code": …, "body": …}, '
            '"error": …}',
        )
    if strange:
        raise DataError(
            f"answers to no question of this run: {len(strange):,}; nothing was imported",
            found=_preview(strange),
            expected=f"a custom_id that {OPTION} wrote for this run",
            hint="give each run the answers to its own requests",
        )


class _Response(msgspec.Struct):
    status_code: int
    body: Any


class _Answered(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


def _preview(lines: Sequence[str]) -> str:
    more = [f"… and {len(lines) - NAMED:,} more"] if len(lines) > NAMED else []
    return "\n            ".join([*lines[:NAMED], *more])


def _lines(files: Iterable[Path]) -> Iterator[tuple[str, Any]]:
    """The place and JSON value of every line that is not empty; None for a line without JSON."""
    for path in files:
        try:
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise OSError(errno.ESPIPE, "a pipe or a device, and it is read twice")
            with path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        value = None
                        with suppress(ValueError, RecursionError):
                            value = json.loads(line)  # accepts halves of surrogate pairs
                        yield f"{path}:{number}", value
        except OSError as error:
            raise UsageError(
                "a file of answers cannot be read", where=str(path), found=error.strerror,
                expected="a file of JSON lines, as a batch service writes it",
            ) from error  # fmt: skip
