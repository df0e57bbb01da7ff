"""Readers of answers: summaries, the verifier's answers, and the letter of an option.

The verifier's pairs and judgements are read by their labels (`Question#1:`, `Status#1:`), so that
brackets, quotation marks and other decorations may be missing or of another kind.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from harness import Parsed, TextReader, Unreadable
from harness_usersumbench.records import Pair, Summary

T = TypeVar("T")

LETTERS = "ABCDE"
"""The letters of the options of a question."""

QUOTES = "\"'“”„«»‘’‹›"
EMPHASIS = "*_`"
DECORATIONS = f" \t\r\n{QUOTES}{EMPHASIS}()[]{{}}<>.,;:!#"
SPACED = str.maketrans(dict.fromkeys(f"{QUOTES}{EMPHASIS}()[]{{}}<>.,;:：–—-", " "))
NO_REFERENCE = "none"

VERDICT = re.compile(
    r"(?:(?:(?:the|this) )?(?:summary|answer|verdict|status|result|it) (?:is )?)?"
    r"(?P<word>(?:in)?consistent)(?: with the query)?"
)
STATEMENT = re.compile(
    r"\A(?:(?:so|thus|hence|therefore|the|my|final|best|correct|right|most|likely|single|letter) )"
    r"*+(?:answer|option|choice) (?:is )?(?:option )?"
)
"""Plain statements in folded texts: of consistency, and what may stand before an option."""

YEAR = re.compile(r"\s*+\(\d{4}\)$")

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


@dataclass(frozen=True, kw_only=True)
class SummaryReader:
    """Reads a summary, which is the whole answer; an empty one is a summary without words."""

    schema: None = None

    def __call__(self, text: str) -> Parsed[Summary] | Unreadable:
        found = TextReader[str]()(text)
        return Parsed(Summary(found.value if isinstance(found, Parsed) else ""), "text")


class _WordsReader(Generic[T]):
    """Reads a reply that is not empty."""

    schema: None = None

    def __call__(self, text: str) -> Parsed[T] | Unreadable:
        found = TextReader[str]()(text)
        return self.read(found.value) if isinstance(found, Parsed) else found

    @abstractmethod
    def read(self, text: str) -> Parsed[T] | Unreadable:
        """The value of a text without blanks around it, or why it is unreadable."""


class ConsistencyReader(_WordsReader[bool]):
    """Reads whether a summary fits its query: the word consistent or inconsistent, or a plain
    statement such as "The summary is consistent with the query."; any other text is unreadable.
    """

    def read(self, text: str) -> Parsed[bool] | Unreadable:
        verdict = _verdict(text)
        if verdict is None:
            return Unreadable("no_single_verdict", _preview(text))
        return Parsed(verdict, "text")


@dataclass(frozen=True, kw_only=True)
class EntityReader(_WordsReader[tuple[str, ...]]):
    """Reads the entities of a summary, one a line or separated by commas; NONE means none.

    Only entities that the summary contains count, whatever their case.
    """

    summary: str
    most: int

    def read(self, text: str) -> Parsed[tuple[str, ...]] | Unreadable:
        named = [
            name for line in text.splitlines() if (name := BULLET.sub("", line).strip(DECORATIONS))
        ]
        if [name.casefold() for name in named] == [NO_REFERENCE]:
            return Parsed((), "text")
        summary = _folded(self.summary)
        known: dict[str, str] = {}
        for one in (part for line in named for part in _in_summary(line, summary)):
            known.setdefault(_folded(one), one)
        if not known:
            return Unreadable("not_in_summary", _preview(text))
        return Parsed(tuple(known.values())[: self.most], "text")


class PairReader(_WordsReader[tuple[Pair, ...]]):
    """Reads question–answer pairs: `[Question#1: "…", Answer#1: "…"]`.

    A question belongs to the one answer that follows it, whatever their numbers; without an answer,
    or with several that differ, it makes no pair.
    """

    def read(self, text: str) -> Parsed[tuple[Pair, ...]] | Unreadable:
        pairs = []
        for first, *rest in _labelled(text, PAIRS, "question"):
            answers = {one.value for one in rest if one.name == "answer" and one.value}
            if first.value and len(answers) == 1:
                pairs.append(Pair(first.value, answers.pop()))
        return Parsed(tuple(pairs), "regex") if pairs else Unreadable("no_pairs", _preview(text))


class Judgement(NamedTuple):
    """The verifier's judgement of a pair; `consistent` is None if it gave none."""

    consistent: bool | None = None
    reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class JudgementReader(_WordsReader[tuple[Judgement, ...]]):
    """Reads the judgements of so many pairs: `[Status#1: "…", ReferenceAnswer#1: "…"]`.

    A judgement belongs to the pair of its number. If the numbers are none of the pairs', or occur
    twice, judgements count in their order, provided that there is one for each pair. Numbers
    that begin with 0 are one less than the pairs'. A pair with contradicting judgements has none.
    """

    count: int

    def read(self, text: str) -> Parsed[tuple[Judgement, ...]] | Unreadable:
        numbers, given = [], []
        for first, *rest in _labelled(text, JUDGEMENTS, "status"):
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
class OptionReader(_WordsReader[int]):
    """Reads the position of the option that an answer names: by its letter, its text, or both,
    alone or in one plain statement such as "My answer is B".

    A longer answer counts if its last line is such an answer, and no other line is one for another
    option. The year at the end of an option's text may be missing.
    """

    options: tuple[str, ...]

    def read(self, text: str) -> Parsed[int] | Unreadable:
        rung, chosen = "text", self._chosen(text)
        if not chosen:
            *earlier, last = text.splitlines()
            rung, chosen = "regex", self._chosen(last)
            if chosen:
                chosen = chosen.union(*map(self._chosen, earlier))
        if len(chosen) == 1:
            return Parsed(next(iter(chosen)), rung)
        return Unreadable("several_named" if chosen else "no_plain_answer", _preview(text))

    def _chosen(self, text: str) -> set[int]:
        """The options that a text names which says nothing else."""
        said = _folded(text)
        return self._forms.get(said) or self._forms.get(STATEMENT.sub("", said)) or set()

    @cached_property
    def _forms(self) -> Mapping[str, set[int]]:
        """The options by letter, text and both, texts also without a year, if no other is so."""
        forms: dict[str, set[int]] = {"": set()}
        for texts in (self.options, [YEAR.sub("", one) for one in self.options]):
            whole = set(forms)
            for place, (letter, text) in enumerate(zip("abcde", map(_folded, texts), strict=True)):
                for form in {letter, text, f"{letter} {text}", f"{text} {letter}"} - whole:
                    forms.setdefault(form, set()).add(place)
        return forms


