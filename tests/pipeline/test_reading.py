"""A long reply is read without holding up the event loop."""

import asyncio
import threading

from builders.stages import say_stage, words

from harness.contracts.outcomes import Parsed
from harness.pipeline.desk import QUICK


class WaitingReader:
    """Reads a text once the event loop has turned in the meantime; fails after five seconds."""

    schema = None

    def __init__(self) -> None:
        self.turned = threading.Event()

    def __call__(self, text):
        assert self.turned.wait(5), "the event loop stood still"
        return Parsed(text[:1], "text")


class EndingReader:
    """Raises what no future can hold."""

    schema = None

    def __call__(self, text):
        return next(iter(()))


def stage(read, *, meanwhile=lambda: None):
    async def work(item, desk):
        asyncio.get_running_loop().call_later(0.01, meanwhile)
        answer = await desk.ask("candidate", "say", {"word": item.word}, read=read)
        return answer.value if isinstance(answer, Parsed) else answer

    return say_stage(words("it"), work)


async def test_the_event_loop_turns_while_a_long_reply_is_read(house, scripted):
    read = WaitingReader()
    model = scripted("m", lambda request: "x" * (QUICK + 1))
    lines = await house.run([stage(read, meanwhile=read.turned.set)], {"candidate": model})
    assert [line.outcome.value for line in lines["say"]] == ["x"]


async def test_a_reader_that_stops_an_iteration_breaks_its_item_only(house, scripted):
    model = scripted("m", lambda request: "x" * (QUICK + 1))
    run = house.run([stage(EndingReader())], {"candidate": model})
    (line,) = (await asyncio.wait_for(run, 60))["say"]
    assert "StopIteration" in str(line)
