"""A model that was asked before: it answers with the replies of a stored run, or of a file."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import DataError, ModelError, UsageError, did_you_mean
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
from harness.runs.journal_index import JournalIndex
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder
from harness_models.arguments import count_of

USUAL_ROLE = "candidate"
ARGUMENTS = ("run", "file", "model", "role", "concurrency")
CHUNK = 1 << 20


def make(settings: ModelSettings) -> Model:
    """The recording that the arguments name; UsageError where they name none."""
    args = settings.args
    for name in args:
        if name not in ARGUMENTS:
            raise UsageError(
                f"a replay model has no argument {name!r}",
                where="--model_args",
                expected=", ".join(ARGUMENTS),
                hint=did_you_mean(name, ARGUMENTS),
            )
    if ("run" in args) == ("file" in args):
        raise UsageError(
            "a replay model needs what it answers from",
            where="--model_args",
            found="both run= and file=" if "run" in args else "neither run= nor file=",
            expected="run=RUN, a run's folder, or file=FILE, recorded replies",
        )
    lost = "model" if "run" in args else "role"
    if lost in args:
        raise UsageError(
            f"{lost}= means nothing here",
            where="--model_args",
            found=f"{lost}={args[lost]}",
            expected="model= beside file=, role= beside run=",
        )
    return ReplayModel(
        RunRecording(Path(args["run"]), role=args.get("role", USUAL_ROLE))
        if "run" in args
        else FileRecording(Path(args["file"]), model=args.get("model")),
        concurrency=count_of("replay", "concurrency", args["concurrency"])
        if "concurrency" in args
        else settings.concurrency,
    )


class ReplayModel(Model):
    """Answers what the recording holds; what it does not hold is a failure of its own."""

    def __init__(self, recording: Recording, *, concurrency: int | None) -> None:
        self.concurrency = concurrency or self.concurrency
        self.identity = recording.identity()
        self._recording = recording
        self._asked = self._missing = 0

    async def open(self) -> None:
        """Find out where in the recording each answer is."""
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
        self._asked = self._missing = 0

    async def close(self) -> None:
        """Close the recording, and tell how many questions it did not hold."""
        self._recording.close()
        if self._missing:
            self.show(
                f"{self._recording.label}: {self._missing:,} of {self._asked:,} questions were not "
                "recorded"
            )

    async def ask(self, request: Request) -> Reply:
        """The recorded reply; a recorded failure comes back as it was."""
        self._asked += 1
        found = self._recording.find(request)
        if found is None:
            self._missing += 1
            raise CallError("not_recorded", f"{self._recording.label} holds no such question")
        if found.reply is None:
            raise CallError(found.cause, found.detail)
        return found.reply


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What a question came to: a reply, or the cause for which none came."""

    reply: Reply | None = None
    cause: str = ""
    detail: str = ""


