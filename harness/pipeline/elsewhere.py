"""Questions that an engine elsewhere answers: written to files, and its answers read from files."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import DataError, HarnessError, Interrupted, UsageError
from harness.calls.client import ANYONE, Answer, OwnAnswers
from harness.calls.store import Store
from harness.contracts.model import CallError, Model, Request
from harness.contracts.outcomes import CallFailed
from harness.runs.atomic_files import RUNS, make_folder, sync_folder
from harness.runs.request_file import RequestWriter
from harness.runs.run_folder import RunFolder

OPTION = "--write_requests"
NAMED = 3
USABLE = "an answer with status_code 200 and the body of a chat completion"

_encode = msgspec.json.Encoder().encode


class RequestsWritten(Interrupted):
    """The session ends, as all questions that can be asked now are in files."""

    exit_code = 0


class RequestFiles(RequestWriter):
    """Writes the questions of a model to new files in a folder; `written` counts them by file.

    The keys are noted in the run folder before a file gets its name, so that every answer finds its
    question.
    """

    def __init__(self, model: Model, place: Path, folder: RunFolder) -> None:
        super().__init__(self._name, option=OPTION)
        self._model, self._place, self._folder = model, place, folder
        self.path = place / f".requests.{os.getpid()}.tmp"
        self._seen: set[str] = set()
        self.written: dict[Path, int] = {}

    def write(self, model: Model, key: str, request: Request) -> bool:
        """Whether the model's questions go to files, with this one; each is written once."""
        if model is self._model and key not in self._seen:
            self._seen.add(key)
            self.add(key, model.batch_line(request))
        return model is self._model

    def finish(self) -> HarnessError | None:
        """Finish the files; why the session ends with them, if any was written."""
        self.complete()
        return RequestsWritten("the questions are in files") if self.written else None

    def _name(self, keys: Sequence[str], endpoint: str) -> None:
        make_folder(self._folder.asked.parent)
        with self._folder.asked.open("ab") as notes:
            notes.write(b"\n")  # a crash may have left the last line unfinished
            notes.writelines(_encode({"key": key}) + b"\n" for key in keys)
            notes.flush()
            os.fsync(notes.fileno())
        names = (self._place / f"requests-{number}.jsonl" for number in count(1))
        path = next(name for name in names if not name.exists())  # one may have been sent
        self.path.replace(path)
        sync_folder(self._place)
        self.written[path] = len(keys)


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


class _Response(msgspec.Struct):
    status_code: int
    body: Any


class _Answered(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


def import_answers(
    files: Sequence[Path], folder: RunFolder, model: Model, own: OwnAnswers
) -> Iterator[str]:
    """Import the answers in files of a batch engine; yields what is to be said of them.

    Raises DataError, and imports nothing, where a line is no answer of a batch or belongs to no
    question of this run, or no answer can be used.
    """
    asked = set(asked_keys(folder))
    if not asked:
        raise DataError(
            "this run has written no questions to files", where="--answers",
            hint=f"{OPTION} DIR writes them; the answers belong to the same command",
        )  # fmt: skip
    found: dict[str, Answer] = {}
    failed: dict[str, tuple[str, str]] = {}
    useful = set()
    for file, place, key, line in _answered(files, asked):
        outcome: dict[str, Any] = {"reply": None}
        try:
            outcome["reply"] = model.read_line(line)
        except CallError as error:
            if error.retryable or error.fatal:
                one = error.cause, f"{place}: {error.detail}"
                failed[key] = min(one, failed.get(key, one), key=itemgetter(0))
                continue
            outcome["failure"] = CallFailed(error.cause, error.detail)
        useful.add(file)
        if not own.has(key):
            answer = Answer(key=key, source="model", attempts=1, **outcome)
            # Of several answers to one question the same one is kept, whatever their order.
            several = answer, found.get(key, answer)
            found[key] = min(several, key=lambda one: (one.reply is None, _encode(one)))
    if not useful:
        raise DataError(
            "no answer can be used",
            where=", ".join(map(str, files)),
            found=next((place for _, place in failed.values()), "no line"),
            expected=USABLE,
            hint=f"{OPTION} DIR in place of --answers writes these questions again",
        )
    left = sum(key not in found and key not in failed and not own.has(key) for key in asked)
    for answer in found.values():
        own.keep(ANYONE, answer)
    final = Counter(one.failure.cause for one in found.values() if one.failure is not None)
    yield f"{len(found) - final.total():,} replies imported"
    yield from (f"{file}: no answer can be used" for file in files if file not in useful)
    again = [one for key, one in failed.items() if key not in found]
    passing = Counter(cause for cause, _ in again)
    for causes, what in (final, "failed permanently"), (passing, "failed, to be asked again"):
        if causes:
            counted = (f"{cause} {many:,}" for cause, many in sorted(causes.items()))
            yield f"{what}: {', '.join(counted)}"
    if again:
        yield f"the first at {again[0][1]}; expected {USABLE}"
    if left:
        yield f"not answered yet: {left:,}"


def _answered(
    files: Iterable[Path], asked: Container[str]
) -> Iterator[tuple[Path, str, str, dict[str, Any]]]:
    """Each line with its file, place and key; DataError after the last one if any is wrong."""
    wrong = []
    for file, place, text in _lines(files):
        try:
            line = json.loads(text)  # accepts halves of surrogate pairs
            answered = msgspec.convert(line, _Answered)
        except msgspec.ValidationError as error:
            wrong.append(f"{place}: {error}")
        except (ValueError, RecursionError):
            wrong.append(f"{place}: no JSON; its end may have been cut off")
        else:
            if answered.response is None and not answered.error:
                wrong.append(f"{place}: neither a response nor an error")
            elif answered.custom_id not in asked:
                wrong.append(f"{place}: no question of this run has the key {answered.custom_id!r}")
            else:
                yield file, place, answered.custom_id, line
    if wrong:
        more = [f"… and {len(wrong) - NAMED:,} more"] if wrong[NAMED:] else []
        raise DataError(
            f"lines that answer no question of this run: {len(wrong):,}; nothing was imported",
            found="\n            ".join([*wrong[:NAMED], *more]),
            expected='lines as {"custom_id": …, "response": {"status_code": …, "body": …}, '
            f'"error": …}}, with a custom_id that {OPTION} wrote for this run',
            hint="give each run the whole answers to its own requests",
        )


def _lines(files: Iterable[Path]) -> Iterator[tuple[Path, str, bytes]]:
    """Each line that is not empty, with its file and its place."""
    for file in files:
        try:
            with file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield file, f"{file}:{number}", line
        except OSError as error:
            raise UsageError(
                "a file of answers cannot be read", where=str(file), found=error.strerror,
                expected="a file of JSON lines, as a batch service writes it",
            ) from error  # fmt: skip
