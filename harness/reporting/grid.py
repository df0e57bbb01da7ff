"""The one grid of everything that is printed: columns, their widths, cuts, and groups of rows.

A grid is cut on a terminal alone: first the heads of numbers break at blanks, then names lose their
middle, then texts are wrapped, and at last it is split between columns. A file or a pipe gets it
whole. Imports rich at the top: import this module where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any, TextIO, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from harness.contracts.finding import MARKS, Finding
from harness.contracts.report import Cell, Report, Sheet
from harness.reporting.text import ROUNDING, Trimmed, aligned, clean_text

PIPE_WIDTH = 120
"""The width of notes and sheets that go into a file or a pipe."""

WIDTH = 80
"""The width of sentences about runs in a file or a pipe."""

INDENT = "  "
"""Blanks between two columns, and before a line that belongs to the one above."""

MISSING = "—"

LONG_WORD = 40
"""Words up to this length are kept whole if the console is wide enough for one."""

SHORTEST_NAME = 12
"""Names keep so many characters before texts are wrapped."""

Row: TypeAlias = Sequence[str | Text] | None
"""The cells of a row, fewer than there are columns if the others are empty, or None for a line
between two groups."""


def result_console(stream: TextIO | None = None, *, width: int = PIPE_WIDTH) -> Console:
    """A console for results, on standard output unless given; it reads no markup."""
    stream = stream or sys.stdout
    shown: dict[str, Any] = {"file": stream}
    if not stream.isatty():
        shown = {"file": Trimmed(stream), "width": width}
    return Console(**shown, markup=False, highlight=False, emoji=False)


def room_on(console: Console) -> int | None:
    """The width of a terminal; None for a file or a pipe, where nothing is cut."""
    return console.width if console.is_terminal else None


def show(console: Console, lines: Iterable[Text]) -> None:
    """Print lines as they are, however wide."""
    for line in lines:
        console.print(line, soft_wrap=True)


def grid(
    heads: Sequence[str],
    rows: Iterable[Row],
    *,
    numbers: int | Sequence[bool],
    width: int | None = None,
    keys: int = 1,
    cut: bool = True,
) -> list[Text]:
    """The lines of a grid: texts to the left, numbers to the right and below one another.

    `numbers` says which columns are numbers, or how many of the last. In a `width` that is too
    small the first column is `cut` in the middle of its names, and parts repeat the first `keys`.
    """
    if isinstance(numbers, int):
        numbers = [column >= len(heads) - numbers for column in range(len(heads))]
    given = list(rows)
    cells = [
        [Text(cell) if isinstance(cell, str) else cell for cell in (*row, *("",) * missing)]
        for row in given
        if row is not None and (missing := len(heads) - len(row)) >= 0
    ]
    least, whole = list[int](), list[int]()
    for column, head in enumerate(heads):
        texts = [row[column].plain for row in cells]
        words = [word for text in (head, *texts) for word in text.split()]
        if numbers[column]:
            texts = aligned(texts)
            for row, text in zip(cells, texts, strict=True):
                row[column] = Text(text, row[column].style)
            words = [*head.split(), *texts]
        least.append(max([1, *(min(cell_len(word), LONG_WORD) for word in words)]))
        whole.append(max(map(cell_len, (head, *texts))))
    if cut:
        least[0] = min(whole[0], SHORTEST_NAME)
    lines: list[Text] = []
    for columns in _parts(least, keys, width):
        sides = [numbers[one] for one in columns]
        sizes = _sizes(
            [least[one] for one in columns], [whole[one] for one in columns], sides, width
        )
        names = [row[0].plain for row in cells]
        if cut and sizes[0] < whole[0]:
            names = middle_cuts(names, sizes[0])
        rule = Text("─" * _total(sizes))
        lines += [Text()] if lines else []
        lines += [
            *_lines([Text(heads[one], "bold") for one in columns], sides, sizes, heads=True),
            rule,
        ]
        left = zip(names, cells, strict=True)
        for one in given:
            if one is None:
                lines.append(rule)
            else:
                name, all_cells = next(left)
                shown = [Text(name, all_cells[0].style), *(all_cells[one] for one in columns[1:])]
                lines += _lines(shown, sides, sizes)
    return lines


def _parts(least: Sequence[int], keys: int, width: int | None) -> list[list[int]]:
    """The columns of each part of a grid, so that each part fits if possible."""
    parts: list[list[int]] = []
    for column in range(keys, len(least)):
        longer = [*parts[-1], column] if parts else []
        if longer and (width is None or _total([least[one] for one in longer]) <= width):
            parts[-1] = longer
        else:
            parts.append([*range(keys), column])
    return parts or [[*range(keys)]]


def _sizes(
    least: Sequence[int], whole: Sequence[int], numbers: Sequence[bool], width: int | None
) -> list[int]:
    """The width of each column: whole if there is room, else the widest shrink first.

    Before that, the heads of all `numbers` are broken at every blank, so that they look alike.
    Words are cut only if there is no room for them.
    """
    if width is None or _total(whole) <= width:
        return list(whole)
    widths = [
        min(one if number else most, width)
        for one, most, number in zip(least, whole, numbers, strict=True)
    ]
    floor = list(least) if _total(least) <= width else [1] * len(least)
    while _total(widths) > width and widths != floor:
        wide = [column for column in range(len(least)) if widths[column] > floor[column]]
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(INDENT) * (len(widths) - 1)


def _lines(
    row: Sequence[Text], numbers: Sequence[bool], sizes: Sequence[int], *, heads: bool = False
) -> list[Text]:
    """A row, of several lines where a text is wrapped."""
    wrapped = [
        [cell.plain]
        if cell.cell_len <= size
        else [line.plain.rstrip() for line in cell.wrap(_CONSOLE, size, overflow="fold")]
        for cell, size in zip(row, sizes, strict=True)
    ]
    if heads:  # their last lines stand on the rule
        most = max(map(len, wrapped))
        wrapped = [[""] * (most - len(cell)) + cell for cell in wrapped]
    lines = []
    for parts in zip_longest(*wrapped, fillvalue=""):
        line = Text()
        for place, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            blank = " " * (size - cell_len(part))
            line.append((INDENT if place else "") + (blank if numbers[place] else ""))
            line.append(part, row[place].style).append("" if numbers[place] else blank)
        line.rstrip()
        lines.append(line)
    return lines


_CONSOLE = Console(width=PIPE_WIDTH, markup=False, highlight=False, emoji=False)
"""What wraps cells; nothing is printed on it."""


def print_report(report: Report, console: Console | None = None) -> None:
    """Print the report's notes, then each sheet with its own notes."""
    console = console or result_console()
    for note in report.notes:
        console.print(Text(clean_text(note)))
    for number, sheet in enumerate(report.sheets):
        if number or report.notes:
            console.print()
        show(console, sheet_lines(sheet, console.width))


