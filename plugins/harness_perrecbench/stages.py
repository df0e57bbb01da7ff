"""The stages: missing profiles, then ratings, comparisons or orders of users."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from harness import CallFailed, Calls, Failure, Parsed, Stage, TextReader, Unreadable
from harness_perrecbench import questions, ranking
from harness_perrecbench.data.members import most_common
from harness_perrecbench.parsing import SideReader, rating_reader, read_order
from harness_perrecbench.records import (
    Compared,
    Comparison,
    Example,
    Group,
    Member,
    Options,
    Person,
    Ranked,
    Rated,
    Side,
    Single,
)

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness.parsing import Reader

    Upstreams = Mapping[str, Records[Any, Any]]

T = TypeVar("T")
Asked = TypeVar("Asked", Single, Group)


class CallStopped(Exception):
    """A call failed during a ranking; the argument is the failure."""


async def write_profile(item: Person, desk: Desk) -> str | Failure:
    """The profiler's text about a person."""
    variables, read = questions.profile_variables(item), TextReader[str]()
    answer = await desk.ask("profiler", "profile", variables, read=read, tries=desk.options.tries)
    return answer.value if isinstance(answer, Parsed) else answer


async def rate(item: Single, desk: Desk) -> Rated | Failure:
    """The median of the ratings that the candidate expects of a user."""
    from statistics import median

    if lacking := without_profile([item.member], item.examples):
        return lacking
    found = await answers(
        desk,
        questions.prompt_of("rate", desk.options),
        questions.rate_variables(item, desk.options),
        read=rating_reader(thought=desk.options.thought),
    )
    if isinstance(found, Unreadable | CallFailed):
        return found
    return Rated(rating=median(found), answers=tuple(found))


async def rank(item: Group, desk: Desk) -> Ranked | Failure:
    """The candidate's most frequent order of a group's users."""
    if lacking := without_profile(item.members, item.examples):
        return lacking
    options = desk.options
    found = await answers(
        desk,
        questions.prompt_of("rank", options),
        questions.rank_variables(item, options),
        read=read_order(
            len(item.members), options.repeated_users == "passed", thought=options.thought
        ),
    )
    if isinstance(found, Unreadable | CallFailed):
        return found
    return Ranked(order=most_common(found), answers=tuple(found))


async def compare(item: Group, desk: Desk) -> Compared | Failure:
    """The order of a group's users by comparisons of pairs, each asked in both orders.

    If no comparison was read in both orders, the group is unreadable. A failed call ends the group.
    """
    if lacking := without_profile(item.members, item.examples):
        return lacking
    prompt = questions.prompt_of("compare", desk.options)
    read = SideReader(thought=desk.options.thought)
    unread: list[Unreadable] = []

    async def preferred(user_a: int, user_b: int) -> Side | None:
        variables = questions.compare_variables(item, user_a, user_b, desk.options)
        found = await answers(desk, prompt, variables, read=read)
        if isinstance(found, CallFailed):
            raise CallStopped(found)
        if isinstance(found, Unreadable):
            unread.append(found)
            return None
        return most_common(found)

    async def of_two(first: int, second: int) -> Comparison:
        forth = await preferred(first, second)
        back = await preferred(second, first)
        return Comparison(first=first, second=second, forth=forth, back=back)

    by_rule = ranking.RULES[desk.options.comparing]
    try:
        compared = await by_rule(len(item.members), of_two, desk.random)
    except CallStopped as stopped:
        failure: CallFailed = stopped.args[0]
        return failure
    is_read = any(len(one.sides) == 2 for one in compared.comparisons)
    return compared if is_read else unread[-1]


async def answers(
    desk: Desk, prompt: str, variables: Mapping[str, Any], *, read: Reader[T]
) -> list[T] | Unreadable | CallFailed:
    """The readable answers to a question that is asked `samples` times, or the last failure.

    A failed call replaces all answers, so that a resumed run asks again for every sample.
    """
    found: list[T] = []
    failure = Unreadable("not_asked")
    for sample in range(desk.options.samples):
        answer = await desk.ask(
            "candidate", prompt, variables, read=read, tries=desk.options.tries, repeat=sample
        )
        if isinstance(answer, CallFailed):
            return answer
        if isinstance(answer, Parsed):
            found.append(answer.value)
        else:
            failure = answer
    return found or failure


