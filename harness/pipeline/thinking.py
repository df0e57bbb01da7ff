"""Finds out which of a run's models think before they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from harness.base.errors import HarnessError
from harness.base.hashing import digest
from harness.calls.client import Client
from harness.calls.policy import Patience
from harness.calls.store import Store
from harness.contracts.model import Message, Model, Reply, Request, Sampling
from harness.parsing import split_reasoning
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

QUESTION = Request(
    messages=(Message("user", "What is 17 times 23? Answer with the number and nothing else."),),
    sampling=Sampling(max_tokens=2048),
    seed=0,
)
"""Simple to answer, but a model that thinks thinks about it."""

PATIENCE = Patience(attempts=1, attempt_timeout=120.0, total_timeout=120.0)
"""Without further attempts: a server in trouble is reported by the run itself."""

YES, NO = b"true", b"false"
MEMO, STAGE = "thinking", "thinking"
"""The memo table of the answers, and the name under which the questions are counted."""


async def who_thinks(
    models: Sequence[Model],
    *,
    client: Client,
    run_id: str,
    known: Mapping[str, bool | None],
    store: Path | None,
    warn: Callable[[str], None],
    ask: bool,
) -> dict[Model, bool | None]:
    """Whether each model thinks; None if that is not known.

    `known` is what earlier sessions of the run knew, by the digest of the identity's key.
    Models that nobody knows are asked one small question. The answer is kept in the store of this
    path if the identity says which weights answered: a name may mean others in the next run.
    Without `ask` they count as not thinking, so that no later session says otherwise.
    """
    found: dict[Model, bool | None] = {}
    unknown = []
    for model in models:
        key = digest(model.identity.key(run_id))
        found[model] = known[key] if key in known else model.thinks()
        if key not in known and found[model] is None and model.asked_if_thinking:
            unknown.append(model)
    if not unknown:
        return found
    keys = {
        model: digest(model.identity.key(""))
        for model in unknown
        if model.identity.scope == "everywhere"
    }
    stored = _stored(store, keys.values(), warn)
    found |= {model: stored[key] == YES for model, key in keys.items() if key in stored}
    missing = [model for model in unknown if keys.get(model) not in stored]
    if not ask:
        return found | dict.fromkeys(missing, False)
    try:
        answers = await asyncio.gather(*(_answer(model, client) for model in missing))
    finally:
        await client.close()
    answered = dict(zip(missing, answers, strict=True))
    new = {
        keys[model]: YES if yes else NO
        for model, yes in answered.items()
        if model in keys and yes is not None
    }
    _keep(store, new, warn)
    return found | answered


def said_before(folder: RunFolder, manifest: Manifest) -> dict[str, bool | None]:
    """Whether a run's models think, as its earlier sessions knew, by the digest of the identity's
    key.

    What they did not know stays unknown once the run has records: it is part of their keys.
    """
    journals = (
        folder.path / task.folder / stage.file
        for task in manifest.tasks.values()
        for stage in task.stages
    )
    recorded = any(journal.exists() for journal in journals)
    return {
        digest(entry.identity["model"]): entry.thinks
        for entry in manifest.roles.values()
        if "model" in entry.identity and (recorded or entry.thinks is not None)
    }


def shows_thinking(reply: Reply) -> bool:
    """Whether a reply to the question contains reasoning, or was cut.

    A number needs no thousand tokens: what was cut is thinking, also where no tag opens it.
    """
    _, thought = split_reasoning(reply.text)
    counted = reply.usage is not None and reply.usage.reasoning_tokens > 0
    return bool(thought or reply.reasoning or counted or reply.finish == "length")


def _stored(
    path: Path | None, keys: Iterable[str], warn: Callable[[str], None]
) -> Mapping[str, bytes]:
    """The kept answers; none if the store cannot be used, which the run itself reports."""
    with suppress(HarnessError), _opened(path, warn) as store:
        return {} if store is None else store.memo_known(MEMO, keys)
    return {}


def _keep(path: Path | None, new: Mapping[str, bytes], warn: Callable[[str], None]) -> None:
    with suppress(HarnessError), _opened(path, warn) as store:
        if store is not None:
            store.memo_keep(MEMO, new)


@contextmanager
def _opened(path: Path | None, warn: Callable[[str], None]) -> Iterator[Store | None]:
    if path is None:
        yield None
        return
    with closing(Store.open(path, warn=warn)) as store:
        yield store


async def _answer(model: Model, client: Client) -> bool | None:
    """Whether the model's reply to the question shows thinking; None without a reply."""
    try:
        answer = await client.ask(model, QUESTION, role=model.identity.label, stage=STAGE)
    except HarnessError:
        return None  # the run meets the same error, and reports it
    if answer.reply is None or answer.reply.finish == "refused":
        return None
    return shows_thinking(answer.reply)
