"""The stages: the candidate writes queries, and a catalogue of titles is searched with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from harness import Failure, JsonReader, Parsed, Stage, Unreadable
from harness.base.errors import UsageError
from harness_horizon.ranking import CUTS
from harness_horizon.text.histories import MANY, Asked, Case, Options, TitleData, questions
from harness_horizon.text.replies import QueriesReader

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness.contracts.identity import Identity

FIELDS = {"next": "queries", "long": "item_descriptions_timewise"}
"""What the JSON of a reply calls its texts."""

PROMPTS = ("next", "next_code", "long", "long_code", "one")

RELEVANT = 0.9
"""The cosine from which on a title counts as relevant in the columns of cosine."""

SEARCHER, OF_TESTS = "catalogue", "scripted"
"""The kind of model that searches a catalogue, and that of tests."""


class Queries(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value of the stage `generate`: texts to search with; `cut` if the reply was cut."""

    texts: tuple[str, ...]
    cut: bool = False


class Search(Asked, frozen=True, kw_only=True):
    """Item of the stage `retrieve`: the queries of a case, and the titles that are to be found."""

    queries: tuple[str, ...]
    truths: tuple[str, ...]
    cut: bool


class Answer(msgspec.Struct, frozen=True):
    """The catalogue's answer, as the README of the plugin describes it."""

    found: tuple[tuple[int, float, int, float], ...]
    truths: tuple[int, ...]
    cosines: tuple[tuple[float, ...], ...]


class Hits(msgspec.Struct, frozen=True):
    """Value of the stage `retrieve`: the places of an answer that are relevant, and its cosines.

    `exact` and `near` are pairs of a place among the `listed` titles and the number of a truth: the
    title itself, and the nearest truth if its cosine is at least RELEVANT. `mean` is the mean
    cosine of all queries and truths, and `best` that of each truth's nearest query.
    """

    listed: int
    exact: tuple[tuple[int, int], ...]
    near: tuple[tuple[int, int], ...]
    mean: float
    best: float


def prompt_of(options: Any) -> str:
    """The prompt that options choose."""
    if options.prompt == "one":
        return "one"
    return f"{options.ask}_code" if options.prompt == "code" else str(options.ask)


async def generate(case: Case, desk: Desk) -> Queries | Failure:
    """The candidate's queries; a cut reply gives those that are whole."""
    read = QueriesReader(
        field=FIELDS[desk.options.ask], most=1 if desk.options.prompt == "one" else MANY
    )
    answer = await desk.ask(
        "candidate",
        prompt_of(desk.options),
        {"history": list(case.history)},
        read=read,
        truncated="read",
    )
    return Queries(answer.value, answer.truncated) if isinstance(answer, Parsed) else answer


def searches(
    upstreams: Mapping[str, Records[Any, Any]], _data: Any, _options: Any
) -> Iterator[Search]:
    """An item for each case that has queries."""
    for case, queries in upstreams["generate"].values():
        yield Search(
            id=case.id,
            user=case.user,
            shown=case.shown,
            queries=queries.texts,
            truths=case.truths,
            cut=queries.cut,
        )


read_answer = JsonReader(type=Answer)


async def retrieve(item: Search, desk: Desk) -> Hits | Failure:
    """Where the catalogue's answer has titles that are relevant."""
    request = {"queries": item.queries, "truths": item.truths, "k": CUTS[-1]}
    text = json.dumps({**request, "merge": desk.options.merge}, ensure_ascii=False)
    answer = await desk.ask("retriever", "retrieve", {"request": text}, read=read_answer)
    if not isinstance(answer, Parsed):
        return answer
    found = answer.value
    sizes = {len(row) for row in found.cosines} | {len(found.truths)}
    if len(found.cosines) != len(item.queries) or sizes != {len(item.truths)}:
        return Unreadable("schema", "there must be a cosine for each query and truth")
    return hits_of(found)


def hits_of(found: Answer) -> Hits:
    """The relevant places of an answer; the title of a truth is also near to it."""
    numbers = {row: number for number, row in enumerate(found.truths)}
    exact, near = [], []
    for place, (row, _, nearest, cosine) in enumerate(found.found):
        if row in numbers:
            exact.append((place, numbers[row]))
            near.append((place, numbers[row]))
        elif cosine >= RELEVANT:
            near.append((place, nearest))
    best = [max(column) for column in zip(*found.cosines, strict=True)]
    every = [cosine for row in found.cosines for cosine in row]
    return Hits(
        len(found.found), tuple(exact), tuple(near), sum(every) / len(every), sum(best) / len(best)
    )


GENERATE = Stage(
    name="generate",
    item=Case,
    value=Queries,
    items=questions,
    work=generate,
    roles=("candidate",),
    prompts=PROMPTS,
    asks=lambda options: (prompt_of(options),),
    options=("ask", "prompt", "history_characters", "first_k"),
)

RETRIEVE = Stage(
    name="retrieve",
    item=Search,
    value=Hits,
    items=searches,
    work=retrieve,
    roles=("retriever",),
    options=("merge",),
    after=("generate",),
    role_hint="--role retriever=catalogue:INDEX, which `harness horizon index` builds",
)


def suits(data: TitleData, _options: Options, identities: Mapping[str, Identity]) -> None:
    """Raise UsageError if the retriever is no catalogue, or one of other items than the data's."""
    retriever = identities["retriever"]
    if retriever.recorded or retriever.kind == OF_TESTS:
        return
    if retriever.kind != SEARCHER:
        raise UsageError(
            "the retriever searches a catalogue of titles, which this model does not do",
            where="role retriever",
            found=retriever.label,
            expected="--role retriever=catalogue:INDEX",
        )
    items = str(retriever.details.get("items"))
    if items != data.items:
        raise UsageError(
            "this catalogue is not that of the data, so what is to be found may not be in it",
            where="role retriever",
            found=f"{retriever.label}, of items {items[:12]}",
            expected=f"an index of items {data.items[:12]}",
            hint=f"harness horizon index --data {data.folder} --embedder "
            "sentence-transformers:hyp1231/blair-roberta-base,pooling=cls --out INDEX, then "
            "--role retriever=catalogue:INDEX",
        )


def of_the_history(variables: Mapping[str, Any], _rng: Random) -> str:
    """The baseline: the titles of the history, the latest first, then the beginnings of these."""
    titles = list(dict.fromkeys(reversed(variables["history"])))
    beginnings = [" ".join(title.split()[:2]) for title in titles]
    texts = list(dict.fromkeys([*titles, *beginnings]))[:MANY]
    return json.dumps({"queries": texts}, ensure_ascii=False)
