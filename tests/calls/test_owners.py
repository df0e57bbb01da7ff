"""One call across workers: clients in this process, wired to each other."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.loops import all_wait
from builders.requests import make_request

from harness.base.errors import Interrupted, ModelError
from harness.calls.budget import Meter
from harness.calls.client import Client
from harness.calls.own_answers import Answer, OwnAnswer, OwnAnswers
from harness.calls.owners import OwnerLost, Owners, Question, owner_of
from harness.calls.policy import Budget, Patience
from harness.calls.store import Store
from harness.calls.usage import UsageBook
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, Reply, Request, Usage
from harness.contracts.outcomes import CallFailed

NAMES = ("a", "b", "c")
QUICK = Patience(attempts=3, first_delay=0.001, longest_delay=0.002)
USAGE = Usage(prompt_tokens=100, completion_tokens=10)
ONCE = {
    "calls": 3, "asked": 1, "from_store": 0, "shared": 2, "failed": 0, "attempts": 1, "untold": 0,
    "prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 0, "reasoning_tokens": 0,
    "saved_untold": 0, "saved_prompt_tokens": 200, "saved_completion_tokens": 20,
    "saved_cached_tokens": 0,
}  # fmt: skip
"""Three calls, of which one was asked: as in a single process."""


class Judge(Model):
    """A model of one worker; all have the same identity. It answers when it may."""

    def __init__(self, worker: str, scope: Any) -> None:
        self.identity = Identity(kind="script", name="judge", scope=scope)
        self.worker = worker
        self.requests: list[Request] = []
        self.may = asyncio.Event()
        self.may.set()
        self.fails: CallError | None = None

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        await self.may.wait()
        if self.fails is not None:
            raise self.fails
        return Reply(text=self.worker, usage=USAGE)


class Kept:
    """What a worker keeps of the run's answers, and finds there once it has lost an owner."""

    def __init__(self, answers: dict[str, OwnAnswer]) -> None:
        self.answers = answers
        self.looks = False

    def keep(self, asker: str, answer: Answer) -> None:
        self.answers[answer.key] = OwnAnswer(session=1, asker=asker, answer=answer)

    async def earlier(self, key: str) -> OwnAnswer | None:
        return self.answers.get(key) if self.looks else None


class House:
    """Three workers, each with a client, a model and, if there is a folder, a store; the answers of
    the run are in one file."""

    def __init__(self, folder: Path | None = None, *, scope: Any = "run", session: int = 1) -> None:
        self.models = {name: Judge(name, scope) for name in NAMES}
        self.dies = {name: asyncio.Event() for name in NAMES}
        self.sent: list[tuple[str, str]] = []
        self.stores: list[Store] = []
        self.owners: dict[str, Owners] = {}
        self.living = [*NAMES]
        self.clients = {name: self.client(name, folder, session) for name in NAMES}

    def client(self, name: str, folder: Path | None, session: int) -> Client:
        store = own = None
        if folder is not None:
            store = Store.open(folder / f"{name}-calls.sqlite")
            own = Store.open(folder / "answers.sqlite")
            self.stores += [store, own]

        def ask(owner: str, model: Model, question: Question) -> Coroutine[Any, Any, Answer]:
            self.sent.append((name, owner))
            return self.asked_of(owner, question)

        def known(owner: str, key: str) -> Coroutine[Any, Any, Answer | None]:
            self.sent.append((name, owner))
            return self.clients[owner].known(key)

        self.owners[name] = Owners(name, workers=lambda: self.living, ask=ask, known=known)
        return Client(
            store=store,
            run_id="r1",
            patience=QUICK,
            meter=Meter(Budget(calls=9)),
            own=OwnAnswers(own, session=session),
            owners=self.owners[name],
        )

    def join(self, name: str) -> None:
        """Have a worker come after those that live, as `Workers` does."""
        owned = [each for each in self.living if self.owners[each].asked]
        self.owners[name].follow([*self.living], owned)
        self.living.append(name)

    async def asked_of(self, owner: str, question: Question) -> Answer:
        if self.dies[owner].is_set():
            for client in self.clients.values():
                client._own.looks = True
            raise OwnerLost(owner)
        answers = asyncio.create_task(self.clients[owner].answer(self.models[owner], question))
        died = asyncio.create_task(self.dies[owner].wait())
        await asyncio.wait([answers, died], return_when=asyncio.FIRST_COMPLETED)
        if self.dies[owner].is_set():
            answers.cancel()
            raise OwnerLost(owner)
        died.cancel()
        return await answers

    def close(self) -> None:
        for store in self.stores:
            store.close()

    async def ask(self, worker: str, what: str = "one", **more: Any) -> Answer:
        named = {"role": "judge", "stage": "rate", "asker": f"item of {worker}", **more}
        return await self.clients[worker].ask(self.models[worker], make_request(what), **named)

    def ranked(self, what: str = "one") -> list[str]:
        """The workers, the owner of a question first."""
        key = self.clients["a"].key(self.models["a"].identity, make_request(what))
        first = owner_of(key, NAMES)
        second = owner_of(key, set(NAMES) - {first})
        return [first, second, *(set(NAMES) - {first, second})]

    def asked(self) -> Counter[str]:
        counts = {name: len(model.requests) for name, model in self.models.items()}
        return +Counter(counts)

    def usage(self) -> dict[str, int]:
        book = UsageBook()
        for name, client in self.clients.items():
            book.take(name, client.usage.as_json())
        return book.as_json()["rate, judge"]


