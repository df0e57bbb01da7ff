"""The stages: the candidate names a person's interests, the judge checks the cited evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness import Failure, Parsed, Select, Selected, Stage
from harness_interests.parsing import read_interests
from harness_interests.records import (
    Claim,
    History,
    Interest,
    Options,
    Person,
    Support,
    claim_id,
    evidence,
)

if TYPE_CHECKING:
    from harness import Desk, Records


def histories(
    _upstreams: Mapping[str, Records[Any, Any]], people: Iterable[Person], options: Options
) -> Iterator[History]:
    """One item per person, with the latest engagements."""
    for person in people:
        window = person.history[-options.window :]
        yield History(id=person.id, user=person.id, engagements=window)


async def name_interests(item: History, desk: Desk) -> tuple[Interest, ...] | Failure:
    """The interests that the candidate names, each with the items that it cites."""
    history = [
        {"number": number, "title": one.title, "liked": one.liked}
        for number, one in enumerate(item.engagements, start=1)
    ]
    variables = {"history": history, "max_interests": desk.options.max_interests}
    answer = await desk.ask("candidate", "name", variables, read=read_interests, tries=2)
    if isinstance(answer, Parsed):
        return answer.value[: desk.options.max_interests]
    return answer


def claims(
    upstreams: Mapping[str, Records[Any, Any]], _people: Iterable[Person], _options: Options
) -> Iterator[Claim]:
    """One item per interest that cites a liked engagement; the others need no judge."""
    for history, interests in upstreams["name"].values():
        for position, interest in enumerate(interests, start=1):
            numbers = evidence(history, interest)
            if numbers:
                yield Claim(
                    id=claim_id(history.user, position),
                    user=history.user,
                    interest=interest.name,
                    numbers=numbers,
                    titles=tuple(history.engagements[number - 1].title for number in numbers),
                )


async def weigh_evidence(item: Claim, desk: Desk) -> Support | Failure:
    """The cited items that the judge accepts as evidence of the interest."""
    question = Select(prompt="support", subject=item.interest, options=item.titles)
    verdict = await desk.judge(question, role="judge")
    if isinstance(verdict, Selected):
        return Support(kept=tuple(item.numbers[position] for position in verdict.chosen))
    return verdict


NAME = Stage(
    name="name",
    version=1,
    item=History,
    value=tuple[Interest, ...],
    items=histories,
    work=name_interests,
    roles=("candidate",),
    options=("window", "max_interests"),
)

SUPPORT = Stage(
    name="support",
    version=1,
    item=Claim,
    value=Support,
    items=claims,
    work=weigh_evidence,
    judges=("judge",),
    after=("name",),
)
