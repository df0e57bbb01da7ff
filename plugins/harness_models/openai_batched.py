"""An `openai` model that is asked in batches: `batch=true`.

Its folder has a file of requests for each batch, `jobs.json` and the answers. A file and its job
are on disk before it is uploaded, its id before the batch is created, and the batch's id before it
is followed; a batch whose id was lost is found by its file. So a session that was killed is taken
up by the next one, and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.base.errors import HarnessError
from harness.base.threads import in_thread
from harness.contracts.finding import Finding
from harness.contracts.model import AskLive, CallError, Model, Reply, Request
from harness.runs.atomic_files import (
    atomic_write,
    atomic_writer,
    decode_file,
    make_folder,
    storage_error,
)
from harness.runs.request_file import MOST_LINES, RequestFile
from harness_models.openai_batches import BatchStatus, NoAnswer, OpenAIBatches

T = TypeVar("T")

FEW = 20
"""So many requests are worth a batch after the first one."""

FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 5.0, 300.0, 1.5
"""Seconds between two looks at a batch."""

AT_ONCE = 256
"""Lines that are read before others have their turn."""

TOO_MANY_TOKENS = "token_limit_exceeded"
"""The service's code for a file with more tokens than its queue takes."""


class Job(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A file of requests and its batch; `again` if its requests were refused before.

    `model` is set in the list of version 0.1 alone, whose `ended` says how the batch ended.
    """

    id: str
    requests: int
    endpoint: str
    model: str = ""
    again: bool = False
    file_id: str | None = None
    batch_id: str | None = None
    ended: Any = None


class _Note(msgspec.Struct):
    """A question that version 0.1 wrote to the file of a job."""

    key: str
    job: str = ""


class _Line(msgspec.Struct):
    custom_id: str


_custom_id = msgspec.json.Decoder(_Line).decode


class BatchedModel(Model):
    """Gathers requests into files that the `service` answers; few that are left are asked live,
    unless `only` batches are wanted."""

    patient = True
    takes_batches = True

    def __init__(self, live: Model, service: Callable[[], OpenAIBatches], *, only: bool) -> None:
        self.live: Model = live
        self.identity, self.concurrency = live.identity, MOST_LINES
        self.variables, self.key_files = live.variables, live.key_files
        self.asked_if_thinking = live.asked_if_thinking
        self.thinking_switch = live.thinking_switch
        self._connect, self._only = service, only
        self._jobs: dict[str, Job] = {}
        self._file: RequestFile | None = None
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._sent: dict[str, str] = {}  # to the newest job, as a failed request is sent again
        self._ready: dict[str, tuple[Path, int]] = {}
        self._read: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._finishing = False

    def require(self) -> None:
        """Raise UsageError if the key is missing."""
        self._service = self._connect()

    def thinks(self) -> bool | None:
        """What the live model knows."""
        return self.live.thinks()

    def batch_line(self, request: Request) -> dict[str, Any]:
        """The line of a batch file for a request."""
        return self.live.batch_line(request)

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in an answered line."""
        return self.live.read_batch(status, body)

    async def check(self) -> Sequence[Finding]:
        """Findings about the key and the server."""
        return await self.live.check()

    def holds(self, key: str) -> bool:
        """Whether a batch has the request of this key."""
        return key in self._sent or key in self._ready

    async def open(self) -> None:
        """Take up the batches of earlier sessions."""
        self.require()
        self._finishing = False
        make_folder(self._home)
        self._jobs = {job.id: job for job in _jobs_in(self._home / "jobs.json")}
        self._jobs |= {job.id: job for job in self._of_first_version()}
        for job in [*self._jobs.values()]:
            if not job.ended and job.batch_id is None:
                # A session may have ended before it learnt the id of its batch.
                if job.file_id is not None:
                    job.batch_id = await in_thread(partial(self._service.find, job.file_id))
                if job.batch_id is None:
                    del self._jobs[job.id]
        self._keep()
        for path in self._home.glob("*.jsonl"):
            if path.stem not in self._jobs:
                path.unlink()
        for job in self._jobs.values():
            if not job.ended:
                self._sent.update(dict.fromkeys(self._keys_of(job), job.id))
                self._start(job)

    async def ask(self, request: Request) -> Reply:
        """The reply in the file of answers, when it comes; AskLive for one of few that are left."""
        key = request.key
        if key not in self._ready:
            future = self._waiting[key] = asyncio.get_running_loop().create_future()
            if key not in self._sent:
                self._gather(key, request)
            try:
                await future
            finally:
                self._waiting.pop(key, None)
        path, place = self._ready.pop(key)  # not before: who is cancelled does not get it
        with path.open("rb") as file:
            file.seek(place)
            try:
                line = json.loads(file.readline())
            except (ValueError, RecursionError) as error:
                raise CallError("bad_response", f"an answer: {error}", retryable=True) from None
            return self.read_line(line)

    def gathered(self, *, live: bool) -> None:
        """Submit what was asked so far; few that are left after a batch may be asked live."""
        keys = [] if self._file is None else self._file.keys
        if keys and self._jobs and len(keys) < FEW and live and not self._only:
            self._drop_file()
            self._fail(keys, lambda: AskLive(self.live))
        self._submit_file()

    def leave(self, reason: Exception, *, send: bool) -> None:
        """Let all calls raise the reason: the batches go on."""
        self._finishing = send
        if send:
            self._submit_file()
        else:
            self._drop_file()
        self._fail([*self._waiting], lambda: reason.with_traceback(None))
        left = (one for one in self._jobs.values() if not one.ended and one.id not in self._read)
        if any(send or job.file_id for job in left):
            self.show(f"{self.identity.label}: the batches go on; the same command takes them up")

    async def close(self) -> None:
        """Let go of the batches; those whose answers were all used are done with."""
        while self._finishing and any(
            self._jobs[name].batch_id is None for name in self._tasks if name in self._jobs
        ):
            await asyncio.wait([*self._tasks.values()], timeout=0.05)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
        self._drop_file()
        # The answers that were used are on disk by now, and in records.
        unused = {path.stem for path, _ in self._ready.values()}
        for name in self._read - unused:
            self._jobs[name].ended = True
        if self._read - unused:
            self._keep()
        self._sent.clear()
        self._ready.clear()
        self._read.clear()

    @property
    def _home(self) -> Path:
        assert self.folder is not None, "a run gives the folder"
        return self.folder

    def _gather(self, key: str, request: Request) -> None:
        """Add a request to the open file."""
        line = self.live.batch_line(request)
        try:
            if self._file is None or not self._file.add(key, line):
                self._submit_file()
                self._file = RequestFile(self._home / f"{secrets.token_hex(6)}.jsonl")
                self._file.add(key, line)
        except OSError as error:
            raise storage_error(self._home, error) from error

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.drop()
            self._file = None

    def _submit_file(self) -> None:
        """Submit the open file; who waits for its answers gets the error if it cannot be kept."""
        if self._file is None:
            return
        file, self._file = self._file, None
        name = file.path.stem
        try:
            file.finish()
            job = Job(id=name, requests=len(file.keys), endpoint=file.endpoint)
            self._jobs[name] = job
            self._keep()
        except (OSError, HarnessError) as error:
            failed = storage_error(file.path, error) if isinstance(error, OSError) else error
            self._fail(file.keys, lambda: failed)
            return
        self._sent.update(dict.fromkeys(file.keys, name))
        self._start(job)

    def _start(self, job: Job) -> None:
        task = asyncio.get_running_loop().create_task(self._carry(job))
        self._tasks[job.id] = task
        task.add_done_callback(lambda task: self._tasks.pop(job.id, None))

    async def _carry(self, job: Job) -> None:
        """Submit a job, follow its batch, and give its answers to who waits for them."""
        try:
            await self._answer(job)
        except Exception as error:
            problem = error
            self._fail(self._keys_of(job), lambda: problem)

    async def _answer(self, job: Job) -> None:
        answers = self._home / f"{job.id}.out"
        if not answers.exists():
            batch_id = await self._submit(job)
            status = await self._end_of(job, batch_id)
            if status.state == "failed":
                await self._refused(job, status)
                return
            await self._until_answered(job, partial(self._download, batch_id, answers))
        await self._give(job, answers)

    async def _submit(self, job: Job) -> str:
        """The id of the job's batch, which is made unless there is one."""
        if job.file_id is None:
            path = self._home / f"{job.id}.jsonl"
            job.file_id = await in_thread(partial(self._service.upload, path))
            self._keep()
        if job.batch_id is None:
            create = partial(self._service.create, job.file_id, job.endpoint)
            job.batch_id = await in_thread(create)
            self._keep()
            self.show(f"{self.identity.label}: {job.requests:,} requests in {job.batch_id}")
        return job.batch_id

    async def _end_of(self, job: Job, batch_id: str) -> BatchStatus:
        """The status of the batch once it has ended."""
        pause, shown = FIRST_PAUSE, ""
        while True:
            status = await self._until_answered(job, partial(self._service.status, batch_id))
            line = f"{status.state}, {status.done:,} of {job.requests:,} done"
            line += f", {status.failed:,} failed" if status.failed else ""
            if line != shown:
                self.show(f"{self.identity.label}: {job.batch_id}: {line}")
            if status.ended:
                return status
            await asyncio.sleep(pause)
            pause, shown = min(pause * GROWTH, LONGEST_PAUSE), line

    async def _until_answered(self, job: Job, work: Callable[[], T]) -> T:
        """The result of the work, which is repeated while the service does not answer."""
        while True:
            try:
                return await in_thread(work)
            except NoAnswer as error:
                self.show(
                    f"{self.identity.label}: {job.batch_id}: {error.found}; it is tried again"
                )
                await asyncio.sleep(LONGEST_PAUSE)

    def _download(self, batch_id: str, answers: Path) -> None:
        with atomic_writer(answers) as file:
            file.writelines(self._service.answers(batch_id))

    async def _give(self, job: Job, answers: Path) -> None:
        """Find each answer in the file, and wake who waits for it."""
        left = {key for key in self._keys_of(job) if self._sent.get(key) == job.id}
        place = 0
        with answers.open("rb") as lines:
            for number, line in enumerate(lines):
                at, place = place, place + len(line)
                if not number % AT_ONCE:
                    await asyncio.sleep(0)
                with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    key = _custom_id(line).custom_id
                    if key in left:
                        left.discard(key)
                        self._sent.pop(key)
                        self._ready[key] = answers, at
                        if key in self._waiting and not self._waiting[key].done():
                            self._waiting[key].set_result(None)
        ended = f"{job.batch_id} ended without an answer"
        self._fail(left, lambda: CallError("server_error", ended, retryable=True))
        self._read.add(job.id)

    async def _refused(self, job: Job, status: BatchStatus) -> None:
        """Submit a file that the service refused once more: in halves if it had too many tokens."""
        lines = (self._home / f"{job.id}.jsonl").read_bytes().splitlines(keepends=True)
        large = status.code == TOO_MANY_TOKENS and len(lines) > 1 and bool(job.endpoint)
        del self._jobs[job.id]
        said = status.problem or "the service refused the whole batch"
        if job.again and not large:
            self._keep()
            self._fail(self._keys_of(job), lambda: CallError("bad_request", said))
            return
        self.show(f"{self.identity.label}: {job.batch_id}: {said}; it is sent once more")
        half = (len(lines) + 1) // 2 if large else len(lines)
        parts = []
        for some in filter(None, (lines[:half], lines[half:])):
            part = Job(
                id=secrets.token_hex(6), requests=len(some), endpoint=job.endpoint, again=True
            )
            atomic_write(self._home / f"{part.id}.jsonl", b"".join(some))
            self._jobs[part.id] = part
            self._sent.update(dict.fromkeys(self._keys_of(part), part.id))
            parts.append(part)
        self._keep()
        for part in parts:  # one after the other: the queue has no room for both
            await self._answer(part)

    def _fail(self, keys: Iterable[str], error: Callable[[], BaseException]) -> None:
        for key in keys:
            self._sent.pop(key, None)
            future = self._waiting.get(key)
            if future is not None and not future.done():
                future.set_exception(error())

    def _keep(self) -> None:
        jobs = msgspec.json.encode([*self._jobs.values()])
        atomic_write(self._home / "jobs.json", msgspec.json.format(jobs) + b"\n")

    def _keys_of(self, job: Job) -> Iterator[str]:
        with (self._home / f"{job.id}.jsonl").open("rb") as lines:
            for line in lines:
                yield _custom_id(line).custom_id

    def _of_first_version(self) -> Iterator[Job]:
        """The batches that version 0.1 submitted and did not collect; each gets a file of keys."""
        jobs = _jobs_in(self._home.parent / "jobs.json")
        for job in jobs:
            mine = job.model == self.identity.label and job.id not in self._jobs
            if mine and job.file_id and not job.ended:
                keys = []
                for line in (self._home.parent / "asked.jsonl").read_bytes().splitlines():
                    with suppress(msgspec.DecodeError, UnicodeDecodeError):
                        note = msgspec.json.decode(line, type=_Note)
                        keys += [note.key] if note.job == job.id else []
                lines = (msgspec.json.encode({"custom_id": key}) + b"\n" for key in keys)
                atomic_write(self._home / f"{job.id}.jsonl", b"".join(lines))
                job.model, job.endpoint, job.again = "", "", True
                yield job


def _jobs_in(path: Path) -> list[Job]:
    if not path.exists():
        return []
    hint = "download the answers yourself, then give them with --answers"
    return decode_file(
        path.read_bytes(), list[Job], path, what="list of batches", version=1, hint=hint
    )
