"""Which options the names in an answer mean."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.judging import Selected

NONE = "none"
WRAPPING = " \t\r\n[](){}<>\"'“”‘’«»*`_#.,;:!"
KIND_OF_THING = re.compile(
    r"(?:items?|options?|numbers?|no|nr|titles?|labels?|texts?)[.:]?\s*+(?=\S)", re.I
)
RANGE = re.compile(r"(\d{1,6})\s*+(?:-|–|—|\.\.\.?|to|through)\s*+(\d{1,6})", re.I)
STEMMED = re.compile(r"(.*\D)\d{1,6}", re.DOTALL)
NUMBERED = re.compile(r"[\[(]?(\w{1,12})(?:[\])]?[.:)]|\])\s++(\S.*+)", re.DOTALL)


class NoAnswer(ValueError):
    """The text names nothing that can be taken as the answer."""


@dataclass(frozen=True)
class Labels:
    """The labels of a question, and how other spellings of them are understood.

    What most answers do not need is worked out for those that do.
    """

    places: Mapping[str, int]
    options: Sequence[str]

    @functools.cached_property
    def titles(self) -> dict[str, int]:
        """The positions of the options by their texts, those left out that several share."""
        titles = [" ".join(option.casefold().split()) for option in self.options]
        times = Counter(titles)
        return {title: place for place, title in enumerate(titles) if title and times[title] == 1}

    @functools.cached_property
    def titles_at(self) -> dict[int | None, str]:
        """The texts of the options by their positions."""
        return {place: title for title, place in self.titles.items()}

    @functools.cached_property
    def are_numbers(self) -> bool:
        """Whether all labels are numbers."""
        return all(label.isdecimal() for label in self.places)

    @functools.cached_property
    def stem(self) -> str:
        """What all labels are up to their number, as in item_0, item_1; "" where there is none."""
        stems = {match[1] if (match := STEMMED.fullmatch(label)) else "" for label in self.places}
        return stems.pop() if len(stems) == 1 else ""

    @functools.cached_property
    def between(self) -> re.Pattern[str] | None:
        """The spaces between two labels with the same stem, None where they have none."""
        word = re.escape(self.stem.rstrip("_"))
        return re.compile(rf"(?<=\d)\s++(?={word}[_ ]?\d)", re.I) if self.stem else None

    def exact(self, name: str) -> int | None:
        """The position of the option that a name means which holds nothing but the name.

        Case, brackets, quotes, "#", words such as "item", leading zeros and a space for an
        underscore do not matter. An option's whole text counts as its name.
        """
        plain = clean(name)
        kindless = clean(KIND_OF_THING.sub("", plain, count=1))
        for key in (plain, kindless, plain.lstrip("0"), underscored(plain)):
            if key in self.places:
                return self.places[key]
        return self.titles.get(" ".join(name.casefold().split()).strip("\"'“”*`"))

    def by_number(self, name: str) -> int | None:
        """The position of the label that a bare number is the rest of, as 3 of item_3."""
        plain = clean(name)
        return self.places.get(self.stem + plain) if plain.isdecimal() else None

    def find(self, name: str) -> int | None:
        """The position of the option that one entry of a JSON list means, None when it means none.

        "3: Night trains" and a bare number are understood as well; a text behind a number beats
        the number, and so does a label that is no number itself, since models number what they
        list.
        """
        place = self.exact(name)
        numbered = NUMBERED.fullmatch(name.strip())
        if place is not None:
            return place
        if numbered is None:
            return self.by_number(name)
        if not self.are_numbers and (label := self.exact(numbered[2])) is not None:
            return label
        behind = " ".join(numbered[2].casefold().split()).strip("\"'“”*`")
        return self.titles.get(behind, self.places.get(numbered[1].casefold()))

    def expand(self, name: str) -> list[int | None]:
        """The positions that a name means: several for a range of numbers, [None] for nothing.

        A range means the labels within it; an end that is no label counts as one unknown name.
        """
        if (place := self.find(name)) is not None or not self.are_numbers:
            return [place]
        span = RANGE.fullmatch(clean(KIND_OF_THING.sub("", clean(name), count=1)))
        if span is None:
            return [None]
        first, last = int(span[1]), int(span[2])
        within: list[int | None] = [
            place for label, place in self.places.items() if first <= int(label) <= last
        ]
        ends_known = str(first) in self.places and str(last) in self.places
        return within if within and ends_known and first < last else [*within, None]


def make_labels(labels: Sequence[str], options: Sequence[str]) -> Labels:
    """The labels of a question; ValueError where two of them are alike or one is missing."""
    places = _places(tuple(labels))
    if len(labels) != len(options) or len(places) != len(labels):
        raise ValueError(f"{len(options)} options need as many different labels, not {labels!r}")
    return Labels(places=places, options=options)


@functools.lru_cache(maxsize=64)
def _places(labels: tuple[str, ...]) -> Mapping[str, int]:
    """The position of each label; most questions of a benchmark have the same ones."""
    return {clean(label): place for place, label in enumerate(labels)}


def clean(name: str) -> str:
    """A name without case, brackets, quotes and punctuation around it."""
    return name.strip(WRAPPING).casefold()


def underscored(name: str) -> str:
    """A name with underscores for its spaces."""
    return "_".join(name.split())


def selected(names: Sequence[str], labels: Labels, *, at_most: int | None, rung: str) -> Selected:
    """The options that the names mean, in the order named.

    Names that mean nothing, that come again, and that exceed `at_most` are left out and counted.
    NoAnswer where NONE stands beside labels, and where names were given and none of them means
    anything: to take that for an empty choice would make a value of a failure.
    """
    found = [place for name in names if not is_none(name, labels) for place in labels.expand(name)]
    known = [place for place in found if place is not None]
    if found and any(is_none(name, labels) for name in names):
        raise NoAnswer("it says NONE and names labels")
    if found and not known:
        raise NoAnswer("it names labels, none of which exists")
    distinct = list(dict.fromkeys(known))
    chosen = tuple(distinct if at_most is None else distinct[:at_most])
    return Selected(
        chosen=chosen,
        rung=rung,
        unknown=len(found) - len(known),
        repeated=len(known) - len(distinct),
        surplus=len(distinct) - len(chosen),
    )


def is_none(name: str, labels: Labels) -> bool:
    """Whether a name is the word NONE and not a label of that spelling."""
    plain = clean(name)
    return plain == NONE and plain not in labels.places
