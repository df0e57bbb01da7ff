"""Running checks in parallel, each with a timeout."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from harness.base.errors import HarnessError
from harness.base.redaction import safe_text
from harness.contracts.finding import Finding, bad, bad_by, doubtful

T = TypeVar("T")

SECONDS = 10.0
"""The timeout of a check; a check that takes longer is reported as doubtful."""

Look = Callable[[], Iterable[Finding]]
SlowLook = Callable[[], Awaitable[Sequence[Finding]]]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check, as `Check(about="store", look=partial(store, file))`."""

    about: str
    """What is checked; findings start with it."""
    look: Look | None = None
    """A function that runs in a thread."""
    wait_for: SlowLook | None = None
    """A coroutine function for the event loop, in place of `look`."""
    seconds: float = SECONDS
    """The timeout."""


async def findings_of(checks: Sequence[Check]) -> list[Finding]:
    """The findings of all checks, which run in parallel; in order, and without keys."""
    found = await asyncio.gather(*(_findings(check) for check in checks))
    return [_without_keys(finding) for several in found for finding in several]


async def in_thread(work: Callable[[], T]) -> T:
    """The result of the work, done in a thread that does not delay the end of the command."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(error: BaseException | None, value: T | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]  # None only where T is

    def run() -> None:
        error, value = None, None
        try:
            value = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed, because the check took too long
            loop.call_soon_threadsafe(settle, error, value)

    threading.Thread(target=run, daemon=True).start()
    return await result


def _without_keys(finding: Finding) -> Finding:
    to_do = None if finding.to_do is None else safe_text(finding.to_do)
    return msgspec.structs.replace(finding, says=safe_text(finding.says), to_do=to_do)


async def _findings(check: Check) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(check.seconds):
            if check.look is not None:
                look = check.look
                return await in_thread(lambda: list(look()))
            assert check.wait_for is not None, f"{check.about}: neither look nor wait_for"
            return list(await check.wait_for())
    except TimeoutError:
        return [doubtful(check.about, f"not known: the check took more than {check.seconds:g} s")]
    except HarnessError as error:
        return [bad_by(check.about, error)]
    except Exception as error:  # whatever the code of a plugin raises is a finding
        return [bad(check.about, f"the check failed: {type(error).__name__}: {error}")]
