"""Which GPUs the engines of a vLLM use, and how many of them hold the weights once."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence

from harness.base.errors import UsageError
from harness_models.server.gpus import (
    MIB,
    SMI,
    Gpu,
    GpusUnknown,
    chosen_by,
    listed,
    parallelism,
    visible,
)
from harness_models.vllm_args import DEFAULT_SHARE, VllmArgs

TENSOR, PIPELINE, DATA = "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"
MANUAL = (
    "data_parallel_", "prefill_context_parallel_size", "nnodes", "node_rank", "device_ids",
    "headless",
)  # fmt: skip
"""Beginnings of arguments that place the engines by hand."""


def gpus_needed(engine: Mapping[str, str]) -> int:
    """The number of GPUs that the engines of these arguments use."""
    return math.prod(int(engine.get(size, "1")) for size in (TENSOR, PIPELINE, DATA))


def gpus_of(args: VllmArgs, environment: Mapping[str, str]) -> Sequence[Gpu]:
    """The GPUs that the engines may use; none if they are unknown.

    UsageError if `gpus` names one that is not there, or that the environment hides.
    """
    if shutil.which(SMI) is None:
        return ()
    try:
        shown = visible(listed(), environment)
        if not args.gpus:
            return shown
        found = visible(shown, chosen_by(args.gpus))
    except GpusUnknown:
        return ()
    if len(found) < len(args.gpus):
        hidden = environment.get("CUDA_VISIBLE_DEVICES")
        raise UsageError(
            "gpus names a GPU that this run cannot use",
            where="--model_args",
            found=f"gpus={','.join(args.gpus)}",
            expected=f"some of {', '.join(gpu.index for gpu in shown) or 'none'}"
            + ("" if hidden is None else f", which CUDA_VISIBLE_DEVICES={hidden} shows"),
        )
    return found


def place(
    engine: Mapping[str, str], gpus: Sequence[Gpu], *, weights: int | None, heads: int | None
) -> tuple[dict[str, str], str]:
    """The sizes that the arguments leave open, and a line for the user about the GPUs.

    `weights` is the size of the weights in bytes and `heads` the model's attention heads; None if
    unknown.
    """
    pipeline = int(engine.get(PIPELINE, "1"))
    room = len(gpus) // (pipeline * int(engine.get(DATA, "1")))
    tensor = int(engine[TENSOR]) if TENSOR in engine else 1
    totals = [gpu.total for gpu in gpus if gpu.total is not None]
    if TENSOR not in engine and weights is not None and room > 0 and len(totals) == len(gpus):
        memory, share = (
            min(totals) * MIB,
            float(engine.get("gpu_memory_utilization", DEFAULT_SHARE)),
        )
        spread = parallelism(weights // pipeline, room, memory, share, heads=heads)
        # As many as there is room for, if the weights do not fit.
        tensor = spread or 2 ** (room.bit_length() - 1)
    data = int(engine.get(DATA, max(1, len(gpus) // (tensor * pipeline))))
    sizes = {name: str(size) for name, size in ((TENSOR, tensor), (DATA, data)) if size > 1}
    each = tensor * pipeline
    idle = len(gpus) - each * data
    gpus_each = f"{each} GPU{'s' if each > 1 else ''}"
    engines = f"1 engine with {gpus_each}" if data == 1 else f"{data} engines with {gpus_each} each"
    left = f", and {idle} {'is' if idle == 1 else 'are'} left idle" if idle > 0 else ""
    said = f"{engines}, of {len(gpus)}{left}"
    return {name: size for name, size in sizes.items() if name not in engine}, said
