"""The kind of model `catalogue`: the titles of a catalogue that are nearest to queries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from harness.base.errors import DataError, UsageError
from harness.contracts.embedder import Embedder, checked_rows
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request, Usage
from harness_horizon.arguments import read_arguments
from harness_horizon.catalogue.faiss_index import FaissIndex, checked_faiss
from harness_horizon.catalogue.index_folder import COMMAND, INDEX, read_index, read_titles
from harness_horizon.catalogue.merging import RELEVANT, Merge, merged, taken_of_each
from harness_horizon.catalogue.room import gpu_memory, gpu_needs
from harness_horizon.catalogue.titles import Titles, distinct_titles, items_digest, table_of
from harness_horizon.catalogue.vectors import SmallIndex, cosines
from harness_horizon.curation.ledger import Manifest
from harness_horizon.recommenders.training_data import SAMPLE
from harness_horizon.together import Together

if TYPE_CHECKING:
    from numpy.typing import NDArray

KIND = "catalogue"
ARGUMENTS = ("model", "embedder", "device", "concurrency")
IN_FLIGHT = 256
DIGITS = 4


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request asks: queries, the cleaned titles of true items, how many, how merged."""

    queries: Annotated[tuple[str, ...], Meta(min_length=1)]
    truths: Annotated[tuple[str, ...], Meta(min_length=1)]
    k: Annotated[int, Meta(ge=1, le=256)]
    merge: Merge


