"""The folder of a trained recommender: a manifest and the weights that it names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from harness.base.errors import DataError
from harness.runs.atomic_files import atomic_write, atomic_writer
from harness_horizon.curation.sources import sha256_of
from harness_horizon.recommenders.presets import Hyper, Kind, Preset

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANIFEST = "manifest.json"
WEIGHTS = "weights.npz"
VOCABULARY = "vocabulary"
"""The array of the items that are known, next to the weights."""

FORMAT = 1
OUT = "--out"
TRAIN = "train one: harness horizon train --model sasrec --data DATA --out CKPT"


class Epoch(msgspec.Struct, frozen=True):
    """One pass over the training cases: its mean loss, and MRR@10 of the validation items."""

    number: int
    loss: float
    mrr: float


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint is: its kind and settings, the digests of its weights and of its split."""

    format: int
    kind: Kind
    preset: Preset | None
    options: Hyper | None
    weights: str
    split: str
    items: int
    cases: int
    best_epoch: int | None = None
    epochs: tuple[Epoch, ...] = ()
    device: str = "cpu"
    software: dict[str, str] = {}


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint; DataError if the folder has none that can be read."""
    path = folder / MANIFEST
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise DataError(
            "this is no checkpoint of a recommender",
            where=str(folder),
            found=inside(folder),
            expected=f"{MANIFEST}, which training writes last",
            hint=f"let its training end: the same command continues; or {TRAIN}",
        ) from error
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        data = (folder / "train.parquet").exists()
        raise DataError(
            "the manifest of this checkpoint cannot be read",
            where=str(path),
            found="curated data, which is for --data" if data else str(error),
            hint=TRAIN,
        ) from error
    if found.format != FORMAT:
        raise DataError(
            "this checkpoint has another format",
            where=str(path),
            found=str(found.format),
            expected=str(FORMAT),
            hint=TRAIN,
        )
    return found


def inside(folder: Path) -> str:
    """What a folder holds, for an error."""
    if not folder.is_dir():
        return "no such folder"
    return ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "an empty folder"


def write_weights(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write arrays as the weights of a checkpoint; their digest."""
    with atomic_writer(folder / WEIGHTS, option=OUT) as file:
        np.savez(file, **dict(arrays))  # type: ignore[arg-type]
    return sha256_of(folder / WEIGHTS)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, which makes the folder a checkpoint."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    atomic_write(folder / MANIFEST, text + b"\n", option=OUT)


def read_weights(folder: Path, manifest: Manifest) -> dict[str, NDArray[Any]]:
    """The arrays of a checkpoint; DataError if they are not those that its manifest names."""
    path = folder / WEIGHTS
    found = sha256_of(path) if path.is_file() else "no such file"
    if found != manifest.weights:
        raise DataError(
            "the weights of this checkpoint are not those that its manifest names",
            where=str(path),
            found=found,
            expected=manifest.weights,
            hint=TRAIN,
        )
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)
