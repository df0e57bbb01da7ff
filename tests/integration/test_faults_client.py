"""Every fault a server can show, at the client: real HTTP on loopback, real store, no fakes."""

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.requests import make_request
from harness_models.openai import make

from harness.base.errors import BudgetSpent, ModelError
from harness.calls.budget import Meter
from harness.calls.client import Client
from harness.calls.own_answers import Answer
from harness.calls.policy import Budget, Patience
from harness.calls.store import Store
from harness.contracts.model import ModelSettings
from harness.testing import FaultyServer
from harness.testing.faults import (
    BROKEN_JSON,
    FILTERED,
    NO_CHOICES,
    NULL_CONTENT,
    OTHER_TYPE,
    RESET,
    RESET_IN_BODY,
    SILENCE,
    TRUNCATED,
    once_each,
    share,
    status,
    where,
)

QUICK = Patience(attempts=4, attempt_timeout=60.0, first_delay=0.01, longest_delay=0.05)
WITH_SILENCE = msgspec.structs.replace(QUICK, attempt_timeout=2.0)


def said(body: dict[str, Any]) -> str:
    return "answer to " + body["messages"][-1]["content"]


@pytest.fixture
def server():
    with FaultyServer(said) as server:
        yield server


async def ask_all(
    server: FaultyServer,
    texts: Sequence[str],
    *,
    store: Store | None = None,
    patience: Patience = QUICK,
    look: Callable[[Client], None] = lambda _: None,
    run_id: str = "r1",
    budget: Budget | None = None,
    **args: str,
) -> list[Answer]:
    """The answers to all texts, asked at once through a client of its own."""
    model = make(
        ModelSettings(
            args={"model": "m", "base_url": server.url, **args},
            attempt_timeout=patience.attempt_timeout,
        )
    )
    client = Client(store=store, run_id=run_id, patience=patience, meter=Meter(budget or Budget()))
    try:
        return await asyncio.gather(
            *[client.ask(model, make_request(text), role="candidate", stage="s") for text in texts]
        )
    finally:
        look(client)
        await client.close()


def texts_of(answers: list[Answer]) -> list[str | None]:
    return [answer.reply.text if answer.reply else None for answer in answers]


def numbered(count: int) -> list[str]:
    return [f"question {number}." for number in range(count)]


async def test_a_400_costs_one_of_many(server, store):
    server.faults = where("question 7.", status(400, message="not this one"))
    answers = await ask_all(server, numbered(20), store=store)
    failed = [answer for answer in answers if answer.failure is not None]
    assert [(answer.failure.cause, answer.attempts) for answer in failed] == [("bad_request", 1)]
    assert answers[7] is failed[0]
    assert server.count == 20


async def test_a_401_stops_everything_at_once(server):
    server.faults = lambda _: status(401, message="who are you?")
    with pytest.raises(ModelError) as caught:
        await ask_all(server, numbered(50), concurrency="4")
    assert server.count <= 4
    for part in ("openai:m", "who are you?", server.url, "OPENAI_API_KEY is not set"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [
        status(408),
        status(409),
        status(429),
        status(500),
        status(502),
        status(503),
        RESET,
        RESET_IN_BODY,
        BROKEN_JSON,
        OTHER_TYPE,
        NO_CHOICES,
        NULL_CONTENT,
        SILENCE,
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}-{str(fault.body)[:12]}",
)
async def test_what_passes_is_survived(server, store, fault):
    server.faults = once_each(fault)
    patience = WITH_SILENCE if fault is SILENCE else QUICK
    answers = await ask_all(server, numbered(5), store=store, patience=patience)
    assert texts_of(answers) == [f"answer to question {number}." for number in range(5)]
    assert [answer.attempts for answer in answers] == [2] * 5
    server.faults = ()
    again = await ask_all(server, numbered(5), store=store)
    assert [answer.source for answer in again] == ["store"] * 5
    assert server.count == 10


