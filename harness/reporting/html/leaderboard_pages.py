"""The pages of a leaderboard as HTML: one for each task's board, and one over all."""

from __future__ import annotations

from harness.analysis.leaderboard import INDEX, Board, Leaderboard
from harness.contracts.report import Sheet
from harness.reporting.html.figure_html import figure_html
from harness.reporting.html.markup import Html, breakable, element
from harness.reporting.html.page import page_html, section_html
from harness.reporting.html.sheet_html import Entry, entries_html, notes_html, sheet_html
from harness.reporting.leaderboard_sheets import (
    board_name,
    board_report,
    index_parts,
    page_title,
)
from harness.reporting.report_tables import format_cell

TITLE = "Leaderboard"


def index_html(found: Leaderboard) -> str:
    """The page over all tasks: ranks by task, and a link to each page."""
    parts = []
    for number, (title, sheet, boards) in enumerate(index_parts(found), 1):
        rows = [
            [
                Entry(_link(one.page, str(row[0]))),
                *(Entry(format_cell(cell, 0)) for cell in row[1:]),
            ]
            for row, one in zip(sheet.rows, boards, strict=True)
        ]
        texts = [False] * len(sheet.columns)
        table = entries_html("pages", sheet.columns, rows, numbers=texts)
        parts.append(section_html(f"tasks-{number}", title, notes_html(sheet.notes), table))
    if found.left_out:
        left_out = tuple(found.left_out.items())
        sheet = Sheet(title="", columns=("run, task", "because"), rows=left_out)
        parts.append(section_html("left-out", "Left out", sheet_html(sheet)))
    stamped = [bool(board.not_comparable_because) for board in found.boards]
    title = f"{TITLE}: NOT COMPARABLE with published results" if any(stamped) else TITLE
    title += ", in part" if any(stamped) and not all(stamped) else ""
    return page_html(title, [element("h1", TITLE), *parts])


def board_html(board: Board) -> str:
    """The page of a board, with a link to the page over all."""
    title = page_title(board)
    as_json = element("a", "this page as JSON", href=f"{board.page}.json")
    back = element("p", _link(INDEX, "all tasks"), " · ", as_json)
    report = board_report(board)
    first, *others = (sheet_html(sheet, level=2) for sheet in report.sheets)
    if board.apart:
        lines = (
            element("li", _link(each.page, f"{board.task} ({each.differs})"),
                    f": {', '.join(each.runs)}: {'; '.join(each.because)}")
            for each in board.apart
        )  # fmt: skip
        others += [element("h2", "Runs that cannot stand on this page"), element("ul", *lines)]
    figures = map(figure_html, report.figures)
    heading = element("h1", f"{board_name(board)}: {board.metric}")
    return page_html(title, [heading, back, notes_html(report.notes), first, *figures, *others])


def _link(page: str, text: str) -> Html:
    return element("a", breakable(text), href=f"{page}.html")
