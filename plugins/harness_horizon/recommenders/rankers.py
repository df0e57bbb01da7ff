"""Checkpoints that rank: the best items after each of several histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from harness_horizon.recommenders.checkpoint import VOCABULARY, Manifest, read_weights
from harness_horizon.recommenders.counting import scores_after
from harness_horizon.recommenders.presets import NETWORKS
from harness_horizon.recommenders.training_data import PADDING, Vocabulary, padded

if TYPE_CHECKING:
    from numpy.typing import NDArray

BEST = 100
"""The items of a ranking, with all that have the score of the last one, up to `MOST`."""

MOST = 1_000

TOGETHER = 64
"""Histories are ranked so many at a time, empty ones added: how a sum of products is rounded
depends on the shape of the whole, and no answer may depend on what else is asked."""


@dataclass(frozen=True)
class Ranking:
    """The best items after a history, the best first, with their scores."""

    items: NDArray[np.int64]
    scores: NDArray[np.floating]


NOTHING = Ranking(np.array([], dtype=np.int64), np.array([], dtype=np.float32))
"""The ranking after a history without an item that is known."""


class Ranker(Protocol):
    """Ranks after histories of catalogue items."""

    def rank(self, histories: Sequence[NDArray[np.int64]]) -> list[Ranking]: ...


def open_ranker(folder: Path, manifest: Manifest, device: str = "auto") -> Ranker:
    """The ranker of a checkpoint; DataError if its weights are not those of the manifest."""
    arrays = read_weights(folder, manifest)
    vocabulary = Vocabulary(arrays.pop(VOCABULARY))
    if manifest.kind in NETWORKS:
        return NetworkRanker(manifest, vocabulary, arrays, device)
    return CountingRanker(vocabulary, arrays)


class CountingRanker:
    """Ranks by counts: what follows the last item that is known, or what is popular."""

    def __init__(self, vocabulary: Vocabulary, arrays: dict[str, NDArray[np.generic]]) -> None:
        self._vocabulary = vocabulary
        self._arrays = arrays

    def rank(self, histories: Sequence[NDArray[np.int64]]) -> list[Ranking]:
        """A ranking for each history; after nothing that is known, by popularity."""
        found = []
        for history in histories:
            numbers = self._vocabulary.numbers(history)
            known = numbers[numbers != PADDING]
            scores = scores_after(int(known[-1]) if len(known) else None, self._arrays)
            found.append(best_of(scores, self._vocabulary))
        return found


class NetworkRanker:
    """Ranks by a network, on a GPU when there is one."""

    def __init__(
        self,
        manifest: Manifest,
        vocabulary: Vocabulary,
        weights: dict[str, NDArray[np.float32]],
        device: str,
    ) -> None:
        from harness_horizon.recommenders.networks import device_of, network_from

        assert manifest.options is not None
        self._vocabulary = vocabulary
        self._length = manifest.options.length
        self._device = device_of(device)
        network = network_from(manifest.kind, manifest.options, weights, len(vocabulary))
        self._network = network.to(self._device)

    def rank(self, histories: Sequence[NDArray[np.int64]]) -> list[Ranking]:
        """A ranking for each history; nothing after a history without a known item."""
        return [
            ranking
            for start in range(0, len(histories), TOGETHER)
            for ranking in self._rank(histories[start : start + TOGETHER])
        ]

    def _rank(self, histories: Sequence[NDArray[np.int64]]) -> list[Ranking]:
        import torch

        numbers = [self._vocabulary.numbers(one) for one in histories]
        rows = np.full((TOGETHER, self._length), PADDING)
        rows[:, 0] = 1
        rows[: len(numbers)] = padded(numbers, self._length)
        there = rows[: len(numbers), 0] != PADDING
        rows[rows[:, 0] == PADDING, 0] = 1
        with torch.inference_mode():
            scores = self._network(torch.from_numpy(rows).to(self._device))[: len(numbers)]
            last = scores.topk(min(BEST, scores.shape[1]), dim=1).values[:, -1:]
            row, place = (scores >= last).nonzero(as_tuple=True)
            picked = scores[row, place].cpu().numpy()
        ends = np.cumsum(np.bincount(row.cpu().numpy(), minlength=len(numbers)))[:-1]
        lists = zip(np.split(place.cpu().numpy(), ends), np.split(picked, ends), there, strict=True)
        return [
            _ordered(places, own, self._vocabulary) if known else NOTHING
            for places, own, known in lists
        ]


def best_of(scores: NDArray[np.floating], vocabulary: Vocabulary) -> Ranking:
    """The best items by score, with all that are equal to the last one, up to `MOST`."""
    count = min(BEST, len(scores))
    last = np.partition(scores, len(scores) - count)[len(scores) - count]
    places = np.flatnonzero(scores >= last)
    return _ordered(places, scores[places], vocabulary)


def _ordered(
    places: NDArray[np.int64], scores: NDArray[np.floating], vocabulary: Vocabulary
) -> Ranking:
    order = np.lexsort((places, -scores))[:MOST]
    return Ranking(vocabulary.items[places[order]], scores[order])
