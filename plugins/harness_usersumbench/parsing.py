"""Readers of answers: summaries, the verifier's answers, and the letter of an option.

The verifier's pairs and judgements are read by their labels (`Question#1:`, `Status#1:`), so that
brackets, quotation marks and other decorations may be missing or of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from harness import Parsed, TextReader, Unreadable
from harness_usersumbench.records import Pair, Summary

LETTERS = "ABCDE"
"""The letters of the options of a question."""

QUOTES = "\"'“”„«»‘’‹›"
EMPHASIS = "*_`"
NO_REFERENCE = "none"

VERDICT = re.compile(r"(?<![\w-])(?P<negated>not\s++)?(?P<word>(?:in)?consistent)(?![\w-])", re.I)

LABEL = r"""
    (?P<opens> (?:^|[\[({{,;|\]"'“”*_`]) [ \t]{{0,9}}+ [\[({{"'“”*_`]{{0,9}}+ )?
    \b (?P<name>{names}) \s*+ \#? \s*+ (?P<number>\d{{0,6}}+) ["'“”*_`]*+ \s*+ [:=：] \s*+ [*_`]*+
"""
"""A label has a number, or stands at the start of a line, a bracket or a part."""

PAIRS = re.compile(LABEL.format(names="Question|Answer"), re.VERBOSE | re.I | re.M)
JUDGEMENTS = re.compile(
    LABEL.format(names=r"Status|Reference[\ _]?Answer"), re.VERBOSE | re.I | re.M
)
CLOSED = re.compile(rf"[{QUOTES}][\s{EMPHASIS}]*+[\])}}]")
"""The end of a value in quotation marks inside brackets."""

BULLET = re.compile(r"^(?:[-*•]|\d{1,3}[.)])\s++")

LETTER = r"(?:[B-E](?!\w)|A(?!\w)(?!\s++(?!(?:or|and|as|because|but|is|since)\b)\w))"
"""A letter in prose; an `A` before a word is mostly an article."""

ANSWER_IS = re.compile(
    r"(?i:\banswer|\boption|\bchoice|\bchoose)(?i:\s++is)?[\s:*_`\"'“(\[]*+"
    rf"(?P<one>{LETTER})(?:[\s)\]*]*+(?:or|and|/|,)[\s(\[*]*+(?P<other>{LETTER}))?"
)
ALONE = re.compile(rf"(?<![\w'’]){LETTER}(?!['’]\w)")
INTRODUCED = re.compile(
    r"(?i)\A(?:the\s++)?(?:final\s++|correct\s++|best\s++)?answer(?:\s++is)?\s*+:?"
)
LETTERED = re.compile(
    rf"[(\[{EMPHASIS}]*+(?P<letter>[A-Ea-e])[{EMPHASIS}]*+\s*+[)\].:–-]+[{EMPHASIS}]*+\s*+(?P<rest>\S.*+)"
)


@dataclass(frozen=True, kw_only=True)
class SummaryReader:
    """Reads a summary, which is the whole answer; an empty one is a summary without words."""

    schema: None = None

    def __call__(self, text: str) -> Parsed[Summary] | Unreadable:
        """The summary in a reply."""
        found = TextReader[str]()(text)
        return Parsed(Summary(found.value if isinstance(found, Parsed) else ""), "text")


@dataclass(frozen=True, kw_only=True)
class ConsistencyReader:
    """Reads whether a summary fits its query: one of the whole words consistent and inconsistent.

    A text with both or neither of them is unreadable, and so is "not consistent".
    """

    schema: None = None

    def __call__(self, text: str) -> Parsed[bool] | Unreadable:
        """Whether the reply says consistent, or why it is unreadable."""
        found = TextReader[str]()(text)
        if isinstance(found, Unreadable):
            return found
        verdict = _verdict(found.value)
        if verdict is None:
            return Unreadable("no_single_verdict", _preview(found.value))
        return Parsed(verdict, "text" if found.value.isalpha() else "regex")


@dataclass(frozen=True, kw_only=True)
class EntityReader:
    """Reads the entities of a summary, one a line or separated by commas; NONE means none.

    Only entities that the summary contains count, whatever their case.
    """

    summary: str
    most: int
    schema: None = None

    def __call__(self, text: str) -> Parsed[tuple[str, ...]] | Unreadable:
        """The entities in a reply, each once, or why it is unreadable."""
        found = TextReader[str]()(text)
        if isinstance(found, Unreadable):
            return found
        named = [name for line in found.value.splitlines() if (name := _bare(BULLET.sub("", line)))]
        if [name.casefold() for name in named] == [NO_REFERENCE]:
            return Parsed((), "text")
        summary = _folded(self.summary)
        known: dict[str, str] = {}
        for one in (part for line in named for part in _in_summary(line, summary)):
            known.setdefault(_folded(one), one)
        if not known:
            return Unreadable("not_in_summary", _preview(found.value))
        return Parsed(tuple(known.values())[: self.most], "text")


@dataclass(frozen=True, kw_only=True)
class PairReader:
    """Reads question–answer pairs: `[Question#1: "…", Answer#1: "…"]`.

    A question belongs to the one answer that follows it, whatever their numbers; without an answer,
    or with several that differ, it makes no pair.
    """

    schema: None = None

    def __call__(self, text: str) -> Parsed[tuple[Pair, ...]] | Unreadable:
        """The pairs in a reply, in its order, or why there are none."""
        found = TextReader[str]()(text)
        if isinstance(found, Unreadable):
            return found
        pairs = []
        for first, rest in _groups(_labelled(found.value, PAIRS), "question"):
            answers = {one.value for one in rest if one.name == "answer" and one.value}
            if first.value and len(answers) == 1:
                pairs.append(Pair(first.value, answers.pop()))
        return Parsed(tuple(pairs), "regex") if pairs else Unreadable("no_pairs", _preview(text))


class Judgement(NamedTuple):
    """The verifier's judgement of a pair; `consistent` is None if it gave none."""

    consistent: bool | None = None
    reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class JudgementReader:
    """Reads the judgements of so many pairs: `[Status#1: "…", ReferenceAnswer#1: "…"]`.

    A judgement belongs to the pair of its number. If the numbers are none of the pairs', or occur
    twice, judgements count in their order, provided that there is one for each pair. Numbers
    that begin with 0 are one less than the pairs'. A pair with contradicting judgements has none.
    """

    count: int
    schema: None = None

    def __call__(self, text: str) -> Parsed[tuple[Judgement, ...]] | Unreadable:
        """The judgement of each pair, or why there is none."""
        found = TextReader[str]()(text)
        if isinstance(found, Unreadable):
            return found
        numbers, given = [], []
        for first, rest in _groups(_labelled(found.value, JUDGEMENTS), "status"):
            references = [one.value for one in rest if one.name != "status"]
            verdict = _verdict(first.value)
            reference = references[0] if verdict is False and references else ""
            numbers.append(first.number)
            given.append(Judgement(verdict, reference or None))
        judged = self._by_pair(numbers, given)
        if all(one.consistent is None for one in judged):
            return Unreadable("no_judgements", _preview(text))
        return Parsed(judged, "regex")

    def _by_pair(
        self, numbers: Sequence[int | None], given: Sequence[Judgement]
    ) -> tuple[Judgement, ...]:
        shift = 1 if 0 in numbers else 0
        places = [None if number is None else number + shift for number in numbers]
        every = range(1, self.count + 1)
        is_numbered = len(set(places)) == len(places) and all(one in every for one in places)
        if not is_numbered and len(given) == self.count:
            return tuple(given)
        found: dict[int | None, set[Judgement]] = {}
        for place, judgement in zip(places, given, strict=True):
            found.setdefault(place, set()).add(judgement)
        return tuple(
            next(iter(one)) if len(one := found.get(place, set())) == 1 else Judgement()
            for place in every
        )


@dataclass(frozen=True, kw_only=True)
class OptionReader:
    """Reads which option an answer names: its letter, its text, or both.

    The letter may be in brackets or emphasis. In longer answers, a letter on a line of its own or
    after "answer is" counts first, then any letter, then any option's text that is not part of a
    longer option's. An answer that names two options is unreadable.
    """

    options: tuple[str, ...]
    schema: None = None

    def __call__(self, text: str) -> Parsed[int] | Unreadable:
        """The position of the option in a reply, or why it is unreadable."""
        found = TextReader[str]()(text)
        if isinstance(found, Unreadable):
            return found
        text = found.value
        whole = self._of_line(text)
        if whole:
            return self._only(whole, text, rung="text")
        said = [one[which] for one in ANSWER_IS.finditer(text) for which in ("one", "other")]
        clear = {LETTERS.index(letter) for letter in said if letter}
        clear.update(*map(self._of_line, text.splitlines()))
        for places in (clear, self._letters(text), self._texts(text)):
            if places:
                return self._only(places, text, rung="regex")
        return Unreadable("none_named", _preview(text))

    def _only(self, places: set[int], text: str, *, rung: str) -> Parsed[int] | Unreadable:
        if len(places) > 1:
            return Unreadable("several_named", _preview(text))
        return Parsed(next(iter(places)), rung)

    def _of_line(self, line: str) -> set[int]:
        """The options that a line names which holds nothing else; two if they contradict."""
        line = INTRODUCED.sub("", line.strip(f" {EMPHASIS}"), count=1).strip()
        if len(letter := _bare(line).upper()) == 1 and letter in LETTERS:
            return {LETTERS.index(letter)}
        named = self._named(line)
        lettered = LETTERED.fullmatch(line)
        if not named and lettered and (named := self._named(lettered["rest"])):
            named = named | {LETTERS.index(lettered["letter"].upper())}
        return named

    def _named(self, text: str) -> set[int]:
        """The option with exactly this text, else those with this text without decorations."""
        for plain in (_folded, lambda one: _folded(_bare(one))):
            found = {place for place, one in enumerate(self.options) if plain(one) == plain(text)}
            if found:
                return found
        return set()

    def _letters(self, text: str) -> set[int]:
        """The letters in a text outside the options' texts."""
        for place in self._longest_first:
            text = _whole(self.options[place]).sub(" ; ", text)
        return {LETTERS.index(one[0]) for one in ALONE.finditer(text)}

    def _texts(self, text: str) -> set[int]:
        """The options whose texts a text contains, but not within a longer option's."""
        found = set()
        for place in self._longest_first:
            text, times = _whole(self.options[place]).subn(" ; ", text)
            found |= {place} if times else set()
        return found

    @property
    def _longest_first(self) -> list[int]:
        """The positions of the options by length; a single character is no text to look for."""
        places = [place for place, one in enumerate(self.options) if len(one) > 1]
        return sorted(places, key=lambda place: -len(self.options[place]))


class _Labelled(NamedTuple):
    """A value with the label before it, whose name is in lower case."""

    name: str
    number: int | None
    value: str


def _labelled(text: str, pattern: re.Pattern[str]) -> list[_Labelled]:
    """The labels of a text with their values, which end where the next label begins."""
    labels = [one for one in pattern.finditer(text) if one["number"] or one["opens"] is not None]
    return [
        _Labelled(
            one["name"].lower(),
            int(one["number"]) if one["number"] else None,
            _value(text[one.end() : after.start() if after else len(text)]),
        )
        for one, after in pairwise((*labels, None))
        if one is not None
    ]


def _groups(
    labelled: Sequence[_Labelled], first: str
) -> Iterator[tuple[_Labelled, Sequence[_Labelled]]]:
    """Each label of a name, with the labels up to the next one of that name."""
    starts = [place for place, one in enumerate(labelled) if one.name == first]
    for start, end in pairwise((*starts, len(labelled))):
        yield labelled[start], labelled[start + 1 : end]


def _value(text: str) -> str:
    """The value at the start of a text: in quotation marks, else up to a bracket or its line."""
    text = text.strip(f" \t\r\n{EMPHASIS}")
    line = text.partition("\n")[0]
    if text[:1] not in QUOTES or not text:
        value = line.partition("]")[0]
    elif closed := CLOSED.search(text, 1):
        value = text[1 : closed.start()]
    elif (whole := text.rstrip(f" \t\r\n,;[{{({EMPHASIS}"))[1:] and whole[-1] in QUOTES:
        value = whole[1:-1]
    else:
        last = max(line.rfind(one, 1) for one in QUOTES)
        value = line[1:last] if last > 0 else line[1:].partition("]")[0]
    value = " ".join(value.replace('\\"', '"').split())
    return value.strip(f" {EMPHASIS}").rstrip(" ,;[({")


def _verdict(text: str) -> bool | None:
    """Whether a text says consistent; None if it says both, neither, or not so."""
    found = list(VERDICT.finditer(text))
    words = {one["word"].lower() for one in found}
    if len(words) != 1 or any(one["negated"] for one in found):
        return None
    return words == {"consistent"}


def _in_summary(line: str, summary: str) -> Iterator[str]:
    """The line if a summary contains it, else those of its parts between commas that it does."""
    lines = [line] if _contains(summary, line) else map(_bare, re.split("[,;]", line))
    yield from (one for one in lines if one and _contains(summary, one))


def _contains(folded: str, text: str) -> bool:
    """Whether a folded text contains another as whole words."""
    return _folded(text) in folded and bool(_whole(text).search(folded))


def _bare(text: str) -> str:
    """A text without decorations around it."""
    return text.strip(f" \t\r\n{QUOTES}{EMPHASIS}()[]{{}}<>.,;:!#")


def _whole(text: str) -> re.Pattern[str]:
    """Finds a text that is no part of longer words, whatever its case and quotation marks."""
    parts = (re.escape(one) for one in _folded(text).split())
    words = r"\s+".join(parts).replace('"', '["“”„«»]').replace("'", "['‘’‹›]")
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)


def _folded(text: str) -> str:
    """A text in lower case, with single spaces and plain quotation marks."""
    plain = " ".join(text.split()).casefold()
    for kind, marks in (('"', "“”„«»"), ("'", "‘’‹›")):
        for mark in marks:
            plain = plain.replace(mark, kind)
    return plain


def _preview(text: str) -> str:
    """The text for an error: of a long one the end, which holds the answer."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 80 else f"…{flat[-79:]}"
