"""A report on hostile answers, in a real browser: all of it is text, and nothing happens."""

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import pytest
from builders.browser import browser, chromium

pytestmark = pytest.mark.slow

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
    "template": "{{constructor.constructor('alert(1)')()}} ${alert(2)} &lt;b&gt; &#60;b&#62;",
    "quotes": "' onmouseover=alert('quotes') \" autofocus onfocus=alert('double')",
    "surrogate": "lone \ud800 here",
    "long": f"<b>{LONG}</b>",
}
SHOWN = {
    "line": "before\\u2028after\\u2029end",
    "control": "bell\\x07 escape\\x1b[2J null\\x00 delete\\x7f",
    "direction": "left \\u202eright\\u2066 isolate",
    "surrogate": "lone \\ud800 here",
}
"""What is shown of characters that nobody could see."""

FILTERS = "document.querySelectorAll('.filters input, .filters select')"


@pytest.fixture
def page(harness: Any, serve: Any) -> Path:
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
    run = harness.here(*harness.arguments(*more, data=str(data))[3:]).ok()
    out = harness.folder / "report.html"
    title = f"{HOSTILE['end']}{HOSTILE['image']}{HOSTILE['direction']} {'t' * 10_000}"
    harness.here(
        "report", str(harness.folder / run.json["folder"]), "-o", str(out), "--title", title
    ).ok()
    return out


def test_hostile_answers_are_text_and_nothing_else(page):
    asyncio.run(_nothing_happens(page))


async def _nothing_happens(page: Path) -> None:
    async with browser() as tab:
        await tab.open(page)
        units = int(await tab.until("document.querySelector('#viewer').dataset.ready"))
        assert units >= len(HOSTILE)
        seen = [await tab.run("document.body.innerText")]
        for place in range(units):
            seen.append(await _shown(tab, place))
        text = "\n".join(seen)
        for kind, hostile in HOSTILE.items():
            wanted = SHOWN.get(kind, hostile)
            assert wanted in text or json.dumps(wanted)[1:-1] in text, kind
        await tab.run(f"for (const one of {FILTERS}) one.value = one.tagName === 'INPUT' && "
                      "one.type !== 'number' ? '<script>' : one.value")  # fmt: skip
        await tab.run("document.querySelector('.filters input').dispatchEvent(new Event('input'))")
        assert await tab.run("document.querySelectorAll('main script:not([type]), iframe, img, "
                             "object, link, [onerror], [onload]').length") == 0  # fmt: skip
        assert await tab.run("document.title.length") <= 120
        assert tab.problems == []
        assert tab.requests == [page.as_uri()]


async def _shown(tab: Any, place: int) -> str:
    """All that the page shows of a sample, chosen with the keyboard."""
    await tab.run("document.querySelector('.list ul').focus()")
    await tab.key("ArrowDown")
    await tab.until(f"document.querySelector('#row-{place}')?.ariaSelected === 'true'")
    chosen = "document.querySelector('[aria-selected=true] strong').textContent"
    await tab.until(f"document.querySelector('.detail h3')?.textContent === {chosen}")
    return await tab.run("document.querySelector('.detail').textContent")


def test_the_policy_allows_no_script_but_the_pages_own(page):
    asyncio.run(_only_its_own(page))


async def _only_its_own(page: Path) -> None:
    async with browser() as tab:
        await tab.open(page)
        await tab.until("document.querySelector('#viewer').dataset.ready")
        assert tab.problems == []
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
