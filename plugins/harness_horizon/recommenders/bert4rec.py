"""BERT4Rec: a transformer in which items look at all others, trained to fill in masked items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from harness_horizon.recommenders.layers import EPSILON, Encoder, Recommender, first_weights
from harness_horizon.recommenders.training_data import PADDING

if TYPE_CHECKING:
    from torch import Tensor

    from harness_horizon.recommenders.presets import Hyper


class BERT4Rec(Recommender):
    """Sun et al. (2019), as RecBole has it.

    A mask behind a history stands for the next item. In training, items of the history are masked;
    the target of a case is in the histories of later cases.
    """

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper)
        self.mask = known + 1
        self.items = nn.Embedding(known + 2, hyper.width, padding_idx=PADDING)
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
