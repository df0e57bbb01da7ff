"""Separates a model's answer from the reasoning before it."""

from __future__ import annotations

import re

# A tag opens reasoning only at the start of a line, not within a sentence or a JSON string. The
# possessive quantifier keeps the time linear on lines of blanks.
TAG = re.compile(
    r"(?im)(?P<line>^[ \t]*+)?(?:<(?P<close>/?)(?:seed:)?think(?:ing)?>|\[(?P<close2>/?)THINK\])"
)


def split_reasoning(text: str) -> tuple[str, str | None]:
    """The answer without its reasoning, and the reasoning, or None.

        split_reasoning("<think>2 + 2</think>4")    # ("4", "2 + 2")

    Reasoning is the text in `<think>…</think>` (or `<thinking>`, `<seed:think>`, `[THINK]`). A
    closing tag without an opening one ends reasoning that began with the reply, since some chat
    templates write the opening tag into the prompt. After an opening tag that is never closed,
    everything is reasoning.
    """
    if "hink" not in text and "HINK" not in text:
        return text, None
    answer: list[str] = []
    thought: list[str] = []
    inside = False
    position = 0
    for tag in TAG.finditer(text):
        closes = bool(tag["close"] or tag["close2"])
        if closes:
            if not inside:
                thought.extend(answer)
                answer.clear()
            thought.append(text[position : tag.start()])
            inside = False
        elif inside or tag["line"] is None:
            continue
        else:
            answer.append(text[position : tag.start()])
            inside = True
        position = tag.end()
    if position == 0:
        return text, None
    (thought if inside else answer).append(text[position:])
    reasoning = "\n".join(stripped for part in thought if (stripped := part.strip()))
    return "".join(answer).strip(), reasoning or None
