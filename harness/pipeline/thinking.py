"""Asks a model one small question: does it answer, and does it think before it answers?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from harness.base.errors import BudgetSpent, HarnessError, ModelError
from harness.base.hashing import digest
from harness.calls.client import Client
from harness.calls.retry import Patience
from harness.calls.store import Store
from harness.contracts.finding import Finding, bad, doubtful, good
from harness.contracts.model import CallError, Message, Model, Reply, Request, Sampling
from harness.parsing import split_reasoning
from harness.runs.journal import part_numbers
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

QUESTION = Request(
    messages=(Message("user", "What is 17 times 23? Answer with the number and nothing else."),),
    sampling=Sampling(max_tokens=2048),
    seed=0,
)
"""Simple to answer, but a model that thinks thinks about it."""

PATIENCE = Patience(attempts=1, attempt_timeout=120.0, total_timeout=120.0)
"""Without further attempts: the run itself waits for a server in trouble."""

REASONING_ONLY = "no_content"
"""The cause of failure if the tokens were enough for reasoning only."""

Thinks = dict[Model, bool | None]
"""Whether models think; None where that is not known."""

YES, NO = b"true", b"false"
MEMO = STAGE = "thinking"
"""The memo table of the answers, and the name under which the questions are counted."""


async def ask_question(model: Model, client: Client) -> tuple[list[Finding], bool | None]:
    """What the question shows: whether the model answers, and whether it thinks.

    There is no finding if the budget does not allow the question, which the run itself reports.
    """
    about, failed = "question", "a small question failed"
    try:
        asked = model.live or model
        answer = await client.ask(asked, QUESTION, role=model.identity.label, stage=STAGE)
    except BudgetSpent:
        return [], None
    except ModelError as error:
        if not isinstance(error.__cause__, CallError):
            raise
        return [bad(about, f"{failed}: {error.__cause__}", error.hint)], None
    failure, reply = answer.failure, answer.reply
    if failure is not None and failure.cause != REASONING_ONLY:
        return [doubtful(about, f"{failed}: {failure.cause}: {failure.detail}")], None
    answers = [good(about, "it answers a small question")]
    if reply is None or reply.finish == "refused":
        return answers, None
    return answers, shows_thinking(reply)


def shows_thinking(reply: Reply) -> bool:
    """Whether a reply to the question contains reasoning, or was cut.

    A number needs no thousand tokens: what was cut is thinking, also where no tag opens it.
    """
    _, thought = split_reasoning(reply.text)
    counted = reply.usage is not None and reply.usage.reasoning_tokens > 0
    return bool(thought or reply.reasoning or counted or reply.finish == "length")


def known_thinking(
    models: Sequence[Model],
    *,
    run_id: str,
    said: Mapping[str, bool | None],
    store: Path | None,
    warn: Callable[[str], None],
) -> Thinks:
    """Whether models think, None if nobody can know; without the models that the question is for.

    `said` is what earlier sessions of the run knew, by the digest of the identity's key, and
    `store` has the kept answers.
    """
    known: Thinks = {}
    memos = {}
    for model in models:
        key = digest(model.identity.key(run_id))
        thinks = said[key] if key in said else model.thinks()
        if key in said or thinks is not None or not model.asked_if_thinking:
            known[model] = thinks
        elif (memo := _memo_key(model)) is not None:
            memos[model] = memo
    if store is None or not memos:
        return known
    # The run itself reports a store that cannot be used.
    with suppress(HarnessError), closing(Store.open(store, warn=warn)) as opened:
        kept = opened.memo_known(MEMO, memos.values())
        known |= {model: kept[memo] == YES for model, memo in memos.items() if memo in kept}
    return known


def keep_thinking(answered: Thinks, store: Path | None, warn: Callable[[str], None]) -> None:
    """Keep for other runs what the question showed."""
    new = {
        memo: YES if yes else NO
        for model, yes in answered.items()
        if yes is not None and (memo := _memo_key(model)) is not None
    }
    if store is not None and new:
        with suppress(HarnessError), closing(Store.open(store, warn=warn)) as opened:
            opened.memo_keep(MEMO, new)


def _memo_key(model: Model) -> str | None:
    """The key of the kept answer; None if the name may mean other weights in another run."""
    return digest(model.identity.key("")) if model.identity.scope == "everywhere" else None


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
    recorded = any(part_numbers(journal) for journal in journals)
    return {
        digest(entry.identity["model"]): entry.thinks
        for entry in manifest.roles.values()
        if "model" in entry.identity and (recorded or entry.thinks is not None)
    }
