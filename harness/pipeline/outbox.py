"""Questions of a run as files of requests in the OpenAI batch format, a file a model."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from harness.calls.mailbox import PutOff
from harness.errors import UsageError
from harness.models import Model
from harness.pipeline.plan import StageRun
from harness.pipeline.roles import players_of
from harness.results.files import storage_error, sync_folder
from harness.results.folder import RunFolder, slug

OPTION = "--out"

_encode = msgspec.json.Encoder().encode


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question that was written down for a run: the key of its call, and who was to answer."""

    key: str
    task: str
    stage: str
    role: str


class RequestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of requests to one model; `stages` tells how many are of which."""

    path: Path
    model: str
    stages: dict[str, int]


@dataclass(kw_only=True)
class _Sheet:
    """The requests to one model, in a file that has no name of its own yet."""

    model: str
    path: Path
    file: BinaryIO
    stages: Counter[str] = field(default_factory=Counter)


class Outbox:
    """Takes questions; `finish` names the files, until then nothing stands at `out`.

    What was asked is noted in the run folder first, so that an answer always finds its question.
    """

    def __init__(self, out: Path, folder: RunFolder) -> None:
        refuse_existing(out)
        self._out = out
        self._folder = folder
        self._sheets: dict[Model, _Sheet] = {}
        self._seen: set[bytes] = set()
        self._notes = bytearray()

    def write(self, run: StageRun, question: PutOff) -> None:
        """Take a question of a stage; one that was taken already changes nothing."""
        key = bytes.fromhex(question.key)
        if key in self._seen:
            return
        self._seen.add(key)
        context = run.context
        line = {"custom_id": question.key, **question.model.batch_line(question.request)}
        asked = Asked(key=question.key, task=run.task, stage=context.stage.name, role=question.role)
        sheet = self._sheets.get(question.model) or self._begin(
            question.model, players_of(context.bindings)[question.role].label
        )
        try:
            sheet.file.write(_encode(line) + b"\n")
        except OSError as error:
            raise storage_error(self._out, error, option=OPTION) from error
        sheet.stages[context.label] += 1
        self._notes += _encode(asked) + b"\n"

    def finish(self) -> tuple[RequestFile, ...]:
        """The files of requests, each in its place; none where nothing was asked."""
        if not self._sheets:
            return ()
        self._note()
        written = []
        for sheet, path in self._named():
            refuse_existing(path)
            try:
                sheet.file.flush()
                os.fsync(sheet.file.fileno())
                sheet.file.close()
                sheet.path.replace(path)
                sync_folder(path.parent)
            except OSError as error:
                raise storage_error(path, error, option=OPTION) from error
            written.append(RequestFile(path=path, model=sheet.model, stages=dict(sheet.stages)))
        return tuple(written)

    def drop(self) -> None:
        """Remove what `finish` did not name; harmless when repeated."""
        for sheet in self._sheets.values():
            sheet.file.close()
            with suppress(OSError):
                sheet.path.unlink(missing_ok=True)

    def _begin(self, model: Model, label: str) -> _Sheet:
        path = self._out.with_name(f".{self._out.name}.{secrets.token_hex(6)}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            sheet = _Sheet(model=label, path=path, file=path.open("xb"))
        except OSError as error:
            raise storage_error(self._out, error, option=OPTION) from error
        self._sheets[model] = sheet
        return sheet

    def _note(self) -> None:
        path = self._folder.asked
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(b"\n" + self._notes)  # behind what a crash may have left unfinished
                file.flush()
                os.fsync(file.fileno())
            sync_folder(path.parent)
        except OSError as error:
            raise storage_error(path, error) from error

    def _named(self) -> Iterator[tuple[_Sheet, Path]]:
        """Each sheet with its place: a batch is sent to one model, so each has a file."""
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


def refuse_existing(out: Path) -> None:
    """Raise UsageError where a file stands that requests would overwrite: it may be on its way."""
    if out.exists():
        raise UsageError(
            "requests overwrite nothing",
            where=str(out),
            found="a file" if out.is_file() else "a folder",
            expected=f"{OPTION} FILE with a name that is free",
        )


def asked_in(path: Path) -> dict[str, Asked]:
    """Every question that was written down for a run, by key.

    Torn lines are passed over: no file of requests was named after them.
    """
    decode = msgspec.json.Decoder(Asked).decode
    found = {}
    with suppress(FileNotFoundError), path.open("rb") as lines:
        for line in lines:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                asked = decode(line)
                found[asked.key] = asked
    return found
