"""CORE: a history is a weighted sum of its items' own vectors, weighted by a transformer."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from harness_horizon.recommenders.layers import Encoder, Recommender
from harness_horizon.recommenders.training_data import PADDING

if TYPE_CHECKING:
    from torch import Tensor

    from harness_horizon.recommenders.presets import Hyper


class CORE(Recommender):
    """Hou et al. (2022), the variant with a transformer.

    Histories and items share one space of unit vectors; a temperature divides their products.
    """

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper)
        self.items = nn.Embedding(known + 1, hyper.width, padding_idx=PADDING)
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
