"""SASRec and GRU4Rec: networks in which no place of a history knows of a later one.

SASRec is a transformer in which each item looks at those before it. GRU4Rec reads a history item by
item with gated recurrent units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from harness_horizon.recommenders.layers import Encoder, Recommender, at_last, first_weights
from harness_horizon.recommenders.training_data import PADDING

if TYPE_CHECKING:
    from torch import Tensor

    from harness_horizon.recommenders.presets import Hyper


class SASRec(Recommender):
    """Kang and McAuley (2018), as RecBole has it: dense layers instead of convolutions."""

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper)
        self.items = nn.Embedding(known + 1, hyper.width, padding_idx=PADDING)
        self.encoder = Encoder(hyper, causal=True)
        self.apply(first_weights)

    def states(self, histories: Tensor) -> Tensor:
        """A vector for each position: what is known after its item."""
        states: Tensor = self.encoder(self.items(histories), histories)
        return states

    def encode(self, histories: Tensor) -> Tensor:
        """The vector after each history's last item."""
        return at_last(self.states(histories), histories)


class GRU4Rec(Recommender):
    """Hidasi et al. (2016) with the augmentation of Tan et al. (2016), as RecBole has it."""

    def __init__(self, known: int, hyper: Hyper) -> None:
        super().__init__(known, hyper)
        self.items = nn.Embedding(known + 1, hyper.width, padding_idx=PADDING)
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

    def encode(self, histories: Tensor) -> Tensor:
        """The vector after each history's last item."""
        return at_last(self.states(histories), histories)
