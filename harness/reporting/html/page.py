"""Pages from templates: each text is escaped in one place, and a page loads nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness.base.home import without_home
from harness.base.redaction import known_secrets, without_key_material
from harness.contracts.report import Figure, Panels, Sheet
from harness.reporting.grid import digits_of, format_cell, has_numbers
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from jinja2 import Environment

OWN = "harness.reporting.html"
SVG = "data:image/svg+xml;base64,"
LONGEST_TITLE = 120
MOST_ROWS = 500
"""A table of more rows helps nobody; a note says how many there are."""


def page_html(template: str, *, title: str, **values: Any) -> str:
    """A whole page; its policy allows its own style and the images that it holds, nothing else."""
    _secrets.cache_clear()
    _short_shown.cache_clear()
    style = _text("report.css")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    name = title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"
    page = _environment().get_template(template)
    return page.render(title=title, window=name, style=style, digest=digest, **values)


def shown(text: str) -> str:
    """The text as people may see it: no key, no name of the home folder, nothing invisible."""
    return _short_shown(text) if len(text) < 200 else _shown(text)


class Table(NamedTuple):
    """A table of texts; `numbers` says which columns are aligned as numbers."""

    title: str
    columns: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: list[list[str]]
    notes: tuple[str, ...]


def table_of(sheet: Sheet) -> Table:
    """The sheet as a page shows it."""
    columns = range(len(sheet.columns))
    rows = [
        [format_cell(cell, digits_of(sheet, column)) for column, cell in enumerate(row)]
        for row in sheet.rows[:MOST_ROWS]
    ]
    left = len(sheet.rows) - len(rows)
    more = (f"{left:,} more rows are not shown",) if left else ()
    numbers = tuple(has_numbers(sheet, column) for column in columns)
    return Table(sheet.title, sheet.columns, numbers, rows, (*sheet.notes, *more))


class Image(NamedTuple):
    """A figure as an image that the page holds."""

    source: str
    title: str
    note: str


def image_of(figure: Figure | Panels) -> Image:
    """The figure as an SVG image, in which no script can run and which can load nothing."""
    from harness.reporting.figures import figure_bytes

    bare = msgspec.structs.replace(figure, stamp="", note="")
    safe = msgspec.convert(_shown_values(msgspec.to_builtins(bare)), type(figure))
    source = f"{SVG}{b64encode(figure_bytes(safe)).decode()}"
    return Image(source, figure.title, figure.note)


def _shown_values(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {name: _shown_values(held) for name, held in value.items()}
    return [_shown_values(held) for held in value] if isinstance(value, list | tuple) else value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    def safe(value: Any) -> Any:
        return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    return Environment(
        loader=FunctionLoader(lambda name: _text(f"templates/{name}")), autoescape=True,
        undefined=StrictUndefined, finalize=safe, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def _text(name: str) -> str:
    return files(OWN).joinpath(name).read_text("utf-8")


def _shown(text: str) -> str:
    return clean_text(without_home(without_key_material(text, _secrets())), lines=True)


_short_shown = lru_cache(maxsize=1 << 14)(_shown)


@lru_cache(maxsize=1)
def _secrets() -> tuple[str, ...]:
    return known_secrets()
