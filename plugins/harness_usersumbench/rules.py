"""Answers without a model: a summary that counts, a verifier that looks up, a predictor that
compares words. Each rule reads what its prompt shows and nothing else."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from harness.base.hashing import stable_int
from harness.base.seeded_random import picked

Variables: TypeAlias = Mapping[str, Any]

MOST_CATEGORIES, MOST_WORDS = 12, 40
LATELY = 20
"""The number of recent activities that a summary describes apart from all."""

INVENTED = ("Opera", "Bullfights", "Chess Lessons", "Polar Nights")
"""What the rule of segments claims by chance, so that the verifier finds something."""

INVENTING = 0.3

LINE = re.compile(r'"(?P<name>.*)" \[(?P<categories>.*)\] around [^\]"]*$')
WORD = re.compile(r"[^\W\d_]{4,}+")
EMPTY = frozenset({"from", "into", "that", "their", "this", "what", "when", "with", "your"})

ACTIVITIES, CATEGORIES, WORDS = "Activities: ", "Categories: ", "Words in names: "
COUNTED = re.compile(r"(?P<name>[^,(][^(]*?) \((?P<count>\d+)\)(?:, |$)")
ANSWER = re.compile(r"Answer#\d+: \"(?P<answer>.*?)\"(?=, ReferenceAnswer#|\])")


class Counts:
    """How often categories, and words of names, occur in activities or in summaries of them."""

    def __init__(self) -> None:
        self.activities = 0
        self.categories: Counter[str] = Counter()
        self.words: Counter[str] = Counter()

    def add_lines(self, lines: Sequence[str]) -> Counts:
        """These counts with those of lines of activity."""
        for found in filter(None, map(LINE.search, lines)):
            self.activities += 1
            self.categories.update(found["categories"].split(", "))
            self.words.update(words(found["name"]))
        return self

    def add_summary(self, text: str) -> Counts:
        """These counts with those that a summary names."""
        for line in text.splitlines():
            if line.startswith(ACTIVITIES):
                self.activities += int(line.removeprefix(ACTIVITIES))
            for label, counts in ((CATEGORIES, self.categories), (WORDS, self.words)):
                if line.startswith(label):
                    for found in COUNTED.finditer(line.removeprefix(label)):
                        counts[found["name"]] += int(found["count"])
        return self

    def summary(self, *, lately: str, without: Sequence[str] = ()) -> str:
        """The summary by a template; `lately` is the category that came first of late."""
        categories = [one for one in _most(self.categories, MOST_CATEGORIES) if one not in without]
        return "\n".join(
            (
                "**Summary**",
                f"{ACTIVITIES}{self.activities}",
                CATEGORIES + _counted(categories, self.categories),
                WORDS + _counted(_most(self.words, MOST_WORDS), self.words),
                "**Insights**",
                f"* Most frequent in the long term: {categories[0] if categories else 'nothing'}",
                f"* Most frequent lately: {lately}",
            )
        )


def summarise(variables: Variables, rng: Random) -> str:
    """The most frequent categories and words of a user's activities."""
    lines = variables["user_activities"].splitlines()
    return Counts().add_lines(lines).summary(lately=_first(lines[-LATELY:]))


def segment(variables: Variables, rng: Random) -> str:
    """The same of a segment, and at times a category that it does not have."""
    return _of_segment(variables, rng, without=())


def revise(variables: Variables, rng: Random) -> str:
    """The same of a segment without the answers to correct, and at times another mistake."""
    pairs = variables["previous_question_answer_pairs"]
    return _of_segment(variables, rng, without=[one["answer"] for one in ANSWER.finditer(pairs)])


def combine(variables: Variables, rng: Random) -> str:
    """The sums of the segments' counts, and what the last segment has most often."""
    counts = Counts()
    latest = "nothing"
    for one in variables["segments"]:
        counts.add_summary(one["segment_summary"])
        [latest] = _most(Counts().add_summary(one["segment_summary"]).categories, 1) or [latest]
    return counts.summary(lately=latest)


def fits_query(variables: Variables, rng: Random) -> str:
    """Every summary that says something fits every query."""
    return "consistent" if words(variables["summary"]) else "inconsistent"


def entities(variables: Variables, rng: Random) -> str:
    """What the summary gives a count of."""
    counts = Counts().add_summary(variables["summary"])
    found = [*counts.categories, *counts.words][: variables["most"]]
    return "\n".join(found) or "NONE"


def questions(variables: Variables, rng: Random) -> str:
    """A question about each entity, which is its answer."""
    return "\n".join(
        f'[Question#{number}: "What does entry {number} of the summary say is frequent?", '
        f'Answer#{number}: "{entity}"]'
        for number, entity in enumerate(variables["kg_entities"].splitlines(), 1)
    )


def judgements(variables: Variables, rng: Random) -> str:
    """An answer is consistent with activities that contain it."""
    activities = variables["user_activities"]
    reference = _first(activities.splitlines())
    judged = []
    for number, one in enumerate(ANSWER.finditer(variables["question_answer_pairs"]), 1):
        there = bool(_whole(one["answer"]).search(activities))
        status, answer = ("consistent", "none") if there else ("inconsistent", reference)
        judged.append(f'[Status#{number}: "{status}", ReferenceAnswer#{number}: "{answer}"]')
    return "\n".join(judged)


def predict(variables: Variables, rng: Random) -> str:
    """The letter of the option whose words the summary says earliest.

    The activities decide between options that the summary does not tell apart, and then chance,
    which is the same for the same options in any order.
    """
    summary, activities = Said(variables["summary"]), Said(variables["user_activities"])
    every = sorted(option for _, option in variables["options"])
    ranked = [
        ((summary.early(option), activities.often(option), stable_int(option, *every)), letter)
        for letter, option in variables["options"]
    ]
    return str(max(ranked)[1])


class Said:
    """Where a text, if there is one, says the words of an option."""

    def __init__(self, text: str | None) -> None:
        self.text = text or ""
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for found in WORD.finditer(self.text):
            self._places[found[0].casefold()].append(found.start())

    def early(self, option: str) -> float:
        """How early the text says the words first, added up."""
        return sum(1 - found[0] / len(self.text) for found in self._of(option) if found)

    def often(self, option: str) -> int:
        """How often the text says the words."""
        return sum(map(len, self._of(option)))

    def _of(self, option: str) -> list[list[int]]:
        """The places of each word of an option; of the whole of it if it has no content word."""
        found = [self._places.get(word, []) for word in words(option)]
        return found or [[one.start() for one in _whole(option).finditer(self.text)]]


def words(text: str) -> list[str]:
    """The content words of a text, each once, in lower case."""
    found = (word.casefold() for word in WORD.findall(text))
    return [word for word in dict.fromkeys(found) if word not in EMPTY]


def _of_segment(variables: Variables, rng: Random, *, without: Sequence[str]) -> str:
    lines = variables["user_activities"].splitlines()
    counts = Counts().add_lines(lines)
    if rng.random() < INVENTING:
        counts.categories[picked(rng, INVENTED)] += max(counts.categories.values(), default=1)
    return counts.summary(lately=_first(lines), without=without)


def _first(lines: Sequence[str]) -> str:
    """The most frequent category of lines of activity."""
    return next(iter(_most(Counts().add_lines(lines).categories, 1)), "nothing")


def _most(counts: Counter[str], most: int) -> list[str]:
    """The most frequent names; of equally frequent ones the first in the alphabet."""
    return sorted(counts, key=lambda name: (-counts[name], name))[:most]


def _counted(names: Sequence[str], counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({counts[name]})" for name in names)


def _whole(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
