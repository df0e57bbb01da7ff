"""Solved questions to be learnt from, and which ratings they give away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from harness_perrecbench.questions import (
    compare_variables,
    prompt_of,
    rank_variables,
    rate_variables,
)
from harness_perrecbench.records import Group, Member, Options, Single

if TYPE_CHECKING:
    from harness.prompting import Templates

Format: TypeAlias = Literal["pointwise", "pairwise", "listwise"]
Trace: TypeAlias = tuple[str, str] | tuple[str, str, str | None]
"""A rating as it may be told: by user and item, or by user, title and author."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One question with its answer, None where the truth is not known or two users are equal.

    `traces` are all the ratings that it tells of: those it asks for and those it shows.
    """

    prompt: str
    variables: dict[str, Any]
    answer: str | None
    traces: frozenset[Trace]


def lessons(group: Group, form: Format, options: Options) -> Iterator[Lesson]:
    """Every question of one format about a group."""
    return FORMATS[form](group, options)


def asked_for(groups: Iterable[Group]) -> frozenset[Trace]:
    """The ratings that questions about these groups ask for."""
    return frozenset(
        trace for group in groups for member in group.members for trace in _asked(group, member)
    )


def line_of(lesson: Lesson, templates: Templates) -> bytes:
    """The lesson as a line of chat JSONL."""
    template = templates.need("perrecbench", lesson.prompt, "candidate")
    messages: list[dict[str, str | None]] = [
        {"role": one.role, "content": one.content} for one in template.render(lesson.variables)
    ]
    messages.append({"role": "assistant", "content": lesson.answer})
    return json.dumps({"messages": messages}).encode("ascii") + b"\n"


def _pointwise(group: Group, options: Options) -> Iterator[Lesson]:
    for place, member in enumerate(group.members, 1):
        single = Single(
            id=f"{group.id}/{place}",
            user=group.user,
            query=group.query,
            member=member,
            place=place,
            of=len(group.members),
        )
        known = member.rating is not None
        yield Lesson(
            prompt=prompt_of("rate", options),
            variables=rate_variables(single, options),
            answer=json.dumps({"predicted_rating": member.rating}) if known else None,
            traces=_told(group, (member,)),
        )


def _pairwise(group: Group, options: Options) -> Iterator[Lesson]:
    for first, second in permutations(range(1, len(group.members) + 1), 2):
        pair = (group.members[first - 1], group.members[second - 1])
        order = _order(pair)
        yield Lesson(
            prompt=prompt_of("compare", options),
            variables=compare_variables(group, first, second, options),
            answer=f"[User {'AB'[order[0] - 1]}]" if order else None,
            traces=_told(group, pair),
        )


def _listwise(group: Group, options: Options) -> Iterator[Lesson]:
    order = _order(group.members)
    yield Lesson(
        prompt=prompt_of("rank", options),
        variables=rank_variables(group, options),
        answer=json.dumps({"predicted_ranking": order}) if order else None,
        traces=_told(group, group.members),
    )


FORMATS: dict[Format, Callable[[Group, Options], Iterator[Lesson]]] = {
    "pointwise": _pointwise,
    "pairwise": _pairwise,
    "listwise": _listwise,
}
"""The questions of each format about a group."""


def _order(members: tuple[Member, ...]) -> list[int] | None:
    """The users' numbers from 1, strongest preference first; None without one true order."""
    ranks = [member.rank for member in members if member.rank is not None]
    if len(set(ranks)) < len(members):
        return None
    return [ranks.index(rank) + 1 for rank in sorted(ranks)]


def _asked(group: Group, member: Member) -> set[Trace]:
    """The rating in question, also by the thing's name: another id may mean the same thing."""
    return {(member.id, group.id), (member.id, group.query.title, group.query.author)}


def _told(group: Group, members: Iterable[Member]) -> frozenset[Trace]:
    traces: set[Trace] = set()
    for member in members:
        traces |= _asked(group, member)
        traces |= {(member.id, one.title, one.author) for one in member.shown}
    return frozenset(traces)
