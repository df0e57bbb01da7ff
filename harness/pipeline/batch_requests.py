"""Writes a run's questions as files of requests in the OpenAI batch format, one for each model."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from harness.base.errors import UsageError
from harness.calls.batch_answers import DeferredToBatch
from harness.contracts.model import BatchStatus, Model
from harness.pipeline.plan import StageRun
from harness.pipeline.roles import players_of
from harness.runs.atomic_files import atomic_write, decode_file, storage_error, sync_folder
from harness.runs.run_folder import RunFolder, slug

OPTION = "--out"

_encode = msgspec.json.Encoder().encode


class BatchQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that was written to a file: the key of its call, and the role that it asks.

    `job` is the id of the last file of requests that holds it.
    """

    key: str
    task: str
    stage: str
    role: str
    job: str = ""


class RequestFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of requests to one model; `stages` counts the requests by stage.

    `same` counts questions by stage that another one asks too: they are in the file once.
    """

    path: Path
    model: str
    stages: dict[str, int]
    same: dict[str, int] = {}


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of requests, and the batch that was made of it.

    `endpoint` is the `url` of its lines, `digest` the SHA-256 of the file as it was written. An
    upload sets the service's `file_id`; a submission sets `batch_id` and `submitted_at`; the
    import of the answers sets `ended`, the batch's last status.
    """

    id: str
    path: str
    model: str
    requests: int
    endpoint: str
    digest: str
    file_id: str | None = None
    batch_id: str | None = None
    submitted_at: datetime | None = None
    ended: BatchStatus | None = None

    @property
    def under_way(self) -> bool:
        """Whether answers have yet to be collected."""
        return self.file_id is not None and self.ended is None


@dataclass(kw_only=True)
class _Sheet:
    """The requests to one model, in a temporary file until `finish`."""

    id: str
    model: str
    endpoint: str
    path: Path
    file: BinaryIO
    stages: Counter[str] = field(default_factory=Counter)
    same: Counter[str] = field(default_factory=Counter)


