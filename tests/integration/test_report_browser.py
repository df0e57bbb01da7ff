"""A report in a browser: sorted, filtered and searched, by keyboard, on a phone and on paper."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders.browser import Tab, browser, chromium
from builders.report_lines import make_line, make_run
from builders.report_pages import ReportPage

from harness import evaluate
from harness.cli.main import main
from harness.reporting.html.markup import element, page_html
from harness.reporting.html.result_lines import matrix_html
from harness.testing import ScriptedModel
from harness.testing.scripted import offered

pytestmark = pytest.mark.slow

ROWS = (
    "[...document.querySelectorAll('.results tbody tr')].filter((row) => !row.hidden)"
    ".map((row) => row.cells[0].innerText)"
)
STATUS = "document.querySelector('#viewer [role=status]').textContent"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on two runs, of which the second has another window."""
    chromium()
    place = tmp_path_factory.mktemp("browser")
    runs = [
        evaluate("interests", model="baseline", judge="lexical", data="sample", reuse="run",
                 output_path=place, name=name, limit=20, quiet=True, seed=seed).folder
        for name, seed in (("one", 0), ("two", 1))
    ]  # fmt: skip
    file = place / "report.html"
    assert main(["report", *map(str, runs), "-o", str(file)]) == 0
    return file


def in_browser(
    page: Path,
    use: Callable[[Tab], Coroutine[Any, Any, None]],
    ready: str = "document.querySelector('#viewer').dataset.ready",
) -> None:
    async def opened() -> None:
        async with browser() as tab:
            await tab.look(width=1280)
            await tab.open(page)
            await tab.until(ready)
            await use(tab)
            assert tab.problems == []

    asyncio.run(opened())


def test_a_column_sorts_by_keyboard_and_keeps_the_tasks_of_a_group(tmp_path):
    chromium()
    group = replace(make_line("all", old=0.5, new=0.6), tasks=frozenset({"a", "b"}))
    lines = [group, make_line("a", old=0.4, new=0.6), make_line("b", old=0.6, new=0.5),
             make_line("z", old=0.9, new=0.6)]  # fmt: skip
    table = matrix_html([make_run("old"), make_run("new")], lines, {"z": [("new", "old")]})
    file = tmp_path / "table.html"
    file.write_text(page_html("Table", [element("div", table, class_="results")]), "utf-8")

    async def sort(tab: Tab) -> None:
        async def names() -> list[str]:
            return [row.split()[0] for row in await tab.run(ROWS)]

        assert await names() == ["all", "z", "Not"]
        await tab.run("document.querySelector('.results .fold').focus()")
        await tab.key("Enter")
        await tab.until("document.querySelector('.fold').ariaExpanded === 'true'")
        assert await names() == ["all", "a", "b", "z", "Not"]
        await tab.run("document.querySelectorAll('.results thead button')[2].focus()")
        await tab.key("Enter")
        head = "document.querySelectorAll('.results th')[2].ariaSort"
        await tab.until(f"{head} === 'descending'")
        assert await names() == ["z", "Not", "all", "a", "b"]
        await tab.key("Enter")
        await tab.until(f"{head} === 'ascending'")
        assert await names() == ["all", "a", "b", "z", "Not"]
        await tab.run("document.querySelector('.results .fold').click()")
        assert await names() == ["all", "z", "Not"]

    in_browser(file, sort, "document.querySelector('.fold')?.ariaExpanded === 'false'")


async def fill(tab: Tab, place: int, value: str) -> None:
    """Give a filter a value."""
    found = f"document.querySelectorAll('.filters input, .filters select')[{place}]"
    await tab.run(f"{found}.value = {value!r}; {found}.dispatchEvent(new Event('input'))")


