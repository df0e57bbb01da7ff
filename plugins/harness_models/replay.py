"""A model that answers with recorded replies, from a stored run or a file."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import DataError, ModelError, UsageError, one_of
from harness.base.hashing import canonical, digest_bytes
from harness.contracts.identity import RECORDED, Identity
from harness.contracts.model import (
    CallError,
    Finish,
    Message,
    Model,
    ModelSettings,
    Reply,
    Request,
    Sampling,
    TokenLogprob,
    Usage,
)
from harness.runs.journal import JournalFiles, JournalIndex, journal_parts
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder
from harness_models.arguments import count_of

DEFAULT_ROLE = "candidate"
ARGUMENTS = ("run", "file", "model", "role", "concurrency")


def make(settings: ModelSettings) -> Model:
    """The replay model of a recording; UsageError unless the arguments name exactly one."""
    args = settings.args
    for name in args:
        problem = f"a replay model has no argument {name!r}"
        one_of(name, ARGUMENTS, problem, where="--model_args")
    if ("run" in args) == ("file" in args):
        raise UsageError(
            "a replay model needs one recording",
            where="--model_args",
            found="both run= and file=" if "run" in args else "neither run= nor file=",
            expected="run=RUN, a run's folder, or file=FILE, recorded replies",
        )
    unused = "model" if "run" in args else "role"
    if unused in args:
        source = "run=" if "run" in args else "file="
        raise UsageError(
            f"{unused}= cannot be combined with {source}",
            where="--model_args",
            found=f"{unused}={args[unused]}",
            expected="model= with file=, role= with run=",
        )
    return ReplayModel(
        RunRecording(Path(args["run"]), role=args.get("role", DEFAULT_ROLE))
        if "run" in args
        else FileRecording(Path(args["file"]), model=args.get("model")),
        concurrency=count_of("replay", "concurrency", args["concurrency"])
        if "concurrency" in args
        else settings.concurrency,
    )


class ReplayModel(Model):
    """Answers from a recording; a question that was not recorded fails as `not_recorded`."""

    def __init__(self, recording: Recording, *, concurrency: int | None) -> None:
        self.concurrency = concurrency or self.concurrency
        self.identity = recording.identity()
        self._recording = recording
        self._requests = self._missing = 0

    def thinks(self) -> bool | None:
        """Whether the recorded model thought: its questions are then asked with the same limits."""
        return self._recording.thought

    async def open(self) -> None:
        """Index the recording; ModelError if it cannot be used."""
        try:
            self._recording.open()
        except DataError as error:
            raise ModelError(
                f"the recording cannot be used: {error.problem}",
                where=error.where or self._recording.label,
                found=error.found,
                expected=error.expected,
                hint=error.hint,
            ) from error
        self._requests = self._missing = 0

    async def close(self) -> None:
        """Close the recording, and show how many questions it lacked."""
        self._recording.close()
        if self._missing:
            self.show(
                f"{self._recording.label}: {self._missing:,} of {self._requests:,} questions were "
                "not recorded"
            )

    async def ask(self, request: Request) -> Reply:
        """The recorded reply; CallError with the recorded cause if the call failed."""
        self._requests += 1
        found = self._recording.find(request)
        if found is None:
            self._missing += 1
            raise CallError("not_recorded", f"{self._recording.label} lacks this question")
        if isinstance(found, Reply):
            return found
        raise CallError(found.cause, found.detail)


class _Failure(msgspec.Struct, frozen=True):
    cause: str = ""
    detail: str = ""


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a recorded call that replaying needs; others are ignored."""

    messages: tuple[Message, ...]
    text: str | None = None
    role: str = ""
    repeat: int = 0
    finish: Finish | None = None
    reasoning: str | None = None
    usage: Usage | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    asked_schema: bool = False
    failure: _Failure | None = None
    sampling: Sampling | None = None

    def outcome(self) -> Reply | _Failure:
        """The reply, even an unreadable one, else the failure."""
        if self.text is None:
            return self.failure or _Failure("no_content", "recorded without text")
        return Reply(
            text=self.text,
            finish=self.finish or "stop",
            reasoning=self.reasoning,
            usage=self.usage,
            logprobs=self.logprobs,
        )


class _Line(msgspec.Struct, frozen=True):
    calls: tuple[_Call, ...] = ()


_Place = tuple[int, int, int, int | None]
"""Journal, place and length of a line, and the number of the call in it; None if it is a call."""


def _key(
    messages: tuple[Message, ...], sampling: Sampling | None, repeat: int, *, schema: bool
) -> bytes:
    settings = None if sampling is None else msgspec.to_builtins(sampling)
    question = [[[turn.role, turn.content] for turn in messages], settings, repeat, schema]
    return bytes.fromhex(digest_bytes(canonical(question)))


class Recording(ABC):
    """An index of recorded answers; each answer is read from its file on request.

    `label` names the recording in messages, and `thought` is whether its model is known to think.
    """

    thought: bool | None = None

    def __init__(self, path: Path) -> None:
        self.label = str(path)
        self._files: list[JournalFiles] = []
        self._places: dict[bytes, _Place] = {}

    @abstractmethod
    def identity(self) -> Identity:
        """The recorded model's identity, with the digest of the recording."""

    @abstractmethod
    def open(self) -> None:
        """Index the answers."""

    def close(self) -> None:
        """Close the files."""
        while self._files:
            self._files.pop().close()
        self._places.clear()

    def find(self, request: Request) -> Reply | _Failure | None:
        """The outcome recorded for a request; None if there is none.

        Messages, sampling, repeat and the presence of a schema must be the same. An answer that was
        recorded without sampling fits every sampling.
        """
        for sampling in (request.sampling, None):
            schema = request.schema is not None
            place = self._places.get(
                _key(request.messages, sampling, request.repeat, schema=schema)
            )
            if place is not None:
                journal, at, length, number = place
                line = self._files[journal].read(at, length)
                if number is None:
                    return msgspec.json.decode(line, type=_Call).outcome()
                return msgspec.json.decode(line, type=_Line).calls[number].outcome()
        return None