async def until(*models: Judge) -> None:
    for _ in range(1000):
        if all(model.requests for model in models):
            return
        await asyncio.sleep(0)
    raise AssertionError("nothing was asked")


async def test_equal_questions_of_three_workers_are_asked_once_by_their_owner():
    house = House()
    owner = house.ranked()[0]
    answers = await asyncio.gather(*[house.ask(name) for name in NAMES])
    assert house.asked() == {owner: 1}
    assert [answer.reply.text for answer in answers] == [owner] * 3
    # Who asked first has the call in its record, with what it cost; for the others it was shared.
    counted = [(answer.source, answer.attempts) for answer in answers]
    assert sorted(counted) == [("model", 1), ("shared", 0), ("shared", 0)]
    assert house.usage() == ONCE
    assert [house.clients[name].meter.calls for name in house.ranked()] == [1, 0, 0]


async def test_a_failure_is_shared_too():
    house = House()
    owner, other, _ = house.ranked()
    house.models[owner].fails = CallError("bad_request", "no")
    answers = await asyncio.gather(house.ask(owner), house.ask(other))
    assert [answer.failure for answer in answers] == [CallFailed("bad_request", "no")] * 2
    assert house.asked() == {owner: 1}
    assert {name: house.usage()[name] for name in ("calls", "asked", "shared", "failed")} == {
        "calls": 2, "asked": 1, "shared": 1, "failed": 2,
    }  # fmt: skip


async def test_what_ends_the_owner_ends_who_waits_for_it():
    house = House()
    owner, other, _ = house.ranked()
    house.models[owner].fails = CallError("auth", "who are you?", fatal=True)
    with pytest.raises(ModelError, match="script:judge"):
        await house.ask(other)


@pytest.mark.parametrize(
    ("scope", "more"),
    [("run", {"role": "candidate"}), ("call", {}), ("run", {"refresh": True})],
    ids=["of the candidate", "by rule", "past the store"],
)
async def test_calls_that_each_worker_makes_itself(scope, more):
    house = House(scope=scope)
    await asyncio.gather(*[house.ask(name, **more) for name in NAMES])
    assert house.asked() == {"a": 1, "b": 1, "c": 1}
    assert house.sent == []


async def test_when_the_owner_dies_in_flight_the_next_one_asks():
    house = House()
    owner, following, last = house.ranked()
    house.models[owner].may.clear()
    waits = [asyncio.create_task(house.ask(name)) for name in (following, last)]
    await until(house.models[owner])
    house.dies[owner].set()
    answers = await asyncio.gather(*waits)
    assert [answer.reply.text for answer in answers] == [following] * 2
    assert house.asked() == {owner: 1, following: 1}
    assert sorted(house.sent) == sorted([(following, owner), (last, owner), (last, following)])


async def test_what_an_owner_that_died_was_answered_is_not_asked_again():
    house = House()
    owner, following, last = house.ranked()
    answers: dict[str, OwnAnswer] = {}
    for client in house.clients.values():
        client._own = Kept(answers)
    assert (await house.ask(following)).source == "model"
    house.dies[owner].set()
    shared = await house.ask(last)
    assert (shared.reply.text, shared.source, shared.attempts) == (owner, "shared", 0)
    # The item that it was asked for has it in its record, with what it cost.
    answers[shared.key] = msgspec.structs.replace(answers[shared.key], asker="item of last")
    house.clients[last]._own.looks = False
    again = await house.ask(last, asker="item of last")
    assert (again.reply.text, again.source, again.attempts) == (owner, "model", 1)
    assert house.sent == [(following, owner), (last, owner), (last, owner)]
    assert house.asked() == {owner: 1}
    counted = {name: house.usage()[name] for name in ("calls", "asked", "from_store", "shared")}
    assert counted == {"calls": 3, "asked": 1, "from_store": 1, "shared": 1}


async def test_a_worker_whose_colleagues_are_all_lost_asks_itself():
    house = House()
    owner, following, last = house.ranked()
    for name in (owner, following):
        house.dies[name].set()
    answer = await house.ask(last)
    assert (answer.reply.text, answer.source, answer.attempts) == (last, "model", 1)
    assert house.sent == [(last, owner), (last, following)]


