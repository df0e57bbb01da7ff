"""The kind of model `recommender`: a checkpoint that answers with the best items."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness_horizon.arguments import read_arguments
from harness_horizon.recommenders.checkpoint import Manifest, read_manifest
from harness_horizon.recommenders.presets import NETWORKS
from harness_horizon.recommenders.rankers import open_ranker, question_in, reply_of
from harness_horizon.together import Together

if TYPE_CHECKING:
    from harness_horizon.recommenders.rankers import Question, Ranker, Ranking

KIND = "recommender"
ARGUMENTS = ("model", "device", "concurrency")

IN_FLIGHT = 256


class RecommenderModel(Model):
    """Ranks after the history in a request; what is asked at the same time is ranked together."""

    def __init__(self, folder: Path, manifest: Manifest, *, device: str, concurrency: int) -> None:
        self.concurrency = concurrency
        self.identity = Identity(
            kind=KIND,
            name=manifest.kind,
            details={"weights": manifest.weights, "split": manifest.split},
        )
        self._folder, self._manifest, self._device = folder, manifest, device
        self.occupies, self.gpus = ("gpu", 1) if self._on_gpu() else (None, 0)
        self._ranker: Ranker | None = None
        self._together = Together(self._rank)

    def _on_gpu(self) -> bool:
        """Whether the network will run on a GPU; torch is not loaded to find out."""
        if self._manifest.kind not in NETWORKS or self._device == "cpu":
            return False
        return self._device == "cuda" or Path("/dev/nvidiactl").exists()

    async def open(self) -> None:
        """Read the weights and check them against the manifest."""
        self._ranker = await asyncio.to_thread(
            open_ranker, self._folder, self._manifest, self._device
        )

    async def close(self) -> None:
        """Let the weights go."""
        self._ranker = None

    async def ask(self, request: Request) -> Reply:
        """The best items after the history, with their scores."""
        text = request.messages[-1].content
        question = question_in(text)
        if question is None:
            raise CallError("bad_request", f"this is no history of item numbers: {text[:60]!r}")
        return Reply(text=reply_of(await self._together.ask(question)))

    async def _rank(self, questions: list[Question]) -> list[Ranking]:
        assert self._ranker is not None, "the model is open"
        return await asyncio.to_thread(self._ranker.rank, questions)


def make(settings: ModelSettings) -> Model:
    """The model of a checkpoint; UsageError for unknown arguments, DataError without a manifest."""
    device, concurrency = read_arguments(KIND, settings, ARGUMENTS, IN_FLIGHT)
    folder = settings.args.get("model", "")
    if not folder:
        raise UsageError("a recommender needs its checkpoint", expected=f"--model {KIND}:FOLDER")
    manifest = read_manifest(Path(folder))
    if manifest.kind in NETWORKS and find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    return RecommenderModel(Path(folder), manifest, device=device, concurrency=concurrency)
