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


def jobs_of(model: Model) -> dict[str, Job]:
    """The jobs of a model in its run by id, with those that version 0.1 did not collect."""
    assert model.folder is not None, "a run gives the folder"
    left = (job for job in _jobs_in(model.folder.parent) if job.file_id and not job.ended)
    first = {job.id: job for job in left if job.model == model.identity.label}
    return first | {job.id: job for job in _jobs_in(model.folder)}


def _jobs_in(folder: Path) -> list[Job]:
    path, hint = folder / JOBS, "download the answers yourself, then give them with --answers"
    if not path.exists():
        return []
    return decode_file(
        path.read_bytes(), list[Job], path, what="list of batches", version=1, hint=hint
    )


def refuse_open_batches(model: Model) -> None:
    """Raise UsageError if a model that asks live would pay again what batches of its run answer."""
    if model.folder is None:
        return
    if left := [job for job in jobs_of(model).values() if job.file_id and not job.ended]:
        names = ", ".join(job.batch_id or f"of file {job.file_id}" for job in left)
        asked = sum(job.requests for job in left)
        own, first = model.folder, model.folder.parent  # the second is that of version 0.1
        lists = {str((first if job.model else own) / JOBS) for job in left}
        raise UsageError(
            "batches of this run are open: asked live, their questions would be paid twice",
            where=model.identity.label,
            found=f"{len(left):,} with {asked:,} requests: {names}",
            expected="batch=true among this model's arguments, as when they were sent",
            hint="repeat the command with batch=true, which takes them up; to ask live all the "
            f"same, cancel them at the service and delete {' and '.join(sorted(lists))}",
        )
