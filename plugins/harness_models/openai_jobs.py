"""What a model's folder notes of the batches that a run sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError
from harness.contracts.model import Model
from harness.runs.atomic_files import decode_file

JOBS = "jobs.json"


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


class Line(msgspec.Struct):
    """A question or an answer in a file; the rest is read where it is used."""

    custom_id: str


line_of = msgspec.json.Decoder(Line).decode


def jobs_of(model: Model) -> dict[str, Job]:
    """The jobs of a model in its run by id; without a list of its own, what version 0.1 left."""
    assert model.folder is not None, "a run gives the folder"
    path, hint = model.folder / JOBS, "download the answers yourself, then give them with --answers"
    if not path.exists():
        path = model.folder.parent / JOBS
        if not path.exists():
            return {}
    jobs = decode_file(
        path.read_bytes(), list[Job], path, what="list of batches", version=1, hint=hint
    )
    left = (job for job in jobs if not job.model or (job.file_id and not job.ended))
    return {job.id: job for job in left if job.model in ("", model.identity.label)}


def refuse_open_batches(model: Model) -> dict[str, Job]:
    """Raise UsageError if a model that asks live would pay again what batches of its run answer.

    Where another model takes these up, they only answer the questions of the keys that return.
    """
    if model.folder is None:
        return {}
    left = [job for job in jobs_of(model).values() if job.file_id and not job.ended]
    if left and not model.taken_up:
        raise paid_twice(model, *left)
    return {key: job for job in left for key in keys_of(model.folder / f"{job.id}.jsonl")}


def paid_twice(model: Model, *left: Job) -> UsageError:
    """The error for a model that would ask live what these jobs answer."""
    assert model.folder is not None
    names = ", ".join(job.batch_id or f"of file {job.file_id}" for job in left)
    asked = sum(job.requests for job in left)
    if any((model.folder / f"{job.id}.out").exists() for job in left):
        what, hint = "answers of batches of this run are here", "which uses them"
    else:
        path = (model.folder.parent if left[0].model else model.folder) / JOBS
        what, hint = "batches of this run are open", "which takes them up; to ask live all the "
        hint += f"same, cancel them at the service and delete {path}"
    return UsageError(
        f"{what}: asked live, their questions would be paid twice",
        where=model.identity.label,
        found=f"{len(left):,} with {asked:,} requests: {names}",
        expected="batch=true among this model's arguments, as when they were sent",
        hint=f"repeat the command with batch=true, {hint}",
    )


def keys_of(requests: Path) -> list[str]:
    """The keys of the questions in a file of requests."""
    return [line_of(line).custom_id for line in requests.read_bytes().splitlines()]
