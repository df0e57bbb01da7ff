"""Writes the pages of a leaderboard and a JSON document beside each; equal input, equal bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from harness.analysis.leaderboard import FORMAT, INDEX, Leaderboard
from harness.base.home import without_home
from harness.base.redaction import without_key_material
from harness.reporting.leaderboard_sheets import page_title
from harness.runs.atomic_files import atomic_write, storage_error

OPTION = "--output"


def write_site(folder: Path, found: Leaderboard) -> list[Path]:
    """Write all pages to a folder, and remove pages that an earlier leaderboard left there."""
    files = site_files(found)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            known = json.loads((folder / f"{INDEX}.json").read_bytes())
            before = [page["page"] for page in known["pages"]]
        except (OSError, ValueError, KeyError, TypeError):
            before = []  # there is no such index
        pages = [one for one in before if isinstance(one, str) and Path(one).name == one]
        for name in (f"{page}.{ending}" for page in pages for ending in ("html", "json")):
            if name not in files:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(folder, error, option=OPTION) from error
    for name, text in files.items():
        atomic_write(folder / name, text.encode("utf-8"), option=OPTION)
    return [folder / name for name in files]


def site_files(found: Leaderboard) -> dict[str, str]:
    """The text of each file of the site by its name, the page over all first."""
    from harness.reporting.html.leaderboard_pages import board_html, index_html

    pages = [
        {
            "page": board.page,
            "title": page_title(board),
            "task": board.task,
            "metric": board.metric,
            "not_comparable_because": board.not_comparable_because,
            "ranks": {one.entry.model: [one.ranks.best, one.ranks.worst] for one in board.ranked},
        }
        for board in found.boards
    ]
    index = {"format": FORMAT, "pages": pages, "left_out": found.left_out}
    files = {f"{INDEX}.html": index_html(found), f"{INDEX}.json": _json(index)}
    for board in found.boards:
        files[f"{board.page}.html"] = board_html(board)
        about = {"format": FORMAT, "title": page_title(board)}
        files[f"{board.page}.json"] = _json(about | msgspec.to_builtins(board))
    return files


def _json(values: Any) -> str:
    safe = without_key_material(msgspec.to_builtins(values))
    return without_home(json.dumps(safe, indent=2, allow_nan=False)) + "\n"
