"""Checks the memory of NVIDIA GPUs: free before an engine starts, and freed after it has ended.

The figures come from `nvidia-smi`. If it is missing or lacks the figures, nothing is checked.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.base.errors import ModelError
from harness.contracts.finding import Finding, bad, bad_by, doubtful, good
from harness.reporting.text import clean_text

GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu")
"""Files of which a machine with a GPU's driver has one."""

SMI = "nvidia-smi"
SMI_SECONDS = 60.0
"""Long, because nvidia-smi first wakes sleeping GPUs one after the other."""

GPU_FIELDS = "index,uuid,name,memory.total,memory.used,memory.free"
HOLDER_FIELDS = "pid,gpu_uuid,used_memory,process_name"

GPU = "gpu"
"""The subject of findings."""

ALL = 1024
"""More GPUs than a machine has."""

MIB, MIB_OF_GIB = 2**20, 1024

BACK_SECONDS = 30.0
"""Ample: the driver frees memory within two seconds of a process's end."""

LOOK_SECONDS = 0.5
MARGIN = 256
"""The MiB by which the driver's own use varies."""

LEAST_SHARE = 0.05
"""Below this share of the GPU, a smaller gpu_memory_utilization does not help."""

STARTUP_SHARE = 0.02
"""The share that an engine occupies before it measures the free memory."""

ROOMY, TIGHT = 0.8, 0.95
"""The part of an engine's memory that weights may take: the rest holds prompts and answers. The
second is for weights that would fit no other way."""

SYSTEM_MANAGED = re.compile(r"\bG[BH]\d")
"""GPUs whose memory the operating system manages: it may count ended processes as users."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that holds memory of a GPU, in MiB; None if it is unknown how much."""

    pid: int
    mib: int | None
    name: str

    def __str__(self) -> str:
        held = "memory" if self.mib is None else f"{self.mib} MiB"
        return f"process {self.pid} ({self.name}) holds {held}"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU with its memory in MiB, None where it is unknown, and who holds most of it first."""

    index: str
    uuid: str
    name: str
    total: int | None
    used: int | None
    free: int | None
    holders: tuple[Holder, ...] = ()

    @property
    def label(self) -> str:
        """The GPU's name in messages."""
        return f"GPU {self.index} ({self.name})"

    @property
    def held_by(self) -> str:
        """Its holders in messages."""
        return "; ".join(map(str, self.holders)) or "no visible process"


class GpusUnknown(Exception):
    """The GPUs' memory is unknown, for the reason in the message."""


def parallelism(
    weights_bytes: int, gpus: int, memory: int, share: float, *, heads: int | None = None
) -> int | None:
    """How many GPUs with `memory` bytes each hold weights once; None if they do not fit.

    An engine takes `share` of the memory. As few GPUs as possible hold them, 1, 2, 4, 8 and so on,
    if they divide the model's attention `heads`.
    """
    sizes = [size for size in (2**n for n in range(gpus.bit_length())) if size <= gpus]
    for part in (ROOMY, TIGHT):
        for size in sizes:
            divides = heads is None or heads % size == 0
            if divides and weights_bytes / size <= memory * share * part:
                return size
    return None


