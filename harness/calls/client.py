"""Asks models: answers come from the store, from an identical call in flight, or from the model.

Imported only by modules that run stages.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import msgspec

from harness.base.errors import BudgetSpent, HarnessError, ModelError, UsageUnreported
from harness.base.hashing import digest
from harness.calls.budget import UNCOUNTED, Claim, Meter
from harness.calls.engines import EngineGate
from harness.calls.fair_queue import Turns
from harness.calls.keys import call_key, call_seed
from harness.calls.limiter import Ending, Limiter
from harness.calls.own_answers import ANYONE, Answer, Earlier, OwnAnswer, OwnAnswers
from harness.calls.policy import Budget, Patience
from harness.calls.retry import delay_before_retry, may_retry
from harness.calls.store import Store
from harness.calls.usage import Attempts, UsageBook, Use
from harness.contracts.identity import Identity
from harness.contracts.model import AskLive, CallError, Model, Reply, Request
from harness.contracts.outcomes import CallFailed

HINTS = {
    "auth": "check the API key that the model uses",
    "not_found": "check the model's name and address",
    "connection": "start the server, or check the address that the model uses",
}

QUIET = 1.0
"""Seconds without a further question, and without a call that others may follow, after which models
that gather questions have all: one that comes later only has a file of its own."""

LEFT = CallError("left", "the batch goes on: the session that takes it up counts it")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reply).decode


@dataclass(kw_only=True, slots=True)
class _ModelState:
    """The client's state for one model: its limiter, and why it is not asked any more."""

    model: Model
    limiter: Limiter
    reached: bool = False
    announced: set[str] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    reason: HarnessError | None = None

    def end(self, reason: HarnessError) -> None:
        """Send nothing more; calls that wait raise the reason."""
        if self.reason is None:
            self.reason = reason
            self.over.set()
            self.limiter.dismiss(reason)
            spent = isinstance(reason, BudgetSpent) and not isinstance(reason, UsageUnreported)
            self.model.leave(reason, send=spent)


