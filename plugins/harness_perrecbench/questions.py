"""The variables of the prompts, as plain dicts and lists, and the prompt of each stage.

Every prompt gets the `query` and its users: `member`, or `members` in the order of the prompt. A
member has `profile`, `common` and `average`, each None if the prompt leaves it out, and the
behaviours `shown`. `examples` are solved questions of the same form, each with its `answer`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec.structs import asdict

from harness.base.errors import UsageError
from harness_perrecbench.records import Group, Member, Person, Single

Variables: TypeAlias = dict[str, Any]
Shown: TypeAlias = Literal["full", "no_text", "none"]

RATE_OPTIONS = ("profile", "thought", "wording", "system", "shot_style")
COMPARE_OPTIONS = ("profile", "thought", "shot_style")
RANK_OPTIONS = ("profile", "thought", "tail", "shot_style")
"""The options that change the questions of each stage."""

RATE_PROMPTS = ("rate", "rate_thought", "rate_b", "rate_c", "rate_d")
COMPARE_PROMPTS = ("compare", "compare_thought")
RANK_PROMPTS = ("rank", "rank_thought")
"""The possible prompts of each stage."""


def prompt_of(stage: str, options: Any) -> str:
    """The name of a stage's prompt under these options."""
    if stage == "profile":
        return stage
    if options.thought:
        return f"{stage}_thought"
    if stage == "rate" and options.wording != "a":
        return f"rate_{options.wording}"
    return stage


def check_prompt_exists(options: Any) -> None:
    """Raise UsageError if no prompt exists for these options."""
    kind, other, without = "", f"wording: {options.wording}", "wording: a"
    if options.thought:
        kind, other, without = "chain-of-thought ", "thought: true", "thought: false"
    for name, only in {"wording": "a", "tail": "now", "system": "paper"}.items():
        clashes = options.thought or (name == "system" and options.wording != "a")
        if clashes and (found := getattr(options, name)) != only:
            raise UsageError(
                f"no {kind}prompt exists for this {name}",
                where=f"options: {name}",
                found=f"{name}: {found} with {other}",
                expected=f"{name}: {only}, or {without}",
            )


def rate_variables(single: Single, options: Any) -> Variables:
    """The variables of the stage "rate": one user and one thing."""
    member = _member(single.member, options.profile)
    asked = _asked(single, options, options.profile)
    return {**asked, "member": member, "system": options.system}


def compare_variables(group: Group, first: int, second: int, options: Any) -> Variables:
    """The variables of the stage "compare"; `first`, a user's number from 1, is user A."""
    # The authors' examples of pairs never have a profile, even if the question has.
    profile: Shown = options.profile if options.shot_style == "corrected" else "none"
    pair = (group.members[first - 1], group.members[second - 1])
    members = [_member(one, options.profile) for one in pair]
    return {**_asked(group, options, profile), "members": members}


def rank_variables(group: Group, options: Any) -> Variables:
    """The variables of the stage "rank": all users of a group."""
    members = [_member(one, options.profile) for one in group.members]
    asked = _asked(group, options, options.profile)
    return {**asked, "members": members, "tail": options.tail}


def profile_variables(person: Person) -> Variables:
    """The variables of the stage "profile": a history, oldest first."""
    return {"history": [asdict(one) for one in person.history]}


def _asked(item: Single | Group, options: Any, profile: Shown) -> Variables:
    """The thing in question, and the examples with their users' `profile`."""
    examples = [
        {
            "query": asdict(one.query),
            "members": [_member(member, profile) for member in one.members],
            "answer": one.answer,
        }
        for one in item.examples
    ]
    return {"query": asdict(item.query), "examples": examples, "shot_style": options.shot_style}


def _member(member: Member, profile: Shown) -> Variables:
    if profile == "full" and member.profile is None:
        raise ValueError(f"user {member.id} has no profile, and the question needs one")
    with_ratings = profile != "none"
    return {
        "profile": member.profile if profile == "full" else None,
        "common": member.common if with_ratings else None,
        "average": member.average if with_ratings else None,
        "shown": [asdict(one) for one in member.shown],
    }
