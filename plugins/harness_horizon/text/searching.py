"""The stages: the candidate writes queries, and a catalogue of titles is searched with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

import msgspec

from harness import Failure, JsonReader, Parsed, Stage, Unreadable
from harness.base.errors import UsageError
from harness_horizon.catalogue.merging import RELEVANT
from harness_horizon.ranking import CUTS
from harness_horizon.text.histories import MANY, Asked, Case, Options, TitleData, questions
from harness_horizon.text.replies import QueriesReader

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness.contracts.identity import Identity

FIELDS = {"next": "queries", "long": "item_descriptions_timewise"}
"""What the JSON of a reply calls its texts."""

PROMPTS = ("next", "next_code", "long", "long_code", "one")


class Queries(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value of the stage `generate`: texts to search with; `cut` if the reply was cut."""

    texts: tuple[str, ...]
    cut: bool = False


class Search(Asked, frozen=True, kw_only=True):
    """Item of the stage `retrieve`: the queries of a case, and the titles that are to be found."""

    queries: Queries
    truths: tuple[str, ...]


class Answer(msgspec.Struct, frozen=True):
    """The catalogue's answer: of each title its row and cosine, the nearest truth and its cosine.

    `truths` are the rows of the true titles; `cosines` has a row for each query. `also` has the
    further truths that a title is near to: its place in `found`, the truth and its cosine.
    """

    found: tuple[tuple[int, float, int, float], ...]
    truths: tuple[int, ...]
    cosines: tuple[tuple[float, ...], ...]
    also: tuple[tuple[int, int, float], ...] = ()


class Hits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value of the stage `retrieve`: the places of an answer that are relevant, and its cosines.

    `exact` and `near` are pairs of a place among the `listed` titles and the number of a truth, the
    nearest one in `near`; `also` has pairs with further truths that a title is near to. `mean` is
    the mean cosine of queries and truths, and `best` that of each truth's nearest query.
    """

    listed: int
    exact: tuple[tuple[int, int], ...]
    near: tuple[tuple[int, int], ...]
    mean: float
    best: float
    also: tuple[tuple[int, int], ...] = ()


def prompt_of(options: Any) -> str:
    """The prompt that options choose."""
    return {"paper": options.ask, "code": f"{options.ask}_code", "one": "one"}[options.prompt]


async def generate(case: Case, desk: Desk) -> Queries | Failure:
    """The candidate's queries; a cut reply gives those that are whole."""
    options = desk.options
    read = QueriesReader(field=FIELDS[options.ask], most=1 if options.prompt == "one" else MANY)
    variables = {"history": list(case.history)}
    answer = await desk.ask("candidate", prompt_of(options), variables, read=read, truncated="read")
    return Queries(answer.value, answer.truncated) if isinstance(answer, Parsed) else answer


def searches(
    upstreams: Mapping[str, Records[Any, Any]], _data: Any, _options: Any
) -> Iterator[Search]:
    """An item for each case that has queries."""
    for case, queries in upstreams["generate"].values():
        yield Search(id=case.id, user=case.user, shown=case.shown, truths=case.truths,
                     queries=queries)  # fmt: skip


read_answer = JsonReader(type=Answer)


async def retrieve(item: Search, desk: Desk) -> Hits | Failure:
    """Where the catalogue's answer has titles that are relevant."""
    request = {"queries": item.queries.texts, "truths": item.truths, "k": CUTS[-1],
               "merge": desk.options.merge}  # fmt: skip
    variables = {"request": json.dumps(request, ensure_ascii=False)}
    answer = await desk.ask("retriever", "retrieve", variables, read=read_answer)
    if not isinstance(answer, Parsed):
        return answer
    found = answer.value
    sizes = {len(row) for row in found.cosines} | {len(found.truths)}
    if len(found.cosines) != len(item.queries.texts) or sizes != {len(item.truths)}:
        return Unreadable("schema", "there must be a cosine for each query and truth")
    places, truths = range(len(found.found)), range(len(item.truths))
    if not all(one[2] in truths for one in found.found) or not all(
        place in places and truth in truths for place, truth, _ in found.also
    ):
        return Unreadable("schema", "a title is near to a truth that was not asked for")
    return hits_of(found)


def hits_of(answer: Answer) -> Hits:
    """The relevant places of an answer; the title of a truth is also near to it."""
    numbers = {row: number for number, row in enumerate(answer.truths)}
    exact, near = [], []
    for place, (row, _, nearest, cosine) in enumerate(answer.found):
        if row in numbers:
            exact.append((place, numbers[row]))
            near.append((place, numbers[row]))
        elif cosine >= RELEVANT:
            near.append((place, nearest))
    mean = fmean(map(fmean, answer.cosines))
    best = fmean(map(max, zip(*answer.cosines, strict=True)))
    also = tuple((place, number) for place, number, cosine in answer.also if cosine >= RELEVANT)
    return Hits(len(answer.found), tuple(exact), tuple(near), mean, best, also)


GENERATE = Stage(
    "generate", item=Case, value=Queries, items=questions, work=generate, roles=("candidate",),
    prompts=PROMPTS, asks=lambda options: (prompt_of(options),),
    options=("ask", "prompt", "history_characters", "first_k"),
)  # fmt: skip
RETRIEVE = Stage(
    "retrieve", item=Search, value=Hits, items=searches, work=retrieve, roles=("retriever",),
    scored=False, options=("merge",), after=("generate",),
    role_hint="--role retriever=catalogue:INDEX, which `harness horizon index` builds",
)  # fmt: skip


def suits(data: TitleData, _options: Options, identities: Mapping[str, Identity]) -> None:
    """Raise UsageError if the retriever is no catalogue, or one of other items than the data's."""
    retriever = identities["retriever"]
    items = str(retriever.details.get("items"))
    if retriever.recorded:
        return
    if retriever.kind != "catalogue" or items != data.items:
        raise UsageError(
            "the retriever is no catalogue of the items of the data",
            where="role retriever",
            found=f"{retriever.label}, items {items[:12]}",
            expected=f"--role retriever=catalogue:INDEX, an index of items {data.items[:12]}",
            hint=f"harness horizon index --data {data.folder} --embedder "
            "sentence-transformers:hyp1231/blair-roberta-base,pooling=cls --out INDEX",
        )


def of_the_history(variables: Mapping[str, Any], _rng: Random) -> str:
    """The baseline: the titles of the history, the latest first, then the beginnings of these."""
    titles = variables["history"][::-1]
    beginnings = (" ".join(title.split()[:2]) for title in titles)
    texts = list(dict.fromkeys([*titles, *beginnings]))[:MANY]
    return json.dumps({"queries": texts}, ensure_ascii=False)