class CatalogueModel(Model):
    """Answers with the titles nearest to queries; what is asked at the same time is one search."""

    def __init__(
        self, folder: Path | None, details: dict[str, Any], embedder: Embedder,
        *, gpu: bool, concurrency: int,
    ) -> None:  # fmt: skip
        of = embedder.identity
        own = {**details, "embedder": {"kind": of.kind, **of.details}}
        self.identity = Identity(kind=KIND, name=of.name, details=own, scope=of.scope)
        self.concurrency = concurrency
        self.writes = False
        self.occupies = "gpu" if gpu else embedder.occupies
        self.gpus = max(embedder.gpus, 1 if gpu else 0)
        self.variables, self.key_files = embedder.variables, embedder.key_files
        self._folder, self._embedder, self._gpu = folder, embedder, gpu
        self._together = Together(self._answers)

    async def open(self) -> None:
        """Open the embedder, and map the index, which is checked again if it was changed."""
        await self._embedder.open()
        try:
            await self._open_index()
        except BaseException:
            await self._embedder.close()
            raise

    async def _open_index(self) -> None:
        if self._folder is None:
            titles = distinct_titles(SAMPLE)
            self._titles = Titles(table_of(titles, np.arange(len(titles))))
            rows = await self._embedded(titles.to_pylist())
            self._index: FaissIndex | SmallIndex = SmallIndex(rows)
            return
        manifest = await asyncio.to_thread(read_index, self._folder)
        built = manifest.totals["titles"]["dimensions"]
        check_same(self._folder, {"dimensions": built}, {"dimensions": self._embedder.dimensions})
        self._titles = read_titles(self._folder)
        self._index = await asyncio.to_thread(FaissIndex, self._folder / INDEX, gpu=self._gpu)

    async def close(self) -> None:
        """Let the index and the embedder go."""
        del self._titles, self._index
        await self._embedder.close()

    async def ask(self, request: Request) -> Reply:
        """The merged list of what is nearest to the queries, with its nearness to the truths."""
        try:
            asked = msgspec.json.decode(request.messages[-1].content, type=Asked)
        except msgspec.DecodeError as error:
            said = f"this is no question to a catalogue: {error}"
            raise CallError("bad_request", said) from error
        truths = [self._titles.position(title) for title in asked.truths]
        for title, place in zip(asked.truths, truths, strict=True):
            if place is None:
                raise CallError("bad_request", f"the catalogue lacks the true title {title!r}")
        return await self._together.ask((asked, np.array(truths, dtype=np.int64)))

    async def _answers(self, together: list[tuple[Asked, NDArray[np.int64]]]) -> list[Reply]:
        """The replies to several requests, from one embedding and one search.

        The first reply counts the tokens of all.
        """
        before = self._embedder.tokens
        texts = list(dict.fromkeys(text for asked, _ in together for text in asked.queries))
        place = {text: number for number, text in enumerate(texts)}
        rows = await self._embedded(texts)
        most = max(taken_of_each(one.merge, one.k, len(one.queries)) for one, _ in together)
        used = Usage(prompt_tokens=self._embedder.tokens - before)

        def found() -> list[Reply]:
            near = self._index.search(rows, max(most, 1))
            own = [[place[text] for text in asked.queries] for asked, _ in together]
            texts = [
                self._reply(asked, truths, rows[lines], near[lines])
                for (asked, truths), lines in zip(together, own, strict=True)
            ]
            return [Reply(text=one, usage=Usage() if at else used) for at, one in enumerate(texts)]

        return await asyncio.to_thread(found)

    async def _embedded(self, texts: list[str]) -> NDArray[np.float32]:
        return checked_rows(await self._embedder.embed(texts), texts, self._embedder)

    def _reply(
        self,
        asked: Asked,
        truths: NDArray[np.int64],
        queries: NDArray[np.float32],
        near: NDArray[np.int64],
    ) -> str:
        """The reply to a request, from the positions that are near to each of its queries."""
        lists = [[one for one in own.tolist() if one >= 0] for own in near]
        kept = merged(lists, asked.k, asked.merge)
        places = np.array([lists[query][rank] for query, rank in kept], dtype=np.int64)
        there, true = (_unit(self._index.vectors(rows)) for rows in (places, truths))
        own = np.einsum("ij,ij->i", there, queries[[query for query, _ in kept]])
        beside = cosines(there, true).round(DIGITS)
        best = beside.argmax(axis=1)
        columns = (
            self._titles.rows[places].tolist(),
            _short(own),
            best.tolist(),
            _short(beside[np.arange(len(best)), best]),
        )
        reply = {
            "found": list(zip(*columns, strict=True)),
            "truths": self._titles.rows[truths].tolist(),
            "cosines": _short(cosines(queries, true)),
        }
        others = beside >= RELEVANT
        others[np.arange(len(best)), best] = False
        if others.any():
            places, numbers = np.nonzero(others)
            near = (places.tolist(), numbers.tolist(), _short(beside[others]))
            reply["also"] = list(zip(*near, strict=True))
        return msgspec.json.encode(reply).decode()


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Rows of length 1 again, after they were rounded to be stored."""
    exact = rows.astype(np.float64)
    found: NDArray[np.float64] = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    return found


def _short(values: NDArray[np.float64]) -> Any:
    return values.round(DIGITS).tolist()


def make(settings: ModelSettings) -> Model:
    """The model of an index, or of the sample; DataError for an index that cannot be used."""
    from harness.calls.retry import Patience
    from harness.pipeline.embedders import ToolAsker, named_embedder

    device, concurrency = read_arguments(KIND, settings, ARGUMENTS, IN_FLIGHT)
    name = settings.args.get("model", "")
    if not name:
        details = {"items": items_digest(SAMPLE), "index": "sample", "search": "exact"}
        embedder = named_embedder("hashing")
        return CatalogueModel(None, details, embedder, gpu=False, concurrency=concurrency)
    folder = Path(name)
    manifest = read_index(folder)
    options = manifest.options
    spec = settings.args.get("embedder", "").replace(";", ",") or options["embedder"]
    patience = Patience(
        attempt_timeout=settings.attempt_timeout, start_timeout=settings.start_timeout
    )
    asker = ToolAsker(patience=patience, store=settings.store)
    hosts = settings.given_hosts
    embedder = named_embedder(spec, given_hosts=hosts, patience=patience, asker=asker)
    check_same(folder, options["identity"], msgspec.to_builtins(embedder.identity))
    gpu = _on_gpu(device, manifest)
    details = {
        "items": options["items"],
        "index": manifest.digest,
        "search": "exact" if gpu else "hnsw",
        "catalog_sample": options["catalog_sample"],
    }
    return CatalogueModel(folder, details, embedder, gpu=gpu, concurrency=concurrency)


def check_same(folder: Path, built: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise DataError if an index was built by another embedder than the one that is used."""
    if built != now:
        raise DataError(
            "the index was built by another embedder",
            where=str(folder),
            found=str(now),
            expected=str(built),
            hint=f"name the same embedder, or build an index with this one: {COMMAND}",
        )


def _on_gpu(device: str, manifest: Manifest) -> bool:
    """Whether a GPU searches: if faiss can use it and, unless it was asked for, has the room."""
    able = checked_faiss()
    if device == "cuda" and not able:
        expected = "faiss-gpu: the extra [gpu]"
        raise UsageError("this faiss cannot use a GPU", found="device=cuda", expected=expected)
    if device != "auto" or not (able and Path("/dev/nvidiactl").exists()):
        return device == "cuda"
    about, there = manifest.totals["titles"], gpu_memory("total")
    return there is not None and gpu_needs(about["titles"], about["dimensions"]) <= there
