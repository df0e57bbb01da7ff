"""The tool `harness horizon train`: a checkpoint from curated data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from harness.base.errors import DataError, Interrupted, UsageError
from harness.contracts.report import Report, Sheet
from harness.runs.atomic_files import make_folder
from harness_horizon.recommenders.checkpoint import (
    FORMAT,
    MANIFEST,
    OUT,
    VOCABULARY,
    Manifest,
    read_manifest,
    write_manifest,
    write_weights,
)
from harness_horizon.recommenders.presets import NETWORKS, Hyper, Kind, Loss, Preset, hyper_of
from harness_horizon.recommenders.rankers import neighbours, popular
from harness_horizon.recommenders.training_data import data_folder, read_training, training_cases

if TYPE_CHECKING:
    from harness.analysis.analysis import Progress
    from harness_horizon.recommenders.training_data import TrainingData

Given = Annotated[int, Meta(ge=1)] | None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What is trained, on what, and where it is kept."""

    model: Annotated[
        Kind,
        Meta(description="a network (sasrec, bert4rec, gru4rec, core), or popular or neighbours"),
    ]
    data: Annotated[
        Path, Meta(description="the folder of `harness data horizon`, or sample for the sample")
    ]
    out: Annotated[Path, Meta(description="the folder of the checkpoint")]
    preset: Annotated[
        Preset, Meta(description="the settings of the paper, or smaller ones for small data")
    ] = "published"
    loss: Annotated[
        Loss | None, Meta(description="another loss than that of the paper's Table 8")
    ] = None
    epochs: Annotated[Given, Meta(description="the most epochs, instead of the preset's")] = None
    batch: Annotated[Given, Meta(description="the size of a batch, instead of the preset's")] = None
    learning_rate: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="the learning rate, instead of the preset's"),
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="another seed than 2025")
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        Meta(description="where networks are trained; auto: a GPU when there is one"),
    ] = "auto"

    def hyper(self) -> Hyper | None:
        """The settings of the network; None for a rule that counts."""
        given = {
            name: value
            for name in ("epochs", "batch", "learning_rate", "seed")
            if (value := getattr(self, name)) is not None
        }
        if self.model not in NETWORKS:
            if given or self.loss:
                raise UsageError(
                    f"{self.model} is counted, not trained",
                    found=", ".join(f"--{name}" for name in given) or "--loss",
                    expected=f"these options with --model {', '.join(NETWORKS)}",
                )
            return None
        if self.model == "core" and self.loss == "bpr":
            raise UsageError("CORE has no loss with negatives", found="--loss bpr", expected="ce")
        return replace(hyper_of(self.model, self.preset, loss=self.loss), **given)


def run(settings: Settings, progress: Progress) -> Report:
    """Train a recommender, or continue after the last epoch, and report what each epoch came to."""
    hyper = settings.hyper()
    data = read_training(data_folder(settings.data))
    make_folder(settings.out, option=OUT)
    if (settings.out / MANIFEST).exists():
        manifest = read_manifest(settings.out)
        _check_same(settings, hyper, data, manifest)
        return report(manifest, settings, notes=("nothing was left to do",))
    try:
        manifest = _train(settings, hyper, data, progress)
    except KeyboardInterrupt as error:
        raise Interrupted(
            "training was interrupted",
            where=str(settings.out),
            hint="the finished epochs are kept: the same command continues after them",
        ) from error
    write_manifest(settings.out, manifest)
    return report(manifest, settings)


def _train(
    settings: Settings, hyper: Hyper | None, data: TrainingData, progress: Progress
) -> Manifest:
    """Write the weights; what the manifest says about them."""
    kind, out = settings.model, settings.out
    if not len(data.train.items):
        raise DataError("there are no training interactions", where=str(settings.data))
    known = {VOCABULARY: data.vocabulary.items}
    counted = Manifest(
        format=FORMAT,
        kind=kind,
        preset=None,
        options=None,
        weights="",
        split=data.split,
        items=len(data.vocabulary),
        cases=len(training_cases(data)),
        software={"numpy": np.__version__},
    )
    if hyper is None:
        arrays = popular(data) if kind == "popular" else neighbours(data)
        return replace(counted, weights=write_weights(out, {**known, **arrays}))
    import torch

    from harness_horizon.recommenders.networks import device_of
    from harness_horizon.recommenders.trainer import STATE, kept_epochs, train

    device = device_of(settings.device)
    trained = train(kind, hyper, data, out, progress, device=device)
    with kept_epochs(len(trained.epochs)):
        weights = write_weights(out, {**known, **trained.weights})
    (out / STATE).unlink(missing_ok=True)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return replace(
        counted,
        preset=settings.preset,
        options=hyper,
        weights=weights,
        best_epoch=trained.best.number,
        epochs=trained.epochs,
        device=name,
        software={"torch": str(torch.__version__)},
    )


def _check_same(
    settings: Settings, hyper: Hyper | None, data: TrainingData, before: Manifest
) -> None:
    """UsageError if the folder holds a checkpoint of other settings or of another split."""
    differs = []
    if before.kind != settings.model:
        differs.append(f"model: {before.kind}, not {settings.model}")
    else:
        was, now = (msgspec.to_builtins(one) or {} for one in (before.options, hyper))
        differs += [f"{name}: {was[name]}, not {now[name]}"
                    for name in was if was[name] != now[name]]  # fmt: skip
    if before.split != data.split:
        differs.append(f"split: {before.split[:12]}, not {data.split[:12]}")
    if differs:
        raise UsageError(
            "the folder holds another checkpoint",
            where=str(settings.out),
            found="; ".join(differs),
            hint="name another folder with --out",
        )


def report(manifest: Manifest, settings: Settings, *, notes: tuple[str, ...] = ()) -> Report:
    """What was trained, and the loss and MRR of each epoch."""
    options = manifest.options
    about = (
        ("model", manifest.kind),
        ("items that it can recommend", manifest.items),
        ("training cases", manifest.cases),
        ("weights", manifest.weights[:12]),
        ("split", manifest.split[:12]),
    )
    sheets = [Sheet(title="Checkpoint", columns=("", "value"), rows=about)]
    if options is not None:
        best = manifest.best_epoch
        rows = tuple(
            (one.number, one.loss, one.mrr, "kept" if one.number == best else "")
            for one in manifest.epochs
        )
        sheets.append(
            Sheet(
                title="Epochs",
                columns=("epoch", f"loss ({options.loss})", "MRR@10 of validation", ""),
                rows=rows,
                digits=(0, 4, 4, 0),
            )
        )
    use = f"--model recommender:{settings.out} --tasks horizon_next_item --data {settings.data}"
    return Report(sheets=tuple(sheets), notes=(f"next: harness {use}", *notes))
