"""The loop of Algorithm 1: a segment's summary, checked and regenerated until it is consistent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from harness import CallFailed, Calls, Failure, Parsed
from harness.base.named_functions import function_digest, named_function
from harness_usersumbench.parsing import (
    NO_REFERENCE,
    ConsistencyReader,
    EntityReader,
    JudgementReader,
    PairReader,
    SummaryReader,
)
from harness_usersumbench.records import Pair, Refined, Round, Segment, Summary
from harness_usersumbench.rendering import lines, time_range

if TYPE_CHECKING:
    from harness import Desk
    from harness.parsing import Reader

T = TypeVar("T")

EXTRACTOR = "extractor"
MOST_ENTITIES = 10
UNSUPPORTED = "nothing in my activities supports an answer"
"""What the candidate reads where the verifier contradicts an answer and has none of its own: the
word "none" would be taken for the answer."""

PROMPTS = ("segment", "revise", "fits_query", "entities", "questions", "judgements")
OPTIONS = ("query", "max_words", "verb", "max_iterations", "extractor")
"""The prompts and options that the loop uses."""


class Stopped(Exception):
    """A call failed, or a summary could not be read."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


async def refine(item: Segment, desk: Desk) -> Refined | Failure:
    """The segment's summary after the last check, with all checks.

    A failed call or a summary that is cut or refused fails the segment. A check that cannot be read
    is noted in its round, and asks for no other summary.
    """
    try:
        return await Loop(item, desk).run()
    except Stopped as stopped:
        return stopped.failure


def prompts_of(options: Any) -> tuple[str, ...]:
    """The prompts that are used with these options."""
    return tuple(one for one in PROMPTS if one != "entities" or not options.extractor)


def calls_of(_item: Any, options: Any) -> Calls:
    """A summary and at least two questions about it; each regeneration is checked in full."""
    by_verifier = 3 if options.extractor else 4
    return Calls(least=by_verifier - 1, most=(1 + by_verifier) * (1 + options.max_iterations))


@dataclass
class Loop:
    """The work on one segment. `unread` are the checks of this round that could not be read."""

    item: Segment
    desk: Desk
    unread: list[str] = field(default_factory=list)

    async def run(self) -> Refined:
        """Check the summary, and regenerate it while it is flagged; check the last one too."""
        text = await self._summarise("segment", number=0)
        rounds = [await self._check(text)]
        for number in range(1, self.desk.options.max_iterations + 1):
            if not rounds[-1].flagged:
                break
            text = await self._regenerate(rounds[-1], number)
            rounds.append(await self._check(text))
        return Refined(text, tuple(rounds))

    async def _check(self, text: str) -> Round:
        """The verifier's check of a summary: of its query first, and then of its facts."""
        self.unread = []
        fits = await self._verify(
            "fits_query",
            {"summary": text, "query": self.desk.options.query},
            read=ConsistencyReader(),
        )
        entities: tuple[str, ...] = ()
        pairs: tuple[Pair, ...] = ()
        if fits is not False:
            entities = await self._entities(text)
        if entities:
            variables = {"kg_entities": "\n".join(entities), "summary": text}
            pairs = await self._verify("questions", variables, read=PairReader()) or ()
        if pairs:
            pairs = await self._judged(pairs)
        return Round(text, fits, entities, pairs, tuple(self.unread))

    async def _entities(self, text: str) -> tuple[str, ...]:
        """The entities that the verifier finds in a summary, or the option `extractor`."""
        if reference := self.desk.options.extractor:
            found = await asyncio.to_thread(extractor_of(reference), text)
            return tuple(dict.fromkeys(" ".join(str(one).split()) for one in found))
        asked = await self._verify(
            "entities",
            {"summary": text, "most": MOST_ENTITIES},
            read=EntityReader(summary=text, most=MOST_ENTITIES),
        )
        return asked or ()

    async def _judged(self, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """The pairs with the verifier's judgements against the segment's activities."""
        variables = {
            "question_answer_pairs": shown(pairs),
            "user_activities": self._activities,
        }
        judged = await self._verify("judgements", variables, read=JudgementReader(count=len(pairs)))
        if judged is None:
            return pairs
        return tuple(
            replace(pair, consistent=one.consistent, reference=one.reference)
            for pair, one in zip(pairs, judged, strict=True)
        )

    async def _regenerate(self, last: Round, number: int) -> str:
        """The next summary: the same question again if the query was missed, else a correction."""
        if last.fits_query is False:
            return await self._summarise("segment", number=number)
        wrong = [pair for pair in last.pairs if pair.consistent is False]
        more = {
            "previous_summary": last.summary,
            "previous_question_answer_pairs": shown(wrong, with_references=True),
        }
        return await self._summarise("revise", number=number, **more)

    async def _summarise(self, prompt: str, *, number: int, **more: str) -> str:
        """The candidate's summary; each number has a seed of its own."""
        options = self.desk.options
        variables = {
            "query": options.query,
            "max_words": options.max_words,
            "time_range": time_range(self.item.activities),
            "user_activities": self._activities,
            **more,
        }
        answer = await self.desk.ask(
            "candidate", prompt, variables, read=SummaryReader(), repeat=number
        )
        if not isinstance(answer, Parsed):
            raise Stopped(answer)
        summary: Summary = answer.value
        return summary.text

    async def _verify(
        self, prompt: str, variables: Mapping[str, Any], *, read: Reader[T]
    ) -> T | None:
        """The verifier's answer; None if it cannot be read."""
        answer = await self.desk.ask("verifier", prompt, variables, read=read)
        if isinstance(answer, CallFailed):
            raise Stopped(answer)
        if isinstance(answer, Parsed):
            return answer.value
        self.unread.append(prompt)
        return None

    @cached_property
    def _activities(self) -> str:
        return "\n".join(lines(self.item.activities, self.desk.options))


@cache
def extractor_of(reference: str) -> Callable[[str], Iterable[str]]:
    """The function that the option `extractor` names; UsageError for one of Python's own."""
    function_digest(reference, option=EXTRACTOR)
    return named_function(reference, option=EXTRACTOR)


def shown(pairs: Iterable[Pair], *, with_references: bool = False) -> str:
    """Pairs as prompts show them, one a line, numbered from 1."""

    def line(number: int, pair: Pair) -> str:
        parts = [f'Question#{number}: "{pair.question}"', f'Answer#{number}: "{pair.answer}"']
        if with_references:
            none = (pair.reference or NO_REFERENCE).casefold().strip(" .") == NO_REFERENCE
            reference = UNSUPPORTED if none else pair.reference
            parts.append(f'ReferenceAnswer#{number}: "{reference}"')
        return f"[{', '.join(parts)}]"

    return "\n".join(line(number, pair) for number, pair in enumerate(pairs, start=1))
