"""A page of help as rows: one for each option, argument and section of prose, in any layout."""

from __future__ import annotations

import re
from typing import Any

ARGUMENTS = ("positional arguments", "arguments")


def rows_of_page(page: str) -> list[dict[str, Any]]:
    """The rows of a page made by argparse or click; the usage is layout and is left out."""
    page = re.sub(r"^usage:.*?(\n\s*\n|\Z)", "", page, flags=re.DOTALL | re.IGNORECASE)
    entries: list[tuple[str, list[str]]] = []
    prose: dict[str, list[str]] = {}
    heading, entry = "", False
    for line in page.splitlines():
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text:
            continue
        if indent == 0:
            entry = False
            heading = text[:-1].lower() if text.endswith(":") else ""
            if not heading:
                prose.setdefault("", []).append(text)
        elif indent <= 4 and (text.startswith("-") or heading in ARGUMENTS):
            entry = True
            entries.append((heading, re.split(r"\s{2,}", text, maxsplit=1)))
        elif entry and indent > 4:
            entries[-1][1].append(text)
        else:
            prose.setdefault(heading, []).append(text)
    rows = [row_of_entry(heading, parts) for heading, parts in entries]
    rows += [
        {"section": name, "prose": " ".join(" ".join(said).split())} for name, said in prose.items()
    ]
    return rows


def row_of_entry(heading: str, parts: list[str]) -> dict[str, Any]:
    """The spellings of an option, what it takes, its default as far as told, and its sentence."""
    head, said = parts[0], " ".join(" ".join(parts[1:]).split())
    said = re.sub(r"\[default: ([^\]]*)\]", r"(\1)", said)
    default = re.search(r"\(([^()]*)\)$|default: (\S+)$", said)
    row = {
        "section": heading,
        "help": said,
        "default": default and (default[1] or default[2]),
    }
    if not head.startswith("-"):
        return {"argument": head, **row}
    words = head.replace(",", " ").split()
    takes = [word for word in words if not word.startswith("-")]
    return {
        "option": " ".join(sorted({word for word in words if word.startswith("-")})),
        "takes": takes[0] if takes else None,
        **row,
    }
