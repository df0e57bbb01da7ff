"""Which labels an answer in plain words names, where that is beyond doubt.

Every pattern takes linear time on hostile text.
"""

from __future__ import annotations

import re

from harness_judges.labels import RANGE, Labels, NoAnswer, clean, is_none, underscored

BULLET = re.compile(r"^[-*•]\s++")
COUNT = re.compile(
    r"[*_`]{0,3}[\[(]?(\d{1,3})[*_`]{0,3}(?:[\])]?[.:)]|\]|\s++[-–—])[*_`]{0,3}\s++(?=\S)"
)
BETWEEN_NUMBERS = re.compile(r"[\s,;]++")
LEAD = re.compile(r"[^\d:]{0,120}?(?::|\b(?:is|are)\b)\s*+", re.I)
ANSWER = re.compile(r"\b(?:answer|final|selected|selection|chosen|supporting)\b", re.I)
NEGATION = re.compile(
    r"\b(?:no|not|none|never|neither|nor|without|except|excluding|excluded|reject\w*|irrelevant"
    r"|unrelated|unsupported|others?|remaining|rest|wrong|incorrect|false|invalid|cannot)\b"
    r"|n['’]t\b|[✗✘❌]",
    re.I,
)
NONE_OF = re.compile(r"none(?: of (?:them|these|those|the \w+))?", re.I)
SEPARATOR = re.compile(r"[,;&/]|\band\b", re.I)
HEAD_ENDS = re.compile(r"(?<=\S)(?:[.;:]\s|\s[-–—(]\s*+|[–—]|\s(?:because|since|as)\s)", re.I)
EXCEPTION = re.compile(r"\b(?:except|but|only|apart|however|although|though|unless)\b", re.I)
DIGIT = re.compile(r"\d")
MARKED = re.compile(r"<answer>([^<]*+)</answer>|\\boxed\{(?:\\text\{)?([^{}]*+)\}", re.I)
ITEM = re.compile(
    r"[*_`\[(\"]{0,3}(?:(?:item|option|title|text|number)\s)?[*_`\[(\"#]{0,3}(?P<label>\w{1,12})"
    r"[*_`\"]{0,3}(?:[\])]?[.:)]|\]|\s++[-–—])[*_`]{0,2}\s++(?P<rest>\S.*+)",
    re.I,
)
YES, NO = frozenset({"yes", "true", "✓", "✔", "✅"}), frozenset({"no", "false", "✗", "✘", "❌"})


def names_in(text: str, labels: Labels) -> tuple[list[str], str]:
    """The names that an answer gives, and the rung: "text" when it holds nothing else.

    Read are, in this order: labels alone, in one line or one a line, or numbers alone where each
    is the rest of a label; what stands in `<answer>` or
    `\\boxed`; a list with a label at the start of each line, or with a yes or no for each; the
    lines that hold labels alone among lines of prose, when they agree or the last is marked as the
    answer; the head of the first line, before its explanation. NoAnswer for anything else: a label
    mentioned in prose may be mentioned because it was refused.
    """
    plain = text.split(",")
    if all(clean(name) in labels.places for name in plain):
        return plain, "text"
    numbers = BETWEEN_NUMBERS.split(text.strip().removesuffix("."))
    if all(labels.by_number(number) is not None for number in numbers):
        return numbers, "text"
    lines = [
        _unlisted(stripped, labels)
        for line in text.splitlines()
        if (stripped := line.strip()) and not stripped.startswith("```")
    ]
    if not lines:
        raise NoAnswer("it is blank")
    bare = [_bare(line, labels) for line in lines]
    if all(names is not None for names in bare):
        return [name for names in bare if names for name in names], "text"
    return _names_around(text, lines, labels), "regex"


def _names_around(text: str, lines: list[str], labels: Labels) -> list[str]:
    boxes = [match[1] or match[2] or "" for match in MARKED.finditer(text)]
    if boxes:
        names = _bare(boxes[-1], labels)
        if names is None:
            raise NoAnswer("what it marks as its answer is no label")
        return names
    listed = _listed(lines, labels)
    if listed is not None:
        return listed
    marked = [
        (line, names)
        for line in lines
        if (names := _bare(line, labels) or _led(line, labels)) is not None
    ]
    if marked:
        return _agreed(marked, labels)
    if not any(_begins_with_label(line, labels) for line in lines[1:]):
        head = _head(lines[0], labels)
        if head is not None:
            return head
    raise NoAnswer("no line of it holds labels alone")


def _unlisted(line: str, labels: Labels) -> str:
    """A line of a list without its bullet, and without its number where no label is a number."""
    plain = BULLET.sub("", line, count=1)
    count = COUNT.match(plain)
    if count is None or labels.are_numbers or count[1] in labels.places:
        return plain
    return plain if labels.exact(plain) is not None else plain[count.end() :]


