import re
from pathlib import Path

import pytest
from golden import command_pages
from golden.metric_pages import PAGE, TASKS, baselines_of, page_text, run_baselines

from harness.registry import load_plugins

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


def test_the_pages_of_commands_and_metrics_are_as_these_are():
    assert command_pages.PAGE.read_text("utf-8") == command_pages.page_text(), "run `make commands`"
    page = PAGE.read_text("utf-8")
    assert page == page_text(baselines_of(page)), "run `make metrics`"


@pytest.mark.slow
def test_the_baseline_scores_on_the_samples_what_the_page_says():
    page = baselines_of(PAGE.read_text("utf-8"))
    found = run_baselines()
    assert page == {of: found[of] for of in page}, "run `make metrics`"
    assert {task for task, _ in page} == {*TASKS}


@pytest.mark.parametrize("name", load_plugins().benchmarks)
def test_a_range_holds_what_the_worst_value_of_its_column_is(name):
    for metric in load_plugins().benchmark(name).metrics.values():
        low, high = metric.range
        if metric.worst is not None and not metric.of:
            assert (low is None or low <= metric.worst) and (high is None or metric.worst <= high)
