"""Findings on a terminal. Imports rich at the top: import this where it is used."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from harness.contracts.finding import MARKS, Finding
from harness.reporting.grid import result_console
from harness.reporting.text import clean_text

PLAIN_MARKS = {"good": "ok", "doubtful": "!", "bad": "x"}
"""For encodings that lack the other marks."""
BETWEEN = "  "
NARROWEST = 30
"""The text of a finding is at least this wide, even on a narrower terminal."""
COLOURS = {"good": "green", "doubtful": "yellow", "bad": "bold red"}


def print_findings(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print a line for each finding with what to do below it, and a summary as the last line."""
    console = console or result_console()
    marks = marks_for(console.encoding)
    widest = max((cell_len(one.about) for one in findings), default=0)
    margin = max(map(len, marks.values())) + widest + 2 * len(BETWEEN)
    room = max(console.width - margin, NARROWEST)
    for one in findings:
        mark = marks[one.state]
        start = Text(mark, style=COLOURS[one.state]).append(f"{BETWEEN}{clean_text(one.about)}")
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