def without_profile(
    members: Iterable[Member], examples: Iterable[Example] = ()
) -> Unreadable | None:
    """The failure of a question about a user without a profile; None if all have one."""
    for member in itertools.chain(members, *(one.members for one in examples)):
        if member.profiled is not None and member.profile is None:
            return Unreadable("no_profile", f"there is no profile of {member.profiled}")
    return None


def calls_to_compare(item: Group, options: Any) -> Calls:
    """The number of calls: two per pair, for all pairs or for those that a sort compares."""
    members = len(item.members)
    every = members * (members - 1)
    least = every if options.comparing == "all_pairs" else 2 * (members - 1)
    return Calls(least=least, most=every, times="samples")


def _with_profiles(items: Iterable[Asked], upstreams: Upstreams) -> Iterator[Asked]:
    """The items with the profiles that were written, also of the users in examples."""
    made = upstreams.get("profile")
    profiles = {person.id: text for person, text in made.values()} if made is not None else {}

    def profiled(member: Member) -> Member:
        if member.profiled is None:
            return member
        return replace(member, profile=profiles.get(member.profiled))

    for item in items:
        examples = tuple(
            replace(one, members=tuple(map(profiled, one.members))) for one in item.examples
        )
        if isinstance(item, Single):
            yield replace(item, member=profiled(item.member), examples=examples)
        else:
            yield replace(item, members=tuple(map(profiled, item.members)), examples=examples)


PROFILE = Stage(
    name="profile",
    item=Person,
    value=str,
    items=lambda _, data, __: data.people,
    work=write_profile,
    roles=("profiler",),
    scored=False,
    options=("tries",),
    when=lambda data, _: bool(data.people),
    role_hint="some users have no profile that the task may show: `--role profiler=SPEC` lets a "
    "model write the profiles, `--role profiler=baseline` uses simple rules, and "
    "`--set profile=no_text` leaves the profiles out",
)


STAGE_OF = {"pointwise": "rate", "rating": "rate", "pairwise": "compare", "listwise": "rank"}
"""Option `ask` → the stage that asks."""


def _question_stage(name: str, *, options: tuple[str, ...], **parts: Any) -> Stage:
    """A stage that asks the candidate, if the task's option `ask` needs it."""

    def asks(options: Options) -> bool:
        return STAGE_OF[options.ask] == name

    return Stage(
        name,
        version=2,
        roles=("candidate",),
        asks=lambda options: (questions.prompt_of(name, options),) if asks(options) else (),
        options=("tries", "samples", *options),
        after=("profile",),
        when=lambda _, options: asks(options),
        **parts,
    )


RATE = _question_stage(
    "rate",
    item=Single,
    value=Rated,
    items=lambda upstreams, data, _: _with_profiles(data.singles, upstreams),
    work=rate,
    prompts=questions.RATE_PROMPTS,
    options=questions.RATE_OPTIONS,
    calls=Calls(times="samples"),
)

COMPARE = _question_stage(
    "compare",
    item=Group,
    value=Compared,
    items=lambda upstreams, data, _: _with_profiles(data.groups, upstreams),
    work=compare,
    prompts=questions.COMPARE_PROMPTS,
    options=("comparing", *questions.COMPARE_OPTIONS),
    calls=calls_to_compare,
    sequential=True,
)

RANK = _question_stage(
    "rank",
    item=Group,
    value=Ranked,
    items=lambda upstreams, data, _: _with_profiles(data.groups, upstreams),
    work=rank,
    prompts=questions.RANK_PROMPTS,
    options=("repeated_users", *questions.RANK_OPTIONS),
    calls=Calls(times="samples"),
)

STAGES = (PROFILE, RATE, COMPARE, RANK)
