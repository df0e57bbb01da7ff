"""Every link between the pages leads to a file, and to a heading that it has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md")]
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    for file, anchor in LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{file} is linked and does not exist"
        if anchor:
            assert anchor in anchors(target), f"{file} has no heading #{anchor}"


def test_the_index_has_every_page():
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    linked = {file for file, _ in LINK.findall(index)}
    assert {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"} <= linked