def sheet_lines(sheet: Sheet, width: int) -> list[Text]:
    """A sheet's title, grid and notes."""
    columns = range(len(sheet.columns))
    numbers = [has_numbers(sheet, column) for column in columns]
    # Texts before the first number, or the first column, name the rows.
    first = numbers.index(True) if True in numbers else 1
    rows = [[format_cell(row[one], digits_of(sheet, one)) for one in columns] for row in sheet.rows]
    heads = [clean_text(head) for head in sheet.columns]
    lines = [Text(clean_text(sheet.title), style="bold")]
    lines += grid(heads, rows, numbers=numbers, width=width, keys=max(first, 1), cut=False)
    lines += [] if sheet.rows else [Text(f"{INDENT}no rows", style="dim")]
    return lines + indented(map(clean_text, sheet.notes), "dim", width)


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


def has_numbers(sheet: Sheet, column: int) -> bool:
    """Whether a column is aligned as numbers: it has one, or is empty and not the first."""
    cells = [row[column] for row in sheet.rows]
    return any(isinstance(cell, (int, float)) for cell in cells) or (
        bool(cells) and column > 0 and all(cell is None for cell in cells)
    )


def digits_of(sheet: Sheet, column: int) -> int:
    return sheet.digits if isinstance(sheet.digits, int) else sheet.digits[column]


def indented(lines: Iterable[str], style: str, width: int | None = None) -> list[Text]:
    """The texts as lines below what they belong to, wrapped in a width."""
    return [
        Text(f"{INDENT}{line}", style=style)
        for text in lines
        for line in (wrap(text, width - len(INDENT)) if width else [text])
    ]


def wrapped(texts: Iterable[Text], width: int | None) -> list[Text]:
    """The texts that are not empty, on a terminal in lines of its width, two for each at most."""
    shown = [text for text in texts if text.plain]
    if width is None:
        return shown
    return [
        Text(line, style=text.style)
        for text in shown
        for line in wrap(text.plain, width, max_lines=2, placeholder=" …")
    ]


def cut_end(text: str, width: int | None) -> str:
    """The text in a width, with `…` where its end is missing."""
    if width is None or cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


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
