"""The tool `harness horizon index`: vectors of all titles, and an index over them."""

from __future__ import annotations

import asyncio
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from harness.base.errors import Interrupted
from harness.contracts.report import Report, Sheet
from harness.runs.atomic_files import remove_unfinished, storage_error
from harness_horizon.catalogue import vectors
from harness_horizon.catalogue.faiss_index import FaissIndex, build, checked_faiss, recall
from harness_horizon.catalogue.index_folder import INDEX, TITLES, read_titles, write_titles
from harness_horizon.catalogue.room import BUILDING, SEARCHING, M, room_of
from harness_horizon.catalogue.titles import items_digest
from harness_horizon.curation.engine import OUT, say_disk, size
from harness_horizon.curation.ledger import (
    Ledger,
    Manifest,
    alone,
    check_usable,
    opened,
    read_manifest,
)
from harness_horizon.recommenders.training_data import data_folder

if TYPE_CHECKING:
    from harness.analysis.analysis import Progress
    from harness.contracts.embedder import Embedder

Given = Annotated[int, Meta(ge=1)] | None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What is indexed, by which embedder, and where the index is kept."""

    data: Annotated[
        Path, Meta(description="the folder of `harness data horizon`, or sample for the sample")
    ]
    embedder: Annotated[str, Meta(description="the SPEC of one: see `harness list embedders`")]
    out: Annotated[Path, Meta(description="the folder of the index")]
    catalog_sample: Annotated[
        Given,
        Meta(description="only so many titles: all true items of the cases, others by chance"),
    ] = None
    dtype: Annotated[vectors.Dtype, Meta(description="the numbers of stored vectors")] = "fp16"
    threads: Annotated[Given, Meta(description="threads that build the graph, instead of all")] = (
        None
    )


def run(settings: Settings, progress: Progress) -> Report:
    """Build an index, or continue what was left unfinished, and report what it takes."""
    from harness.pipeline.embedders import ToolAsker, named_embedder

    checked_faiss()
    data, out = data_folder(settings.data), settings.out
    # The vectors are kept in the index: the store would hold them once more.
    embedder = named_embedder(settings.embedder, asker=ToolAsker())
    options = {
        "items": items_digest(data),
        "embedder": settings.embedder,
        "identity": msgspec.to_builtins(embedder.identity),
        "catalog_sample": settings.catalog_sample,
        "dtype": settings.dtype,
        "hnsw": {"M": M, "efConstruction": BUILDING, "efSearch": SEARCHING},
    }
    with alone(out):
        before = read_manifest(out)
        check_usable(out, before, what="the index")
        ledger = opened(out, before, options=options, inputs=())
        done = ledger.manifest.complete
        remove_unfinished(out)
        try:
            if not done:
                _build(settings, data, embedder, ledger, progress)
        except KeyboardInterrupt as error:
            hint = "what is embedded is kept: the same command continues from there"
            raise Interrupted("stopped", where=str(out), hint=hint) from error
        except OSError as error:
            raise storage_error(out, error, option=OUT) from error
        shutil.rmtree(out / vectors.FOLDER, ignore_errors=True)
    return report(ledger.manifest, out, notes=("nothing was left to do",) if done else ())


def _build(
    settings: Settings, data: Path, embedder: Embedder, ledger: Ledger, progress: Progress
) -> None:
    """Carry out all that is not finished."""
    out = ledger.folder
    if not ledger.has("titles"):
        write_titles(data, out, settings.catalog_sample)
        ledger.finish("titles", [out / TITLES], {})
    titles = read_titles(out)
    said = partial(progress, of=len(titles))
    if not ledger.has("index"):
        asyncio.run(_embed(settings, titles.titles, embedder, ledger, said))
        rows = vectors.shards(ledger, settings.dtype)
        build(rows, out / INDEX, settings.threads, partial(said, "titles indexed"))
        ledger.finish("index", [out / INDEX], {"dimensions": rows[0].shape[1]})
    found = recall(FaissIndex(out / INDEX), vectors.shards(ledger, settings.dtype))
    totals = {"titles": {"titles": len(titles), **ledger.counts("index")}, "recall": found}
    ledger.complete(totals, without=vectors.FOLDER)


async def _embed(
    settings: Settings, titles: Any, embedder: Embedder, ledger: Ledger, progress: Progress
) -> None:
    """Embed the titles that no earlier process embedded, after saying what this takes."""
    await embedder.open()
    try:
        number = vectors.numbers(settings.dtype).itemsize
        room = room_of(len(titles), embedder.dimensions, number)
        print(f"memory to build or search it: {size(room.memory)}", file=sys.stderr)
        say_disk(ledger.folder, room.working, room.disk, least=room.working)
        said = partial(progress, "titles embedded")
        await vectors.embed(ledger, embedder, titles, settings.dtype, said)
    finally:
        await embedder.close()


def report(manifest: Manifest, folder: Path, *, notes: tuple[str, ...] = ()) -> Report:
    """What an index holds, what it takes, and how well it finds."""
    options, about, found = manifest.options, *manifest.totals.values()
    number = vectors.numbers(options["dtype"]).itemsize
    room = room_of(about["titles"], about["dimensions"], number)
    rows = (
        ("titles", about["titles"]),
        ("embedder", options["embedder"]),
        ("vectors", f"{about['dimensions']} numbers each, {options['dtype']}"),
        ("memory to build or search it", size(room.memory)),
        ("disk", size(room.disk)),
        ("digest", manifest.digest[:12]),
        ("recall@10 against exact search", f"{found['found'] / (found['of'] or 1):.4f}"),
        ("… nearest titles found, of", f"{found['found']:,} of {found['of']:,}"),
    )
    sheet = Sheet(title="Index", columns=("", "value"), rows=rows)
    use = f"harness --model MODEL --role retriever=catalogue:{folder} --tasks horizon_text"
    return Report(sheets=(sheet,), notes=(f"next: {use} --data DATA", *notes))
