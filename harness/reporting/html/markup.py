"""HTML that is escaped in one place: `element` escapes every text that is not HTML already."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from functools import lru_cache

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
