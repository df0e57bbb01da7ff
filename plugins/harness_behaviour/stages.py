"""The stage: the candidate ranks ten of fifty items for a group of users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness import Failure, Parsed, Stage
from harness_behaviour.parsing import RankingReader
from harness_behaviour.records import Prompt, Ranking

if TYPE_CHECKING:
    from harness import Desk, Records


def prompts(
    _upstreams: Mapping[str, Records[Any, Any]], data: Sequence[Prompt], _options: Any
) -> Iterator[Prompt]:
    """One item per prompt of the task."""
    return iter(data)


async def recommend(item: Prompt, desk: Desk) -> Ranking | Failure:
    """The places of the ten candidates that the model ranks."""
    variables = {
        "domain": desk.options.domain,
        "setting": item.setting,
        "proxy": item.proxy,
        "group": list(item.group),
        "history": list(item.history),
        "candidates": list(item.candidates),
    }
    read = RankingReader(candidates=item.candidates, similarity=desk.options.similarity)
    answer = await desk.ask("candidate", "recommend", variables, read=read)
    return answer.value if isinstance(answer, Parsed) else answer


RECOMMEND = Stage(
    "recommend",
    item=Prompt,
    value=Ranking,
    items=prompts,
    work=recommend,
    roles=("candidate",),
    options=("domain", "similarity"),
    version=2,
)

STAGES = (RECOMMEND,)