@pytest.mark.parametrize(
    ("fault", "cause", "attempts"),
    [
        (status(500), "server_error", 4),
        (status(429), "rate_limited", 16),
        (NO_CHOICES, "bad_response", 4),
        (NULL_CONTENT, "no_content", 3),
        (SILENCE, "timeout", 4),
        (status(400, code_name="context_length_exceeded"), "overflow", 1),
    ],
    ids=lambda value: str(value) if isinstance(value, str | int) else "",
)
async def test_what_stays_is_a_typed_failure_and_is_never_stored(
    server, store, fault, cause, attempts
):
    server.faults = lambda _: fault
    patience = WITH_SILENCE if fault is SILENCE else QUICK
    (answer,) = await ask_all(server, ["x"], store=store, patience=patience)
    assert (answer.reply, answer.failure.cause, answer.attempts) == (None, cause, attempts)
    server.faults = ()
    assert texts_of(await ask_all(server, ["x"], store=store)) == ["answer to x"]


@pytest.mark.parametrize(("fault", "finish"), [(TRUNCATED, "length"), (FILTERED, "refused")])
async def test_a_reply_that_was_cut_or_refused_is_reported_and_not_stored(
    server, store, fault, finish
):
    server.faults = [fault]
    (first,) = await ask_all(server, ["x"], store=store)
    assert (first.reply.finish, first.reply.text) == (finish, "answer to x")
    (second,) = await ask_all(server, ["x"], store=store)
    assert (second.source, second.reply.finish) == ("model", "stop")


def in_seconds(seconds: int) -> dict[str, str]:
    return {"Retry-After": str(seconds)}


def as_date(seconds: int) -> dict[str, str]:
    now = datetime.now(UTC)
    later = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
    return {"Retry-After": later, "Date": format_datetime(now, usegmt=True)}


@pytest.mark.parametrize("header", [in_seconds, as_date])
async def test_retry_after_is_honoured_by_everyone(server, header):
    server.faults = [status(429, headers=header(1))] * 3  # more than one in twenty of fifty
    answers = await ask_all(server, numbered(4), concurrency="1")
    assert all(answer.failure is None for answer in answers)
    arrivals = [asked.at for asked in server.asked]
    assert len(arrivals) == 7
    assert min(arrivals[3:]) - arrivals[2] >= 1.0


async def test_rate_limits_shrink_what_is_in_flight_and_end_nothing(server):
    reports: dict[str, Any] = {}
    server.latency = 0.01
    server.faults = share(2 / 3, [status(429)], seed=1)
    answers = await ask_all(
        server,
        numbered(60),
        concurrency="16",
        patience=Patience(first_delay=0.01, longest_delay=0.05),
        look=lambda client: reports.update(client.limits()),
    )
    assert all(answer.failure is None for answer in answers)
    assert reports["openai:m"]["ceiling"] == 16
    assert reports["openai:m"]["lowest"] <= 8


async def test_a_third_of_all_at_random(server, store):
    kinds = [status(429), status(500), status(503), RESET, RESET_IN_BODY, BROKEN_JSON, OTHER_TYPE]
    server.faults = share(0.3, kinds, seed=3)
    patience = Patience(first_delay=0.01, longest_delay=0.05)
    answers = await ask_all(server, numbered(300), store=store, patience=patience)
    assert texts_of(answers) == [f"answer to question {number}." for number in range(300)]
    server.faults = ()
    before = server.count
    await ask_all(server, numbered(300), store=store)
    assert server.count == before


async def test_a_server_that_dies_for_a_while_costs_nothing(server, store):
    await ask_all(server, ["first"], store=store)
    server.die(3.0)
    answers = await ask_all(server, numbered(20), store=store, patience=Patience())
    assert texts_of(answers) == [f"answer to question {number}." for number in range(20)]
    assert all(answer.attempts > 1 for answer in answers)


async def test_a_server_that_never_was_there_is_one_clear_error(server):
    url = server.url
    server.die()
    with pytest.raises(ModelError) as caught:
        await ask_all(server, numbered(3))
    assert url in str(caught.value)
    assert "start the server" in str(caught.value)