def _bare(line: str, labels: Labels) -> list[str] | None:
    """The names in a line that holds labels and separators only."""
    plain = line.strip(" \t*_`\"'.!")
    if NONE_OF.fullmatch(plain):
        return ["NONE"]
    if labels.exact(line) is not None:
        return [line]
    if labels.are_numbers:
        plain = RANGE.sub(r"\1-\2", plain)
    names = [name for part in SEPARATOR.split(plain) for name in _split(part, labels)]
    return names if names and all(_is_label(name, labels) for name in names) else None


def _split(part: str, labels: Labels) -> list[str]:
    stripped = part.strip()
    if not stripped:
        return []
    if labels.exact(stripped) is None and labels.are_numbers:
        words = stripped.replace("][", "] [").split()
        if all(clean(word).replace("-", "").isdecimal() for word in words):
            return words
    if labels.exact(stripped) is None and labels.between is not None:
        return labels.between.split(stripped)
    return [stripped]


def _is_label(name: str, labels: Labels) -> bool:
    """Whether a name is a label, or could be one that does not exist."""
    if is_none(name, labels):
        return True
    if labels.are_numbers and (clean(name).isdecimal() or RANGE.fullmatch(clean(name))):
        return True
    if labels.exact(name) is not None:
        return True
    plain = underscored(clean(name))
    if labels.stem and plain.startswith(labels.stem) and plain[len(labels.stem) :].isdecimal():
        return True
    letters = all(len(label) == 1 for label in labels.places)
    return letters and len(clean(name)) == 1


def _led(line: str, labels: Labels) -> list[str] | None:
    """The names behind words that lead to them, as in "Answer: 1, 3" or "The titles are 2 and 4."""
    lead = LEAD.match(line)
    if lead is None or NEGATION.search(lead[0]):
        return None
    return _bare(line[lead.end() :], labels)


def _listed(lines: list[str], labels: Labels) -> list[str] | None:
    """The names of a list with one label a line, behind at most one line that announces it."""
    body = lines[1:] if len(lines) > 1 and lines[0].endswith(":") else lines
    if body is not lines and NEGATION.search(lines[0]):
        return None
    items = [item for line in body if (item := ITEM.fullmatch(line))]
    if len(items) < len(body) or any(labels.exact(item["label"]) is None for item in items):
        return None
    said = [clean(item["rest"]) for item in items]
    if all(answer in YES | NO for answer in said):
        chosen = [item["label"] for item, one in zip(items, said, strict=True) if one in YES]
        return chosen or ["NONE"]
    counts = [item["label"] for item in items] == [str(n) for n in range(1, len(items) + 1)]
    names = []
    for item in items:
        title, comment = _title_and_comment(item, labels)
        if NEGATION.search(comment) or (title is None and counts):
            return None
        names.append(title or item["label"])
    return names


def _title_and_comment(item: re.Match[str], labels: Labels) -> tuple[str | None, str]:
    """The option's text that a list's line repeats, None when it does not, and what else it says.

    The whole line is looked up first: a model numbers what it lists, and the text then tells more
    than the number.
    """
    rest = " ".join(item["rest"].casefold().split()).strip("\"'“”*`")
    if rest in labels.titles:
        return rest, ""
    own = labels.titles_at.get(labels.exact(item["label"]))
    if own and own in rest:
        return own, rest.replace(own, "", 1)
    if own and len(rest) >= 8 and rest.rstrip(".…") in own:
        return own, ""
    return None, rest


def _agreed(marked: list[tuple[str, list[str]]], labels: Labels) -> list[str]:
    last_line, last = marked[-1]
    meant = [sorted(str(labels.expand(name)) for name in names) for _, names in marked]
    if all(one == meant[-1] for one in meant) or ANSWER.search(last_line):
        return last
    raise NoAnswer("several of its lines hold labels, and they differ")


def _begins_with_label(line: str, labels: Labels) -> bool:
    item, end = ITEM.fullmatch(line), HEAD_ENDS.search(line)
    return (item is not None and labels.exact(item["label"]) is not None) or (
        end is not None and _bare(line[: end.start()], labels) is not None
    )


def _head(line: str, labels: Labels) -> list[str] | None:
    """The names before an explanation in the same line, where the explanation takes none back.

    "NONE. Items 1 and 2 …" and "1, 3. None of the others …" are plain; behind a single label, or
    behind a dash or bracket, nothing may deny and no number may stand.
    """
    end = HEAD_ENDS.search(line)
    if end is None:
        return None
    head, rest = line[: end.start()], line[end.start() :]
    names = _bare(head, labels) or _led(head, labels)
    if names is None or EXCEPTION.search(rest):
        return None
    if all(is_none(name, labels) for name in names) or (len(names) > 1 and rest[0] == "."):
        return names
    return None if NEGATION.search(rest) or DIGIT.search(rest) else names
