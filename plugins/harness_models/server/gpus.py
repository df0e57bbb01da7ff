"""The memory of NVIDIA's GPUs: free before an engine starts, and back after it has ended.

`nvidia-smi` is asked, by name. Where it is not there, or cannot tell, nothing is held against it.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import ModelError
from harness.contracts.finding import Finding, bad, bad_by, doubtful, good
from harness.reporting.text import clean_text

SMI = "nvidia-smi"
SMI_SECONDS = 60.0
"""It wakes sleeping GPUs first, one after the other."""

GPU_FIELDS = "index,uuid,name,memory.total,memory.used,memory.free"
HOLDER_FIELDS = "pid,gpu_uuid,used_memory,process_name"

GPU = "gpu"
"""What findings of it are about."""

ALL = 1024
"""More GPUs than a machine has."""

MIB_OF_GIB = 1024

BACK_SECONDS = 30.0
"""The driver gives memory back within a second or two of a process's end."""

LOOK_SECONDS = 0.5
MARGIN = 256
"""MiB that the driver itself takes more or less of."""

LEAST_SHARE = 0.05
"""Below it, a smaller share of the GPU is no cure."""

BESIDE = 0.02
"""The share that an engine's own beginnings take before it looks at what is free."""

OF_THE_SYSTEM = re.compile(r"\bG[BH]\d")
"""GPUs whose memory the operating system manages: what ended may still be counted as used."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU, its memory in MiB; None where nobody can tell."""

    index: str
    uuid: str
    name: str
    total: int | None
    used: int | None
    free: int | None

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"GPU {self.index} ({self.name})"


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that holds memory of a GPU, in MiB; None where it is not told."""

    pid: int
    uuid: str
    mib: int | None
    name: str

    def __str__(self) -> str:
        held = "memory" if self.mib is None else f"{self.mib} MiB"
        return f"process {self.pid} ({self.name}) holds {held}"


@dataclass(frozen=True, kw_only=True)
class Look:
    """What GPUs hold at one moment, and for whom."""

    gpus: tuple[Gpu, ...]
    holders: tuple[Holder, ...]

    def of(self, gpu: Gpu) -> tuple[Holder, ...]:
        """The processes on one GPU, the largest first."""
        there = (holder for holder in self.holders if holder.uuid == gpu.uuid)
        return tuple(sorted(there, key=lambda holder: -(holder.mib or 0)))


class Unseen(Exception):
    """Why nobody can tell what the GPUs hold."""


@dataclass(frozen=True, kw_only=True)
class GpuMemory:
    """What an engine wants of the machine's GPUs: so many, and such a share of each.

    `patience` is how many seconds its memory may take to come back.
    """

    name: str
    count: int
    share: float
    patience: float = BACK_SECONDS

    async def before_start(self, tell: Callable[[str], None]) -> Look | None:
        """What is held now; ModelError where too little is free, None where nobody can tell."""
        if shutil.which(SMI) is None:
            return None
        try:
            look = await asyncio.to_thread(look_at, self.count, os.environ)
        except Unseen as unseen:
            tell(f"{self.name}: whether the GPU's memory is free is not known: {unseen}")
            return None
        self.refuse_too_little(look)
        return look

    def refuse_too_little(self, look: Look) -> None:
        """Raise ModelError where less is free than is wanted, with who holds it and what helps."""
        short = [
            (gpu.free / gpu.total, gpu)
            for gpu in look.gpus
            if gpu.free is not None and gpu.total and gpu.free < math.ceil(gpu.total * self.share)
        ]
        if not short:
            return
        free, gpu = min(short, key=lambda each: each[0])
        wanted = math.ceil((gpu.total or 0) * self.share)
        holders = look.of(gpu)
        share = math.floor((free - BESIDE) * 100) / 100
        cures = ["end what holds it"] if holders else []
        if share >= LEAST_SHARE:
            cures.append(f"gpu_memory_utilization={share:.2f}")
        raise ModelError(
            f"too little of the GPU's memory is free: {gpu.free} of {gpu.total} MiB, and "
            f"gpu_memory_utilization={self.share:g} wants {wanted}",
            where=f"{self.name} on {gpu.label}",
            found="; ".join(str(holder) for holder in holders) or "no process that is shown",
            hint=", or ".join(cures) or "another GPU: CUDA_VISIBLE_DEVICES chooses it",
        )

    async def given_back(self, before: Look, *, ours: Collection[int]) -> None:
        """Return when the memory is as free as it was before; ModelError tells who holds it.

        `ours` are the processes that the engine had.
        """
        deadline = time.monotonic() + self.patience
        while True:
            try:
                now = await asyncio.to_thread(look_at, self.count, os.environ)
            except Unseen as unseen:
                raise ModelError(
                    "whether the GPU's memory has come back cannot be told any more",
                    where=self.name,
                    found=str(unseen),
                ) from unseen
            left = [gpu for gpu in now.gpus if not _is_back(gpu, before, now, ours=ours)]
            if not left:
                return
            if time.monotonic() >= deadline:
                raise self._not_back(left[0], before, now)
            await asyncio.sleep(LOOK_SECONDS)

    def _not_back(self, gpu: Gpu, before: Look, now: Look) -> ModelError:
        used = next(each.used for each in before.gpus if each.uuid == gpu.uuid)
        holders = "; ".join(str(holder) for holder in now.of(gpu))
        return ModelError(
            f"the GPU's memory has not come back {self.patience:g} s after the engine ended: "
            f"{gpu.used} MiB are in use, and {used} were before it",
            where=f"{self.name} on {gpu.label}",
            found=holders or "no process that is shown",
            hint="end what holds it; the same command goes on"
            if holders
            else "the same command goes on once it is free",
        )


def _is_back(gpu: Gpu, before: Look, now: Look, *, ours: Collection[int]) -> bool:
    """Whether a GPU holds no more than it did, apart from what others have taken since."""
    then = next((each for each in before.gpus if each.uuid == gpu.uuid), gpu)
    known = {holder.pid for holder in before.of(gpu)}
    holders = now.of(gpu)
    # One that cannot be seen here may be ours under the number that its container's host gave it.
    others = [
        holder
        for holder in holders
        if holder.pid in known or (holder.pid not in ours and Path(f"/proc/{holder.pid}").exists())
    ]
    if any(holder.pid in ours and holder.pid not in known for holder in holders):
        return False
    sums = _together(others), _together(before.of(gpu))
    if gpu.used is None or then.used is None or sums[0] is None or sums[1] is None:
        return True
    return gpu.used - sums[0] <= then.used - sums[1] + MARGIN


def _together(holders: Collection[Holder]) -> int | None:
    held = [holder.mib for holder in holders]
    return None if None in held else sum(mib for mib in held if mib is not None)


def look_at(count: int, environment: Mapping[str, str]) -> Look:
    """What the first so many GPUs hold that a process of this environment sees; Unseen tells why.

    None of them where it sees none.
    """
    rows = [row.split(", ") for row in _asked(f"--query-gpu={GPU_FIELDS}")]
    if any(len(row) != GPU_FIELDS.count(",") + 1 for row in rows):
        raise Unseen(f"{SMI} lists GPUs in a way that is not known")
    chosen = visible([_gpu(row) for row in rows], environment)[:count]
    if any(gpu.total is None or gpu.used is None or gpu.free is None for gpu in chosen):
        raise Unseen(f"{SMI} does not tell the memory of {chosen[0].label}")
    holders = [
        Holder(pid=int(row[0]), uuid=row[1], mib=_mib(row[2]), name=clean_text(row[3], limit=80))
        for line in _asked(f"--query-compute-apps={HOLDER_FIELDS}")
        if len(row := line.split(", ", 3)) == 4 and row[0].isdecimal()
    ]
    return Look(gpus=tuple(chosen), holders=tuple(holders))


def visible(gpus: list[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that CUDA shows in this environment, in its order; Unseen where that is open."""
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    unlike = len({gpu.name for gpu in gpus}) > 1
    ordered = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    names = [part.strip() for part in wanted.split(",")] if wanted else []
    if unlike and not ordered and not all(name.startswith("GPU-") for name in names or [""]):
        raise Unseen("the GPUs are of several kinds, and CUDA_DEVICE_ORDER is not PCI_BUS_ID")
    if wanted is None:
        return gpus
    found = []
    for name in names:
        if name.startswith("MIG-"):
            raise Unseen("CUDA_VISIBLE_DEVICES names a part of a GPU")
        match = [gpu for gpu in gpus if name == gpu.index or gpu.uuid.startswith(name or "-")]
        if len(match) != 1:
            break  # CUDA itself sees nothing from the first wrong name on
        found += match
    return found


