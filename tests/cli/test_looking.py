"""Looking at many things at once: in order, none for long, and whatever goes wrong is told."""

import asyncio
import threading

import pytest
from harness.cli.doctor_checks.looking import Check, findings_of, in_thread

from harness.base.errors import DataError
from harness.contracts.finding import Finding, bad, doubtful, good


async def test_findings_come_in_the_order_of_the_checks():
    first_may_go_on = threading.Event()

    def slow():
        assert first_may_go_on.wait(5), "the second check waits for the first"
        yield good("first", "slow")

    def quick():
        first_may_go_on.set()
        yield good("second", "quick")
        yield doubtful("second", "and more")

    found = await findings_of([Check(about="first", look=slow), Check(about="second", look=quick)])
    assert [one.says for one in found] == ["slow", "quick", "and more"]


async def test_an_error_is_a_finding_with_all_that_it_says():
    def look():
        raise DataError(
            "the table has no column", where="a.csv", found="b, c", expected="a", hint="add it"
        )

    (found,) = await findings_of([Check(about="data", look=look)])
    assert found == Finding(
        about="data",
        state="bad",
        says="a.csv: the table has no column; found b, c; expected a",
        to_do="add it",
    )


async def test_foreign_code_that_breaks_is_a_finding():
    async def look():
        raise ZeroDivisionError("by zero")

    (found,) = await findings_of([Check(about="model", wait_for=look)])
    assert found == bad("model", "the check failed: ZeroDivisionError: by zero")


@pytest.mark.parametrize("where", ["thread", "loop"])
async def test_a_look_that_takes_too_long_is_left(where):
    never = threading.Event()

    def in_a_thread():
        never.wait(60)
        yield good("x", "late")

    async def on_the_loop():
        await asyncio.sleep(60)
        return [good("x", "late")]

    check = (
        Check(about="x", look=in_a_thread, seconds=0.05)
        if where == "thread"
        else Check(about="x", wait_for=on_the_loop, seconds=0.05)
    )
    (found,) = await findings_of([check])
    never.set()
    assert found == doubtful("x", "not known: the check took more than 0.05 s")


async def test_keys_are_in_no_finding(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value")

    def look():
        yield bad("x", "the server said very-secret-value", "forget very-secret-value")

    (found,) = await findings_of([Check(about="x", look=look)])
    assert found == bad("x", "the server said [redacted]", "forget [redacted]")


async def test_what_a_thread_raises_is_raised():
    def work():
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        await in_thread(work)
