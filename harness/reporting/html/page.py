"""The frame of a page: one file with its style and script, which may load nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files

from harness.reporting.html.markup import Html, element, joined

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
