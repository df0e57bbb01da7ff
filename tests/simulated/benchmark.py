"""The benchmark of a simulated world: three stages with a barrier between them, and a judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness import (
    Benchmark,
    Item,
    JsonReader,
    Metric,
    Model,
    Parsed,
    Reply,
    Score,
    Select,
    Selected,
    Stage,
    hookimpl,
)
from harness.contracts.identity import Identity
from harness.contracts.model import ModelSettings, Request
from harness.contracts.records import Done
from harness.contracts.stage import Calls


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parts: int = 1


class Person(Item, frozen=True, kw_only=True):
    parts: int


class Word(Item, frozen=True, kw_only=True):
    shape: str


class Fit(Item, frozen=True, kw_only=True):
    kinds: str
    words: tuple[str, ...]


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: tuple[str, ...]


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str


NAMED, KIND = JsonReader(type=Named), JsonReader(type=Kind)


def load(dataset: Any, options: Options) -> list[str]:
    return sorted(dataset.choose(row["user"] for _, row in dataset.table().rows()))


def people(upstreams: Any, data: list[str], options: Options) -> Iterator[Person]:
    for number, user in enumerate(data):
        yield Person(id=user, user=user, parts=1 + number % options.parts)


async def name(item: Person, desk: Any) -> Any:
    """The words that the answers to all questions about a person name."""
    words: list[str] = []
    for part in range(item.parts):
        given = {"person": item.id, "part": part}
        answer = await desk.ask("candidate", "name", given, read=NAMED, tries=2)
        if not isinstance(answer, Parsed):
            return answer
        words += answer.value.words
    return tuple(dict.fromkeys(words))


def words(upstreams: Mapping[str, Any], data: Any, options: Options) -> Iterator[Word]:
    """Each word that was named: known only when everybody was asked."""
    named = {word for _, value in upstreams["name"].values() for word in value}
    for word in sorted(named):
        yield Word(id=word, user=word, shape=shape(word))


def shape(word: str) -> str:
    """What a word has in common with others, about which the same is asked."""
    return f"shape {len(word)}{word[-1]}"


async def kind(item: Word, desk: Any) -> Any:
    """Words of the same shape ask the same at once, and those of the same kind later.

    They share a row of the memo.
    """
    said: list[str] = []
    for question in (item.shape, "a {0}, small or large"):
        given = {"shape": question.format(*said)}
        answer = await desk.ask("referee", "kind", given, read=KIND)
        if not isinstance(answer, Parsed):
            return answer
        said.append(answer.value.kind)
    return desk.memo("kinds").keep({item.shape: " ".join(said)})[item.shape]


def fits(upstreams: Mapping[str, Any], data: Any, options: Options) -> Iterator[Fit]:
    kinds = {item.id: value for item, value in upstreams["kind"].values()}
    for person, named in upstreams["name"].values():
        known = sorted({kinds[word] for word in named if word in kinds})
        yield Fit(id=f"fit {person.id}", user=person.user, kinds=" and ".join(known), words=named)


async def fit(item: Fit, desk: Any) -> Any:
    verdict = await desk.judge(Select(prompt="fit", subject=item.kinds, options=item.words))
    if not isinstance(verdict, Selected):
        return verdict
    return tuple(item.words[place] for place in verdict.chosen)


def score(records: Mapping[str, Any], options: Any) -> Iterator[Score[Any]]:
    for stage in ("name", "fit"):
        for record in records[stage]:
            if not isinstance(record.outcome, Done):
                missing = {"kept": f"{stage}/{record.outcome.cause}"}
                yield Score(id=record.id, user=record.user, missing=missing)
            elif stage == "fit":
                kept = float(len(record.outcome.value))
                yield Score(id=record.id, user=record.user, values={"kept": kept})


BENCHMARK = Benchmark(
    name="simulated",
    version=1,
    options=Options,
    load=load,
    score=score,
    metrics={"kept": Metric(description="words that fit")},
    stages=(
        Stage("name", item=Person, value=tuple[str, ...], items=people, work=name,
              roles=("candidate",), options=("parts",),
              calls=lambda item, options: Calls(least=1, most=item.parts)),
        Stage("kind", item=Word, value=str, items=words, work=kind, roles=("referee",),
              after=("name",), calls=Calls(least=1, most=2)),
        Stage("fit", item=Fit, value=tuple[str, ...], items=fits, work=fit, judges=("judge",),
              after=("name", "kind"), prompts=("fit",)),
    ),
)  # fmt: skip


server: Any = None
"""The server of the world that is being simulated."""


class Asked(Model):
    """A model whose attempts the world's server answers: `simulated:model=NAME,scope=run`."""

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.args["model"]
        scope: Any = settings.args.get("scope", "everywhere")
        self.identity = Identity(kind="simulated", name=self.name, scope=scope)
        self.concurrency = settings.concurrency or int(settings.args.get("concurrency", "4"))

    async def ask(self, request: Request) -> Reply:
        return await server.ask(self.identity.name, self.concurrency, request)


def wired(settings: ModelSettings) -> Model:
    """The real client, whose connections end in the world's server."""
    from harness_models.openai import OpenAIModel
    from harness_models.openai_args import read_each

    (args,) = read_each(settings)
    return OpenAIModel(args, settings, socket=Path("world"))


@hookimpl
def register_models(register: Any) -> None:
    register("simulated", Asked)
    register("wired", wired)


@hookimpl
def register_benchmarks(register: Any) -> None:
    register("simulated", lambda: BENCHMARK)
