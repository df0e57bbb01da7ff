"""What the networks share: the transformer encoder, first weights, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from harness_horizon.recommenders.training_data import PADDING

if TYPE_CHECKING:
    from torch import Tensor

    from harness_horizon.recommenders.presets import Hyper

EPSILON = 1e-12
DEVIATION = 0.02


class Recommender(nn.Module):
    """A network that scores all items of its vocabulary after a history.

    Histories are rows of item numbers from 1, oldest first, with `PADDING` at the end.
    """

    def __init__(self, known: int, hyper: Hyper, *, masks: int = 0) -> None:
        super().__init__()
        self.known = known
        self.hyper = hyper
        self.items = nn.Embedding(known + 1 + masks, hyper.width, padding_idx=PADDING)

    def states(self, histories: Tensor) -> Tensor:
        """A vector for each position of each history."""
        raise NotImplementedError

    def encode(self, histories: Tensor) -> Tensor:
        """A vector for each history, of its last item; its products with `table` are the scores."""
        last = (histories != PADDING).sum(dim=1) - 1
        return self.states(histories)[torch.arange(len(histories), device=histories.device), last]

    def table(self) -> Tensor:
        """A row for each item that is known, without padding and mask."""
        return self.items.weight[1 : self.known + 1]

    def bias(self) -> Tensor | None:
        """What is added to each item's score, if anything."""
        return None

    def forward(self, histories: Tensor) -> Tensor:
        """The score of each known item after each history; column 0 is item 1."""
        return functional.linear(self.encode(histories), self.table(), self.bias())

    def loss(self, histories: Tensor, targets: Tensor, chance: torch.Generator) -> Tensor:
        """The mean loss of the targets after the histories; `chance` draws negatives."""
        if self.hyper.loss == "ce":
            return functional.cross_entropy(self(histories), targets - 1)
        return self.pairwise(self.encode(histories), targets, targets[:, None], chance)

    def pairwise(
        self, vectors: Tensor, targets: Tensor, taken: Tensor, chance: torch.Generator
    ) -> Tensor:
        """BPR of each target against negatives that are none of those `taken`."""
        wrong = negatives(taken, self.known, self.hyper.negatives, chance)
        right = self._scores(vectors, targets[:, None])
        return -functional.logsigmoid(right - self._scores(vectors, wrong)).mean()

    def _scores(self, vectors: Tensor, items: Tensor) -> Tensor:
        scores = torch.einsum("nw,nkw->nk", vectors, self.items(items))
        bias = self.bias()
        return scores if bias is None else scores + bias[items - 1]


def negatives(taken: Tensor, known: int, count: int, chance: torch.Generator) -> Tensor:
    """Items drawn uniformly for each row of `taken`; what the row holds is drawn again, often."""
    drawn = _draw((len(taken), count), known, chance, taken.device)
    for _ in range(8):
        wrong = (drawn[:, :, None] == taken[:, None, :]).any(dim=2)
        if not wrong.any():
            break
        drawn = torch.where(wrong, _draw(drawn.shape, known, chance, taken.device), drawn)
    return drawn


def _draw(
    shape: tuple[int, ...], known: int, chance: torch.Generator, device: torch.device
) -> Tensor:
    return torch.randint(1, known + 1, shape, generator=chance).to(device)


class Encoder(nn.Module):
    """Positions and transformer layers over the vectors of a history's items."""

    def __init__(self, hyper: Hyper, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.positions = nn.Embedding(hyper.length, hyper.width)
        self.norm = nn.LayerNorm(hyper.width, eps=EPSILON)
        self.dropout = nn.Dropout(hyper.dropout)
        self.blocks = nn.ModuleList(Block(hyper) for _ in range(hyper.layers))

    def forward(self, vectors: Tensor, histories: Tensor) -> Tensor:
        """A vector for each position of each history."""
        wide = histories.shape[1]
        seen = (histories != PADDING)[:, None, None, :]
        if self.causal:
            seen = seen & torch.ones(wide, wide, dtype=torch.bool, device=seen.device).tril()
        vectors = vectors + self.positions.weight[:wide]
        vectors = self.dropout(self.norm(vectors))
        for block in self.blocks:
            vectors = block(vectors, seen)
        return vectors


class Block(nn.Module):
    """Self-attention and two dense layers, each with a residual and a norm after it."""

    def __init__(self, hyper: Hyper) -> None:
        super().__init__()
        self.heads = hyper.heads
        self.chance = hyper.dropout
        self.queries, self.keys, self.values, self.merge = (
            nn.Linear(hyper.width, hyper.width) for _ in range(4)
        )
        self.widen = nn.Linear(hyper.width, hyper.inner)
        self.narrow = nn.Linear(hyper.inner, hyper.width)
        self.attended = nn.LayerNorm(hyper.width, eps=EPSILON)
        self.done = nn.LayerNorm(hyper.width, eps=EPSILON)
        self.dropout = nn.Dropout(hyper.dropout)

    def forward(self, vectors: Tensor, seen: Tensor) -> Tensor:
        """The vectors after this layer; `seen` is what each position may look at."""
        queries, keys, values = (
            each(vectors).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for each in (self.queries, self.keys, self.values)
        )
        found = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=seen, dropout_p=self.chance if self.training else 0.0
        )
        found = self.merge(found.transpose(1, 2).flatten(2))
        vectors = self.attended(vectors + self.dropout(found))
        found = self.narrow(functional.gelu(self.widen(vectors)))
        after: Tensor = self.done(vectors + self.dropout(found))
        return after


def first_weights(module: nn.Module) -> None:
    """Draw the weights of dense layers and embeddings from a narrow normal, as BERT does."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=DEVIATION)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
