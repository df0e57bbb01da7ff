"""Tools: which titles are alike, and loans of invented readers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harness import DataTool
from harness.analysis.analysis import tool_from
from harness.contracts.embedder import checked_rows
from harness.contracts.report import Report, Sheet
from harness.pipeline.embedders import named_embedder


class AlikeOptions(msgspec.Struct, frozen=True, kw_only=True):
    titles: Annotated[Path, msgspec.Meta(description="a file with a title a line")]
    embedder: Annotated[str, msgspec.Meta(description="SPEC of an embedder")] = "acme-letters"


class LoansOptions(msgspec.Struct, frozen=True, kw_only=True):
    out: Annotated[Path, msgspec.Meta(description="the folder for loans.jsonl")]
    readers: Annotated[int, msgspec.Meta(ge=1, description="how many readers")] = 3


async def vectors(texts: list[str], spec: str) -> Any:
    embedder = named_embedder(spec)
    await embedder.open()
    rows = checked_rows(await embedder.embed(texts), texts, embedder)
    await embedder.close()
    return rows


def alike(options: AlikeOptions, progress: Any) -> Report:
    titles = options.titles.read_text("utf-8").splitlines()
    rows = asyncio.run(vectors(titles, options.embedder))
    cosines = rows @ rows.T
    found = []
    for place, title in enumerate(titles):
        progress("titles", place + 1, len(titles))
        others = [other for other in range(len(titles)) if other != place]
        nearest = max(others, key=lambda other: float(cosines[place, other]))
        found.append((title, titles[nearest], float(cosines[place, nearest])))
    columns = ("title", "nearest", "cosine")
    return Report(sheets=(Sheet(title="Alike", columns=columns, rows=tuple(found), digits=3),))


def write_loans(options: LoansOptions) -> Report:
    """Each reader borrows three books about the sea or about murder."""
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [
        {"reader": f"r{reader}", "title": f"The {theme} {part}", "state": "finished", "weeks": part}
        for reader in range(options.readers)
        for theme in ("Sea" if reader % 2 else "Murder",)
        for part in range(3)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (options.out / "loans.jsonl").write_text(lines, encoding="utf-8")
    sheet = Sheet(title="Loans", columns=("what", "n"), rows=(("loans", len(rows)),))
    return Report(sheets=(sheet,))


ALIKE = DataTool(
    name="alike", description="which titles are most alike", run=alike, options=AlikeOptions
)
LOANS = tool_from(
    "acme_borrowed.tools.write_loans", name="acme-loans", description="invented readers"
)
