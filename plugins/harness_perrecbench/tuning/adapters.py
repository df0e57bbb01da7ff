"""Merges LoRA adapters into one: the linear combination of their changes to the weights."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from harness import DataError
from harness.analysis.tool_report import check_empty
from harness.base.errors import UsageError
from harness.contracts.report import Report, Sheet
from harness.runs.atomic_files import atomic_write, make_folder

if TYPE_CHECKING:
    import numpy as np

OUT = "--out"
CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
A, B = ".lora_A.weight", ".lora_B.weight"
SAME = ("peft_type", "base_model_name_or_path", "revision", "target_modules", "fan_in_fan_out")
"""Settings that must be equal, so that adapters have the same base model and modules."""

PLAIN: Mapping[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "use_dora": (False,),
    "modules_to_save": (None, []),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "layers_to_transform": (None, []),
    "trainable_token_indices": (None, [], {}),
    "init_lora_weights": (True, False, None, "gaussian", "eva", "orthogonal"),
}
"""Allowed values: the adapter is then a product of two matrices per module, and nothing else."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `harness perrec merge-adapters`."""

    pointwise: Annotated[Path, msgspec.Meta(description="the adapter trained pointwise, a folder")]
    pairwise: Annotated[Path, msgspec.Meta(description="the adapter trained pairwise, a folder")]
    listwise: Annotated[Path, msgspec.Meta(description="the adapter trained listwise, a folder")]
    out: Annotated[Path, msgspec.Meta(description="the folder to write the merged adapter to")]
    alpha: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="the weight of the pointwise adapter")
    ] = 1 / 3
    beta: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="the weight of the pairwise adapter")
    ] = 1 / 3
    method: Annotated[
        Literal["products", "factors"],
        msgspec.Meta(
            description="products: the exact sum of the adapters' changes to the weights; "
            "factors: separate averages of A and B, as in the authors' code"
        ),
    ] = "products"


class _Needed(msgspec.Struct):
    """Required settings of a configuration."""

    r: Annotated[int, msgspec.Meta(ge=1)]
    lora_alpha: float
    base_model_name_or_path: str


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """One adapter: its configuration and its matrices in single precision, by module."""

    folder: Path
    config: dict[str, Any]
    a: dict[str, np.ndarray]
    b: dict[str, np.ndarray]

    @property
    def rank(self) -> int:
        """The inner dimension of its products."""
        return int(self.config["r"])

    @property
    def shapes(self) -> dict[str, str]:
        """The dimensions of each module's product."""
        return {name: f"{left.shape[0]} x {self.a[name].shape[1]}" for name, left in self.b.items()}

    @property
    def scaling(self) -> float:
        """The factor of its products in the weights."""
        root = math.sqrt(self.rank) if self.config.get("use_rslora") else self.rank
        return float(self.config["lora_alpha"]) / root


def run(options: Options) -> Report:
    """Write the merged adapter, and report its parts."""
    if options.alpha + options.beta > 1 + 1e-9:
        raise UsageError(
            "the weights leave a negative weight for the listwise adapter",
            found=f"--alpha {options.alpha} and --beta {options.beta}",
            expected="a sum of at most 1",
        )
    check_empty(options.out, "the folder for the merged adapter", option=OUT)
    weights = (options.alpha, options.beta, max(0.0, 1 - options.alpha - options.beta))
    trained = ("pointwise", "pairwise", "listwise")
    adapters = [read(getattr(options, name)) for name in trained]
    check_compatible(adapters)
    merge = by_products if options.method == "products" else by_factors
    merged = merge(adapters, weights)
    write(merged, options.out)
    rows = tuple(
        (name, str(one.folder), weight, one.rank, one.scaling)
        for name, one, weight in zip(trained, adapters, weights, strict=True)
    )
    sheet = Sheet(
        title=f"Adapters of {adapters[0].config['base_model_name_or_path']}, merged by their "
        f"{options.method}",
        columns=("trained", "adapter", "weight", "rank", "alpha / rank"),
        rows=rows,
        digits=3,
        notes=(
            f"{len(merged.a):,} modules; rank {merged.rank}, alpha {merged.config['lora_alpha']}; "
            f"written to {options.out}",
        ),
    )
    return Report(sheets=(sheet,))


def by_products(adapters: Sequence[Adapter], weights: Sequence[float]) -> Adapter:
    """The weighted sum of the adapters' changes, as an adapter whose rank is the sum of theirs.

    The products add up if the matrices B, each with its weight and scaling, are concatenated side
    by side, and the matrices A below each other. The merged adapter's own scaling is then 1.
    """
    import numpy as np

    weighted = [
        (np.float32(weight * each.scaling), each)
        for each, weight in zip(adapters, weights, strict=True)
    ]
    names = adapters[0].a
    a = {name: np.concatenate([each.a[name] for each in adapters], axis=0) for name in names}
    b = {
        name: np.concatenate([factor * each.b[name] for factor, each in weighted], axis=1)
        for name in names
    }
    first, rank = adapters[0], sum(each.rank for each in adapters)
    config = {**first.config, "r": rank, "lora_alpha": rank, "use_rslora": False}
    return Adapter(folder=first.folder, config=config, a=a, b=b)


