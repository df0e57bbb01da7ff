"""HTML that is escaped in one place, and the frame of a page, which may load nothing."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from harness.base.home import without_home
from harness.base.redaction import known_secrets, without_key_material
from harness.reporting.text import clean_text

EMPTY = frozenset({"br", "col", "input", "meta", "wbr"})
"""Elements without content."""


_SHORT = 200
"""Shorter texts are often repeated, and kept."""


_BETWEEN = "\n\t\n\t\n"


class Html(str):
    """Text that is HTML: made by `element`, `joined` or from the harness's own files only."""


Inside = str | Html | None


def element(name: str, /, *inside: Inside, **attributes: str | int | bool | None) -> Html:
    """An element with its content and attributes, all of which are escaped.

    An attribute that is None or False is left out; `class_` stands for `class`, and `aria_label`
    for `aria-label`.

        element("td", "<b>", class_="number") == '<td class="number">&lt;b&gt;</td>'
    """
    start = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            plain = key.rstrip("_").replace("_", "-")
            start += f" {plain}" if value is True else f' {plain}="{escaped(str(value))}"'
    if name in EMPTY:
        return Html(f"<{name}{start}>")
    return Html(f"<{name}{start}>{joined(inside)}</{name}>")


def details_html(title: str, *inside: Inside, **attributes: str | bool | None) -> Html:
    """What a reader sees once they open its title."""
    return element("details", element("summary", title), *inside, **attributes)


def joined(parts: Iterable[Inside]) -> Html:
    """The parts one after another, each escaped unless it is HTML."""
    return Html("".join(one if isinstance(one, Html) else escaped(one or "") for one in parts))


def escaped(text: str) -> Html:
    """The text as HTML that shows it: control characters are visible, secrets are not."""
    return _escaped(text) if len(text) < _SHORT else Html(html.escape(shown(text)))


def breakable(text: str) -> Html:
    """The text as HTML whose lines may end behind an underscore, for long names on a phone."""
    return Html(escaped(text).replace("_", f"_{element('wbr')}"))


@lru_cache(maxsize=1 << 14)
def _escaped(text: str) -> Html:
    return Html(html.escape(shown(text)))


def shown(text: str) -> str:
    """The text as people may see it: no key, no name of the home folder, nothing invisible."""
    return clean_text(without_home(without_key_material(text, _secrets())), lines=True)


def all_shown(texts: Sequence[str]) -> list[str]:
    """The texts as people may see them, together: one by one would take many times as long."""
    found = shown(_BETWEEN.join(texts)).split(_BETWEEN)
    # A text may hold what stands between them, or be joined to the next one by a redaction.
    whole = len(found) == len(texts) or not texts
    return found[: len(texts)] if whole else [shown(text) for text in texts]


def read_secrets() -> None:
    """Forget what is known of the environment, whose secrets the next text is searched for."""
    for cache in (_secrets, _escaped):
        cache.cache_clear()


@lru_cache(maxsize=1)
def _secrets() -> tuple[str, ...]:
    return known_secrets()


POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may do: run its own script, and show images that it holds."""


def page_html(title: str, body: Iterable[Html], *, sections: Iterable[tuple[str, str]] = ()) -> str:
    """A whole page; `sections` are the ids and titles of the parts that its head links to."""
    # Neither holds anything that a page would read as its own end.
    own = files("harness.reporting.html")
    style, script = (
        Html(own.joinpath(name).read_text("utf-8")) for name in ("report.css", "report.js")
    )
    policy = POLICY.format(script=_allowed(script), style=_allowed(style))
    links = [
        element("li", element("a", name, href=f"#{section}", class_="jump"))
        for section, name in sections
    ]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title if len(title) <= 120 else f"{title[:119]}…"),
        element("style", style),
    )
    content = element(
        "body",
        element("nav", element("ul", *links), aria_label="parts of the page") if links else None,
        element("main", *body),
        element("script", script),
    )
    return f"<!doctype html>\n{element('html', head, content, lang='en')}\n"


def section_html(section: str, title: str, *inside: str | Html | None) -> Html:
    """A part of the page with its heading, to which the head links by the id."""
    heading = element("h2", title, id=f"{section}-title")
    return element("section", heading, joined(inside), id=section,
                   aria_labelledby=f"{section}-title")  # fmt: skip


def _allowed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
