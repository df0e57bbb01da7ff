"""Columns on a terminal: of reports, tables, lines and findings, within a width.

Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any, TextIO, TypeAlias

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.contracts.finding import MARKS, Finding
from harness.contracts.report import Cell, Report, Sheet
from harness.reporting.text import ROUNDING, Trimmed, aligned, clean_text

PIPE_WIDTH = 120
"""The width of wide tables that go into a file or a pipe."""

SCREEN = 40
"""The lines that the table fits in a file or a pipe, with what is printed after it."""

WIDTH = 80
"""The width of the table in a file or a pipe."""

INDENT = "  "
"""Blanks between two columns, and before a line that belongs to the one above."""

MISSING = "—"

LONG_WORD = 40
"""Words up to this length are kept whole if the console is wide enough for one."""


def result_console(stream: TextIO | None = None, *, width: int = PIPE_WIDTH) -> Console:
    """A console for results, on standard output unless given; it reads no markup."""
    stream = stream or sys.stdout
    shown: dict[str, Any] = {"file": stream}
    if not stream.isatty():
        shown = {"file": Trimmed(stream), "width": width}
    return Console(**shown, markup=False, highlight=False, emoji=False)


def print_report(report: Report, console: Console | None = None) -> None:
    """Print the report's notes, then each sheet with its own notes."""
    console = console or result_console()
    for note in report.notes:
        console.print(Text(clean_text(note)))
    for number, sheet in enumerate(report.sheets):
        if number or report.notes:
            console.print()
        for part in sheet_parts(sheet, console):
            console.print(part)


def sheet_parts(sheet: Sheet, console: Console) -> list[RenderableType]:
    """A sheet's title, table and notes; a table too wide for the console is split."""
    parts: list[RenderableType] = [Text(clean_text(sheet.title), style="bold")]
    # The width of a column that keeps its words whole, and the one that keeps its cells whole.
    least, whole = list[int](), list[int]()
    for column, head in enumerate(sheet.columns):
        digits = digits_of(sheet, column)
        texts = [clean_text(head), *(format_cell(row[column], digits) for row in sheet.rows)]
        words = (cell_len(word) for text in texts for word in text.split())
        least.append(min(max(words, default=1), LONG_WORD))
        whole.append(max(map(cell_len, texts), default=1))
    for number, columns in enumerate(_blocks(sheet, least, console.width)):
        parts += [Text()] if number else []
        numbers = [has_numbers(sheet, column) for column in columns]
        kept, wanted = [least[one] for one in columns], [whole[one] for one in columns]
        widths = _cut(kept, wanted, numbers, console.width)
        parts.append(_table(sheet, columns, widths))
    if not sheet.rows:
        parts.append(Padding(Text("no rows", style="dim"), (0, 0, 0, 2), expand=False))
    for note in sheet.notes:
        parts.append(Padding(Text(clean_text(note), style="dim"), (0, 0, 0, 2), expand=False))
    return parts


