"""SASRec: a transformer in which each item looks at the items before it."""

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