def by_factors(adapters: Sequence[Adapter], weights: Sequence[float]) -> Adapter:
    """The separate weighted means of A and B: the rank stays, but it is not the sum of changes."""
    import numpy as np

    first = adapters[0]
    for other, setting, ours, theirs in _differing(adapters, ("r", "lora_alpha", "use_rslora")):
        raise UsageError(
            f"the factors of adapters with different {setting} cannot be averaged",
            where=str(other.folder),
            found=f"{setting} {theirs}",
            expected=f"{setting} {ours}, as in {first.folder}",
            hint="use --method products",
        )

    def mean(*matrices: np.ndarray) -> np.ndarray:
        return np.average(matrices, axis=0, weights=weights).astype(np.float32)

    a = {name: mean(*(each.a[name] for each in adapters)) for name in first.a}
    b = {name: mean(*(each.b[name] for each in adapters)) for name in first.b}
    return Adapter(folder=first.folder, config=first.config, a=a, b=b)


def read(folder: Path) -> Adapter:
    """The adapter in a folder; DataError unless it is only a product of two matrices per module."""
    file = folder / CONFIG
    try:
        config = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        msgspec.convert(config, _Needed)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise DataError(
            "the adapter's configuration cannot be used",
            where=str(file),
            found=getattr(error, "strerror", None) or str(error),
            expected=f"the {CONFIG} of a LoRA adapter in PEFT's format, next to {WEIGHTS}",
        ) from error
    for setting, allowed in PLAIN.items():
        if setting in config and config[setting] not in allowed:
            raise DataError(
                "the adapter has parts that cannot be merged",
                where=str(file),
                found=f"{setting}: {config[setting]}",
                expected=" or ".join(f"{setting}: {one}" for one in allowed),
            )
    file = folder / WEIGHTS
    tensors = _tensors(file)
    other = [name for name in tensors if not name.endswith((A, B))]
    a = {name.removesuffix(A): tensors[name] for name in sorted(tensors) if name.endswith(A)}
    b = {name.removesuffix(B): tensors[name] for name in sorted(tensors) if name.endswith(B)}
    if other or not a or a.keys() != b.keys():
        alone = other or sorted(a.keys() ^ b.keys())
        raise DataError(
            "the adapter does not consist of pairs of matrices",
            where=str(file),
            found=", ".join(alone[:3]) or "no matrices",
            expected=f"for each module, a tensor ending in {A} and one ending in {B}",
        )
    for name, left in b.items():
        if left.shape[1:] != (config["r"],) or a[name].shape[:1] != (config["r"],):
            raise DataError(
                "the matrices of a module do not have the adapter's rank",
                where=f"{file}, {name}",
                found=f"B {left.shape}, A {a[name].shape}",
                expected=f"rank {config['r']}",
            )
    return Adapter(folder=folder, config=config, a=a, b=b)


def check_compatible(adapters: Sequence[Adapter]) -> None:
    """Raise DataError unless all adapters have the same base model and modules."""
    first = adapters[0]
    for other, setting, ours, theirs in _differing(adapters, SAME):
        raise DataError(
            f"adapters of different {setting} cannot be merged",
            where=str(other.folder),
            found=str(theirs),
            expected=f"{ours}, as in {first.folder}",
        )
    for other in adapters[1:]:
        for name in sorted(first.a.keys() | other.a.keys()):
            ours, theirs = (each.shapes.get(name, "no such module") for each in (first, other))
            if ours != theirs:
                raise DataError(
                    "adapters of different modules cannot be merged",
                    where=f"{other.folder}, {name}",
                    found=theirs,
                    expected=f"{ours}, as in {first.folder}",
                )


def write(adapter: Adapter, folder: Path) -> None:
    """Write an adapter in PEFT's format, its configuration last."""
    from safetensors.numpy import save

    tensors = {name + A: matrix for name, matrix in adapter.a.items()}
    tensors |= {name + B: matrix for name, matrix in adapter.b.items()}
    make_folder(folder, option=OUT)
    data = save(dict(sorted(tensors.items())), metadata={"format": "pt"})
    atomic_write(folder / WEIGHTS, data, option=OUT)
    config = json.dumps(adapter.config, indent=2, sort_keys=True, ensure_ascii=False)
    atomic_write(folder / CONFIG, config.encode() + b"\n", option=OUT)


def _tensors(file: Path) -> dict[str, np.ndarray]:
    """The tensors of a file in single precision."""
    import numpy as np

    try:
        from safetensors import SafetensorError, deserialize
    except ModuleNotFoundError as error:
        raise UsageError(
            "reading adapters needs the package safetensors",
            hint="pip install 'user-understanding-harness[tuning]'",
        ) from error
    kinds = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
    tensors = {}
    try:
        found = deserialize(file.read_bytes())  # type: ignore[no-untyped-call,unused-ignore]
    except (OSError, SafetensorError) as error:
        raise DataError(
            "the adapter's weights cannot be read",
            where=str(file),
            found=str(error),
            expected=f"a folder in PEFT's format, with {CONFIG} and {WEIGHTS}",
        ) from error
    for name, about in found:
        if about["dtype"] not in kinds:
            raise DataError(
                "the adapter's weights have a type that cannot be merged",
                where=f"{file}, {name}",
                found=about["dtype"],
                expected=", ".join(kinds),
            )
        raw = np.frombuffer(about["data"], dtype=kinds[about["dtype"]])
        if about["dtype"] == "BF16":  # no type of numpy: the upper half of a float's bits
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = raw.astype(np.float32).reshape(about["shape"])
    return tensors


def _differing(
    adapters: Sequence[Adapter], settings: Iterable[str]
) -> Iterator[tuple[Adapter, str, Any, Any]]:
    """Each setting in which an adapter differs from the first, with the values of both."""
    for other, setting in product(adapters[1:], settings):
        values = (each.config.get(setting) for each in (adapters[0], other))
        ours, theirs = (sorted(one) if isinstance(one, list) else one for one in values)
        if ours != theirs:
            yield other, setting, ours, theirs