def test_samples_are_filtered_found_and_walked_through(page):
    async def walk(tab: Tab) -> None:
        assert await tab.run(STATUS) == "40 of 40 samples"
        await fill(tab, 1, "1")
        assert await tab.run(STATUS) == "20 of 40 samples"
        await fill(tab, 6, "0.95")
        assert await tab.run(f"parseInt({STATUS})") < 20
        await fill(tab, 6, "")
        await fill(tab, 1, "")
        await fill(tab, 0, "cite the numbers")
        await tab.until(f"{STATUS} === '40 of 40 samples'")
        await fill(tab, 0, "nowhere to be found")
        await tab.until(f"{STATUS} === '0 of 40 samples'")
        await fill(tab, 0, "")
        await tab.run("document.querySelector('.list ul').focus()")
        for key, place in (("ArrowDown", 0), ("End", 39), ("ArrowUp", 38), ("Home", 0)):
            await tab.key(key)
            await tab.until(f"document.querySelector('#row-{place}')?.ariaSelected === 'true'")
        active = "document.querySelector('.list ul').getAttribute('aria-activedescendant')"
        assert await tab.run(active) == "row-0"
        await tab.until("document.querySelector('.detail h3') !== null")
        parts = await tab.run("document.querySelector('.detail').innerText")
        for wanted in ("The same by:", "support", "answer", "what was read", "verdict of judge"):
            assert wanted in parts

    in_browser(page, walk)


def test_a_slow_block_does_not_take_the_place_of_the_sample_chosen_last(page):
    slow = (
        "const real = Response.prototype.json; let first = true; Response.prototype.json = "
        "async function () { const wait = first; first = false; "
        "if (wait) await new Promise((done) => setTimeout(done, 300)); return real.call(this); };"
        "document.querySelector('#row-0').click(); document.querySelector('#row-5').click();"
    )

    async def choose(tab: Tab) -> None:
        await tab.run(f"(() => {{ {slow} }})()")
        shown = "document.querySelector('.detail h3')?.textContent"
        await tab.until(f"{shown} != null")
        await tab.run("new Promise((done) => setTimeout(done, 600))")
        wanted = "document.querySelector('#row-5 strong').textContent"
        assert await tab.run(f"{wanted} !== document.querySelector('#row-0 strong').textContent")
        assert await tab.run(f"{shown} === {wanted}")

    in_browser(page, choose)


CHOSEN = "document.querySelector('.list [aria-selected=true]')"
TITLE = "document.querySelector('.detail h3')?.textContent"


def test_the_highlight_stays_on_the_chosen_sample_while_others_are_found(page):
    """Chosen while the texts are searched, before samples with lower scores are found."""

    async def choose(tab: Tab) -> None:
        await fill(tab, 8, "0")
        search = "one.value = 'mistakes'; one.dispatchEvent(new Event('input'))"
        first = "document.querySelector('#row-0').click()"
        await tab.run(f"(() => {{ const one = document.querySelector('.filters input'); "
                      f"{search}; {first}; }})()")  # fmt: skip
        await tab.until(f"/^[0-9]+ of 40 samples$/.test({STATUS})")
        await tab.until(f"{TITLE} != null")
        assert await tab.run(f"{CHOSEN}.id") != "row-0"
        assert await tab.run(f"{CHOSEN}.querySelector('strong').textContent === {TITLE}")
        active = "document.querySelector('.list ul').getAttribute('aria-activedescendant')"
        assert await tab.run(f"{active} === {CHOSEN}.id")

    in_browser(page, choose)


def test_samples_are_ordered_by_how_far_apart_the_models_are(page):
    index = ReportPage(page.read_text("utf-8")).packed["index"]
    scores: dict[str, list[float]] = {}
    for unit, score in zip(index["id"], index["score"], strict=True):
        scores.setdefault(unit, []).append(score)
    apart = sorted(scores, key=lambda unit: min(scores[unit]) - max(scores[unit]))
    assert scores[apart[0]][0] != scores[apart[0]][1]

    async def order(tab: Tab) -> None:
        await fill(tab, 8, "2")
        rows = "[...document.querySelectorAll('.list strong')].map((one) => one.textContent)"
        assert (await tab.run(rows))[:6] == [unit for unit in apart[:3] for _ in range(2)]

    in_browser(page, order)