@dataclass(frozen=True, kw_only=True)
class GpuMemory:
    """The GPU memory that an engine needs: a `share` of each of `count` GPUs.

    `name` is the engine's in messages; `patience` is the seconds to wait for its memory to be
    freed; `chosen` are the variables that choose its GPUs.
    """

    name: str
    count: int
    share: float
    patience: float = BACK_SECONDS
    chosen: Mapping[str, str] = field(default_factory=dict)

    def make_and_driver(self) -> dict[str, Any]:
        """The make of its GPUs, their number and driver; empty if unknown."""
        try:
            gpus = visible(listed(), {**os.environ, **self.chosen})[: self.count]
            drivers = dict.fromkeys(_query("--query-gpu=driver_version"))
        except GpusUnknown:
            return {}
        makes = ", ".join(dict.fromkeys(gpu.name for gpu in gpus))
        return {"gpu": makes, "gpus": len(gpus), "driver": ", ".join(drivers)} if gpus else {}

    def look(self) -> list[Gpu]:
        """Its GPUs now; GpusUnknown if nvidia-smi does not list their memory."""
        return look_at(self.count, {**os.environ, **self.chosen})

    async def before_start(self, show: Callable[[str], None]) -> list[Gpu] | None:
        """Its GPUs now, None if unknown; ModelError if too little of their memory is free."""
        if shutil.which(SMI) is None:
            return None
        try:
            gpus = await asyncio.to_thread(self.look)
        except GpusUnknown as error:
            show(f"{self.name}: cannot check the GPU's free memory: {error}")
            return None
        self.check_enough_free(gpus)
        return gpus

    def check_enough_free(self, gpus: Sequence[Gpu]) -> None:
        """Raise ModelError if less memory is free than needed, with its holders and a hint."""
        short = [
            (gpu.free / gpu.total, gpu)
            for gpu in gpus
            if gpu.free is not None and gpu.total and gpu.free < math.ceil(gpu.total * self.share)
        ]
        if not short:
            return
        free, gpu = min(short, key=lambda each: each[0])
        wanted = math.ceil((gpu.total or 0) * self.share)
        share = math.floor((free - STARTUP_SHARE) * 100) / 100
        cures = ["end the processes that hold it"] if gpu.holders else []
        if share >= LEAST_SHARE:
            cures.append(f"set gpu_memory_utilization={share:.2f}")
        raise ModelError(
            f"too little of the GPU's memory is free: {gpu.free} of {gpu.total} MiB, and "
            f"gpu_memory_utilization={self.share:g} needs {wanted}",
            where=f"{self.name} on {gpu.label}",
            found=gpu.held_by,
            hint=", or ".join(cures) or "choose another GPU with CUDA_VISIBLE_DEVICES",
        )

    async def wait_until_freed(self, before: Sequence[Gpu], *, ours: Collection[int]) -> None:
        """Return when the memory is as free as `before`; ModelError names the processes in it.

        `ours` are the processes that the engine had.
        """
        then = {gpu.uuid: gpu for gpu in before}
        deadline = time.monotonic() + self.patience
        while True:
            try:
                now = await asyncio.to_thread(self.look)
            except GpusUnknown as error:
                raise ModelError(
                    "cannot verify that the GPU memory was freed",
                    where=self.name,
                    found=str(error),
                ) from error
            left = [gpu for gpu in now if not _is_freed(gpu, then.get(gpu.uuid, gpu), ours)]
            if not left:
                return
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(LOOK_SECONDS)
        gpu = left[0]
        end = "end the processes that hold it, then repeat the command"
        raise ModelError(
            f"the GPU's memory is not free {self.patience:g} s after the engine ended: "
            f"{gpu.used} MiB are in use, and {then[gpu.uuid].used} were before the engine started",
            where=f"{self.name} on {gpu.label}",
            found=gpu.held_by,
            hint=f"{end if gpu.holders else 'repeat the command once it is free'}: the run "
            "continues",
        )


def _is_freed(now: Gpu, then: Gpu, ours: Collection[int]) -> bool:
    """True if a GPU holds no more than before, apart from the memory of new foreign processes."""
    known = {holder.pid for holder in then.holders}
    new = [holder.pid for holder in now.holders if holder.pid not in known]
    if not set(new).isdisjoint(ours):
        return False
    # A process without an entry in /proc may be ours under its number outside the container.
    foreign = known | {pid for pid in new if Path(f"/proc/{pid}").exists()}
    held = [holder.mib for holder in now.holders if holder.pid in foreign]
    held_then = [holder.mib for holder in then.holders]
    if None in (now.used, then.used, *held, *held_then):
        return True
    more = (now.used or 0) - (then.used or 0)
    return more <= sum(mib or 0 for mib in held) - sum(mib or 0 for mib in held_then) + MARGIN


