"""Submits a run's request files to batch services, follows the batches and collects the answers.

Each step of a service is noted in the run folder before the next one, so that a session that was
killed can be resumed, and nothing is submitted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from harness.base import clock
from harness.base.errors import DataError, UsageError
from harness.contracts.model import Batches, BatchStatus
from harness.pipeline.batch_import import ImportResult, answered_keys, import_answers, models_of
from harness.pipeline.batch_requests import Job, batch_questions, digest_of, jobs_in, keep_jobs
from harness.runs.atomic_files import atomic_writer
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.registry import Plugins

WRITE_AGAIN = "`harness batch write` writes the questions without an answer to a new file"


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A file of requests with its batch's status; "written" or "uploaded" before there is one."""

    job: Job
    status: BatchStatus


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The result of collecting: batches that ended now, batches still at work, answers imported.

    `intake` is None where no batch ended.
    """

    ended: tuple[JobStatus, ...]
    unfinished: tuple[JobStatus, ...]
    intake: ImportResult | None


class BatchJobs:
    """The jobs of a run folder, which is to be locked for all but `statuses`.

    `for job in BatchJobs(folder, plugins).submit(): print(job.batch_id)`
    """

    def __init__(self, folder: RunFolder, plugins: Plugins) -> None:
        self._folder = folder
        self._plugins = plugins
        self._jobs = {job.id: job for job in jobs_in(folder)}
        if not self._jobs:
            hint = "`harness batch write` writes the questions of a run to files"
            raise DataError("this run has written no requests", where=str(folder.path), hint=hint)
        self._asked = batch_questions(folder.asked)
        self._model_of = models_of(folder.manifest(), plugins)
        self._services: dict[str, Batches] = {}

    def submit(self) -> Iterator[Job]:
        """Submit every request file that was not submitted before; yields each one afterwards.

        Raises UsageError or DataError before any upload where a file is missing, holds questions
        that were answered, or belongs to a model without a batch service.
        """
        waiting = [job for job in self._jobs.values() if self._is_to_submit(job)]
        services = [self._service(job) for job in waiting]
        for one, service in zip(waiting, services, strict=True):
            job, batch_id = one, None
            if job.file_id is None:
                job = self._keep(replace(job, file_id=service.upload(Path(job.path))))
            else:
                batch_id = service.find(job.file_id)
            assert job.file_id is not None, "uploaded now or before"
            batch_id = batch_id or service.create(job.file_id, job.endpoint)
            now = clock.utc().replace(microsecond=0)
            yield self._keep(replace(job, batch_id=batch_id, submitted_at=now))

    def statuses(self) -> Iterator[JobStatus]:
        """Every job with its status; only batches that have not ended are looked up."""
        for job in self._jobs.values():
            if job.ended is not None:
                status = job.ended
            elif job.batch_id is not None:
                status = self._service(job).status(job.batch_id)
            else:
                state = "written" if job.file_id is None else "uploaded"
                status = BatchStatus(state=state, ended=False, total=job.requests)
            yield JobStatus(job=job, status=status)

    def collect(self) -> Collected:
        """Import the answers of all batches that ended since; each batch is downloaded once."""
        current = [each for each in self.statuses() if each.job.ended is None]
        ended = [each for each in current if each.status.ended]
        files = []
        for job in (each.job for each in ended):
            path = self._folder.batch_answers(job.id)
            files.append(path)
            if not path.exists():
                assert job.batch_id is not None, "only a batch ends"
                with atomic_writer(path) as file:
                    file.writelines(self._service(job).answers(job.batch_id))
        intake = import_answers(self._folder, files, self._plugins) if files else None
        for each in ended:
            self._keep(replace(each.job, ended=each.status))
        return Collected(
            ended=tuple(ended),
            unfinished=tuple(each for each in current if not each.status.ended),
            intake=intake,
        )

    def _keep(self, job: Job) -> Job:
        self._jobs[job.id] = job
        keep_jobs(self._folder, list(self._jobs.values()))
        return job

    def _service(self, job: Job) -> Batches:
        if job.id not in self._services:
            asked = next(one for one in self._asked.values() if one.job == job.id)
            service = self._model_of(asked).batches()
            if service is None:
                hint = f"send {job.path} yourself, then `harness batch read RUN FILE…`"
                raise UsageError("this model has no batch service", where=job.model, hint=hint)
            self._services[job.id] = service
        return self._services[job.id]

    def _is_to_submit(self, job: Job) -> bool:
        """Whether a file has to be submitted; UsageError or DataError where it cannot be."""
        if job.file_id is not None:
            return job.batch_id is None
        keys = {key for key, one in self._asked.items() if one.job == job.id}
        left = keys - answered_keys(self._folder)
        if keys and not left:
            return False
        if len(left) < job.requests:
            found = f"{len(left):,} of {job.requests:,} without an answer"
            problem = "some questions of this file are already answered"
            raise UsageError(problem, where=job.path, found=found, hint=WRITE_AGAIN)
        if not Path(job.path).is_file():
            raise DataError("this file of requests is missing", where=job.path, hint=WRITE_AGAIN)
        if digest_of(Path(job.path)) != job.digest:
            problem = "this file of requests was changed after it was written"
            raise DataError(problem, where=job.path, hint=WRITE_AGAIN)
        return True
