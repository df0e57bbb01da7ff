"""What the prompts are given, as plain dicts and lists, and which prompt a stage asks with.

Every prompt gets the `query` (`title`, `author`) and whom it shows: `member`, or `members` in the
order of showing. A member has `profile`, `common`, `average`, each None where the prompt says
nothing of it, and the behaviours `shown` (`title`, `author`, `rating`). `examples` are solved
questions of the same make, with `query`, `members` and `answer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from harness.base.errors import UsageError
from harness_perrecbench.records import Behaviour, Example, Group, Member, Person, Single, Thing

Variables: TypeAlias = dict[str, Any]
Shown: TypeAlias = Literal["full", "no_text", "none"]

RATE_OPTIONS = ("profile", "thought", "wording", "shot_style")
COMPARE_OPTIONS = ("profile", "thought", "shot_style")
RANK_OPTIONS = ("profile", "thought", "tail", "shot_style")
"""The options that the questions of each stage are made with."""

RATE_PROMPTS = ("rate", "rate_thought", "rate_b", "rate_c", "rate_d")
COMPARE_PROMPTS = ("compare", "compare_thought")
RANK_PROMPTS = ("rank", "rank_thought")
"""The prompts that each stage may ask with."""


def prompt_of(stage: str, options: Any) -> str:
    """The name of the prompt that a stage asks with."""
    if stage == "profile":
        return stage
    if options.thought:
        return f"{stage}_thought"
    if stage == "rate" and options.wording != "a":
        return f"rate_{options.wording}"
    return stage


def refuse_unwritten(options: Any) -> None:
    """Raise UsageError where options ask for a prompt that nobody has written."""
    if not options.thought:
        return
    other = {"wording": (options.wording, "a"), "tail": (options.tail, "now")}
    for name, (found, only) in other.items():
        if found != only:
            raise UsageError(
                "there is one chain-of-thought prompt of each kind",
                where=f"options: {name}",
                found=f"{name}: {found} with thought: true",
                expected=f"{name}: {only}, or thought: false",
            )


def rate_variables(single: Single, options: Any) -> Variables:
    """What the prompts of the stage "rate" are given: one user and one thing."""
    return {
        "query": _thing(single.query),
        "member": _member(single.member, options.profile),
        "examples": _examples(single.examples, options.profile),
        "shot_style": options.shot_style,
    }


def compare_variables(group: Group, first: int, second: int, options: Any) -> Variables:
    """What the prompts of the stage "compare" are given.

    `first` and `second` are the users' numbers from 1, of whom `first` is shown as A. The authors'
    examples of pairs never have a profile, whatever the question has.
    """
    profile: Shown = options.profile if options.shot_style == "corrected" else "none"
    pair = (group.members[first - 1], group.members[second - 1])
    return {
        "query": _thing(group.query),
        "members": [_member(one, options.profile) for one in pair],
        "examples": _examples(group.examples, profile),
        "shot_style": options.shot_style,
    }


def rank_variables(group: Group, options: Any) -> Variables:
    """What the prompts of the stage "rank" are given: all users of a group."""
    return {
        "query": _thing(group.query),
        "members": [_member(one, options.profile) for one in group.members],
        "examples": _examples(group.examples, options.profile),
        "shot_style": options.shot_style,
        "tail": options.tail,
    }


def profile_variables(person: Person) -> Variables:
    """What the prompt of the stage "profile" is given: a history, oldest first."""
    return {"history": [_behaviour(one) for one in person.history]}


def _examples(examples: Sequence[Example], profile: Shown) -> list[Variables]:
    return [
        {
            "query": _thing(one.query),
            "members": [_member(member, profile) for member in one.members],
            "answer": one.answer,
        }
        for one in examples
    ]


def _member(member: Member, profile: Shown) -> Variables:
    if profile == "full" and member.profile is None:
        raise ValueError(f"user {member.id} has no profile, and the question is to show one")
    told = profile != "none"
    return {
        "profile": member.profile if profile == "full" else None,
        "common": member.common if told else None,
        "average": member.average if told else None,
        "shown": [_behaviour(one) for one in member.shown],
    }


def _thing(thing: Thing) -> Variables:
    return {"title": thing.title, "author": thing.author}


def _behaviour(behaviour: Behaviour) -> Variables:
    return {
        "title": behaviour.title,
        "author": behaviour.author,
        "rating": behaviour.rating,
    }
