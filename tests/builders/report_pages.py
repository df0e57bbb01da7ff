"""A report as its readers find it: sections, headings, tables and texts of the page."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from harness.cli.main import main

VOID = {"img", "meta"}


@dataclass
class Table:
    """A table of a section: its name, the cells of its head, and rows of cells."""

    section: str
    name: str
    head: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


class ReportPage(HTMLParser):
    """Reads a page; fails where an element is not closed, or an id is given twice."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[Table] = []
        self.texts: dict[str, str] = {}
        self.headings: list[tuple[int, str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._ids: set[str] = set()
        self.feed(text)
        self.close()
        assert self._open == [], "elements that are not closed"

    @property
    def section(self) -> str:
        """The id of the section that is being read."""
        return next((about.get("id") or "" for name, about in self._open if name == "section"), "")

    def of(self, section: str) -> list[Table]:
        """The tables of a section."""
        return [table for table in self.tables if table.section == section]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        self.elements.append((tag, about))
        if (found := about.get("id")) is not None:
            assert found not in self._ids, f"two elements have the id {found}"
            self._ids.add(found)
        if tag not in VOID:
            self._open.append((tag, about))
        if tag == "table":
            region = next(about for name, about in reversed(self._open) if name == "div")
            self.tables.append(Table(self.section, region.get("aria-label") or ""))
        elif tag == "tr" and self._inside("tbody"):
            self.tables[-1].rows.append([])
        elif tag in ("td", "th"):
            self._row().append("")
            assert tag == "td" or about.get("scope") in ("row", "col")
        elif tag in ("h1", "h2", "h3", "h4", "h5"):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag, f"</{tag}> ends another element"

    def handle_data(self, data: str) -> None:
        names = [name for name, _ in self._open]
        if "style" in names:
            return
        self.texts[self.section] = self.texts.get(self.section, "") + data
        if "td" in names or "th" in names:
            self._row()[-1] += data
        if names and names[-1][0] == "h" and names[-1][1:].isdigit():
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    def _row(self) -> list[str]:
        table = self.tables[-1]
        return table.rows[-1] if self._inside("tbody") else table.head

    def _inside(self, name: str) -> bool:
        return any(tag == name for tag, _ in self._open)


def reported(*runs: Path | str, code: int = 0, **options: object) -> ReportPage:
    """The page about these runs, which is written into the working directory."""
    out = Path("report.html")
    out.unlink(missing_ok=True)
    more = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert main(["report", *map(str, runs), "-o", str(out), *more]) == code
    return ReportPage(out.read_text("utf-8"))