def look_at(count: int, environment: Mapping[str, str]) -> list[Gpu]:
    """The first `count` GPUs that CUDA shows in this environment, which may be none.

    GpusUnknown if nvidia-smi does not list their memory.
    """
    chosen = visible(listed(), environment)[:count]
    if any(gpu.total is None or gpu.used is None or gpu.free is None for gpu in chosen):
        raise GpusUnknown(f"{SMI} does not list the memory of {chosen[0].label}")
    holders: dict[str, list[Holder]] = {}
    for line in _query(f"--query-compute-apps={HOLDER_FIELDS}"):
        row = line.split(", ", 3)
        if len(row) == 4 and row[0].isdecimal():
            name = clean_text(row[3], limit=80)
            one = Holder(pid=int(row[0]), mib=_mib(row[2]), name=name)
            holders.setdefault(row[1], []).append(one)
    for each in holders.values():
        each.sort(key=lambda holder: -(holder.mib or 0))
    return [replace(gpu, holders=tuple(holders.get(gpu.uuid, ()))) for gpu in chosen]


def listed() -> list[Gpu]:
    """All GPUs of this machine; GpusUnknown if nvidia-smi does not list them."""
    rows = [row.split(", ") for row in _query(f"--query-gpu={GPU_FIELDS}")]
    if any(len(row) != GPU_FIELDS.count(",") + 1 for row in rows):
        raise GpusUnknown(f"{SMI} lists GPUs in an unknown format")
    found = []
    for index, uuid, name, *memory in rows:
        managed = SYSTEM_MANAGED.search(name)
        total, used, free = (None if managed else _mib(text) for text in memory)
        found.append(Gpu(index=index, uuid=uuid, name=name, total=total, used=used, free=free))
    return found


def chosen_by(numbers: Sequence[str]) -> dict[str, str]:
    """The variables that show CUDA the GPUs with these numbers of nvidia-smi; none for none."""
    if not numbers:
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(numbers), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def visible(gpus: list[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that CUDA shows in this environment, in its order; GpusUnknown if it is open."""
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    mixed = len({gpu.name for gpu in gpus}) > 1
    ordered = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    names = [part.strip() for part in wanted.split(",")] if wanted else []
    if mixed and not ordered and not all(name.startswith("GPU-") for name in names or [""]):
        raise GpusUnknown("the GPUs are of several kinds, and CUDA_DEVICE_ORDER is not PCI_BUS_ID")
    if wanted is None:
        return gpus
    found = []
    for name in names:
        if name.startswith("MIG-"):
            raise GpusUnknown("CUDA_VISIBLE_DEVICES names a part of a GPU")
        match = [gpu for gpu in gpus if name == gpu.index or gpu.uuid.startswith(name or "-")]
        if len(match) != 1:
            break  # CUDA ignores the first wrong name and all names after it
        found += match
    return found


def gpu_findings(memory: GpuMemory | None) -> Iterator[Finding]:
    """Findings about the GPUs that a server would see: their free memory, and if it is enough.

    `memory` is what the server needs; None if it can run without GPUs.
    """
    not_good = good if memory is None else doubtful
    try:
        gpus = look_at(ALL, os.environ) if memory is None else memory.look()
    except GpusUnknown as error:
        absent = f"{SMI} is not installed, so NVIDIA GPUs are unknown"
        yield not_good(GPU, f"unknown: {error}" if shutil.which(SMI) else absent)
        return
    if not gpus:
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = "" if chosen is None else f"; CUDA_VISIBLE_DEVICES is {chosen!r}"
        yield (good if memory is None else bad)(GPU, f"{SMI} shows no GPU that CUDA can use{why}")
    elif memory is not None and len(gpus) < memory.count:
        asked = "tensor_parallel_size × pipeline_parallel_size × data_parallel_size"
        says = f"{memory.count} GPUs are needed, and there are {len(gpus)}"
        yield bad(GPU, says, f"set {asked} to {len(gpus)} at most")
        return
    if memory is not None:
        try:
            memory.check_enough_free(gpus)
        except ModelError as error:
            yield bad_by(GPU, error)
            return
    for gpu in gpus:
        free = f"{(gpu.free or 0) / MIB_OF_GIB:.1f} of {(gpu.total or 0) / MIB_OF_GIB:.1f} GiB free"
        yield good(GPU, f"{gpu.label}, {free}")


def _mib(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def _query(query: str) -> list[str]:
    command = [SMI, query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SMI_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GpusUnknown(f"{SMI}: {error}") from error
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        why = lines or done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise GpusUnknown(f"{SMI}: {clean_text(why[0], limit=200)}")
    return lines
