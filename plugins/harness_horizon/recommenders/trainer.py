"""Trains a network: early stopping on MRR@10, the best epoch kept, resumed after any epoch."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import torch

from harness.base.errors import DataError, StorageError
from harness.base.hashing import digest, stable_int
from harness.runs.atomic_files import atomic_writer, make_folder
from harness_horizon.ranking import expected_ranks
from harness_horizon.recommenders.checkpoint import OUT, Epoch
from harness_horizon.recommenders.networks import new_network, weights_of
from harness_horizon.recommenders.training_data import Cases, training_cases, validation_cases

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from harness.analysis.analysis import Progress
    from harness_horizon.recommenders.layers import Recommender
    from harness_horizon.recommenders.presets import Hyper, Kind
    from harness_horizon.recommenders.training_data import TrainingData

STATE = "training.pt"
"""The file from which training continues; gone when it has ended."""

SCORES_AT_ONCE = 2**28
"""The most scores that a step holds, a gigabyte; a larger batch is worked off in parts."""

MRR_AT = 10


@dataclass(frozen=True)
class Trained:
    """The weights of the best epoch, and what each epoch came to."""

    weights: dict[str, NDArray[np.float32]]
    best: Epoch
    epochs: tuple[Epoch, ...]


def train(
    kind: Kind,
    hyper: Hyper,
    data: TrainingData,
    folder: Path,
    progress: Progress,
    *,
    device: torch.device,
) -> Trained:
    """Train a network, or go on after the last epoch that `folder` holds.

    The seed decides all: with the same data, settings, machine and number of threads, each loss is
    the same to the last digit, whether or not training was interrupted.
    """
    training = _Training(kind, hyper, data, device)
    make_folder(folder, option=OUT)
    training.resume(folder / STATE)
    while not training.ended:
        training.run_epoch(progress)
        with kept_epochs(len(training.epochs) - 1):
            training.save(folder / STATE)
    return Trained(training.kept, training.best, tuple(training.epochs))


@contextmanager
def kept_epochs(number: int) -> Iterator[None]:
    """Have the error of a file that cannot be written say which epochs are kept."""
    try:
        yield
    except StorageError as error:
        kept = {0: "no epoch is", 1: "epoch 1 is"}.get(number, f"epochs 1 to {number} are")
        continues = "training continues after that" if number else "training begins again"
        error.hint = f"{error.hint}: {kept} kept, and {continues}"
        raise


class _Training:
    """A network in training, with its optimizer and what was best so far."""

    def __init__(self, kind: Kind, hyper: Hyper, data: TrainingData, device: torch.device) -> None:
        self.hyper, self.device = hyper, device
        self.cases, self.validation = training_cases(data), validation_cases(data)
        if not len(self.cases) or not len(self.validation):
            raise DataError(
                "there is too little to train with",
                found=f"{len(self.cases):,} training cases, "
                f"{len(self.validation):,} validation cases",
                expected="users with two training items, and users with a validation item",
            )
        self.network = new_network(kind, len(data.vocabulary), hyper).to(device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=hyper.learning_rate)
        self.epochs: list[Epoch] = []
        self.kept: dict[str, NDArray[np.float32]] = {}
        self.settings = digest([kind, msgspec.to_builtins(hyper), data.split])

    @property
    def best(self) -> Epoch:
        """The first of the epochs with the highest MRR."""
        return max(self.epochs, key=lambda epoch: epoch.mrr)

    @property
    def ended(self) -> bool:
        """Whether all epochs are done, or too many without a better one."""
        done = len(self.epochs)
        waited = done - self.best.number if done else 0
        return done >= self.hyper.epochs or waited >= self.hyper.patience

    def run_epoch(self, progress: Progress) -> None:
        """One pass over the cases in a new order, then the validation."""
        number = len(self.epochs) + 1
        seed = stable_int("epoch", self.hyper.seed, number) % 2**63
        torch.manual_seed(seed)
        chance = torch.Generator().manual_seed(seed)
        order = np.random.default_rng(seed).permutation(len(self.cases))
        per_case = self.hyper.negatives if self.hyper.loss == "bpr" else 1
        size = max(1, self.hyper.batch // per_case)
        self.network.train()
        losses = []
        for histories, targets in self.cases.batches(size, self.hyper.length, order):
            losses.append(self._step(histories, targets, chance) * len(targets))
            progress(f"epoch {number}: batches", len(losses), -(-len(order) // size))
        mrr = mrr_of(self.network, self.validation, self.device)
        epoch = Epoch(number, sum(losses) / len(order), mrr)
        if not self.epochs or mrr > self.best.mrr:
            self.kept = {name: value.copy() for name, value in weights_of(self.network).items()}
        self.epochs.append(epoch)
        progress("epochs", number, self.hyper.epochs)

    def _step(
        self,
        histories: NDArray[np.int64],
        targets: NDArray[np.int64],
        chance: torch.Generator,
    ) -> float:
        """Change the weights once; the mean loss of the batch."""
        self.optimizer.zero_grad(set_to_none=True)
        size = len(targets)
        part = max(1, SCORES_AT_ONCE // self.network.known) if self.hyper.loss == "ce" else size
        total = 0.0
        for start in range(0, size, part):
            rows = self._tensor(histories[start : start + part])
            right = self._tensor(targets[start : start + part])
            loss = self.network.loss(rows, right, chance) * (len(right) / size)
            torch.autograd.backward(loss)
            total += loss.item()
        self.optimizer.step()
        return total

    def _tensor(self, array: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def save(self, path: Path) -> None:
        """Keep all that the next epoch needs."""
        state = {
            "settings": self.settings,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs": [[one.number, one.loss, one.mrr] for one in self.epochs],
            "kept": {name: torch.from_numpy(value) for name, value in self.kept.items()},
        }
        with atomic_writer(path, option=OUT) as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:  # what it makes of an error of the file
                raise error.__context__ or error from None

    def resume(self, path: Path) -> None:
        """Go on after the epochs that a file holds, if there is one."""
        if not path.exists():
            return
        try:
            state = torch.load(path, map_location=self.device, weights_only=True)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise DataError(
                "the state of an unfinished training cannot be read",
                where=str(path),
                found=str(error).partition("\n")[0],
                hint="delete it: training begins again",
            ) from error
        if state.get("settings") != self.settings:
            raise DataError(
                "this folder holds an unfinished training with other settings or another split",
                where=str(path),
                hint="repeat the command that began it, or name another folder with --out",
            )
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs = [Epoch(*one) for one in state["epochs"]]
        self.kept = {name: value.cpu().numpy() for name, value in state["kept"].items()}


@torch.no_grad()
def mrr_of(network: Recommender, cases: Cases, device: torch.device) -> float:
    """The mean MRR@10 of the cases, by full ranking; unknown targets are misses."""
    network.eval()
    size = min(1024, max(1, SCORES_AT_ONCE // network.known))
    found = 0.0
    for histories, targets in cases.batches(size, network.hyper.length):
        scores = network(torch.from_numpy(histories).to(device))
        right = torch.from_numpy(targets).to(device)
        own = scores.gather(1, (right - 1).clamp(min=0)[:, None])
        above, equal = (scores > own).sum(dim=1), (scores == own).sum(dim=1)
        ranks = expected_ranks(above.cpu().numpy(), equal.cpu().numpy())
        hits = (ranks <= MRR_AT) & (targets > 0)
        found += float((1 / ranks)[hits].sum())
    return found / len(cases)
