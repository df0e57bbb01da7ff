"""A run's own answers, as workers send them and look them up."""

import asyncio

import pytest

from harness.base.errors import StorageError
from harness.calls.own_answers import Answer, OwnAnswer, OwnAnswers, decoded
from harness.calls.store import Store
from harness.contracts.model import Reply
from harness.pipeline.executors.sent_answers import SentAnswers

A, B = "aa" * 16, "bb" * 16


def answer(key, text):
    return Answer(reply=Reply(text=text), key=key, source="model")


class Keeper:
    """The process with the file; `sent` and `asked` hold the keys of each message."""

    def __init__(self, store):
        self.store = store
        self.sent = []
        self.asked = []
        self.broken = None
        self.written = asyncio.Event()

    def worker(self, session=1):
        return SentAnswers(session=session, send=self.send, find=self.find)

    async def send(self, answers):
        self.sent.append([key.hex() for key in answers])
        if self.broken is None:
            self.store.put_all(answers)
            self.written.set()
        return self.broken

    async def find(self, keys):
        self.asked.append(sorted(key.hex() for key in keys))
        if self.broken is not None:
            raise self.broken
        return {key: value for key in keys if (value := self.store.get(key)) is not None}


@pytest.fixture
def keeper(tmp_path):
    store = Store.open(tmp_path / "answers.sqlite")
    yield Keeper(store)
    store.close()


async def test_what_a_worker_was_answered_is_found_by_another_and_by_a_later_session(keeper):
    worker = keeper.worker()
    worker.keep("item 1", answer(A, "yes"))
    worker.keep("item 2", answer(B, "no"))
    await worker.close()
    assert keeper.sent == [[A, B]]
    value = keeper.store.get(bytes.fromhex(A))
    assert decoded(value) == OwnAnswer(session=1, asker="item 1", answer=answer(A, "yes"))
    other = keeper.worker()
    other.look()
    found = await asyncio.gather(*(other.earlier(key) for key in (A, B, "cc" * 16, A)))
    assert [one and one.answer.reply.text for one in found] == ["yes", "no", None, "yes"]
    assert keeper.asked == [[A, B, "cc" * 16]]
    local = await OwnAnswers(keeper.store, session=2).earlier(B)
    assert local.asker == "item 2"


async def test_an_answer_is_written_soon_without_being_waited_for(keeper):
    worker = keeper.worker()
    worker.keep("item", answer(A, "yes"))
    assert keeper.store.get(bytes.fromhex(A)) is None
    await asyncio.wait_for(keeper.written.wait(), 60)
    assert keeper.store.get(bytes.fromhex(A)) is not None


async def test_nothing_is_looked_up_where_nothing_can_be(keeper):
    assert await keeper.worker().earlier(A) is None
    assert keeper.asked == []


async def test_who_waits_for_an_answer_may_be_cancelled(keeper):
    worker = keeper.worker()
    worker.look()
    leaves, stays = (asyncio.create_task(worker.earlier(A)) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    assert await stays is None


async def test_answers_that_cannot_be_written_or_read_are_errors(keeper):
    worker = keeper.worker()
    worker.look()
    keeper.broken = StorageError("the disk is full")
    worker.keep("item", answer(A, "yes"))
    with pytest.raises(StorageError, match="full"):
        await worker.close()
    with pytest.raises(StorageError, match="full"):
        worker.keep("item", answer(B, "yes"))
    with pytest.raises(StorageError, match="full"):
        await worker.earlier(A)