class _Failure(msgspec.Struct, frozen=True):
    type: str
    cause: str = ""
    detail: str = ""


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a recorded call that say what was asked and what came; others are free."""

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

    def recorded(self) -> Recorded:
        """What came of it; a reply that could not be read is a reply all the same."""
        if self.text is None:
            failure = self.failure or _Failure("call_failed", "no_content", "recorded without text")
            return Recorded(cause=failure.cause, detail=failure.detail)
        reply = Reply(
            text=self.text,
            finish=self.finish or "stop",
            reasoning=self.reasoning,
            usage=self.usage,
            logprobs=self.logprobs,
        )
        return Recorded(reply=reply)


class _Line(msgspec.Struct, frozen=True):
    calls: tuple[_Call, ...] = ()


_Place = tuple[int, int, int, int]
"""File, offset, length, and which call of the line."""


def _key(
    messages: tuple[Message, ...], sampling: Sampling | None, repeat: int, *, schema: bool
) -> bytes:
    how = None if sampling is None else msgspec.to_builtins(sampling)
    asked = [[[turn.role, turn.content] for turn in messages], how, repeat, schema]
    return bytes.fromhex(digest_bytes(canonical(asked)))


class Recording(ABC):
    """Answers to questions that were asked before, each read where it stands when it is asked for.

    `label` names it to people.
    """

    def __init__(self, path: Path) -> None:
        self.label = str(path)
        self._files: list[int] = []
        self._places: dict[bytes, _Place] = {}

    @abstractmethod
    def identity(self) -> Identity:
        """Who is recorded, with the digest of what was said."""

    @abstractmethod
    def open(self) -> None:
        """Learn where each answer stands."""

    @abstractmethod
    def _call_in(self, line: bytes, number: int) -> _Call: ...

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.pop())
        self._places.clear()

    def find(self, request: Request) -> Recorded | None:
        """What came of the same messages, sampling, repeat, and schema asked for or not.

        What was recorded without sampling holds for any.
        """
        for sampling in (request.sampling, None):
            schema = request.schema is not None
            place = self._places.get(
                _key(request.messages, sampling, request.repeat, schema=schema)
            )
            if place is not None:
                file, offset, length, number = place
                line = os.pread(self._files[file], length, offset)
                return self._call_in(line, number).recorded()
        return None


class RunRecording(Recording):
    """The answers that one role's model gave in a stored run, in all roles that it played."""

    def __init__(self, path: Path, *, role: str) -> None:
        super().__init__(path)
        self._folder = RunFolder(path)
        self._manifest = self._folder.manifest()
        self._played = _identity_of(self._manifest, role, path)

    def identity(self) -> Identity:
        """The recorded model's own, with the digest of the journals: what it says is fixed."""
        own = self._played
        digest = hashlib.blake2b(digest_size=16)
        for path, _, _ in self._journals():
            digest.update(_digest_of(path) if path.exists() else b"none")
        details = {**own.get("details", {}), RECORDED: digest.hexdigest()}
        return Identity(kind=own["kind"], name=own["name"], details=details)

    def open(self) -> None:
        """Learn where each answer stands; a reply goes before a failure, else the first holds."""
        decode = msgspec.json.Decoder(_Line).decode
        failed: set[bytes] = set()
        for path, stage, samplings in self._journals():
            if not path.exists():
                continue
            index = JournalIndex(path, stage)
            self._files.append(os.open(path, os.O_RDONLY))
            for offset, length in zip(index.offsets.tolist(), index.lengths.tolist(), strict=True):
                line = decode(os.pread(self._files[-1], length, offset))
                for number, call in enumerate(line.calls):
                    if call.role not in samplings:
                        continue
                    sampling = samplings[call.role]
                    key = _key(call.messages, sampling, call.repeat, schema=call.asked_schema)
                    if key in self._places and (key not in failed or call.text is None):
                        continue
                    self._places[key] = (len(self._files) - 1, offset, length, number)
                    (failed.add if call.text is None else failed.discard)(key)

    def _call_in(self, line: bytes, number: int) -> _Call:
        return msgspec.json.decode(line, type=_Line).calls[number]

    def _journals(self) -> Iterator[tuple[Path, str, dict[str, Sampling]]]:
        """Each stage's journal with its key, and the sampling of the roles the model played."""
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
        """The name it was given, with the digest of the file."""
        details = {RECORDED: _digest_of(self._path).hex()}
        return Identity(kind="replay", name=self._name, details=details)

    def open(self) -> None:
        """Learn where each answer stands; UsageError for lines that cannot be used."""
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
                said = msgspec.json.encode(call.recorded())
                first = answers.setdefault(key, (number, said))
                if first[1] != said:
                    raise self._unusable(number, f"another answer than line {first[0]} to the same")
                self._places.setdefault(key, (0, start, len(line), 0))
        self._files.append(os.open(self._path, os.O_RDONLY))

    def _call_in(self, line: bytes, number: int) -> _Call:
        return msgspec.json.decode(line, type=_Call)

    def _unusable(self, number: int, found: str) -> UsageError:
        return UsageError(
            "a recorded reply cannot be used",
            where=f"{self._path}:{number}",
            found=found,
            expected='{"messages": [{"role": …, "content": …}], "text": …}, with repeat, finish, '
            "reasoning, usage, sampling where they matter; one answer a question",
        )


def _identity_of(manifest: Manifest, role: str, path: Path) -> dict[str, Any]:
    """The recorded identity of the model behind a role of a run."""
    models = {
        name.rpartition("/")[2]: entry.identity["model"]
        for name, entry in manifest.roles.items()
        if "model" in entry.identity
    }
    several = {
        msgspec.json.encode(entry.identity.get("model"), order="sorted")
        for name, entry in manifest.roles.items()
        if name.rpartition("/")[2] == role
    }
    if role not in models:
        raise UsageError(
            f"no model played the role {role!r} in this run",
            where=str(path),
            expected="role= one of " + ", ".join(models),
            hint=did_you_mean(role, models),
        )
    if len(several) > 1:
        raise UsageError(
            f"several models played the role {role!r} in this run",
            where=str(path),
            found=f"{len(several)} models",
            expected="a run whose tasks have one",
        )
    found: dict[str, Any] = models[role]
    return found


def _digest_of(path: Path) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.digest()