class Question(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call as it was asked; `key` is that of its answer, `sent_as` what patient models know."""

    key: str
    sent_as: str
    request: Request
    repeat: int
    role: str
    stage: str
    asker: str


@dataclass(slots=True)
class _InFlightCall:
    """Calls that wait for an identical call in flight."""

    waiting: list[asyncio.Future[Answer | None]] = field(default_factory=list)

    def land(self, answer: Answer) -> None:
        for future in self.waiting:
            if not future.done():
                future.set_result(answer)

    def fail(self, error: Exception) -> None:
        for future in self.waiting:
            if not future.done():
                future.set_exception(error)

    def pass_on(self) -> bool:
        """Hand the call to the first that waits; False if none does."""
        while self.waiting:
            future = self.waiting.pop(0)
            if not future.done():
                future.set_result(None)
                return True
        return False


class Outbox(Protocol):
    """Writes the questions of models that are asked elsewhere to files."""

    def takes(self, model: Model) -> bool:
        """Whether the model's questions go to files."""
        ...

    def write(self, model: Model, key: str, request: Request) -> None:
        """Write a question; one of the same key is written once."""
        ...

    def finish(self) -> HarnessError | None:
        """Finish the files; why the session ends with them, if any was written."""
        ...


class Client:
    """Asks models: once for each distinct request, never twice for a stored answer.

    The order: the run's own answers, store, single flight, budget, engines, limiter, attempts with
    retries, store. Every reply is kept among the run's own answers, but only those that ended by
    themselves are stored for other runs. `run_id` enters the keys of models whose answers may not
    leave the run; `fresh` is a salt for runs that need answers of their own. What the `outbox`
    takes is asked elsewhere: the session ends once all is written.
    """

    def __init__(
        self,
        *,
        store: Store | None,
        run_id: str,
        patience: Patience | None = None,
        meter: Meter | None = None,
        engines: EngineGate | None = None,
        fresh: str | None = None,
        announce: Callable[[str], None] | None = None,
        outbox: Outbox | None = None,
        own: Earlier | None = None,
    ) -> None:
        self.usage = UsageBook()
        self.meter = meter or Meter(Budget())
        self._store = store
        self._run_id = run_id
        self._patience = patience or Patience()
        self._engines = engines or EngineGate()
        self._fresh = fresh
        self._outbox = outbox
        self._own: Earlier = own or OwnAnswers()
        self._given: set[str] = set()
        self._announce = announce or (lambda text: None)
        self._flights: dict[str, _InFlightCall] = {}
        self._lines: dict[Model, _ModelState] = {}
        self._rng = Random()
        self._turns = Turns()
        self._stopped: HarnessError | None = None
        self._in_flight = 0
        self._waiting_long = 0
        self._came = 0.0
        self._short = False
        self._quiet: asyncio.TimerHandle | None = None
        self._written: asyncio.Future[None] | None = None
        self._landed = asyncio.Event()
        self._landed.set()

    def follow(self, earlier: Client) -> None:
        """Continue the budget and the counts of an earlier client; call it before `ask`."""
        self.usage, self.meter = earlier.usage, earlier.meter

    async def ask(
        self,
        model: Model,
        request: Request,
        *,
        repeat: int = 0,
        role: str,
        stage: str,
        refresh: bool = False,
        asker: str = "",
    ) -> Answer:
        """Answer one request; `refresh` asks the model even if the store has an answer.

        An `asker` that an earlier session answered gets the same answer, with what it cost; an item
        that is asked again because it failed is another asker.
        Raises ModelError, BudgetSpent or StorageError if the run must end; a failure of this one
        request is returned in the answer.
        """
        key = self.key(model.identity, request, repeat=repeat)
        question = Question(
            key=key,
            # An item that is asked again must not get what it was answered before.
            sent_as=f"{key}.{digest(asker)[:8]}" if refresh else key,
            request=request,
            repeat=repeat,
            role=role,
            stage=stage,
            asker=asker,
        )
        use = self.usage.of(stage, role)
        use.calls += 1
        if model.identity.scope == "call":
            return await self._call(model, question, use)
        began = _now()
        own = self._own.earlier(key)
        if own is not None and own.asker == asker and key not in self._given:
            return self._again(own, asker, use)
        if not refresh and (answer := self._from_store(key, use, began)) is not None:
            return answer
        if own is not None and not refresh:
            return self._again(own, asker, use)
        if self._outbox is not None and self._outbox.takes(model):
            use.calls -= 1
            self._outbox.write(model, key, _seeded(question))
            await self._end_of_session()
        if (answer := await self._from_flight(key, use, began)) is not None:
            return answer
        return await self._fly(model, question, use)

    def _again(self, own: OwnAnswer, asker: str, use: Use) -> Answer:
        """An answer that the run has kept: once with what it cost, to whoever it was made for."""
        if own.asker == ANYONE and own.answer.key not in self._given:
            return self._arrived(own.answer, use)
        if own.asker != asker or own.answer.key in self._given:
            return _shared(own.answer, use, 0.0)
        use.from_store += 1
        use.save(own.answer.reply)
        self._given.add(own.answer.key)
        return own.answer

    def key(self, identity: Identity, request: Request, *, repeat: int = 0) -> str:
        """The key of a request's answer in this run."""
        return call_key(identity, request, repeat=repeat, run_id=self._run_id, fresh=self._fresh)

    def limits(self) -> dict[str, Any]:
        """The limiter's history of every model that was asked, for the manifest."""
        reports: dict[str, Any] = {}
        for line in list(self._lines.values()):  # displays call this in their thread
            name = label = line.model.identity.label
            number = 2
            while label in reports:
                label = f"{name} #{number}"
                number += 1
            reports[label] = line.limiter.report()
            if learnt := line.model.report():
                reports[label]["learnt"] = learnt
        return reports

    def stop(self, reason: HarnessError) -> None:
        """Send nothing more: attempts in flight finish, calls that would send one raise the reason.

        Answers in the store are still returned.
        """
        if self._stopped is None:
            self._stopped = reason
            self._engines.stop(reason)
            for line in self._lines.values():
                line.end(reason)
            if self._written is not None:
                self._written.set_exception(reason)
            self.meter.wake()

    async def landed(self) -> None:
        """Wait until no attempt is in flight."""
        await self._landed.wait()

    async def close(self) -> None:
        """Close every model that was opened."""
        await self._engines.close()

    def _from_store(self, key: str, use: Use, began: float) -> Answer | None:
        """The answer in the store, if there is one."""
        value = None if self._store is None else self._store.get(bytes.fromhex(key))
        if value is None:
            return None
        try:
            reply = _decode(value)
        except msgspec.DecodeError:
            return None  # bytes that are no reply count as no answer and are overwritten
        use.from_store += 1
        use.save(reply)
        return Answer(reply=reply, key=key, source="store", seconds=_now() - began)

    def _arrived(self, arrived: Answer, use: Use) -> Answer:
        """An answer that came in a file, counted and stored like the reply of a call."""
        self._given.add(arrived.key)
        use.asked += 1
        tries = Attempts(sent=1)
        if arrived.reply is None:
            use.failed += 1
        else:
            tries.count(arrived.reply, use)
            self._share(arrived.key, arrived.reply)
        return _answered(arrived.key, tries, reply=arrived.reply, failure=arrived.failure)

    async def _end_of_session(self) -> None:
        """Wait until the session ends with the questions that were written."""
        if self._stopped is not None:
            raise self._stopped.with_traceback(None)
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
        self._gather()
        await asyncio.shield(self._written)

    def _gather(self) -> None:
        """Tell models that gather questions that they have all, once no more come."""
        self._came = _now()
        if self._quiet is None:
            loop = asyncio.get_running_loop()
            self._quiet = loop.call_later(QUIET, self._look_whether_all_came)

    def _look_whether_all_came(self) -> None:
        self._quiet = None
        if self._in_flight > self._waiting_long or _now() - self._came < QUIET:
            loop = asyncio.get_running_loop()
            self._quiet = loop.call_later(QUIET / 4, self._look_whether_all_came)
            return
        for line in list(self._lines.values()):
            line.model.gathered(live=not self._short)
        try:
            reason = None if self._outbox is None else self._outbox.finish()
        except HarnessError as error:
            reason = error
        if reason is not None:
            self.stop(reason)

    async def _from_flight(self, key: str, use: Use, began: float) -> Answer | None:
        """The answer of an identical call in flight; None if this call has to fly."""
        flight = self._flights.get(key)
        if flight is None:
            self._flights[key] = _InFlightCall()
            return None
        answer = await self._join(flight, key)
        return None if answer is None else _shared(answer, use, _now() - began)

    async def _fly(self, model: Model, question: Question, use: Use) -> Answer:
        """Make the call in flight under this key; its answer is also that of all that wait."""
        key = question.key
        flight = self._flights[key]
        try:
            call = self._call_patiently if model.patient else self._call
            answer = await call(model, question, use)
        except Exception as error:
            del self._flights[key]
            flight.fail(error)
            raise
        except BaseException:
            self._leave(flight, key)
            raise
        del self._flights[key]
        flight.land(answer)
        return answer

    async def _join(self, flight: _InFlightCall, key: str) -> Answer | None:
        future: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        flight.waiting.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            has_result = future.done() and not future.cancelled() and future.exception() is None
            if has_result and future.result() is None:
                self._leave(flight, key)
            raise

    def _leave(self, flight: _InFlightCall, key: str) -> None:
        # Cancelled: one of the waiting calls takes over.
        if not flight.pass_on():
            del self._flights[key]

    def _keep(self, answer: Answer, asker: str) -> None:
        """Keep the reply of an answer, if it has one; the item that it was made for owns it.

        Other runs get it from the store, if it ended by itself.
        """
        reply = answer.reply
        if reply is None:
            return
        self._share(answer.key, reply)
        self._own.keep(asker, answer)

    def _share(self, key: str, reply: Reply) -> None:
        if self._store is not None and reply.finish == "stop":
            self._store.put(bytes.fromhex(key), _encode(reply))

    async def _call(self, model: Model, question: Question, use: Use) -> Answer:
        began = _now()
        key = question.key
        line = self._line(model)
        self._check_open(line)
        try:
            async with self._engines.enter(model):
                outcome, tries = await self._attempts(line, _seeded(question), use)
        except CallError as error:
            raise self._give_up(line, error) from error
        if isinstance(outcome, CallError):
            use.failed += 1
            failure = CallFailed(outcome.cause, outcome.detail)
            return _answered(key, tries, failure=failure, seconds=_now() - began)
        try:
            if line.limiter.busy:
                await self._turns.wait()
        finally:
            answer = _answered(key, tries, reply=outcome, seconds=_now() - began)
            if model.identity.scope != "call":
                self._keep(answer, question.asker)
        return answer

    async def _call_patiently(self, model: Model, question: Question, use: Use) -> Answer:
        """The answer of a patient model, in one frame, as tens of thousands of calls may wait."""
        line, began = self._line(model), _now()
        async with self._engines.enter(model):
            pass  # it occupies nothing, so that it stays open
        request = _seeded(question, question.sent_as)
        causes: tuple[str, ...] = ()
        tries: Attempts | None = None  # not before the first outcome
        while True:
            held = line.reason is None and model.holds(request.key)  # a session paid that sent it
            claim = UNCOUNTED if held else await self._reserve(line, request)
            self._in_flight += 1
            self._waiting_long += 1
            self._landed.clear()
            self._gather()
            outcome: Reply | CallError = LEFT
            try:
                outcome = await model.ask(request)
            except CallError as error:
                outcome = error.with_traceback(None)
            finally:
                self._in_flight -= 1
                self._waiting_long -= 1
                if not self._in_flight:
                    self._landed.set()
                self.meter.settle(claim, outcome)
            if isinstance(outcome, AskLive):
                self.meter.calls -= 1
                return await self._call(outcome.model, question, use)
            tries = tries or Attempts()
            tries.sent += 1
            use.asked += tries.sent == 1
            use.attempts += 1
            tries.count(outcome, use)
            if isinstance(outcome, Reply):
                answer = _answered(question.key, tries, reply=outcome, seconds=_now() - began)
                self._keep(answer, question.asker)
                if uncounted := self.meter.unreported(claim, outcome, model.identity):
                    self.stop(uncounted)
                return answer
            if outcome.fatal:
                raise self._give_up(line, outcome) from outcome
            causes = (*causes, outcome.cause)
            if not may_retry(outcome, Counter(causes), self._patience):
                use.failed += 1
                failure = CallFailed(outcome.cause, outcome.detail)
                return _answered(question.key, tries, failure=failure, seconds=_now() - began)
            self._announce_retry(line, outcome)
            wait = delay_before_retry(outcome, tries.sent, self._patience, draw=self._rng)
            with suppress(TimeoutError):
                await asyncio.wait_for(line.over.wait(), wait)

    async def _attempts(
        self, line: _ModelState, request: Request, use: Use
    ) -> tuple[Reply | CallError, Attempts]:
        patience = self._patience
        causes: Counter[str] = Counter()
        deadline = float("inf")
        tries = Attempts()
        claim = await self._admit(line, request)
        use.asked += 1
        while True:
            now = _now()
            deadline = min(deadline, now + patience.total_timeout)
            seconds = min(patience.attempt_timeout, deadline - now)
            outcome = await self._attempt(
                line, request, claim, sent=now, seconds=seconds, tries=tries, use=use
            )
            if isinstance(outcome, Reply):
                if error := self.meter.unreported(claim, outcome, line.model.identity):
                    self.stop(error)
                return outcome, tries
            causes[outcome.cause] += 1
            if not may_retry(outcome, causes, patience):
                if outcome.cause == "connection" and not line.reached:
                    raise self._give_up(line, outcome) from outcome
                return outcome, tries
            wait = delay_before_retry(outcome, tries.sent, patience, draw=self._rng)
            if _now() + wait >= deadline:
                return outcome, tries
            with suppress(TimeoutError):
                await asyncio.wait_for(line.over.wait(), wait)
            try:
                async with asyncio.timeout(deadline - _now()):
                    claim = await self._admit(line, request)
            except TimeoutError:
                return outcome, tries

    async def _admit(self, line: _ModelState, request: Request) -> Claim:
        """Wait for a slot at the model, and for money to pay the attempt."""
        await line.limiter.acquire()
        try:
            return await self._reserve(line, request)
        except BaseException:
            line.limiter.release()
            raise

    async def _reserve(self, line: _ModelState, request: Request) -> Claim:
        """Wait for money to pay the attempt; the session ends where there is none."""
        self._check_open(line)
        try:
            while (claim := self.meter.claim(line.model.identity, request)) is None:
                self._short = True
                if text := self.meter.waiting_line():
                    self._announce(text)
                await self.meter.freed()
                self._check_open(line)
        except BudgetSpent as error:
            self.stop(error)
            raise
        return claim

    async def _attempt(
        self,
        line: _ModelState,
        request: Request,
        claim: Claim,
        *,
        sent: float,
        seconds: float,
        tries: Attempts,
        use: Use,
    ) -> Reply | CallError:
        """Make one attempt, release its slot and its reserved money, and count its cost."""
        tries.sent += 1
        use.attempts += 1
        self._in_flight += 1
        self._landed.clear()
        outcome: Reply | CallError | None = None
        try:
            async with asyncio.timeout(seconds):
                outcome = await line.model.ask(request)
            line.reached = True
            line.limiter.learn("success", sent=sent)
        except (TimeoutError, CallError) as error:
            late = CallError("timeout", f"no answer within {seconds:.1f} s", retryable=True)
            outcome = error if isinstance(error, CallError) else late
            # While the slot is still held: the call that takes it next must meet the new limit.
            self._learn(line, outcome, sent)
            outcome = outcome.with_traceback(None)  # its frames hold the response
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._landed.set()
            line.limiter.release()
            self.meter.settle(claim, outcome)
            tries.count(outcome, use)
        return outcome

    def _learn(self, line: _ModelState, error: CallError, sent: float) -> None:
        if error.fatal:
            raise self._give_up(line, error) from error
        line.reached = line.reached or error.cause != "connection"
        ending: Ending = "rate limit" if error.cause == "rate_limited" else "trouble"
        if error.retryable:
            pause = min(error.retry_after or 0.0, self._patience.total_timeout)
            line.limiter.learn(ending, sent=sent, pause=pause)
            self._announce_retry(line, error)

    def _announce_retry(self, line: _ModelState, error: CallError) -> None:
        # Once for each cause: a run that waits must not look like one that hangs.
        if error.cause not in line.announced:
            line.announced.add(error.cause)
            self._announce(f"{line.model.identity.label}: {error.detail}; retrying")

    def _give_up(self, line: _ModelState, error: CallError) -> HarnessError:
        line.end(
            ModelError(
                "the model cannot be used",
                where=line.model.identity.label,
                found=str(error),
                hint=HINTS.get(error.cause),
            )
        )
        assert line.reason is not None
        return line.reason

    def _check_open(self, line: _ModelState) -> None:
        if line.reason is not None:
            raise line.reason.with_traceback(None)
        try:
            self.meter.check()
        except BudgetSpent as error:
            self.stop(error)  # the budget does not come back: no call need wait
            raise

    def _line(self, model: Model) -> _ModelState:
        line = self._lines.get(model)
        if line is None:
            line = self._lines[model] = _ModelState(model=model, limiter=Limiter(model.concurrency))
            if self._stopped is not None:
                line.end(self._stopped)
        return line


def _answered(
    key: str,
    tries: Attempts,
    *,
    reply: Reply | None = None,
    failure: CallFailed | None = None,
    seconds: float = 0.0,
) -> Answer:
    """The answer of the model, with what its attempts cost."""
    return Answer(
        reply=reply,
        failure=failure,
        key=key,
        source="model",
        attempts=tries.sent,
        seconds=seconds,
        wasted=tries.wasted,
        unreported=tries.unreported,
    )


def _shared(answer: Answer, use: Use, seconds: float) -> Answer:
    """The answer that another call was given, which costs nothing more."""
    use.shared += 1
    use.save(answer.reply)
    use.failed += answer.failure is not None
    reply, failure = answer.reply, answer.failure
    return Answer(reply=reply, failure=failure, key=answer.key, source="shared", seconds=seconds)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _seeded(question: Question, key: str = "") -> Request:
    """The request as it is sent, with the seed of this repeat."""
    request, repeat = question.request, question.repeat
    seed = call_seed(request.seed, repeat)
    return msgspec.structs.replace(request, seed=seed, repeat=repeat, key=key)