class RunRecording(Recording):
    """The answers of one role's model in a stored run, in all roles that it had."""

    def __init__(self, path: Path, *, role: str) -> None:
        super().__init__(path)
        self._folder = RunFolder(path)
        self._manifest = self._folder.manifest()
        self._played = _identity_of(self._manifest, role, path)
        roles = self._manifest.roles.values()
        played = (one.thinks for one in roles if one.identity.get("model") == self._played)
        self.thought = next(played, None)

    def identity(self) -> Identity:
        """The recorded model's own identity, with the digest of the journals."""
        own = self._played
        digest = hashlib.blake2b(digest_size=16)
        for path, _, _ in self._journals():
            files = journal_parts(path)
            digest.update(_digest_of(*files) if files else b"none")
        details = {**own.get("details", {}), RECORDED: digest.hexdigest()}
        return Identity(kind=own["kind"], name=own["name"], details=details)

    def open(self) -> None:
        """Index the answers: the first reply to a question, or else its first failure."""
        decode = msgspec.json.Decoder(_Line).decode
        failed: set[bytes] = set()
        for path, stage, samplings in self._journals():
            index = JournalIndex(path, stage)
            self._files.append(JournalFiles(path))
            for place, length in zip(index.places.tolist(), index.lengths.tolist(), strict=True):
                line = decode(self._files[-1].read(place, length))
                for number, call in enumerate(line.calls):
                    if call.role not in samplings:
                        continue
                    sampling = samplings[call.role]
                    key = _key(call.messages, sampling, call.repeat, schema=call.asked_schema)
                    if key in self._places and (key not in failed or call.text is None):
                        continue
                    self._places[key] = (len(self._files) - 1, place, length, number)
                    (failed.add if call.text is None else failed.discard)(key)

    def _journals(self) -> Iterator[tuple[Path, str, dict[str, Sampling]]]:
        """Each stage's journal with its key, and the sampling of the model's roles."""
        for entry in self._manifest.tasks.values():
            for stage in entry.stages:
                roles: Mapping[str, Any] = stage.components.get("roles", {})
                samplings = {
                    role: msgspec.convert(parts["sampling"], Sampling)
                    for role, parts in roles.items()
                    if parts.get("model") == self._played
                }
                if samplings:
                    yield self._folder.path / entry.folder / stage.file, stage.key, samplings


class FileRecording(Recording):
    """The answers in a file of JSON lines, each with the messages that were sent and the text."""

    def __init__(self, path: Path, *, model: str | None) -> None:
        if not path.is_file():
            raise UsageError(
                "there is no file of recorded replies",
                where=str(path),
                expected="JSON lines with messages and text",
            )
        super().__init__(path)
        self._path = path
        self._name = model or path.name

    def identity(self) -> Identity:
        """The given name, or else the file's, with the digest of the file."""
        details = {RECORDED: _digest_of(self._path).hex()}
        return Identity(kind="replay", name=self._name, details=details)

    def open(self) -> None:
        """Index the answers; UsageError for lines that cannot be used."""
        decode = msgspec.json.Decoder(_Call).decode
        answers: dict[bytes, tuple[int, bytes]] = {}
        offset = 0
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                start, offset = offset, offset + len(line)
                if not line.strip():
                    continue
                try:
                    call = decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise self._unusable(number, str(error)) from error
                if call.text is None and call.failure is None:
                    raise self._unusable(number, "neither text nor failure")
                key = _key(call.messages, call.sampling, call.repeat, schema=call.asked_schema)
                answer = msgspec.json.encode(call.outcome())
                first = answers.setdefault(key, (number, answer))
                if first[1] != answer:
                    raise self._unusable(
                        number, f"a different answer to the question of line {first[0]}"
                    )
                self._places.setdefault(key, (0, start, len(line), None))
        self._files.append(JournalFiles(self._path))

    def _unusable(self, number: int, found: str) -> UsageError:
        return UsageError(
            "a recorded reply cannot be used",
            where=f"{self._path}:{number}",
            found=found,
            expected='{"messages": [{"role": …, "content": …}], "text": …}, with repeat, finish, '
            "reasoning, usage and sampling where they matter; one answer per question",
        )


def _identity_of(manifest: Manifest, role: str, path: Path) -> dict[str, Any]:
    """The recorded identity of the model that had a role in a run."""
    roles = [(name.rpartition("/")[2], one.identity) for name, one in manifest.roles.items()]
    problem = f"no model had the role {role!r} in this run"
    known = dict.fromkeys(name for name, identity in roles if "model" in identity)
    one_of(role, known, problem, where=str(path), listed="role= one of {}")
    played = [identity.get("model") for name, identity in roles if name == role]
    each = {msgspec.json.encode(model, order="sorted"): model for model in played}
    found, *others = each.values()
    if others:
        raise UsageError(
            f"several models had the role {role!r} in this run",
            where=str(path),
            found=f"{len(others) + 1} models",
            expected="a run with a single model in this role",
        )
    return dict(found)


def _digest_of(*paths: Path) -> bytes:
    """The digest of the bytes of one file after the other."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.digest()