class BatchRequests:
    """Collects questions in temporary files; `finish` gives these their names.

    The questions are noted in the run folder first, so that every answer finds its question.
    Questions in batches that are under way are only counted.
    """

    def __init__(self, out: Path, folder: RunFolder) -> None:
        check_new_file(out)
        self._out = out
        self._folder = folder
        self._sheets: dict[Model, _Sheet] = {}
        self._seen: set[bytes] = set()
        self._notes = bytearray()
        jobs = {job.id for job in jobs_in(folder) if job.under_way}
        asked = batch_questions(folder.asked) if jobs else {}
        self._under_way = {key for key, one in asked.items() if one.job in jobs}
        self.under_way = 0

    def write(self, run: StageRun, question: DeferredToBatch) -> None:
        """Add a question of a stage; a question that was added before is only counted."""
        key = bytes.fromhex(question.key)
        if key in self._seen:
            if question.model in self._sheets:
                self._sheets[question.model].same[run.context.label] += 1
            return
        self._seen.add(key)
        if question.key in self._under_way:
            self.under_way += 1
            return
        context = run.context
        line = {"custom_id": question.key, **question.model.batch_line(question.request)}
        if question.model not in self._sheets:
            name = secrets.token_hex(6)
            path = self._out.with_name(f".{self._out.name}.{name}.tmp")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = path.open("xb")
            except OSError as error:
                raise storage_error(self._out, error, option=OPTION) from error
            label = players_of(context.bindings)[question.role].label
            self._sheets[question.model] = _Sheet(
                id=name, model=label, endpoint=str(line["url"]), path=path, file=file
            )
        sheet = self._sheets[question.model]
        asked = BatchQuestion(
            key=question.key,
            task=run.task,
            stage=context.stage.name,
            role=question.role,
            job=sheet.id,
        )
        try:
            sheet.file.write(_encode(line) + b"\n")
        except OSError as error:
            raise storage_error(self._out, error, option=OPTION) from error
        sheet.stages[context.label] += 1
        self._notes += _encode(asked) + b"\n"

    def finish(self) -> tuple[RequestFile, ...]:
        """The finished files of requests; none where there was no question."""
        if not self._sheets:
            return ()
        self._note()
        written = []
        jobs = [job for job in jobs_in(self._folder) if job.file_id]
        for sheet, path in self._named():
            check_new_file(path)
            try:
                sheet.file.flush()
                os.fsync(sheet.file.fileno())
                sheet.file.close()
                sheet.path.replace(path)
                sync_folder(path.parent)
            except OSError as error:
                raise storage_error(path, error, option=OPTION) from error
            written.append(
                RequestFile(
                    path=path, model=sheet.model, stages=dict(sheet.stages), same=dict(sheet.same)
                )
            )
            jobs.append(
                Job(
                    id=sheet.id,
                    path=str(path.absolute()),
                    model=sheet.model,
                    requests=sheet.stages.total(),
                    endpoint=sheet.endpoint,
                    digest=digest_of(path),
                )
            )
        # The new files hold the questions of earlier files that were not submitted.
        keep_jobs(self._folder, jobs)
        return tuple(written)

    def drop(self) -> None:
        """Remove the temporary files that are left; may be called repeatedly."""
        for sheet in self._sheets.values():
            sheet.file.close()
            with suppress(OSError):
                sheet.path.unlink(missing_ok=True)

    def _note(self) -> None:
        path = self._folder.asked
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(b"\n" + self._notes)  # a crash may have left the last line unfinished
                file.flush()
                os.fsync(file.fileno())
            sync_folder(path.parent)
        except OSError as error:
            raise storage_error(path, error) from error

    def _named(self) -> Iterator[tuple[_Sheet, Path]]:
        """Each sheet with its file: a batch is sent to one model, so each model has a file."""
        sheets = list(self._sheets.values())
        taken: set[Path] = set()
        for sheet in sheets:
            stem = f"{self._out.stem}.{slug(sheet.model)}"
            path = self._out if len(sheets) == 1 else self._out.with_stem(stem)
            number = 2
            while path in taken:
                path = self._out.with_stem(f"{stem}-{number}")
                number += 1
            taken.add(path)
            yield sheet, path


def check_new_file(out: Path) -> None:
    """Raise UsageError where requests would overwrite a file: it may have been submitted."""
    if out.exists():
        raise UsageError(
            "the file of requests exists already, and is not overwritten",
            where=str(out),
            found="a file" if out.is_file() else "a folder",
            expected=f"{OPTION} FILE with the name of a new file",
        )


def batch_questions(path: Path) -> dict[str, BatchQuestion]:
    """Every question that was written to a file for a run, by key.

    Torn lines are skipped: their session ended before it named its files of requests.
    """
    decode = msgspec.json.Decoder(BatchQuestion).decode
    found = {}
    with suppress(FileNotFoundError), path.open("rb") as lines:
        for line in lines:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                asked = decode(line)
                found[asked.key] = asked
    return found


def jobs_in(folder: RunFolder) -> list[Job]:
    """The request files of a run's last session, and all files that were submitted before."""
    try:
        data = folder.jobs.read_bytes()
    except FileNotFoundError:
        return []
    return decode_file(
        data, list[Job], folder.jobs, what="list of batches", version=1,
        hint="download the answers yourself, then `harness batch read RUN FILE…`",
    )  # fmt: skip


def keep_jobs(folder: RunFolder, jobs: Sequence[Job]) -> None:
    """Replace the noted request files and batches of a run."""
    atomic_write(folder.jobs, msgspec.json.format(_encode(jobs)) + b"\n")


def forget_unsubmitted(folder: RunFolder) -> None:
    """Forget the request files that were not submitted, before a session asks their questions."""
    jobs = jobs_in(folder)
    submitted = [job for job in jobs if job.file_id]
    if len(submitted) < len(jobs):
        keep_jobs(folder, submitted)


def digest_of(path: Path) -> str:
    """The SHA-256 of a request file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
