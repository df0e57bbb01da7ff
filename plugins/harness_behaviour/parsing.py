"""The reader of rankings: finds the list in a reply, and each title's place among the candidates.

The titles are those of a JSON or Python list, or of a numbered or bulleted one. Of several lists
the one with most known titles counts, of equal ones the later; a list that echoes the candidates
counts only where there is no other, and a list of what is not recommended counts never.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple

from harness import Parsed, Unreadable
from harness.parsing.decode import NotJson, decode, fenced_blocks, outermost, whole_characters
from harness_behaviour.records import RANKED, Ranking

How = Literal["exact", "folded", "closest"]

ECHO = 2 * RANKED
"""A list of more titles is an echo of the candidates where there is another one."""

COMPARED, LONGEST = 50, 300
"""So many titles of a reply, of at most so many characters, are compared with all candidates."""

ALIKE = 1e-9
"""Similarities that differ by no more are equal."""

QUOTES = "\"'“”„‘’`´"
ELEMENT = re.compile(
    rf"""
    (?<![^\s\[({{,]) [{QUOTES}] (?P<title>[^\n]{{1,{LONGEST}}}?)
    (?: [{QUOTES}] (?= \s*+ (?: [,\])}}] | $ ) | [ ]++["“„] ) | \Z )
    """,
    re.VERBOSE | re.MULTILINE,
)
"""A title in quotation marks. Those inside it are followed by other text than the list's."""

KEY = re.compile(r"(?<=[{,])\s*+['\"]\w{1,20}['\"]\s*+:")
TITLES = ("title", "name", "item", "movie", "film", "track", "song")
"""The keys of an object with the title; what else it holds is about the title."""

TITLED = re.compile(rf"(?<=[{{,])\s*+['\"](?:{'|'.join(TITLES)})['\"]\s*+:", re.IGNORECASE)
NEGATION = re.compile(
    r"(?:n['’]t|\b(?:not|never|cannot))\b(?!\s+(?:already|heard|in|just|only|played|rated|seen|sure"
    r"|watched|yet)\b)|\b(?:avoid|exclud\w+|except|skip|(?:un|least )likely|instead of"
    r"|rather than)\b",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"[.!?;](?=\s)|[\n\]}]|\b(?:but|however|here)\b", re.IGNORECASE)
"""What ends a clause: a list is negated if the clause before it is."""

FENCE = re.compile(r"\s*```\w*\s*$")

BARE_LIST = re.compile(r"\[([^\[\]]{1,20000})\]")
LISTED = re.compile(r"\s*+(?:[-*•+]|\(?\d{1,4}[.):])\s++(?P<title>\S.*+)$")
NUMBER = re.compile(r"^\(?\d{1,3}[.):]\s++")
REMARK = re.compile(r"\s+[-–—]\s+|:\s+|\*\*\s*")
REMARKS = 8
DECORATION = " \t,;*_" + QUOTES

LAST = r"(?:the|an?|le|la|les|l'|el|los|las|il|lo|der|die|das)"
ARTICLE = re.compile(rf"^(?:the|an?)\s+(?=\S)|,\s+{LAST}(?=\s*(?:\(|$))")
COMMA = re.compile(rf",(?!\s+{LAST}\s*\()", re.IGNORECASE)
"""A comma between titles, and not one before an article and a year."""

YEAR = re.compile(r"\s*\((\d{4})\)\s*$")
ROMAN = {name: str(number) for number, name in
         enumerate(("ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"), 2)}  # fmt: skip
NUMBERS = re.compile(rf"\d+|\b(?:{'|'.join(ROMAN)})\b")
"""The numbers in a folded title: years and parts of a series."""

IN_BRACKETS = re.compile(r"\s*\(([^()]*)\)")
BY = " — "
"""What stands between the title of a track and its artist."""


@dataclass(frozen=True, kw_only=True)
class RankingReader:
    """Reads a ranking of candidates, of which the first ten places count.

    A title is a candidate's if it is the same text, or the same once both are folded (`folded`,
    `names`), or by the closest match: the candidate with the largest `SequenceMatcher.ratio` of
    folded texts among those with the same year and numbers, if that is at least `similarity` and no
    other candidate's is as large.
    """

    candidates: tuple[str, ...]
    similarity: float
    schema: None = None

    def __call__(self, text: str) -> Parsed[Ranking] | Unreadable:
        """The ranking in a reply, or why there is none."""
        text = whole_characters(text).strip()
        if not text:
            return Unreadable("empty")
        known = Candidates(self.candidates)
        lists = list(_lists(text, known))
        if not any(known.among(one.titles) for one in lists):
            lists += [*_bare_lists(text, known), *_listed(text, known)]
        full = [one for one in lists if one.titles and not one.negated]
        chosen = _chosen(full, known) if full else None
        if chosen is None or (chosen.kind == "object" and not known.among(chosen.titles)):
            negated = any(one.negated and known.among(one.titles) for one in lists)
            cause = "negated" if negated else "empty_list" if lists and not full else "no_list"
            return Unreadable(cause, " ".join(text[:200].split()))
        return Parsed(_ranking(chosen.titles, known, self.similarity), chosen.rung)


class TitleList(NamedTuple):
    """The titles of a list in a reply, how it was read, whether JSON calls it an object, and
    whether it is of what is not recommended."""

    titles: list[str]
    rung: str
    kind: str = "array"
    negated: bool = False


class Candidates:
    """The candidates of a prompt by the texts that mean them."""

    def __init__(self, titles: Sequence[str]) -> None:
        self.titles = titles
        self._exact = {title.strip(): place for place, title in enumerate(titles)}

    @cached_property
    def full(self) -> list[dict[str, str]]:
        """Each candidate's folded text, with its year and without, and the numbers in them."""
        pairs = ((folded(title), folded(YEAR.sub("", title))) for title in self.titles)
        return [{name: _numbers(name) for name in pair} for pair in pairs]

    @cached_property
    def _folded(self) -> dict[str, int]:
        """The places by folded name, without names that several candidates have."""
        partial = _unique(map(names, self.titles))
        return {**partial, **_unique([next(iter(own))] for own in self.full)}

    def find(self, title: str) -> tuple[int, How] | None:
        """The candidate that is a title, also without a number before it."""
        title = title.strip()
        if title in self._exact:
            return self._exact[title], "exact"
        for text in (title, NUMBER.sub("", title)):
            if (place := self._folded.get(folded(text))) is not None:
                return place, "folded"
        return None

    def among(self, titles: Iterable[str]) -> int:
        return sum(self.find(title) is not None for title in titles)

    def closest(self, title: str, similarity: float) -> int | None:
        """The candidate most like a title; None if none is like it, or two are equally."""
        text = folded(NUMBER.sub("", title.strip()))
        numbers = _numbers(text)
        matcher = SequenceMatcher(b=text, autojunk=False)
        best, found, alone = similarity, None, True
        for place, own in enumerate(self.full):
            for name in (name for name in own if own[name] == numbers):
                matcher.set_seq1(name)
                if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
                    continue
                ratio = matcher.ratio()
                if ratio > best + ALIKE or (found is None and ratio >= best):
                    best, found, alone = ratio, place, True
                elif ratio > best - ALIKE and place != found:
                    alone = False
        return found if alone else None


def folded(title: str) -> str:
    """A title without case, accents, punctuation and article; a mark alone stays what it is."""
    plain = unicodedata.normalize("NFKD", title).casefold().strip()
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    plain = ARTICLE.sub(" ", plain.replace("’", "'"), count=1).replace("&", " and ")
    plain = plain.replace("'", "")
    words = "".join(one if one.isalnum() else " " for one in plain).split()
    return " ".join(words) or title.strip()


def names(title: str) -> set[str]:
    """Folded texts by which a candidate may be named in part.

    They are a movie's title without its year, without what stands in brackets, or the other title
    in brackets; a track without its artist, with "by" between them, or the artist first.
    """
    year = YEAR.search(title)
    base = YEAR.sub("", title)
    others = [one for one in IN_BRACKETS.findall(base) if sum(map(str.isalpha, one)) > 1]
    found = [base, IN_BRACKETS.sub("", base), *others]
    if year:
        found += [f"{one} ({year[1]})" for one in found]
    if BY in title:
        track, artist = title.split(BY, 1)
        found += [track, f"{track} by {artist}", f"{artist} {track}"]
    return {folded(one) for one in found if one.strip()}


def _numbers(text: str) -> str:
    return "".join(ROMAN.get(one, one) for one in NUMBERS.findall(text))


def _unique(named: Iterable[Iterable[str]]) -> dict[str, int]:
    """The places by name, without names of several places; `named` are the names of each."""
    pairs = [(name, place) for place, own in enumerate(named) for name in {*own}]
    times = Counter(name for name, _ in pairs)
    return {name: place for name, place in pairs if times[name] == 1}


def _ranking(titles: Sequence[str], known: Candidates, similarity: float) -> Ranking:
    placed: dict[int, How] = {}
    unknown = repeated = compared = surplus = 0
    for number, title in enumerate(titles):
        if len(placed) == RANKED:
            surplus = len(titles) - number
            break
        found = known.find(title)
        if found is None and compared < COMPARED and len(title) <= LONGEST:
            compared += 1
            if (place := known.closest(title, similarity)) is not None:
                found = place, "closest"
        if found is None:
            unknown += 1
        elif found[0] in placed:
            repeated += 1
        else:
            placed[found[0]] = found[1]
    return Ranking(tuple(placed), tuple(placed.values()), unknown, repeated, surplus)


def _chosen(lists: Sequence[TitleList], known: Candidates) -> TitleList:
    """The list that is the answer; of equal ones the later."""
    short = [one for one in lists if len(one.titles) <= ECHO and known.among(one.titles)]
    return max(
        reversed(short or lists), key=lambda one: min(known.among(one.titles[:ECHO]), RANKED)
    )


def _lists(text: str, known: Candidates) -> Iterator[TitleList]:
    """The lists of titles in quotation marks, in the order of the text."""
    with suppress(NotJson):
        value = decode(text)
        if isinstance(value, list | dict):
            kind = "object" if isinstance(value, dict) else "array"
            yield TitleList(list(_texts(value, known)), "strict", kind)
        return
    fenced, end = fenced_blocks(text), 0
    for span in outermost(text):
        start = text.index(span.text, end)
        end, negated = start + len(span.text), _negated(text, start)
        if span.error is not None:
            yield TitleList(_quoted(span.text), "repaired", span.kind, negated)
        elif (titles := list(_texts(span.value, known))) or span.value == []:
            rung = "fenced" if span.text in fenced else "brackets"
            yield TitleList(titles, rung, span.kind, negated)


def _negated(text: str, start: int) -> bool:
    """Whether the clause before a place in a text speaks of what is not recommended."""
    before = FENCE.sub("", text[max(0, start - LONGEST) : start]).rstrip().replace("_", " ")
    return NEGATION.search(CLAUSE.split(before)[-1]) is not None


def _texts(value: Any, known: Candidates) -> Iterator[str]:
    """The texts in JSON, in their order.

    Of an object that has a title, it is the title, and of one whose keys are titles, these.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, known)
    elif isinstance(value, dict):
        own = {key.casefold(): one for key, one in value.items()}
        title = next((own[key] for key in TITLES if key in own), None)
        if title is not None:
            yield from _texts(title, known)
        elif known.among(value):
            yield from _in_order(value)
        else:
            kept = [one for key, one in value.items() if not _negated(key, len(key))]
            yield from _texts(kept, known)


def _in_order(ranks: Mapping[str, Any]) -> list[str]:
    """Titles by their ranks, if these count from 1, else as written, without those that are false.

    Other numbers may be years or scores: they give no order but one that they fall in.
    """
    ranks = {title: one for title, one in ranks.items() if one is not False}
    values = list(ranks.values())
    if not all(isinstance(one, int | float) for one in values):
        return list(ranks)
    if sorted(values) == [*range(1, len(values) + 1)]:
        return sorted(ranks, key=ranks.__getitem__)
    return list(ranks) if values == sorted(values, reverse=True) else []


def _quoted(text: str) -> list[str]:
    """The titles in quotation marks in a list, of whatever kind the marks are.

    If it has objects with a title, these are their titles.
    """
    _, *titled = TITLED.split(text)
    found = map(ELEMENT.search, titled) if titled else ELEMENT.finditer(KEY.sub(" ", text))
    return [
        re.sub(r"\\(.)", r"\1", one["title"]).strip(" \t,")
        for one in found
        if one is not None and any(map(str.isalnum, one["title"]))
    ]


def _bare_lists(text: str, known: Candidates) -> Iterator[TitleList]:
    """The lists in brackets without quotation marks that have a known title.

    A title may have commas: of the parts between commas as many are one title as are known.
    """
    for found in BARE_LIST.finditer(text):
        if found[1].lstrip()[:1] in QUOTES:
            continue
        parts = [part.strip() for part in COMMA.split(found[1])]
        titles, start = [], 0
        while start < len(parts):
            ends = range(min(start + 4, len(parts)), start, -1)
            joined = ((", ".join(parts[start:end]), end) for end in ends)
            single = parts[start], start + 1
            title, start = next((one for one in joined if known.find(one[0])), single)
            titles.append(title.strip(DECORATION))
        if known.among(titles):
            negated = _negated(text, found.start())
            yield TitleList([*filter(None, titles)], "regex", negated=negated)


def _listed(text: str, known: Candidates) -> Iterator[TitleList]:
    """The titles of numbered or bulleted lines, or of lines or quotation marks; one is known."""
    listed, whole = dict[bool, list[str]](), dict[bool, list[str]]()
    negated = False
    for line in text.splitlines():
        if found := LISTED.match(line):
            listed.setdefault(negated, []).append(found["title"])
        elif known.find(line.strip(DECORATION)):
            whole.setdefault(negated, []).append(line)
        elif line.startswith(("#", "**")) or line.rstrip(" *_").endswith(":"):
            negated = _negated(line, len(line))
    if not listed and sum(map(len, whole.values())) > 1:
        listed = whole
    elif not listed and known.among(quoted := _quoted(text)) > 1:
        listed = {_negated(text, text.find(quoted[0])): quoted}
    for negated, lines in listed.items():
        titles = [_without_remark(line, known) for line in lines]
        if known.among(titles):
            yield TitleList(titles, "regex", negated=negated)


def _without_remark(line: str, known: Candidates) -> str:
    """The title in a line: the whole, or what stands before a remark if that is known."""
    whole = line.strip(DECORATION)
    if known.find(whole):
        return whole
    remarks = islice(REMARK.finditer(line), REMARKS)
    starts = (line[: found.start()].strip(DECORATION) for found in remarks)
    # "Alien: Resurrection (1997)" is a title, and no remark on "Alien".
    dated = [one for one in starts if YEAR.search(one) or not YEAR.search(whole)]
    return next((one for one in dated if one and known.find(one)), whole)