def gpu_findings(memory: GpuMemory | None) -> Iterator[Finding]:
    """The GPUs that a server would see with what is free of them, and whether that is enough."""
    not_good = good if memory is None else doubtful
    if shutil.which(SMI) is None:
        yield not_good(GPU, f"no {SMI} here, so nothing is known of NVIDIA GPUs")
        return
    try:
        look = look_at(ALL if memory is None else memory.count, os.environ)
    except Unseen as unseen:
        yield not_good(GPU, f"not known: {unseen}")
        return
    if not look.gpus:
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = "" if chosen is None else f"; CUDA_VISIBLE_DEVICES is {chosen!r}"
        yield (good if memory is None else bad)(GPU, f"{SMI} shows none that CUDA would see{why}")
    if memory is not None:
        try:
            memory.refuse_too_little(look)
        except ModelError as error:
            yield bad_by(GPU, error)
            return
    for gpu in look.gpus:
        free = f"{(gpu.free or 0) / MIB_OF_GIB:.1f} of {(gpu.total or 0) / MIB_OF_GIB:.1f} GiB free"
        yield good(GPU, f"{gpu.label}, {free}")


def _gpu(row: list[str]) -> Gpu:
    index, uuid, name, *memory = row
    told = [None] * 3 if OF_THE_SYSTEM.search(name) else [_mib(text) for text in memory]
    return Gpu(index=index, uuid=uuid, name=name, total=told[0], used=told[1], free=told[2])


def _mib(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def _asked(query: str) -> list[str]:
    command = [SMI, query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SMI_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unseen(f"{SMI}: {error}") from error
    said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        why = said or done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Unseen(f"{SMI}: {clean_text(why[0], limit=200)}")
    return said