def format_cell(cell: Cell, digits: int) -> str:
    """A cell as text; a number too small for its digits becomes `<0.01`, not zero."""
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return clean_text(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    text = f"{cell:z,.{digits}f}"
    if abs(cell) >= ROUNDING and float(text.replace(",", "")) == 0:
        least = f"{10.0**-digits:.{digits}f}"
        return f"<{least}" if cell > 0 else f">-{least}"
    return text


def _blocks(sheet: Sheet, least: Sequence[int], room: int) -> list[list[int]]:
    """The columns of each part of a table, so that each part fits if possible."""
    numbers = [column for column in range(len(sheet.columns)) if has_numbers(sheet, column)]
    # Texts before the first number, or the first column, name the rows.
    keys = list(range(max(numbers[0], 1) if numbers else 1))
    blocks: list[list[int]] = []
    for column in range(len(keys), len(sheet.columns)):
        longer = [*blocks[-1], column] if blocks else []
        if longer and _total([least[each] for each in longer]) <= room:
            blocks[-1] = longer
        else:
            blocks.append([*keys, column])
    return blocks or [keys]


def _cut(
    least: Sequence[int], whole: Sequence[int], numbers: Sequence[bool], room: int
) -> list[int]:
    """The width of each column: whole if there is room, else the widest shrink first.

    Before that, the heads of all `numbers` are broken at every blank, so that they look alike.
    Words are cut only if there is no room for them.
    """
    widths = [min(one, room) for one in whole]
    if _total(widths) > room:
        widths = [
            min(one, room) if number else width
            for one, width, number in zip(least, widths, numbers, strict=True)
        ]
    floor = list(least) if _total(least) <= room else [1] * len(least)
    while _total(widths) > room and widths != floor:
        wide = [column for column in range(len(least)) if widths[column] > floor[column]]
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(INDENT) * (len(widths) - 1)


def _table(sheet: Sheet, columns: Sequence[int], widths: Sequence[int]) -> Table:
    table = plain_table(clean_text(sheet.columns[columns[0]]), numbers=())
    for column in columns[1:]:
        table.add_column(Text(clean_text(sheet.columns[column])), overflow="fold")
    for column, made, width in zip(columns, table.columns, widths, strict=True):
        made.justify = "right" if has_numbers(sheet, column) else "left"
        made.width = width
    for row in sheet.rows:
        cells = [format_cell(row[column], digits_of(sheet, column)) for column in columns]
        table.add_row(*map(Text, cells))
    return table


def has_numbers(sheet: Sheet, column: int) -> bool:
    """Whether a column is aligned as numbers: it has one, or is empty and not the first."""
    cells = [row[column] for row in sheet.rows]
    return any(isinstance(cell, (int, float)) for cell in cells) or (
        bool(cells) and column > 0 and all(cell is None for cell in cells)
    )


def digits_of(sheet: Sheet, column: int) -> int:
    return sheet.digits if isinstance(sheet.digits, int) else sheet.digits[column]


Row: TypeAlias = Iterable[str | Text] | None
"""The cells of a row, or None for a line between two sections."""


def plain_table(*names: str, numbers: Sequence[str], rows: Iterable[Row] = ()) -> Table:
    """A table with one line, under its head: names on the left, numbers on the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for header in numbers:
        table.add_column(Text(header), justify="right", no_wrap=not header.startswith(MISSING))
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def indented(lines: Iterable[str], style: str) -> list[Padding]:
    return [Padding(Text(line, style=style), (0, 0, 0, 2), expand=False) for line in lines]


def columns_of(rows: Sequence[Sequence[str]], *, heads: int, left: int) -> list[Text]:
    """The rows with columns below one another, the first `left` of them aligned to the left."""
    columns = [
        [*column[:heads], *(column[heads:] if place < left else aligned(column[heads:]))]
        for place, column in enumerate(zip(*rows, strict=True))
    ]
    rows = list(zip(*columns, strict=True))
    sizes = [max(map(cell_len, column)) for column in columns]
    lines = []
    for place, row in enumerate(rows):
        cells = [
            cell + " " * (size - cell_len(cell))
            if column < left
            else " " * (size - cell_len(cell)) + cell
            for column, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        lines.append(Text(INDENT.join(cells).rstrip(), style="bold" if place < heads else ""))
    if heads:
        lines.insert(heads, Text("─" * (sum(sizes) + len(INDENT) * (len(sizes) - 1))))
    return lines


def wrapped(texts: Iterable[Text], width: int) -> list[Text]:
    """The texts that are not empty in lines of a width, two for each at most."""
    return [
        Text(line, style=text.style)
        for text in texts
        for line in wrap(text.plain, width, max_lines=2, placeholder=" …")
    ]


def cut(text: str, width: int) -> str:
    """The text in a width, with `…` where its end is left out."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def middle_cuts(names: Sequence[str], room: int) -> list[str]:
    """The names in a width by their beginnings and ends; whole if two would look the same."""
    head, tail = room - room // 2 - 1, room // 2
    shown = [
        name if cell_len(name) <= room else f"{name[:head]}…{name[-tail:]}"
        for name in names
    ]  # fmt: skip
    return shown if len({*shown}) == len({*names}) else list(names)


PLAIN_MARKS = {"good": "ok", "doubtful": "!", "bad": "x"}
"""For encodings that lack the other marks."""
NARROWEST = 30
"""The text of a finding is at least this wide, even on a narrower terminal."""
COLOURS = {"good": "green", "doubtful": "yellow", "bad": "bold red"}


def print_findings(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print a line for each finding with what to do below it, and a summary as the last line."""
    console = console or result_console()
    marks = marks_for(console.encoding)
    widest = max((cell_len(one.about) for one in findings), default=0)
    margin = max(map(len, marks.values())) + widest + 2 * len(INDENT)
    room = max(console.width - margin, NARROWEST)
    for one in findings:
        mark = marks[one.state]
        start = Text(mark, style=COLOURS[one.state]).append(f"{INDENT}{clean_text(one.about)}")
        start.append(" " * (margin - start.cell_len))
        lines = Text(clean_text(one.says)).wrap(console, room)
        if one.to_do:
            lines.extend(Text(f"to do: {clean_text(one.to_do)}", style="dim").wrap(console, room))
        for line in lines:
            line.rstrip()
            console.print(start + line, soft_wrap=True)
            start = Text(" " * margin)
    states = [one.state for one in findings]
    bad, doubtful = states.count("bad"), states.count("doubtful")
    to_check = f"; {doubtful} to check" if doubtful else ""
    console.print(Text(f"{bad or 'nothing'} to fix before a run{to_check}"))


def marks_for(encoding: str) -> dict[str, str]:
    """The marks that an encoding can write."""
    try:
        "".join(MARKS.values()).encode(encoding)
    except UnicodeEncodeError:
        return PLAIN_MARKS
    return MARKS
