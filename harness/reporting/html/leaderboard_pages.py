"""The pages of a leaderboard as HTML: one for each task's board, and one over all."""

from __future__ import annotations

from harness.analysis.leaderboard import INDEX, Board, Leaderboard
from harness.contracts.report import Sheet
from harness.reporting.html.figure_html import figure_html
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.page import page_html, section_html
from harness.reporting.html.sheet_html import Entry, entries_html, notes_html, sheet_html
from harness.reporting.leaderboard_sheets import (
    board_report,
    index_reports,
    page_title,
    rank_on,
)

TITLE = "Leaderboard"


def index_html(found: Leaderboard) -> str:
    """The page over all tasks: ranks by task, and a link to each page."""
    parts = [
        section_html(
            f"tasks-{number}",
            title,
            notes_html(report.notes),
            _links(found, title),
            *(sheet_html(sheet, level=3) for sheet in report.sheets),
        )
        for number, (title, report) in enumerate(index_reports(found), 1)
    ]
    if found.left_out:
        rows = tuple(found.left_out.items())
        sheet = Sheet(title="", columns=("run, task", "because"), rows=rows)
        parts.append(section_html("left-out", "Left out", sheet_html(sheet)))
    stamped = all(board.not_comparable_because for board in found.boards)
    title = f"{TITLE}: NOT COMPARABLE with published results" if stamped else TITLE
    return page_html(title, [element("h1", title), *parts])


def board_html(board: Board) -> str:
    """The page of a board, with a link to the page over all."""
    title = page_title(board)
    back = element("p", _link(INDEX, "all tasks"), " · ", _file(board.page, "this page as JSON"))
    apart = joined(
        element("p", "runs that cannot stand here: ", _link(each.page, each.page), ": ",
                "; ".join(each.because), class_="note")
        for each in board.apart
    )  # fmt: skip
    report = board_report(board)
    first, *others = (sheet_html(sheet, level=2) for sheet in report.sheets)
    figures = map(figure_html, report.figures)
    body = [back, apart, notes_html(report.notes), first, *figures, *others]
    return page_html(title, [element("h1", title), *body])


def _links(found: Leaderboard, title: str) -> Html:
    """A row for each page of a part, with a link and the ranks of its first models."""
    boards = [b for b in found.boards if bool(b.not_comparable_because) is title.startswith("NOT")]
    rows = [
        [
            Entry(_link(board.page, board.page)),
            Entry(board.metric),
            Entry(_first(board)),
            Entry(str(len(board.ranked)), len(board.ranked)),
            Entry(str(board.seed), board.seed),
            Entry("all" if board.limit is None else str(board.limit), board.limit),
        ]
        for board in boards
    ]
    columns = ("page", "metric", "first, by rank", "models", "seed", "people, at most")
    numbers = (False, False, False, True, True, True)
    return entries_html("pages", columns, rows, numbers=numbers)


def _first(board: Board) -> str:
    """The ranks and names of the first models."""
    return ", ".join(f"{rank_on(board, one.ranks)} {one.entry.model}" for one in board.ranked[:3])


def _link(page: str, text: str) -> Html:
    return element("a", text, href=f"{page}.html")


def _file(page: str, text: str) -> Html:
    return element("a", text, href=f"{page}.json")