class _Labelled(NamedTuple):
    """A value with the label before it, whose name is in lower case."""

    name: str
    number: int | None
    value: str


def _labelled(text: str, pattern: re.Pattern[str], first: str) -> list[list[_Labelled]]:
    """The labels of a text with their values, in groups that begin with the label `first`.

    A value ends where the next label begins.
    """
    labels = [one for one in pattern.finditer(text) if one["number"] or one["opens"] is not None]
    ends = [*(one.start() for one in labels[1:]), len(text)]
    groups: list[list[_Labelled]] = []
    for one, end in zip(labels, ends, strict=False):
        name, number = one["name"].lower(), int(one["number"]) if one["number"] else None
        if name == first:
            groups.append([])
        if groups:
            groups[-1].append(_Labelled(name, number, _value(text[one.end() : end])))
    return groups


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
    """Whether a text says consistent and nothing else; None if it does not say which."""
    said = VERDICT.fullmatch(_folded(text))
    return said["word"] == "consistent" if said else None


def _in_summary(line: str, summary: str) -> Iterator[str]:
    """The line if a summary contains it, else those of its parts between commas that it does."""
    lines = [line] if _contains(summary, line) else re.split("[,;]", line)
    bare = (one.strip(DECORATIONS) for one in lines)
    yield from (one for one in bare if one and _contains(summary, one))


def _contains(folded: str, text: str) -> bool:
    """Whether a folded text contains another as whole words."""
    words = _folded(text)
    return words in folded and bool(re.search(rf"(?<!\w){re.escape(words)}(?!\w)", folded))


def _folded(text: str) -> str:
    """The words of a text in lower case, with single spaces and without most punctuation."""
    return " ".join(text.casefold().translate(SPACED).split())


def _preview(text: str) -> str:
    """The text for an error: of a long one the end, which holds the answer."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 80 else f"…{flat[-79:]}"
