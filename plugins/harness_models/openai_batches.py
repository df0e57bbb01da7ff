"""An `openai` model that is asked in batches: `batch=true`.

Its folder has a file of requests for each batch, `jobs.json` and the answers. A file and its job
are on disk before it is uploaded, its id before the batch is created, and the batch's id before it
is followed; a batch whose id was lost is found by its file. So a session that was killed is taken
up by the next one, and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import openai
from openai.types import Batch

from harness.base.errors import HarnessError, Interrupted, ModelError, UsageError
from harness.base.threads import in_thread
from harness.contracts.finding import Finding
from harness.contracts.model import AskLive, CallError, Model, ModelSettings, Reply, Request
from harness.runs.atomic_files import atomic_write, atomic_writer, make_folder
from harness.runs.request_file import MOST_LINES, RequestWriter
from harness_models.openai import OpenAIModel
from harness_models.openai_args import (
    AZURE_TOKEN_ENV,
    NAME_KEY,
    NO_KEY,
    OpenAIArgs,
    read_each,
)
from harness_models.openai_jobs import JOBS, Job, jobs_of, keys_of, line_of
from harness_models.openai_screen import Screen, custom_headers
from harness_models.openai_spread import spread
from harness_models.openai_wire import LARGEST_BODY, NAMED, headers_with, pointing, short

FEW = 20
"""So many requests are worth a batch after the first one."""

FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 5.0, 300.0, 1.5
"""Seconds between two looks at a batch."""

AT_ONCE = 256
"""Lines that are read before others have their turn."""

TOO_MANY_TOKENS = "token_limit_exceeded"
"""The service's code for a file with more tokens than its queue takes."""

GO_ON = "the batches go on; the same command takes them up"
ENDED = ("completed", "failed", "expired", "cancelled")
SHOWN_ERRORS = 3
AZURE = "https://cognitiveservices.azure.com/.default"

Token = Callable[[], str]


def make(settings: ModelSettings) -> Model:
    """The model that the arguments describe, asked in batches if they say so; it is not open."""
    each = read_each(settings)
    if not each[0].batch:
        return spread(each, OpenAIModel, settings)
    if len(each) > 1:
        raise UsageError(
            "a batch is sent to one server",
            where="--model_args",
            found=f"base_url={';'.join(one.address for one in each)}",
            expected="base_url=URL, of the service that answers the batch",
        )
    return BatchedModel(each[0], settings)


