"""The networks by kind, built from their settings or from stored weights."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from harness.base.errors import UsageError
from harness_horizon.recommenders.layers import (
    EPSILON,
    Encoder,
    Recommender,
    first_weights,
)
from harness_horizon.recommenders.training_data import PADDING

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from harness_horizon.recommenders.presets import Hyper, Kind


class SASRec(Recommender):
    """Kang and McAuley (2018), as RecBole has it: dense layers instead of convolutions.

    A transformer in which each item looks at those before it.
    """

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper)
        self.encoder = Encoder(hyper, causal=True)
        self.apply(first_weights)

    def states(self, histories: Tensor) -> Tensor:
        """A vector for each position: what is known after its item."""
        states: Tensor = self.encoder(self.items(histories), histories)
        return states


class GRU4Rec(Recommender):
    """Hidasi et al. (2016) with the augmentation of Tan et al. (2016), as RecBole has it.

    Gated recurrent units read a history item by item.
    """

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper)
        self.dropout = nn.Dropout(hyper.dropout)
        self.units = nn.GRU(
            hyper.width, hyper.width, num_layers=hyper.layers, bias=False, batch_first=True
        )
        self.dense = nn.Linear(hyper.width, hyper.width)
        nn.init.xavier_normal_(self.items.weight)
        first = dict(self.units.named_parameters())
        nn.init.xavier_uniform_(first["weight_hh_l0"])
        nn.init.xavier_uniform_(first["weight_ih_l0"])

    def states(self, histories: Tensor) -> Tensor:
        """A vector for each position: what is known after its item."""
        found, _ = self.units(self.dropout(self.items(histories)))
        states: Tensor = self.dense(found)
        return states


class BERT4Rec(Recommender):
    """Sun et al. (2019), as RecBole has it: a transformer in which items look at all others.

    A mask behind a history stands for the next item. In training, items of the history are masked;
    the target of a case is in the histories of later cases.
    """

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper, masks=1)
        self.mask = known + 1
        self.encoder = Encoder(hyper, causal=False)
        self.dense = nn.Linear(hyper.width, hyper.width)
        self.norm = nn.LayerNorm(hyper.width, eps=EPSILON)
        self.popularity = nn.Parameter(torch.zeros(known))
        self.apply(first_weights)

    def bias(self) -> Tensor:
        """A number for each item, learnt with the rest."""
        return self.popularity

    def states(self, histories: Tensor) -> Tensor:
        """A vector for each position: what stands there, as far as the others say."""
        found = self.encoder(self.items(histories), histories)
        states: Tensor = self.norm(functional.gelu(self.dense(found)))
        return states

    def encode(self, histories: Tensor) -> Tensor:
        """The vector at a mask behind each history, whose first item gives way if it is full."""
        rows = torch.arange(len(histories), device=histories.device)
        full = (histories != PADDING).sum(dim=1, keepdim=True) == self.hyper.length
        kept = torch.where(full, functional.pad(histories[:, 1:], (0, 1)), histories)
        masked = functional.pad(kept, (0, 1))
        last = (kept != PADDING).sum(dim=1)
        masked[rows, last] = self.mask
        return self.states(masked[:, : self.hyper.length])[rows, last]

    def loss(self, histories: Tensor, targets: Tensor, chance: torch.Generator) -> Tensor:
        """The mean loss of the masked items, and of nothing else."""
        hidden = self.hidden(histories, chance)
        vectors = self.states(histories.masked_fill(hidden, self.mask))[hidden]
        masked = histories[hidden]
        if self.hyper.loss == "ce":
            scores = functional.linear(vectors, self.table(), self.bias())
            return functional.cross_entropy(scores, masked - 1)
        return self.pairwise(vectors, masked, histories[hidden.nonzero()[:, 0]], chance)

    def hidden(self, histories: Tensor, chance: torch.Generator) -> Tensor:
        """Which positions are masked: each with the mask ratio, or only the last; at least one."""
        device, there = histories.device, histories != PADDING
        drawn = torch.rand(histories.shape, generator=chance).to(device) < self.hyper.mask_ratio
        whole = torch.rand(len(histories), generator=chance).to(device) >= self.hyper.last_only
        drawn = drawn & there & whole[:, None]
        columns = torch.arange(histories.shape[1], device=device)
        last = columns == there.sum(dim=1, keepdim=True) - 1
        return torch.where(drawn.any(dim=1, keepdim=True), drawn, last)


class CORE(Recommender):
    """Hou et al. (2022), the variant with a transformer, which weighs the items of a history.

    Histories and items share one space of unit vectors; a temperature divides their products.
    """

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper)
        self.encoder = Encoder(hyper, causal=True)
        self.weigh = nn.Linear(hyper.width, 1)
        self.session_dropout = nn.Dropout(hyper.session_dropout)
        self.item_dropout = nn.Dropout(hyper.item_dropout)
        bound = 1 / sqrt(hyper.width)
        for weights in self.parameters():
            nn.init.uniform_(weights, -bound, bound)

    def encode(self, histories: Tensor) -> Tensor:
        """The direction of each history's weighted sum, divided by the temperature."""
        vectors = self.session_dropout(self.items(histories))
        weights = self.weigh(self.encoder(vectors, histories))[:, :, 0]
        weights = weights.masked_fill(histories == PADDING, float("-inf")).softmax(dim=1)
        summed = torch.einsum("nl,nlw->nw", weights, vectors)
        return functional.normalize(summed, dim=1) / self.hyper.temperature

    def table(self) -> Tensor:
        """The direction of each item."""
        return functional.normalize(self.item_dropout(super().table()), dim=1)


KINDS: dict[Kind, type[Recommender]] = {
    "sasrec": SASRec,
    "bert4rec": BERT4Rec,
    "gru4rec": GRU4Rec,
    "core": CORE,
}


def device_of(name: str = "auto") -> torch.device:
    """The device of that name; with `auto` a GPU when there is one, and the CPU otherwise.

    UsageError if it is a GPU that PyTorch does not see.
    """
    usable = torch.cuda.is_available()
    if name == "auto":
        name = "cuda" if usable else "cpu"
    elif name == "cuda" and not usable:
        raise UsageError(
            "there is no GPU that PyTorch can use",
            where="device cuda",
            found=f"torch {torch.__version__}",
            expected="auto or cpu, or a GPU with a build of PyTorch for it",
        )
    return torch.device(name)


def new_network(kind: Kind, known: int, hyper: Hyper) -> Recommender:
    """A network with the first weights of its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(hyper.seed)
        return KINDS[kind](known, hyper)


def weights_of(network: Recommender) -> dict[str, NDArray[np.float32]]:
    """The network's weights by name."""
    return {name: value.cpu().numpy() for name, value in network.state_dict().items()}


def network_from(
    kind: Kind, hyper: Hyper, weights: Mapping[str, NDArray[np.float32]], known: int
) -> Recommender:
    """The network with these weights, ready to rank."""
    with torch.device("meta"):
        network = KINDS[kind](known, hyper)
    given = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    network.load_state_dict(given, assign=True)
    return network.eval()
