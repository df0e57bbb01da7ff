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


def jobs_in(path: Path) -> list[Job]:
    """The jobs that a list has, none without the list; DataError if it cannot be read."""
    if not path.exists():
        return []
    hint = "download the answers yourself, then give them with --answers"
    return decode_file(
        path.read_bytes(), list[Job], path, what="list of batches", version=1, hint=hint
    )


def refuse_open_batches(model: Model) -> None:
    """Raise UsageError if a model that asks live would pay again what batches of its run answer."""
    if model.folder is None:
        return
    label = model.identity.label
    files = model.folder.parent / JOBS, model.folder / JOBS  # the first is of version 0.1
    noted = {job.id: (job, file) for file in files for job in jobs_in(file)}
    left = [
        (job, file)
        for job, file in noted.values()
        if job.file_id and not job.ended and job.model in ("", label)
    ]
    if left:
        names = ", ".join(job.batch_id or f"of file {job.file_id}" for job, _ in left)
        asked = sum(job.requests for job, _ in left)
        lists = " and ".join(dict.fromkeys(str(file) for _, file in left))
        raise UsageError(
            "batches of this run are open: asked live, their questions would be paid twice",
            where=label,
            found=f"{len(left):,} with {asked:,} requests: {names}",
            expected="batch=true among this model's arguments, as when they were sent",
            hint="repeat the command with batch=true, which takes them up; to ask live all the "
            f"same, cancel them at the service and delete {lists}",
        )
