"""Looking at many things at once, none of them for long."""

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
"""How long one look may take; what takes longer is left, and told as doubtful."""

Look = Callable[[], Iterable[Finding]]
SlowLook = Callable[[], Awaitable[Sequence[Finding]]]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing to look at, and how: in a thread, or on the loop where it waits for others."""

    about: str
    look: Look | None = None
    wait_for: SlowLook | None = None
    seconds: float = SECONDS


async def findings_of(checks: Sequence[Check]) -> list[Finding]:
    """What all checks found, in their order and without keys; they are made at the same time."""
    found = await asyncio.gather(*(_findings(check) for check in checks))
    return [_without_keys(finding) for several in found for finding in several]


async def in_thread(work: Callable[[], T]) -> T:
    """What the work gives. It is done in a thread that nobody waits for when the command ends."""
    loop = asyncio.get_running_loop()
    given: asyncio.Future[T] = loop.create_future()

    def settle(error: BaseException | None, value: T | None) -> None:
        if given.done():
            return
        if error is not None:
            given.set_exception(error)
        else:
            given.set_result(value)  # type: ignore[arg-type]  # None only where T is

    def run() -> None:
        error, value = None, None
        try:
            value = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: the look had taken too long
            loop.call_soon_threadsafe(settle, error, value)

    threading.Thread(target=run, daemon=True).start()
    return await given


def _without_keys(finding: Finding) -> Finding:
    to_do = None if finding.to_do is None else safe_text(finding.to_do)
    return msgspec.structs.replace(finding, says=safe_text(finding.says), to_do=to_do)


async def _findings(check: Check) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(check.seconds):
            if check.look is not None:
                look = check.look
                return await in_thread(lambda: list(look()))
            assert check.wait_for is not None, f"{check.about}: nothing to look at"
            return list(await check.wait_for())
    except TimeoutError:
        return [doubtful(check.about, f"not known: the look took more than {check.seconds:g} s")]
    except HarnessError as error:
        return [bad_by(check.about, error)]
    except Exception as error:  # foreign code: whatever it raises is what was found
        return [bad(check.about, f"the look at it failed: {type(error).__name__}: {error}")]