async def test_who_is_cancelled_leaves_the_question_to_the_next_item_of_its_worker():
    house = House()
    owner, other, _ = house.ranked()
    house.models[owner].may.clear()
    first = asyncio.create_task(house.ask(other))
    await until(house.models[owner])
    second = asyncio.create_task(house.ask(other, asker="another item"))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    house.models[owner].may.set()
    assert (await second).reply.text == owner


async def test_a_worker_that_stops_asks_nobody():
    house = House()
    _, other, _ = house.ranked()
    house.clients[other].stop(Interrupted("interrupted"))
    with pytest.raises(Interrupted):
        await house.ask(other)
    assert house.sent == []


async def test_an_answer_from_elsewhere_is_kept_for_later_questions_and_later_sessions(tmp_path):
    house = House(tmp_path)
    owner, other, _ = house.ranked()
    assert (await house.ask(other)).source == "model"
    assert (await house.ask(other, asker="another item")).source == "store"
    assert house.sent == [(other, owner)]

    house.close()
    later = House(tmp_path, session=2)
    for name in (other, owner):
        # The item was killed before its record was written: it gets what it was answered.
        again = await later.ask(name, asker=f"item of {other}")
        assert (again.source, again.attempts, again.reply.usage) == ("model", 1, USAGE)
    assert (later.sent, later.asked()) == ([], Counter())
    later.close()


def came_late(house: House, what: str = "one") -> list[str]:
    """The workers, the owner of a question first; they come in the opposite order."""
    ranked = house.ranked(what)
    house.living[:] = ranked[2:]
    return ranked


async def test_a_worker_that_comes_later_asks_no_call_that_another_is_making():
    house = House()
    owner, following, last = came_late(house)
    house.models[last].may.clear()
    first = asyncio.create_task(house.ask(last))
    await until(house.models[last])
    for name in (following, owner):
        house.join(name)
    later = [asyncio.create_task(house.ask(name)) for name in NAMES]
    await all_wait()
    house.models[last].may.set()
    answers = await asyncio.gather(first, *later)
    assert [answer.reply.text for answer in answers] == [last] * 4
    assert [answer.source for answer in answers] == ["model", *["shared"] * 3]
    assert house.asked() == {last: 1}
    assert house.usage() == {
        **ONCE, "calls": 4, "shared": 3, "saved_prompt_tokens": 300, "saved_completion_tokens": 30,
    }  # fmt: skip


async def test_a_worker_that_comes_later_asks_no_call_that_another_has_stored(tmp_path):
    house = House(tmp_path)
    owner, following, last = came_late(house)
    assert (await house.ask(last)).source == "model"
    house.join(owner)
    assert (await house.ask(owner)).source == "shared"
    assert house.sent == [(owner, last)]
    house.join(following)
    assert (await house.ask(following)).source == "store"
    assert house.sent[1:] == [(following, owner)]
    assert house.asked() == {last: 1}
    house.close()


async def test_a_question_to_the_owner_before_is_asked_by_the_one_that_has_come():
    """The asker has not heard of the worker that came."""
    house = House()
    owner, following, last = house.ranked()
    house.living[:] = [last, following]
    house.join(owner)
    question = Question(
        key=house.clients[last].key(house.models[last].identity, make_request("one")),
        request=make_request("one"), repeat=0, role="judge", stage="rate", asker="item",
    )  # fmt: skip
    answer = await house.clients[following].answer(house.models[following], question)
    assert (answer.reply.text, house.sent) == (owner, [(following, owner)])


async def test_an_earlier_owner_whose_call_is_cancelled_leaves_it_to_the_one_that_came():
    house = House()
    owner, _, last = came_late(house)
    house.models[last].may.clear()
    first = asyncio.create_task(house.ask(last))
    await until(house.models[last])
    house.join(owner)
    later = asyncio.create_task(house.ask(owner))
    await all_wait()
    first.cancel()
    assert (await later).reply.text == owner
    assert not house.clients[last]._flights


def test_the_owner_of_a_key_is_the_same_everywhere_and_only_the_calls_of_a_lost_worker_move():
    keys = [f"{number:032x}" for number in range(3000)]
    owners = {key: owner_of(key, NAMES) for key in keys}
    assert "".join(owners[key] for key in keys[:12]) == "bbaaacacaacb"
    assert owners == {key: owner_of(key, ["c", "a", "b"]) for key in keys}
    counts = Counter(owners.values())
    assert all(900 < count < 1100 for count in counts.values()), counts
    for key, owner in owners.items():
        assert owner_of(key, {"a", "b"}) == owner or owner == "c"
