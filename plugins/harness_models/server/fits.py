"""Looks at the weights of a server before its start: can they be had, and do they fit?"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

from harness.contracts.finding import WEIGHTS, Finding, NotReady, bad, doubtful, good
from harness_models.server.gpus import (
    ALL,
    MIB,
    SMI,
    TIGHT,
    GpuMemory,
    GpusUnknown,
    look_at,
    parallelism,
)
from harness_models.server.weights import Weights

GB = 10**9
GIB = 1024 * MIB

FETCH = "fetch the weights where there is a network, or give pretrained=FOLDER"
NO_ACCESS = "accept their licence on the hub, and set HF_TOKEN"


def not_ready(
    weights: Weights, *, elsewhere: bool = False, **obstacles: tuple[str, str]
) -> NotReady:
    """The error of a server that cannot start here, with what is wrong with its weights as well.

    `obstacles` have what was found and what to do, as `gpu=("none", "use a server")`.
    """
    found = [bad(about, *texts) for about, texts in obstacles.items()]
    more = weights_findings(weights, elsewhere=elsewhere)
    return NotReady([*found, *(one for one in more if one.to_do)])


def weights_findings(
    weights: Weights,
    *,
    memory: GpuMemory | None = None,
    shards: int = 1,
    shrunk: bool = False,
    elsewhere: bool = False,
) -> list[Finding]:
    """Findings about the weights: access, size, and whether they fit on the GPUs or in memory.

    `shards` GPUs hold the weights once. `shrunk` weights take less memory than their files. Weights
    may be `elsewhere` than on the hub and in its cache: then these decide nothing.
    """
    here = weights.here() is not None
    access = None if here else _no_access(weights.name, elsewhere=elsewhere)
    if access is not None and access.to_do == FETCH:
        return [access]
    size = weights.size()
    if size is None:
        return [access or doubtful(WEIGHTS, "the size of the weights is not known")]
    text = f"{size / GB:.1f} GB of weights"
    if problem := _does_not_fit(size, memory, shards):
        finding = bad if memory is not None and not shrunk else doubtful
        fits = finding(WEIGHTS, f"{text} {problem[0]}", problem[1])
    else:
        fits = good(WEIGHTS, f"{text} {'on this machine' if here else 'on the hub'}")
    return [fits] if access is None else [fits, access]


def _does_not_fit(size: int, memory: GpuMemory | None, shards: int) -> tuple[str, str] | None:
    """Why the weights do not fit, and what to do; None if they do, or nothing is known."""
    if memory is None:
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        room += sum(_gpu_memories({}))
        if size < room:
            return None
        return f"do not fit in the {room / GIB:.1f} GiB of memory here", "use smaller weights"
    totals = _gpu_memories(memory.chosen)
    if not totals:
        return None
    each = min(totals)
    room = each * memory.share
    if size <= room * TIGHT * shards:
        return None
    on = "1 GPU of" if len(totals) == 1 else f"{shards} of the {len(totals)} GPUs with"
    says = f"do not fit on {on} {each / GIB:.1f} GiB"
    spread = parallelism(size, len(totals), each, memory.share)
    if spread is not None:
        return says, f"set tensor_parallel_size={spread}"
    return says, "use quantized weights (FP8, AWQ, GPTQ), or more GPUs"


def _gpu_memories(chosen: Mapping[str, str]) -> list[int]:
    """The bytes of each GPU that these variables and the environment leave; none if unknown."""
    try:
        gpus = look_at(ALL, {**os.environ, **chosen}) if shutil.which(SMI) else []
    except GpusUnknown:
        return []
    return [gpu.total * MIB for gpu in gpus if gpu.total is not None]


def _no_access(model: str, *, elsewhere: bool) -> Finding | None:
    """The finding that the weights cannot be fetched; None if they can."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    finding = doubtful if elsewhere else bad
    billions = re.search(r"(?<![\w.])(\d+(\.\d+)?)[Bb]\b", model)
    smaller = re.search(r"awq|gptq|gguf|fp8|int[48]|[48]bit", model, re.IGNORECASE)
    # By the name, as weights of 16 bits.
    about = f" (about {2 * float(billions[1]):.0f} GB)" if billions and not smaller else ""
    absent = f"{model}{about} is not in the cache"
    if constants.HF_HUB_OFFLINE:
        return finding(WEIGHTS, f"{absent}, and HF_HUB_OFFLINE is set", FETCH)
    try:
        HfApi().auth_check(model.partition(":")[0])
    except GatedRepoError:
        return bad(WEIGHTS, "the hub restricts access to these weights", NO_ACCESS)
    except RepositoryNotFoundError:
        return bad(WEIGHTS, "the hub has no such repository, or you have no access", NO_ACCESS)
    except (HfHubHTTPError, ValueError, TypeError) as error:  # such as a token of other letters
        says = f"the hub cannot be asked about the weights: {type(error).__name__}"
        return doubtful(WEIGHTS, says, "the start fails if they are not in the cache")
    except Exception:  # any other error of the transport: no answer came
        return finding(WEIGHTS, f"{absent}, and the hub cannot be reached", FETCH)
    return None
