"""The kind of model `recommender`: a checkpoint that answers with the best items."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import UsageError, did_you_mean
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness_horizon.recommenders.checkpoint import Manifest, read_manifest
from harness_horizon.recommenders.presets import NETWORKS
from harness_horizon.recommenders.rankers import open_ranker, question_in, reply_of

if TYPE_CHECKING:
    from harness_horizon.recommenders.rankers import Question, Ranker, Ranking

KIND = "recommender"
SPLIT, WEIGHTS = "split", "weights"
"""The details of the identity: the digests of the split and of the weights."""

ARGUMENTS = ("model", "device", "concurrency")

IN_FLIGHT = 256


class RecommenderModel(Model):
    """Ranks after the history in a request; what is asked at the same time is ranked together."""

    def __init__(self, folder: Path, manifest: Manifest, *, device: str, concurrency: int) -> None:
        self.concurrency = concurrency
        self.identity = Identity(
            kind=KIND,
            name=manifest.kind,
            details={WEIGHTS: manifest.weights, SPLIT: manifest.split},
        )
        self._folder, self._manifest, self._device = folder, manifest, device
        self.occupies = "gpu" if self._on_gpu() else None
        self._ranker: Ranker | None = None
        self._waiting: list[tuple[Question, asyncio.Future[Ranking]]] = []
        self._work: asyncio.Task[None] | None = None

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
        answer: asyncio.Future[Ranking] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._work is None:
            self._work = asyncio.create_task(self._rank_waiting())
        return Reply(text=reply_of(await answer))

    async def _rank_waiting(self) -> None:
        """Rank what waits, all together, until nothing waits."""
        try:
            await asyncio.sleep(0)
            while self._waiting:
                together, self._waiting = self._waiting, []
                try:
                    assert self._ranker is not None, "the model is open"
                    questions = [one for one, _ in together]
                    rankings = await asyncio.to_thread(self._ranker.rank, questions)
                except Exception as error:
                    failed = CallError("server_error", f"{type(error).__name__}: {error}")
                    for _, answer in together:
                        if not answer.done():
                            answer.set_exception(failed)
                    continue
                for (_, answer), ranking in zip(together, rankings, strict=True):
                    if not answer.done():
                        answer.set_result(ranking)
        finally:
            self._work = None


def make(settings: ModelSettings) -> Model:
    """The model of a checkpoint; UsageError for unknown arguments, DataError without a manifest."""
    for name in settings.args:
        if name not in ARGUMENTS:
            raise UsageError(
                f"the model '{KIND}' has no argument {name!r}",
                where="--model_args",
                found=name,
                expected=", ".join(ARGUMENTS),
                hint=did_you_mean(name, ARGUMENTS),
            )
    folder, device = settings.args.get("model", ""), settings.args.get("device", "auto")
    if not folder:
        raise UsageError("a recommender needs its checkpoint", expected=f"--model {KIND}:FOLDER")
    if device not in ("auto", "cpu", "cuda"):
        raise UsageError("there is no such device", found=device, expected="auto, cpu or cuda")
    given = settings.args.get("concurrency", "")
    if given and not (given.isascii() and given.isdigit() and int(given) > 0):
        raise UsageError("concurrency is no whole number above 0", found=given)
    manifest = read_manifest(Path(folder))
    if manifest.kind in NETWORKS and find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    return RecommenderModel(
        Path(folder),
        manifest,
        device=device,
        concurrency=int(given) if given else settings.concurrency or IN_FLIGHT,
    )