def test_the_address_names_the_chosen_sample_and_opens_it(page):
    shown = "document.querySelector('.detail .note').textContent"

    async def follow(tab: Tab) -> None:
        await tab.run("document.querySelector('#row-3').click()")
        await tab.until(f"{TITLE} != null")
        assert await tab.run("location.hash") == (f"#sample/two/interests/{await tab.run(TITLE)}")
        await tab.run("document.querySelector('.detail button').click()")
        await tab.until(f"{shown}.startsWith('one on')")
        address = await tab.run("location.href")
        assert "#sample/one/interests/" in address
        await tab.run("location.hash = '#sample/nobody/interests/1'")
        await tab.until(f"{STATUS}.endsWith('; the sample of the address is not on this page')")
        await tab.run("location.hash = '#sample/two/interests/person-06'")
        await tab.until(f"{shown}.includes('two on interests; user person-06')")
        await tab.send("Page.navigate", url="about:blank")
        await tab.send("Page.navigate", url=address)
        await tab.until(f"{TITLE} != null")
        assert await tab.run(f"location.href === {address!r} && {shown}.startsWith('one on')")
        assert await tab.run("document.querySelector('#viewer').getBoundingClientRect().top") < 100

    in_browser(page, follow)


def test_the_failures_are_shown_once_the_samples_are_unpacked(tmp_path):
    chromium()
    poor = ScriptedModel("I cannot say.", name="poor")
    with offered((poor,)):
        run = evaluate("interests", model=poor.spec, judge="lexical", data="sample", limit=2,
                       reuse="run", output_path=tmp_path, quiet=True,
                       max_failures=1.0).folder  # fmt: skip
    file = tmp_path / "report.html"
    assert main(["report", str(run), "-o", str(file)]) == 0
    held = (
        "const real = Response.prototype.json, held = new Promise((done) => { window.go = done; });"
        "Response.prototype.json = async function () { await held; return real.call(this); }"
    )

    async def click() -> None:
        async with browser() as tab:
            await tab.send("Page.addScriptToEvaluateOnNewDocument", source=held)
            await tab.open(file)
            assert await tab.run("document.querySelector('#viewer').dataset.ready === undefined")
            await tab.run("document.querySelector('[data-show=failures]').click()")
            await tab.run("window.go()")
            await tab.until("document.querySelector('#viewer').dataset.ready")
            await tab.until("document.querySelectorAll('.filters select')[2].value === 'any'")
            assert tab.problems == []

    asyncio.run(click())


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_moving_sideways(page, dark):
    async def look(tab: Tab) -> None:
        await tab.look(width=390, height=844, dark=dark)
        assert await tab.run("document.documentElement.scrollWidth") == 390
        colour = "getComputedStyle(document.body).backgroundColor"
        assert (await tab.run(colour) == "rgb(255, 255, 255)") is not dark
        await tab.run("document.querySelector('#row-0').click()")
        top = "document.querySelector('.detail').getBoundingClientRect().top"
        await tab.until(f"document.querySelector('.detail h3') && Math.abs({top}) < 100")

    in_browser(page, look)


def test_the_links_to_the_parts_of_a_page_take_one_line(tmp_path):
    chromium()
    names = ["Results", "What to look at next", "Differences", "gistbench", "perrecbench",
             "usersumbench", "behaviour", "horizon_text", "Repeats", "Reading answers", "Judges",
             "Samples", "Where this comes from"]  # fmt: skip
    file = tmp_path / "links.html"
    file.write_text(page_html("Links", [], sections=[(name, name) for name in names]), "utf-8")

    async def look(tab: Tab) -> None:
        assert await tab.run("document.querySelector('nav').offsetHeight") < 40

    in_browser(file, look, "document.querySelector('nav') !== null")


def test_on_paper_there_is_no_menu_and_no_viewer(page):
    async def look(tab: Tab) -> None:
        await tab.look(width=800, media="print")
        hidden = "[...document.querySelectorAll('nav, #viewer')].every((one) => " \
                 "getComputedStyle(one).display === 'none')"  # fmt: skip
        assert await tab.run(hidden)
        assert "Samples are not printed" in await tab.run("document.body.innerText")

    in_browser(page, look)
