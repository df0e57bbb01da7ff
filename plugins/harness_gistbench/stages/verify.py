"""Stage 2: the judge says which of the cited objects are evidence of an interest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness import Calls, Failure, Select, Selected, Stage
from harness_gistbench.interests import merged
from harness_gistbench.records import Claim, Kept, Options
from harness_gistbench.stages.prompt_text import cut, one_line

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness_gistbench.histories import Histories


def claims(
    upstreams: Mapping[str, Records[Any, Any]], _data: Histories, options: Options
) -> Iterator[Claim]:
    """Each interest with its evidence, in parts where it is much.

    An interest without any is a claim too: what comes later reads a user's interests from here.
    """
    size = options.evidence_a_question
    for user, windows in upstreams["predict"].by_user():
        for interest in merged(windows):
            starts = range(0, len(interest.evidence), size) or (0,)
            for part, start in enumerate(starts, start=1):
                yield Claim(
                    id=f"{user}/{interest.number}/{part}",
                    user=user,
                    interest=interest.name,
                    number=interest.number,
                    part=part,
                    evidence=interest.evidence[start : start + size],
                )


async def verify(item: Claim, desk: Desk) -> Kept | Failure:
    """The positions of the objects that the judge finds relevant; of none it need not be asked."""
    if not item.evidence:
        return Kept(positions=())
    limit = desk.options.text_limit
    question = Select(
        prompt="verify",
        subject=item.interest,
        options=tuple(cut(one.text, limit) for one in item.evidence),
        variables={"thing": desk.options.thing, "things": desk.options.things},
    )
    verdict = await desk.judge(question, role="judge")
    if not isinstance(verdict, Selected):
        return verdict
    return Kept(
        positions=verdict.chosen,
        cut=sum(limit is not None and len(one_line(one.text)) > limit for one in item.evidence),
        unknown=verdict.unknown,
        repeated=verdict.repeated,
    )


VERIFY = Stage(
    name="verify",
    version=1,
    item=Claim,
    value=Kept,
    items=claims,
    work=verify,
    judges=("judge",),
    options=("evidence_a_question", "text_limit", "thing", "things"),
    after=("predict",),
    calls=Calls(least=0, most=1),
)
