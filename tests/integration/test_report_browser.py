"""A report in a real browser: on a phone, in the dark, on paper, and with hostile answers."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from builders.browser import browser, chromium

from harness import evaluate
from harness.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on three runs with long names."""
    chromium()
    place = tmp_path_factory.mktemp("browser")
    names = ("release-of-november-with-a-long-name", "night_b_" + "x" * 32, "c")
    runs = [
        evaluate("interests", model="baseline", judge="lexical", data="sample", reuse="run",
                 output_path=place, name=name, limit=20, quiet=True).folder
        for name in names
    ]  # fmt: skip
    assert main(["report", *map(str, runs), "-o", str(place / "report.html")]) == 0
    return place / "report.html"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
async def test_nothing_stands_beyond_the_screen_or_on_another(page, width, dark):
    async with browser() as tab:
        await tab.look(width=width, height=844, dark=dark)
        await tab.open(page)
        assert await tab.run("document.documentElement.scrollWidth") == width
        colour = "getComputedStyle(document.body).backgroundColor"
        assert (await tab.run(colour) == "rgb(255, 255, 255)") is not dark
        beyond = "one.getBoundingClientRect().right > innerWidth"
        texts = "[...document.querySelectorAll('text')]"
        assert not await tab.run(f"{texts}.some((one) => {beyond})")
        first = "document.querySelector('#results .row')"
        assert await tab.run(f"{first}.getBoundingClientRect().bottom < innerHeight")
        # Each value stands beside the dot of its run.
        places = (
            "[...document.querySelectorAll('#results .%s')].map((one) => { "
            "const at = one.getBoundingClientRect(); return at.top + at.height / 2; })"
        )
        dots, values = (await tab.run(places % "axis use"), await tab.run(places % "numbers text"))
        assert len(dots) == 3
        assert all(abs(dot - value) < 4 for dot, value in zip(dots, values, strict=True))
        assert tab.problems == []


async def test_on_paper_there_are_no_links_to_parts_and_no_samples(page):
    async with browser() as tab:
        await tab.look(width=800, media="print")
        await tab.open(page)
        hidden = "[...document.querySelectorAll('nav, #samples')].every((one) => " \
                 "getComputedStyle(one).display === 'none')"  # fmt: skip
        assert await tab.run(hidden)
        assert await tab.run("document.querySelector('#results .axis').clientHeight") > 40


LONG = "L" * 1_000_000
HOSTILE = {
    "script": "<script>alert('script')</script>",
    "end": "</script><script>alert('end')</script><!-- </title></style>",
    "image": "<img src=x onerror=alert('image')><svg onload=alert('svg')>",
    "remote": "<img src=http://127.0.0.1:9/pixel.png><link rel=stylesheet href=//127.0.0.1:9/a>",
    "link": "<a href=\"javascript:alert('link')\">link</a> [x](javascript:alert('markdown'))",
    "cdata": "]]> <![CDATA[ x ]]>",
    "line": "before\u2028after\u2029end",
    "control": "bell\x07 escape\x1b[2J null\x00 delete\x7f",
    "direction": "left \u202eright\u2066 isolate",
    "formula": '=HYPERLINK("http://127.0.0.1:9","x") +1 @SUM(A1)',
    "template": "{{constructor.constructor('alert(1)')()}} {% raw %} ${alert(2)} &lt;b&gt; &#60;b",
    "quotes": "' onmouseover=alert('quotes') \" autofocus onfocus=alert('double')",
    "surrogate": "lone \ud800 here",
    "long": f"<b>{LONG}</b>",
}
SHOWN = {
    "line": "before\\u2028after\\u2029end",
    "control": "bell\\x07 escape\\x1b[2J null\\x00 delete\\x7f",
    "direction": "left \\u202eright\\u2066 isolate",
    "surrogate": "lone \\ud800 here",
    "long": "characters not shown",
}
"""What is shown of characters that nobody could see, and of what is too long."""


@pytest.fixture
def hostile_page(harness: Any, serve: Any) -> Path:
    """The report on a run whose data, answers and title are hostile; every second is unreadable."""
    chromium()
    kinds = list(HOSTILE)
    data = harness.folder / "people.csv"
    with data.open("w", encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "title", "action"])
        for kind in kinds:
            for number in range(12):
                title = HOSTILE["script"] if kind in ("long", "control") else HOSTILE[kind]
                rows.writerow([f"{kind} <b>", f"{title} {number}", "liked"])

    def answer(body: dict[str, Any]) -> str:
        asked.append(0)
        kind = kinds[len(asked) % len(kinds)]
        if len(asked) % 2:
            return HOSTILE[kind]
        return json.dumps([{"interest": HOSTILE[kind], "items": [1, 2, 3]}])

    asked: list[int] = []
    serve(harness, answer=answer)
    more = ("--max_failures", "1", "--concurrency", "1", "--judge", "lexical")
    run = harness.run(*more, data=str(data)).ok()
    out = harness.folder / "report.html"
    title = f"{HOSTILE['end']}{HOSTILE['image']}{HOSTILE['direction']} {'t' * 10_000}"
    harness.here(
        "report", str(harness.folder / run.json["folder"]), "-o", str(out), "--title", title
    ).ok()
    return out


async def test_hostile_answers_are_text_and_nothing_runs_or_is_loaded(hostile_page):
    async with browser() as tab:
        await tab.open(hostile_page)
        await tab.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
        text = await tab.run("document.body.innerText")
        for kind, hostile in HOSTILE.items():
            wanted = SHOWN.get(kind, hostile)
            assert wanted in text or json.dumps(wanted)[1:-1] in text, kind
        assert await tab.run("document.querySelectorAll('script, iframe, object, link, main b, "
                             "[onerror], [onload], [onclick]').length") == 0  # fmt: skip
        assert await tab.run("document.title.length") <= 120
        assert tab.problems == []
        assert tab.requests == [hostile_page.as_uri()]
        # Not even what would get into the page could run, or load anything.
        await tab.run("window.broken = []; document.addEventListener('securitypolicyviolation', "
                      "(event) => window.broken.push(event.violatedDirective))")  # fmt: skip
        await tab.run(
            "document.body.insertAdjacentHTML('beforeend', "
            '`<img src=x onerror="window.run = 1"><p style="color: red">x</p>`)'
        )
        await tab.run("document.body.append(Object.assign(document.createElement('script'), "
                      "{textContent: 'window.run = 2'}))")  # fmt: skip
        await tab.until("window.broken.length >= 3")
        assert await tab.run("window.run") is None
        kinds = set(await tab.run("window.broken"))
        assert {one.partition("-")[0] for one in kinds} >= {"script", "style", "img"}