class BatchedModel(OpenAIModel):
    """Gathers requests into files that a batch service answers.

    Few that are left after a batch are asked live, unless only batches are wanted.
    """

    patient = True

    def __init__(self, args: OpenAIArgs, settings: ModelSettings) -> None:
        super().__init__(args, settings)
        self.live: Model = OpenAIModel(args, settings)
        self.concurrency = MOST_LINES
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[asyncio.Task[None], Job] = {}
        self._writer = RequestWriter(self._gather)
        # Where the answers are of all questions that were gathered or sent, until they are used.
        self._places: dict[str, asyncio.Future[tuple[Path, int]]] = {}
        self._given: set[str] = set()  # jobs all of whose answers were given
        self._most = MOST_LINES  # requests that the service's queue takes in one file
        self._finishing = False

    def batches(self) -> OpenAIBatches:
        """The server's batch service; on Azure, a token replaces a missing key."""
        args, token = self._args, None
        by_variable = args.api_key_file is None and args.api_key_env is not None
        if args.azure_endpoint is not None and by_variable and self._key() is None:
            token = azure_token()
        if token is None:
            super().require()
        return OpenAIBatches(
            args, self._key(), token, Screen(self._secrets()), trusted=self._trusted
        )

    def require(self) -> None:
        """Raise UsageError if the key is missing."""
        self._service = self.batches()

    async def check(self) -> Sequence[Finding]:
        """Findings about the key and the server."""
        return await self.live.check()

    def holds(self, key: str) -> bool:
        """Whether the request of this key was gathered, now or by an earlier session."""
        return key in self._places

    async def open(self) -> None:
        """Take up the batches of earlier sessions."""
        self.require()
        self._jobs = jobs_of(self)
        assert self.folder is not None
        self._finishing, self._home, self._in_turn = False, self.folder, asyncio.Lock()
        self._writer.path = self._home / "open.jsonl"
        make_folder(self._home)
        for job in [*self._jobs.values()]:
            if job.model:
                self._take_over(job)
            # A session may have ended before it learnt the id of its batch.
            if not job.ended and job.batch_id is None and job.file_id is not None:
                job.batch_id = await in_thread(partial(self._service.find, job.file_id))
            if not job.ended and job.batch_id is None:
                del self._jobs[job.id]
        self._keep_jobs()
        for path in self._home.glob("*.jsonl"):
            if path.stem not in self._jobs:
                path.unlink()
        for job in reversed(self._jobs.values()):  # a request that failed is in a later job again
            if not job.ended:
                keys = keys_of(self._home / f"{job.id}.jsonl")
                self._start(job, [key for key in keys if key not in self._places])

    async def ask(self, request: Request) -> Reply:
        """The reply in the file of answers, when it comes; AskLive for one of few that are left."""
        if request.key not in self._places:
            self._writer.add(request.key, self.batch_line(request))
        path, at = await self._place(request.key)
        del self._places[request.key]  # not before: who is cancelled does not get it
        with path.open("rb") as file:
            file.seek(at)
            try:
                line = json.loads(file.readline())
            except (ValueError, RecursionError) as error:
                raise CallError("bad_response", f"an answer: {error}", retryable=True) from None
        return self.read_line(line)

    def gathered(self, *, live: bool) -> None:
        """Submit what was asked so far; few that are left after a batch may be asked live."""
        keys = self._writer.keys
        if live and self._jobs and len(keys) < FEW and self._args.batch != "only":
            self._writer.drop()
            self._fail(keys, AskLive(self.live))
        self._writer.complete()

    def leave(self, reason: Exception, *, send: bool) -> None:
        """Let all calls raise the reason: the batches go on, as who interrupts is told by it."""
        self._finishing = send
        try:
            if send:
                self._writer.complete()
            else:
                self._writer.drop()
        except HarnessError as error:
            reason = error
        for task, job in self._tasks.items():
            if not send or job.batch_id is not None:
                task.cancel()
        self._fail([key for key, place in self._places.items() if not place.done()], reason)
        left = (job for job in self._jobs.values() if not job.ended and job.id not in self._given)
        if not any(send or job.file_id for job in left):
            return
        if isinstance(reason, Interrupted) and not send:
            reason.hint = GO_ON
        else:
            self.show(f"{self.identity.label}: {GO_ON}")

    async def close(self) -> None:
        """Let go of the batches; those whose answers were all used are done with."""
        for task in () if self._finishing else self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writer.drop()
        # The answers that were used are on disk by now, and in records.
        waiting = [place for place in self._places.values() if not place.cancelled()]
        used = self._given - {place.result()[0].stem for place in waiting if place.done()}
        for name in used:
            self._jobs[name].ended = True
        if used:
            self._keep_jobs()
        self._places.clear()
        self._given.clear()

    def _place(self, key: str) -> asyncio.Future[tuple[Path, int]]:
        """Where the answer to a question is, once it has come."""
        place = self._places.get(key)
        if place is None or place.cancelled():  # who waited for it gave up
            place = self._places[key] = asyncio.get_running_loop().create_future()
        return place

    def _fail(self, keys: Iterable[str], error: Exception) -> None:
        """Let those who wait for the answers raise the error."""
        for key in keys:
            place = self._places.pop(key, None)
            if place is not None and not place.done():
                place.set_exception(error)
                place.exception()  # it may be that nobody waits for it

    def _gather(self, keys: list[str], endpoint: str) -> None:
        """Make the file that is written a job."""
        job = Job(id=secrets.token_hex(6), requests=len(keys), endpoint=endpoint)
        self._writer.path.replace(self._home / f"{job.id}.jsonl")
        self._jobs[job.id] = job
        self._keep_jobs()
        self._start(job, keys)

    def _start(self, job: Job, keys: list[str]) -> None:
        """Carry a job to its end, which answers the questions of these keys."""
        for key in keys:
            self._place(key)
        task = asyncio.get_running_loop().create_task(self._carry(job, keys))
        self._tasks[task] = job
        task.add_done_callback(self._tasks.pop)

    async def _carry(self, job: Job, keys: list[str]) -> None:
        """Submit a job, follow its batch, and give its answers to those who wait for them."""
        answers = self._home / f"{job.id}.out"
        try:
            # What was refused goes one after the other: the queue may have no room for two.
            async with self._in_turn if job.again else nullcontext():
                if not answers.exists():
                    await self._submit(job, keys)
                if not (answers.exists() or self._finishing or job.batch_id is None):
                    await self._follow(job, keys, answers)
            if answers.exists():
                await self._give(job, keys, answers)
        except Exception as error:
            self._fail(keys, error)

    async def _submit(self, job: Job, keys: list[str]) -> None:
        """Upload the file of a job and create its batch, or put smaller jobs in its place."""
        if job.batch_id is None and job.requests > self._most:
            self._send_again(job, keys)
            return
        if job.file_id is None:
            path = self._home / f"{job.id}.jsonl"
            job.file_id = await in_thread(partial(self._service.upload, path))
            self._keep_jobs()
        if job.batch_id is None:
            create = partial(self._service.create, job.file_id, job.endpoint)
            job.batch_id = await in_thread(create)
            self._keep_jobs()
            self.show(f"{self.identity.label}: {job.requests:,} requests in {job.batch_id}")

    async def _follow(self, job: Job, keys: list[str], answers: Path) -> None:
        """Look at a batch until it has ended and its answers are in a file, or it is refused."""
        pause, shown, label = FIRST_PAUSE, "", f"{self.identity.label}: {job.batch_id}"
        while True:
            try:
                batch = await in_thread(partial(self._service.batch, str(job.batch_id)))
                done, failed = (
                    getattr(batch.request_counts, name, 0) for name in ("completed", "failed")
                )
                line = f"{batch.status}, {done:,} of {job.requests:,} done"
                line += f", {failed:,} failed" if failed else ""
                if line != shown:
                    self.show(f"{label}: {line}")
                    shown = line
                if batch.status == "failed":
                    self._resubmit(job, keys, batch)
                    return
                if batch.status in ENDED:
                    await in_thread(partial(self._service.download, batch, answers))
                    return
            except NoAnswer as error:
                self.show(f"{label}: {error.found}; it is tried again")
            await asyncio.sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)

    async def _give(self, job: Job, keys: list[str], answers: Path) -> None:
        """Find each answer in the file, and wake who waits for it."""
        left, place = set(keys), 0
        with answers.open("rb") as lines:
            for number, line in enumerate(lines):
                at, place = place, place + len(line)
                if not number % AT_ONCE:
                    await asyncio.sleep(0)
                with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    key = line_of(line).custom_id
                    if key in left:
                        left.discard(key)
                        self._place(key).set_result((answers, at))
        ended = f"{job.batch_id} ended without an answer"
        self._fail(left, CallError("server_error", ended, retryable=True))
        self._given.add(job.id)

    def _resubmit(self, job: Job, keys: list[str], batch: Batch) -> None:
        """Submit a file that the service refused once more: in parts if it had too many tokens."""
        errors = (batch.errors and batch.errors.data) or []
        said = self._service.problem(batch) or "the service refused the whole batch"
        if errors and errors[0].code == TOO_MANY_TOKENS and job.requests > 1 and job.endpoint:
            self._most = min(self._most, (job.requests + 1) // 2)
        elif job.again:
            del self._jobs[job.id]
            self._keep_jobs()
            self._fail(keys, CallError("bad_request", said))
            return
        self.show(f"{self.identity.label}: {job.batch_id}: {said}; it is sent once more")
        self._send_again(job, keys)

    def _send_again(self, job: Job, keys: list[str]) -> None:
        """Put new jobs in the place of one, each with no more than the queue has room for."""
        parts = []
        lines = (self._home / f"{job.id}.jsonl").read_bytes().splitlines(keepends=True)
        del self._jobs[job.id]
        for at in range(0, len(lines), self._most):
            some, name = lines[at : at + self._most], secrets.token_hex(6)
            part = Job(id=name, requests=len(some), endpoint=job.endpoint, again=True)
            atomic_write(self._home / f"{name}.jsonl", b"".join(some))
            self._jobs[name] = part
            parts.append((part, keys[at : at + self._most]))
        self._keep_jobs()
        for each in parts:
            self._start(*each)

    def _keep_jobs(self) -> None:
        jobs = msgspec.json.encode([*self._jobs.values()])
        atomic_write(self._home / JOBS, msgspec.json.format(jobs) + b"\n")

    def _take_over(self, job: Job) -> None:
        """Give a job of version 0.1 its file, which has keys alone."""
        keys = b""
        for line in (self._home.parent / "asked.jsonl").read_bytes().splitlines():
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                note = msgspec.json.decode(line, type=dict[str, Any])
                if note.get("job") == job.id:
                    keys += msgspec.json.encode({"custom_id": note["key"]}) + b"\n"
        atomic_write(self._home / f"{job.id}.jsonl", keys)
        job.model, job.endpoint, job.again = "", "", True


class NoAnswer(ModelError):
    """The service did not answer, or could not: it may do so later."""


class OpenAIBatches:
    """Files and batches at the address of a model's arguments, with its key or Azure's token."""

    def __init__(
        self,
        args: OpenAIArgs,
        key: str | None,
        token: Token | None,
        screen: Screen,
        *,
        trusted: bool = True,
    ) -> None:
        self._args, self._screen = args, screen
        # The official client takes organisation, project and headers from the environment, which
        # only a trusted host gets.
        kept = () if trusted else (*NAMED, *custom_headers())
        headers: dict[str, Any] = dict.fromkeys(kept, openai.Omit())
        headers["User-Agent"] = headers_with("", trusted=trusted)["User-Agent"]
        base = args.base.rstrip("/")
        http = openai.DefaultHttpxClient(follow_redirects=False)
        if args.azure_endpoint is not None and args.api_version is None:
            headers |= {"api-key": key} if key else {}
            base = f"{base}/openai/v1"
        self._client: openai.OpenAI
        if args.api_version is not None:
            self._client = openai.AzureOpenAI(
                azure_endpoint=base, api_version=args.api_version,
                api_key=None if token else key or NO_KEY,
                azure_ad_token_provider=token, default_headers=headers, http_client=http,
            )  # fmt: skip
        else:
            self._client = openai.OpenAI(
                base_url=base, api_key=key or token or NO_KEY, default_headers=headers,
                http_client=http,
            )  # fmt: skip
        place = args.api_key_file or args.api_key_env
        look = f"check the key in {place}" if place else NAME_KEY
        self._hints = {401: look, 403: look, 404: "check whether this server supports batches"}

    def upload(self, path: Path) -> str:
        """The id of the uploaded file."""
        with self._explained("the upload"), path.open("rb") as file:
            return self._client.files.create(file=(path.name, file), purpose="batch").id

    def create(self, file_id: str, endpoint: str) -> str:
        """The id of a new batch, which is answered within a day."""
        with self._explained("the batch"):
            if self._args.azure_endpoint is not None:  # Azure needs the file processed first
                self._client.files.wait_for_processing(file_id)
            # Without retries: a batch that is sent twice may be billed twice.
            batches: Any = self._client.with_options(max_retries=0).batches
            batch = batches.create(
                input_file_id=file_id, endpoint=endpoint, completion_window="24h"
            )
            return str(batch.id)

    def find(self, file_id: str) -> str | None:
        """The id of the batch that was made from a file; None if the service lists none."""
        with self._explained("the list of batches"):
            batches = self._client.batches.list(limit=100)
            return next((one.id for one in batches if one.input_file_id == file_id), None)

    def batch(self, batch_id: str) -> Batch:
        """What the service says of a batch."""
        with self._explained("the batch"):
            return self._client.batches.retrieve(batch_id)

    def problem(self, batch: Batch) -> str:
        """Why all of a batch was refused, in the service's words without secrets."""
        errors = ((batch.errors and batch.errors.data) or [])[:SHOWN_ERRORS]
        said = ((f"line {one.line}: " if one.line else "") + str(one.message) for one in errors)
        return short("; ".join(said), self._screen)

    def download(self, batch: Batch, file: Path) -> None:
        """Write all answers of a batch, failed ones included, to a file."""
        with atomic_writer(file) as written:
            written.writelines(self.answers(batch))

    def answers(self, batch: Batch) -> Iterator[bytes]:
        """The contents of the output file and the error file, if they exist."""
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id:
                with self._explained("the answers"):
                    yield from self._lines(file_id)

    def _lines(self, file_id: str) -> Iterator[bytes]:
        """The lines of a file without secrets, each with an end; ModelError for one too long."""
        held = b""
        with self._client.files.with_streaming_response.content(file_id) as response:
            parts = response.iter_bytes()
            while True:
                try:
                    part = next(parts, None)
                except Exception as error:  # of the HTTP client, which the official one passes on
                    raise openai.OpenAIError("the file was cut") from error
                # A file's last line may have no end.
                *lines, held = (held + (b"\n" if part is None else part)).split(b"\n")
                for line in lines:
                    text = self._screen.line(line.decode("utf-8", "surrogateescape"))
                    yield text.encode("utf-8", "surrogateescape") + b"\n"
                if part is None:
                    return
                if len(held) > LARGEST_BODY:
                    raise ModelError(
                        "a batch's answer is too long",
                        where=self._args.address,
                        found=f"a line of more than {LARGEST_BODY:,} bytes",
                    )

    @contextmanager
    def _explained(self, wanted: str) -> Iterator[None]:
        """Raise the client's errors as ModelError; `wanted` names the operation's object."""
        try:
            yield
        except openai.APIStatusError as error:
            said: object = error.body.get("message") if isinstance(error.body, dict) else None
            if 300 <= error.status_code < 400:
                said = f"{pointing(error.response.headers)}, and no redirect is followed"
            detail = short(said or error.response.text, self._screen)
            kind = NoAnswer if error.status_code >= 500 or error.status_code == 429 else ModelError
            raise kind(
                f"the batch service refuses {wanted}",
                where=self._args.address,
                found=f"HTTP {error.status_code}: {detail}",
                hint=self._hints.get(error.status_code),
            ) from None
        except openai.OpenAIError as error:
            raise NoAnswer(
                f"the batch service did not answer about {wanted}",
                where=self._args.address,
                found=short(error.__cause__ or error, self._screen),
                hint="repeat the command: nothing is submitted twice",
            ) from None


def azure_token() -> Token | None:
    """A function that returns a token for Azure; None without a token and azure-identity."""
    given = os.environ.get(AZURE_TOKEN_ENV, "").strip()
    if given:
        return lambda: given
    try:
        from azure.identity import DefaultAzureCredential, get_bearer_token_provider
    except ImportError:
        return None
    provider = get_bearer_token_provider(DefaultAzureCredential(), AZURE)

    def token() -> str:
        try:
            return str(provider())
        except Exception as error:
            raise ModelError(
                "Azure gave no token", found=str(error), hint="log in with `az login`"
            ) from None

    return token
