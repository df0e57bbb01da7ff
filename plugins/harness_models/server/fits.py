"""Looks at the weights of a server before its start: can they be had, and do they fit?"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from harness.contracts.finding import WEIGHTS, Finding, bad, doubtful, good
from harness_models.server.gpus import ALL, SMI, GpuMemory, GpusUnknown, look_at

HUB_SECONDS = 10.0
GB = 10**9
MIB = 2**20
GIB = 2**30

ROOMY, MOST = 0.8, 0.95
"""The part of an engine's memory that weights may take, well and at most: the rest holds prompts
and answers."""

SIZES = (1, 2, 4, 8, 16)
"""The numbers of GPUs that divide the attention heads of most models."""

BYTES = {"F64": 8, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "F32": 2, "F16": 2, "BF16": 2, "I16": 2}
"""Bytes of a parameter by type, 1 for other types; servers load F32 in half precision."""

INDEX = "model.safetensors.index.json"
NO_ACCESS = "accept their licence on the hub, and set HF_TOKEN"


def weights_findings(
    model: str,
    *,
    folder: Path | None,
    revision: str | None,
    memory: GpuMemory | None = None,
    shards: int = 1,
    shrunk: bool = False,
) -> list[Finding]:
    """Findings about the weights: access, size, and whether they fit on the GPUs or in memory.

    `shards` GPUs hold the weights once. `shrunk` weights take less memory than their files.
    """
    folder = folder or _cached(model, revision)
    access = None if folder is not None else _no_access(model)
    size = _size_of_files(folder) if folder is not None else _size_on_hub(model, revision)
    if size is None:
        return [access or doubtful(WEIGHTS, "the size of the weights is not known")]
    text = f"{size / GB:.1f} GB of weights"
    problem = _does_not_fit(size, memory, shards)
    if problem is not None:
        says, to_do = problem
        finding = bad if memory is not None and not shrunk else doubtful
        fits = finding(WEIGHTS, f"{text} {says}", to_do)
    else:
        fits = good(WEIGHTS, f"{text} {'on the hub' if folder is None else 'on this machine'}")
    return [fits] if access is None else [fits, access]


def _does_not_fit(size: int, memory: GpuMemory | None, shards: int) -> tuple[str, str] | None:
    """Why the weights do not fit, and what to do; None if they do, or nothing is known."""
    if memory is None:
        room = _memory_of_machine()
        if size < room:
            return None
        return f"do not fit in the {room / GIB:.1f} GiB of memory here", "use smaller weights"
    try:
        gpus = look_at(ALL, os.environ).gpus if shutil.which(SMI) else ()
    except GpusUnknown:
        return None
    totals = [gpu.total for gpu in gpus if gpu.total is not None]
    if not totals:
        return None
    each = min(totals) * MIB
    room = each * memory.share
    if size <= room * MOST * shards:
        return None
    on = "1 GPU of" if len(totals) == 1 else f"{shards} of the {len(totals)} GPUs with"
    says = f"do not fit on {on} {each / GIB:.1f} GiB"
    for part in (ROOMY, MOST):
        enough = [n for n in SIZES if n <= len(totals) and size <= room * part * n]
        if enough:
            return says, f"set tensor_parallel_size={enough[0]}"
    return says, "use quantized weights (FP8, AWQ, GPTQ), or more GPUs"


def _memory_of_machine() -> int:
    """The bytes of this machine's memory and of its GPUs."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        gpus = look_at(ALL, os.environ).gpus if shutil.which(SMI) else ()
    except GpusUnknown:
        gpus = ()
    return pages + sum((gpu.total or 0) * MIB for gpu in gpus)


def _cached(model: str, revision: str | None) -> Path | None:
    """The folder of a repository in the hub's cache, if all its weights are there."""
    from huggingface_hub import constants, try_to_load_from_cache

    found = try_to_load_from_cache(
        model, "config.json", revision=revision, cache_dir=constants.HF_HUB_CACHE
    )
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    return folder if any(_weight_files(folder)) else None


def _weight_files(folder: Path) -> Iterator[Path]:
    """The files of a folder's weights; none if one of them is missing."""
    try:
        named = set(json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        named = set()
    if named:
        files = [folder / name for name in named]
        yield from files if all(file.is_file() for file in files) else ()
        return
    for suffix in (".safetensors", ".bin", ".pt", ".pth", ".gguf"):
        found = [file for file in folder.glob(f"*{suffix}") if file.is_file()]
        if found:
            yield from found
            return


def _size_of_files(folder: Path) -> int:
    size = sum(file.stat().st_size for file in _weight_files(folder))
    try:
        settings = json.loads((folder / "config.json").read_text("utf-8"))
        kind = settings.get("dtype") or settings.get("torch_dtype")
    except (OSError, ValueError, AttributeError):
        kind = None
    return size // 2 if kind == "float32" else size


def _no_access(model: str) -> Finding | None:
    """The finding that the weights cannot be fetched; None if they can."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if constants.HF_HUB_OFFLINE:
        says = "the weights are not in the cache, and HF_HUB_OFFLINE is set"
        return doubtful(WEIGHTS, says, "fetch them first, or give pretrained=FOLDER")
    try:
        HfApi().auth_check(model)
    except GatedRepoError:
        return bad(WEIGHTS, "the hub restricts access to these weights", NO_ACCESS)
    except RepositoryNotFoundError:
        return bad(WEIGHTS, "the hub has no such repository, or you have no access", NO_ACCESS)
    except Exception as error:  # the hub's client raises many types
        says = f"the hub cannot be asked about the weights: {type(error).__name__}"
        return doubtful(WEIGHTS, says, "the start fails if they are not in the cache")
    return None


def _size_on_hub(model: str, revision: str | None) -> int | None:
    from huggingface_hub import HfApi

    try:
        about = HfApi().model_info(
            model, revision=revision, files_metadata=True, timeout=HUB_SECONDS
        )
    except Exception:  # the hub's client raises many types
        return None
    if about.safetensors is not None:
        counts = about.safetensors.parameters.items()
        return sum(count * BYTES.get(kind, 1) for kind, count in counts)
    files = {each.rfilename: each.size or 0 for each in about.siblings or ()}
    for suffix in (".safetensors", ".bin"):
        sizes = [size for name, size in files.items() if name.endswith(suffix)]
        if sizes:
            return sum(sizes)
    return None