async def test_the_budget_ends_the_asking_and_keeps_what_came(server, store):
    with pytest.raises(BudgetSpent):
        await ask_all(server, numbered(10), store=store, budget=Budget(calls=4), concurrency="1")
    assert server.count == 4
    answers = await ask_all(server, numbered(10), store=store)
    assert Counter(answer.source for answer in answers) == {"store": 4, "model": 6}


async def test_other_weights_behind_one_name_and_address_share_nothing_between_runs(server, store):
    server.answer = lambda _: "old weights"
    assert texts_of(await ask_all(server, ["x"], store=store, run_id="monday")) == ["old weights"]
    server.answer = lambda _: "new weights"
    assert texts_of(await ask_all(server, ["x"], store=store, run_id="tuesday")) == ["new weights"]
    assert texts_of(await ask_all(server, ["x"], store=store, run_id="monday")) == ["old weights"]
    assert server.count == 2


async def test_a_revision_is_an_identity_between_runs(server, store):
    server.answer = lambda _: "old weights"
    await ask_all(server, ["x"], store=store, run_id="monday", revision="a")
    server.answer = lambda _: "new weights"
    for run_id, revision, expected in (
        ("tuesday", "a", "old weights"),
        ("tuesday", "b", "new weights"),
    ):
        answers = await ask_all(server, ["x"], store=store, run_id=run_id, revision=revision)
        assert texts_of(answers) == [expected]
    assert server.count == 2


async def test_a_damaged_store_is_said_and_the_run_goes_on(server, tmp_path):
    path = tmp_path / "calls.sqlite"
    path.write_bytes(b"\x00\xff" * 5000)
    said_to_user: list[str] = []
    store = Store.open(path, warn=said_to_user.append)
    assert texts_of(await ask_all(server, ["x"], store=store)) == ["answer to x"]
    store.close()
    assert len(said_to_user) == 1


RUN = """
import asyncio, sys
from pathlib import Path
from harness.calls.budget import Meter
from harness.calls.client import Client
from harness.calls.store import Store
from harness.contracts.model import Message, ModelSettings, Request, Sampling
from harness_models.openai import make

async def main(path, url, count):
    store = Store.open(Path(path))
    given = {"model": "m", "base_url": url, "revision": "a", "concurrency": "8"}
    model = make(ModelSettings(args=given))
    client = Client(store=store, run_id="r1")
    def ask(number):
        messages = (Message(role="user", content=f"question {number}."),)
        request = Request(messages=messages, sampling=Sampling(), seed=0)
        return client.ask(model, request, role="candidate", stage="s")
    answers = await asyncio.gather(*[ask(number) for number in range(int(count))])
    assert all(answer.reply for answer in answers)
    await client.close()
    store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def run_apart(path: Path, server: FaultyServer, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(path), server.url, str(count)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_two_processes_share_one_store(server, tmp_path):
    path = tmp_path / "calls.sqlite"
    both = [run_apart(path, server, 200) for _ in range(2)]
    assert [process.communicate(timeout=60)[1] for process in both] == ["", ""]
    assert 200 <= server.count <= 400
    before = server.count
    assert run_apart(path, server, 200).communicate(timeout=60)[1] == ""
    assert server.count == before


def test_after_kill_9_nothing_is_asked_again_whose_answer_was_written(server, tmp_path):
    path = tmp_path / "calls.sqlite"
    server.latency = 0.05
    process = run_apart(path, server, 200)
    deadline = time.monotonic() + 60
    while server.count < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    process.communicate(timeout=60)
    safe = {asked.digest for asked in server.asked if asked.at < killed - 0.3}
    assert len(safe) > 20

    assert run_apart(path, server, 200).communicate(timeout=60)[1] == ""
    assert len(server.counts) == 200
    assert {server.counts[digest] for digest in safe} == {1}
