"""Tells what a model answered from what it thought aloud before."""

from __future__ import annotations

import re

# A tag opens only at the start of a line: a mention within a sentence or a JSON string opens
# nothing. The possessive quantifier keeps the time linear on lines of blanks.
TAG = re.compile(
    r"(?im)(?P<line>^[ \t]*+)?(?:<(?P<close>/?)(?:seed:)?think(?:ing)?>|\[(?P<close2>/?)THINK\])"
)


def split_reasoning(text: str) -> tuple[str, str | None]:
    """The answer without its reasoning, and the reasoning, None when there is none.

    Reasoning stands in `<think>…</think>` (also `<thinking>`, `<seed:think>`, `[THINK]`). A closing
    tag that nothing opened ends reasoning that began with the reply, since some chat templates
    write the opening tag into the prompt. An opening tag that nothing closes makes all that follows
    reasoning: the reply then holds no more answer than stood before it.
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
