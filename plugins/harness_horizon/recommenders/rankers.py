"""Checkpoints that rank: by a network or by counts, the best items after each history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness_horizon.recommenders.checkpoint import VOCABULARY, Manifest, read_weights
from harness_horizon.recommenders.presets import NETWORKS
from harness_horizon.recommenders.training_data import PADDING, TrainingData, Vocabulary, padded

if TYPE_CHECKING:
    from numpy.typing import NDArray

BEST = 100
"""The items of a ranking, with all that have the score of the last one, up to `MOST`."""

MOST = 1_000

BLOCK = 512
"""The items of which only the highest score is looked at first."""

TOGETHER = 64
"""Histories are ranked so many at a time, empty ones added: how a sum of products is rounded
depends on the shape of the whole, and no answer may depend on what else is asked."""

REACH = 10
"""How far behind an item another may stand and still be its neighbour."""

COUNTS, FIRST, NEIGHBOURS, WEIGHTS = "counts", "first", "neighbours", "near"
"""The arrays of the rules: interactions an item; where an item's neighbours begin, which they are,
and how near they stand. Position 0 is item 1."""

_NUMBERS = r"(?:[0-9]{1,18}(?: [0-9]{1,18})*)?"
_QUESTION = re.compile(rf"\s*({_NUMBERS})\s*(?:among ({_NUMBERS})\s*)?")


@dataclass(frozen=True)
class Question:
    """A history of catalogue items, the oldest first, and the items to rank if not all."""

    history: NDArray[np.int64]
    among: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Ranking:
    """The best items after a history, the best first, with their scores."""

    items: NDArray[np.int64]
    scores: NDArray[np.floating]


NOTHING = Ranking(np.array([], dtype=np.int64), np.array([], dtype=np.float32))
"""The ranking after a history without an item that is known."""


def question_in(text: str) -> Question | None:
    """The question in a text of item numbers; None if it is something else.

    >>> question_in("12 7 40").history.tolist()
    [12, 7, 40]
    >>> question_in("12 7 among 3 9").among.tolist()
    [3, 9]
    """
    found = _QUESTION.fullmatch(text)
    if found is None:
        return None
    history, among = (
        None if part is None else np.array(part.split(), dtype=np.int64) for part in found.groups()
    )
    assert history is not None
    return Question(history, among)


def reply_of(ranking: Ranking) -> str:
    """A ranking as JSON, its scores so exact that equal ones stay equal and others do not.

    `{"items":[40,7],"scores":[1.5,0.25]}`
    """
    items = ",".join(map(str, ranking.items.tolist()))
    exact = 9 if ranking.scores.dtype == np.float32 else 17
    scores = ",".join(f"{score:.{exact}g}" for score in ranking.scores.tolist())
    return f'{{"items":[{items}],"scores":[{scores}]}}'


class CountingRanker:
    """Ranks by counts: what follows the last item that is known, or what is popular."""

    def __init__(self, vocabulary: Vocabulary, arrays: dict[str, NDArray[np.generic]]) -> None:
        self._vocabulary = vocabulary
        self._arrays = arrays

    def rank(self, questions: Sequence[Question]) -> list[Ranking]:
        """A ranking for each history; after nothing that is known, by popularity."""
        found = []
        for question in questions:
            numbers = self._vocabulary.numbers(question.history)
            known = numbers[numbers != PADDING]
            scores = scores_after(int(known[-1]) if len(known) else None, self._arrays)
            found.append(best_of(scores, self._vocabulary, question.among))
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

    def rank(self, questions: Sequence[Question]) -> list[Ranking]:
        """A ranking for each history; nothing after a history without a known item."""
        return [
            ranking
            for start in range(0, len(questions), TOGETHER)
            for ranking in self._rank(questions[start : start + TOGETHER])
        ]

    def _rank(self, questions: Sequence[Question]) -> list[Ranking]:
        import torch

        numbers = [self._vocabulary.numbers(one.history) for one in questions]
        rows = np.full((TOGETHER, self._length), PADDING)
        rows[: len(numbers)] = padded(numbers, self._length)
        known = rows[: len(numbers), 0] != PADDING
        rows[rows[:, 0] == PADDING, 0] = 1
        every = np.array([question.among is None for question in questions])
        with torch.inference_mode():
            found = self._network(torch.from_numpy(rows).to(self._device))
        scores = found[: len(numbers)].cpu().numpy()
        whole = iter(best_of_each(scores[known & every], self._vocabulary))
        return [
            NOTHING
            if not known[number]
            else next(whole)
            if every[number]
            else best_of(scores[number], self._vocabulary, question.among)
            for number, question in enumerate(questions)
        ]


Ranker = CountingRanker | NetworkRanker


def open_ranker(folder: Path, manifest: Manifest, device: str = "auto") -> Ranker:
    """The ranker of a checkpoint; DataError if its weights are not those of the manifest."""
    arrays = read_weights(folder, manifest)
    vocabulary = Vocabulary(arrays.pop(VOCABULARY))
    if manifest.kind in NETWORKS:
        return NetworkRanker(manifest, vocabulary, arrays, device)
    return CountingRanker(vocabulary, arrays)


def best_of_each(scores: NDArray[np.floating], vocabulary: Vocabulary) -> list[Ranking]:
    """The best items of each row of scores, as `best_of` finds them in one.

    The highest scores of enough blocks of items bound what can be among the best: few items are
    left to sort.
    """
    rows, width = scores.shape
    blocks = width // BLOCK
    if not rows or blocks < 2 * BEST:
        return [best_of(row, vocabulary) for row in scores]
    highest = scores[:, : blocks * BLOCK].reshape(rows, blocks, BLOCK).max(axis=2)
    bounds = np.partition(highest, blocks - BEST, axis=1)[:, blocks - BEST, None]
    row_of, places = np.divmod(np.flatnonzero(scores >= bounds), width)
    ends = np.searchsorted(row_of, np.arange(1, rows))
    return [
        _best(own, row[own], vocabulary)
        for row, own in zip(scores, np.split(places, ends), strict=True)
    ]


def best_of(
    scores: NDArray[np.floating], vocabulary: Vocabulary, among: NDArray[np.int64] | None = None
) -> Ranking:
    """The best items by score, with all that are equal to the last one, up to `MOST`.

    Of `among`, if given, all that are known.
    """
    if among is not None:
        numbers = vocabulary.numbers(among)
        places = numbers[numbers != PADDING] - 1
        return _ordered(places, scores[places], vocabulary)
    return _best(np.arange(len(scores)), scores, vocabulary)


def _best(
    places: NDArray[np.int64], scores: NDArray[np.floating], vocabulary: Vocabulary
) -> Ranking:
    count = min(BEST, len(scores))
    kept = scores >= np.partition(scores, len(scores) - count)[len(scores) - count]
    return _ordered(places[kept], scores[kept], vocabulary)


def _ordered(
    places: NDArray[np.int64], scores: NDArray[np.floating], vocabulary: Vocabulary
) -> Ranking:
    order = np.lexsort((places, -scores))[:MOST]
    return Ranking(vocabulary.items[places[order]], scores[order])


def popular(data: TrainingData) -> dict[str, NDArray[np.generic]]:
    """The number of training interactions of each item."""
    counts = np.bincount(data.numbers, minlength=len(data.vocabulary) + 1)[1:]
    return {COUNTS: counts.astype(np.int64)}


def neighbours(data: TrainingData) -> dict[str, NDArray[np.generic]]:
    """The items that follow each item within `REACH` places, weighted by one over the distance.

    Weights are added up over all training histories.
    """
    known, places = len(data.vocabulary), len(data.numbers)
    user = np.repeat(np.arange(len(data.train.sizes)), data.train.sizes)
    pairs, near = [], []
    for distance in range(1, REACH + 1):
        together = np.flatnonzero(user[: max(0, places - distance)] == user[distance:])
        before, after = data.numbers[together] - 1, data.numbers[together + distance] - 1
        other = before != after
        pairs.append((before * known + after)[other])
        near.append(np.full(int(other.sum()), 1 / distance))
    found, place = np.unique(np.concatenate(pairs), return_inverse=True)
    weights = np.bincount(place, weights=np.concatenate(near), minlength=len(found))
    first = np.searchsorted(found // known, np.arange(known + 1))
    return {
        **popular(data),
        FIRST: first.astype(np.int64),
        NEIGHBOURS: (found % known).astype(np.int64),
        WEIGHTS: weights,
    }


def scores_after(last: int | None, arrays: dict[str, NDArray[np.generic]]) -> NDArray[np.float64]:
    """The score of each item after an item with this number, or by popularity alone.

    Among items that are as near, the more popular one comes first: the popularity is scaled so that
    it decides nothing else.
    """
    counts = arrays[COUNTS].astype(np.float64)
    if last is None or FIRST not in arrays:
        return counts
    scores: NDArray[np.float64] = counts / (counts.max() + 1) * 1e-4
    begin, end = arrays[FIRST][last - 1 : last + 1]
    scores[arrays[NEIGHBOURS][begin:end]] += arrays[WEIGHTS][begin:end]
    return scores
