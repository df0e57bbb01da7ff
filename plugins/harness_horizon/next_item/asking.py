"""The stage: a recommender is asked for what follows, and the rank of the target is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from harness import Failure, JsonReader, Parsed, Stage
from harness.base.errors import UsageError
from harness_horizon.next_item.cases import Case, ItemData, Options, Ranked
from harness_horizon.ranking import rank_in

if TYPE_CHECKING:
    from harness import Desk
    from harness.contracts.identity import Identity

BEST = 100
ASKED = ("recommender", "baseline")
"""The kinds of model that rank item numbers."""


class Answer(msgspec.Struct, frozen=True):
    """A ranking as it is answered: items and their scores, the best first."""

    items: tuple[int, ...]
    scores: tuple[float, ...]


def checked(answer: Answer) -> Answer:
    """The answer; ValueError if it has no score for each item, or an item twice."""
    if len(answer.items) != len(answer.scores):
        raise ValueError("there must be a score for each item")
    if len(set(answer.items)) != len(answer.items):
        raise ValueError("no item may be there twice")
    return answer


read_ranking = JsonReader(type=Answer, convert=checked)


async def ask(case: Case, desk: Desk) -> Ranked | Failure:
    """The expected rank of the target in the candidate's answer."""
    variables = {"history": numbers(case.history), "among": numbers(case.among)}
    answer = await desk.ask("candidate", "next_item", variables, read=read_ranking)
    if not isinstance(answer, Parsed):
        return answer
    found = answer.value
    return Ranked(rank_in(case.target, found.items, found.scores), len(found.items))


def numbers(items: tuple[int, ...]) -> str:
    """Item numbers as a question has them."""
    return " ".join(map(str, items))


NEXT_ITEM = Stage(
    name="next_item",
    item=Case,
    value=Ranked,
    items=lambda _upstreams, data, options: data.cases(options),
    work=ask,
    roles=("candidate",),
    options=("prefix", "length", "negatives"),
    role_hint="train one with `harness horizon train`, then --model recommender:FOLDER",
)


def suits(data: ItemData, _options: Options, identities: Mapping[str, Identity]) -> None:
    """Raise UsageError if the candidate ranks no item numbers, or was trained on another split."""
    candidate = identities["candidate"]
    if candidate.recorded:
        return
    if candidate.kind not in ASKED:
        raise UsageError(
            "the questions of this task are item numbers, which this model cannot rank",
            found=candidate.label,
            expected="--model recommender:FOLDER, baseline or replay",
            hint="train one: harness horizon train --model sasrec --data DATA --out FOLDER; for "
            "language models there is --tasks horizon_text",
        )
    split = candidate.details.get("split")
    if candidate.kind == "recommender" and split != data.split:
        raise UsageError(
            "this recommender was trained on another split, so its items and users are others",
            found=f"split {str(split)[:12]}",
            expected=f"split {data.split[:12]}, that of the data",
            hint="name the data that it was trained on with --data, or train it on this data",
        )


def repeat(variables: Mapping[str, Any], _rng: Random) -> str:
    """The baseline: the items of the history again, the latest first."""
    history = list(dict.fromkeys(map(int, reversed(variables["history"].split()))))[:BEST]
    if among := variables["among"].split():
        history = [item for item in history if str(item) in among]
    scores = [1 / place for place in range(1, len(history) + 1)]
    return msgspec.json.encode(Answer(tuple(history), tuple(scores))).decode()
