"""Asks models: each answer comes from the first of an ordered list of sources that has it.

Imported only by modules that run stages.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, Protocol

import msgspec

from harness.base.errors import BudgetSpent, HarnessError, ModelError
from harness.base.hashing import canonical, canonical_plain, digest, digest_bytes, stable_int
from harness.calls.budget import UNCOUNTED, Attempts, Budget, Claim, Meter, UsageBook, Use
from harness.calls.engines import Ending, EngineGate, Limiter
from harness.calls.retry import Patience, delay_before_retry, may_retry
from harness.calls.store import Store
from harness.contracts.identity import Identity
from harness.contracts.model import AskLive, CallError, Model, Reply, Request, Usage
from harness.contracts.outcomes import CallFailed

LARGEST_SEED = 0x7FFF_FFFF
"""The largest seed of servers with 32-bit seeds."""


def call_key(
    identity: Identity, request: Request, *, repeat: int, run_id: str, fresh: str | None = None
) -> str:
    """A 32-character hexadecimal key, equal for two calls that may share one answer.

    `fresh` is the salt of a run that needs answers of its own.
    """
    sampling = request.sampling
    # What is not set has no part in the key: keys are those from before these fields existed.
    reasoning = sampling.reasoning_tokens
    # The parts in order of their names; only the last contains fractions.
    salt = canonical_plain(fresh)
    messages = canonical_plain([[one.role, one.content] for one in request.messages])
    rest = canonical(
        {
            "model": identity.key(run_id),
            "sampling": {
                "temperature": sampling.temperature,
                "max_tokens": sampling.max_tokens,
                "top_p": sampling.top_p,
                "stop": sampling.stop,
                **({"reasoning_tokens": reasoning} if reasoning else {}),
                **sampling.seldom_set,
            },
            "seed": request.seed,
            "repeat": repeat,
            "schema": request.schema,
        }
    )
    return digest_bytes(b'{"fresh":%b,"messages":%b,%b' % (salt, messages, rest[1:]))


@functools.lru_cache
def call_seed(seed: int, repeat: int) -> int:
    """The seed of one call: different for each repeat, the same in every run."""
    return stable_int("call", seed, repeat) & LARGEST_SEED


HINTS = {
    "auth": "check the API key that the model uses",
    "not_found": "check the model's name and address",
    "connection": "start the server, or check the address that the model uses",
}

QUIET = 1.0
"""Seconds without a further question, and without a call that others may follow, after which models
that gather questions have all: one that comes later only has a file of its own."""

AT_A_TIME = 8
"""Replies processed per round of the event loop: about two milliseconds of work."""

ANYONE = "*"
"""The asker of an answer that came in a file: whoever asks first in a session gets its cost."""

LEFT = CallError("left", "the batch goes on: the session that takes it up counts it")

encoded = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reply).decode


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one call: a reply, or a typed failure.

    `attempts` counts the requests that this call sent itself: 0 for answers from the store or from
    an identical call in flight. `wasted`: the tokens of attempts that brought no reply.
    `unreported`: attempts, with or without a reply, that may have been billed but reported no
    usage.
    """

    reply: Reply | None
    failure: CallFailed | None = None
    key: str
    source: Literal["model", "store", "shared"]
    attempts: int = 0
    seconds: float = 0.0
    wasted: Usage | None = None
    unreported: int = 0


class OwnAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer with the session that got it, and the item that asked."""

    session: int
    asker: str
    answer: Answer


_decode_own = msgspec.json.Decoder(OwnAnswer).decode


class OwnAnswers:
    """What a run's earlier sessions were answered, by key; without a store nothing is kept.

    An answer of this session is not given back: a question that is asked again in one session is a
    new one, unless the shared store answers it.
    """

    def __init__(self, store: Store | None = None, *, session: int = 1) -> None:
        self._store = store
        self._session = session

    def earlier(self, key: str) -> OwnAnswer | None:
        """The answer that an earlier session got; None if there is none."""
        if self._session == 1 or self._store is None:
            return None
        if (value := self._store.get(bytes.fromhex(key))) is None:
            return None
        try:
            own = _decode_own(value)
        except msgspec.DecodeError:
            return None  # another version wrote it
        return own if own.session != self._session else None

    def has(self, key: str) -> bool:
        """Whether there is an answer of any session."""
        return self._store is not None and self._store.get(bytes.fromhex(key)) is not None

    def keep(self, asker: str, answer: Answer) -> None:
        """Keep an answer of this session; it replaces an earlier one."""
        if self._store is not None:
            own = OwnAnswer(session=self._session, asker=asker, answer=answer)
            self._store.put(bytes.fromhex(answer.key), encoded(own))


class Outbox(Protocol):
    """Writes the questions of models that are asked elsewhere to files."""

    def write(self, model: Model, key: str, request: Request) -> bool:
        """Whether the model's questions go to files, with this one; each is written once."""
        ...

    def finish(self) -> HarnessError | None:
        """Finish the files; why the session ends with them, if any was written."""
        ...


class Turns:
    """A queue for the work that follows a reply, so that free slots are refilled first.

    Replies come in bursts. If each were recorded at once, the first free slot would stay empty
    until the last record of the burst is made.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait for a later round of the event loop; a few per round, first come first served."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._next, loop)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(min(AT_A_TIME, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if self._waiting:
            loop.call_soon(self._next, loop)


@dataclass(kw_only=True, slots=True)
class ModelState:
    """The client's state for one model: its limiter, and the reason why it is not asked any more.

    A patient model has no use for its limiter.
    """

    model: Model
    limiter: Limiter
    reached: bool = False
    announced: set[str] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    reason: HarnessError | None = None

    def end(self, reason: HarnessError, *, send: bool = False) -> None:
        """Send nothing more, but `send` what was gathered; calls that wait raise the reason."""
        if self.reason is None:
            self.reason = reason
            self.over.set()
            self.limiter.dismiss(reason)
            self.model.leave(reason, send=send)


class Call(msgspec.Struct, kw_only=True, gc=False):
    """A request as it is sent, the key of its answer, who asks, and the counts that it enters."""

    model: Model
    request: Request
    key: str
    refresh: bool
    asker: str
    use: Use
    began: float = 0.0


class Client:
    """Asks models: once for each distinct request, never twice for a stored answer.

    Every reply is kept among the run's own answers, but only those that ended by themselves are
    stored for other runs. `run_id` enters the keys of models whose answers may not leave the run;
    `fresh` is a salt for runs that need answers of their own. What the `outbox` takes is asked
    elsewhere: the session ends once all is written. `live` counts attempts in flight, not batches.
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
        own: OwnAnswers | None = None,
    ) -> None:
        self.usage = UsageBook()
        self.meter = meter or Meter(Budget())
        self._store = store
        self._run_id = run_id
        self._patience = patience or Patience()
        self._engines = engines or EngineGate()
        self._fresh = fresh
        self._outbox = outbox
        self._own = own or OwnAnswers()
        self._lookups = (self._from_own, self._from_store, self._from_others)
        self._given: set[str] = set()
        self._announce = announce or (lambda text: None)
        self._flights: dict[str, asyncio.Future[Answer] | None] = {}
        self._states: dict[Model, ModelState] = {}
        self._rng = Random()
        self._turns = Turns()
        self._stopped: HarnessError | None = None
        self._over = asyncio.Event()
        self._in_flight = 0
        self.live = 0
        self._retrying = 0
        self._came = 0.0
        self._short = False
        self._quiet: asyncio.TimerHandle | None = None
        self._landed = asyncio.Event()
        self._landed.set()

    def follow(self, earlier: Client) -> None:
        """Continue the budget and the counts of an earlier client; call it before `ask`."""
        self.usage, self.meter = earlier.usage, earlier.meter

    def ask(
        self,
        model: Model,
        request: Request,
        *,
        repeat: int = 0,
        role: str,
        stage: str,
        refresh: bool = False,
        asker: str = "",
    ) -> Coroutine[Any, Any, Answer]:
        """Answer one request; `refresh` asks the model even if the store has an answer.

        An `asker` that an earlier session answered gets the same answer, with what it cost; an item
        that is asked again because it failed is another asker.
        Raises ModelError, BudgetSpent or StorageError if the run must end; a failure of this one
        request is returned in the answer.
        """
        key = self.key(model.identity, request, repeat=repeat)
        # An item that is asked again must not get what a patient model sent for it before.
        sent_as = f"{key}.{digest(asker)[:8]}" if refresh else key
        seed = call_seed(request.seed, repeat)
        request = msgspec.structs.replace(request, seed=seed, repeat=repeat, key=sent_as)
        use = self.usage.of(stage, role)
        call = Call(
            model=model, request=request, key=key, refresh=refresh, asker=asker, use=use,
        )  # fmt: skip
        # Not a coroutine itself: tens of thousands of calls may wait for a batch.
        return self._answer(call)

    async def _answer(self, call: Call) -> Answer:
        """The answer of the first source that has one; each answer by rule is a new one."""
        call.use.calls += 1
        call.began = _now()
        if call.model.identity.scope == "call":
            return await self._held(call)
        for look_up in self._lookups:
            if (answer := look_up(call)) is not None:
                return answer
        if self._outbox is not None:
            await self._write(call, self._outbox)
        # Identical calls wait for the one in flight; where that was cancelled, the first flies.
        while call.key in self._flights:
            if (answer := await self._from_flight(call)) is not None:
                return answer
        return await self._from_model(call)

    def key(self, identity: Identity, request: Request, *, repeat: int = 0) -> str:
        """The key of a request's answer in this run."""
        return call_key(identity, request, repeat=repeat, run_id=self._run_id, fresh=self._fresh)

    def limits(self) -> dict[str, Any]:
        """The limiter's history of every model that was asked, for the manifest."""
        reports: dict[str, Any] = {}
        for state in list(self._states.values()):  # displays call this in their thread
            name = label = state.model.identity.label
            number = 2
            while label in reports:
                label = f"{name} #{number}"
                number += 1
            reports[label] = state.limiter.report()
            if learnt := state.model.report():
                reports[label]["learnt"] = learnt
        return reports

    def stop(self, reason: HarnessError, *, send: bool = False) -> None:
        """Send nothing more: attempts in flight finish, calls that would send one raise the reason.

        Patient models still `send` what they gathered. Answers in the store are still returned.
        """
        if self._stopped is None:
            self._stopped = reason
            self._engines.stop(reason)
            for state in self._states.values():
                state.end(reason, send=send)
            self._over.set()
            self.meter.wake()

    async def landed(self) -> None:
        """Wait until no attempt is in flight."""
        await self._landed.wait()

    async def close(self) -> None:
        """Close every model that was opened."""
        await self._engines.close()

    def _from_own(self, call: Call) -> Answer | None:
        """What an earlier session answered this item, with what it cost."""
        own = self._own.earlier(call.key)
        if own is None or own.asker != call.asker or call.key in self._given:
            return None
        self._given.add(call.key)
        call.use.from_store += 1
        call.use.save(own.answer.reply)
        return own.answer

    def _from_store(self, call: Call) -> Answer | None:
        """The answer that any run stored."""
        if self._store is None or call.refresh:
            return None
        if (value := self._store.get(bytes.fromhex(call.key))) is None:
            return None
        try:
            reply = _decode(value)
        except msgspec.DecodeError:
            return None  # bytes that are no reply count as no answer and are overwritten
        call.use.from_store += 1
        call.use.save(reply)
        return Answer(reply=reply, key=call.key, source="store", seconds=_now() - call.began)

    def _from_others(self, call: Call) -> Answer | None:
        """What an earlier session answered another item, or what came in a file."""
        own = None if call.refresh else self._own.earlier(call.key)
        if own is None:
            return None
        if own.asker != ANYONE or call.key in self._given:
            return _shared(own.answer, call.use)
        self._given.add(call.key)
        tries, reply = Attempts(sent=1), own.answer.reply
        call.use.asked += 1
        if reply is not None:
            tries.count(reply, call.use)
            self._share(call.key, reply)
        return _answered(call, tries, reply or own.answer.failure)

    async def _write(self, call: Call, outbox: Outbox) -> None:
        """Write a question that is asked elsewhere; it waits for the end of the session."""
        if outbox.write(call.model, call.key, call.request):
            call.use.calls -= 1
            self._gather()
            await self._over.wait()
            assert self._stopped is not None
            raise self._stopped.with_traceback(None)

    async def _from_flight(self, call: Call) -> Answer | None:
        """The answer of the identical call in flight; None if it was cancelled."""
        flight = self._flights[call.key]
        if flight is None:  # nobody has waited so far
            flight = self._flights[call.key] = asyncio.get_running_loop().create_future()
        await asyncio.wait((flight,))
        if flight.cancelled():
            return None
        return _shared(flight.result(), call.use, _now() - call.began)

    async def _from_model(self, call: Call) -> Answer:
        """The model's answer, which is also that of all identical calls until it comes."""
        self._flights[call.key] = None
        try:
            answer = await (self._attempts if call.model.patient else self._held)(call)
        except BaseException as error:
            if (flight := self._flights.pop(call.key)) is not None:
                if isinstance(error, Exception):
                    flight.set_exception(error)
                    flight.exception()  # all that waited may have given up
                else:
                    flight.cancel()
            raise
        if (flight := self._flights.pop(call.key)) is not None:
            flight.set_result(answer)
        return answer

    async def _held(self, call: Call) -> Answer:
        """The answer of a model whose engine is held open meanwhile."""
        state = self._state(call.model)
        self._check_open(state)
        try:
            async with self._engines.enter(call.model):
                return await self._attempts(call)
        except CallError as error:
            raise self._give_up(state, error) from error

    async def _attempts(self, call: Call) -> Answer:
        """The model's answer after as many attempts as it needs and may have, with their cost."""
        state, tries = self._state(call.model), Attempts()
        deadline: float | None = None
        if call.model.patient:
            async with self._engines.enter(call.model):
                pass  # it occupies nothing, so that it stays open
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    claim = await self._admit(state, call.request)
            except TimeoutError:
                break
            if deadline is None and not call.model.patient:
                deadline = _now() + self._patience.total_timeout
            outcome = await self._attempt(state, call, claim, tries, deadline)
            if isinstance(outcome, AskLive):
                self.meter.calls -= 1
                live = msgspec.structs.replace(call, model=outcome.model, began=_now())
                return await self._held(live)
            if isinstance(outcome, Reply):
                if error := self.meter.unreported(claim, outcome, call.model.identity):
                    self.stop(error)
                break
            if not await self._wait_to_retry(state, outcome, tries, deadline):
                break
        if isinstance(outcome, CallError):
            return _answered(call, tries, CallFailed(outcome.cause, outcome.detail))
        answer = _answered(call, tries, outcome)
        try:
            if state.limiter.busy:
                await self._turns.wait()
        finally:
            self._keep(answer, call)
        return answer

    async def _wait_to_retry(
        self, state: ModelState, error: CallError, tries: Attempts, deadline: float | None
    ) -> bool:
        """Whether one more attempt is made, after the wait for it."""
        if not may_retry(error, Counter(tries.causes), self._patience):
            if error.cause == "connection" and not state.reached:
                raise self._give_up(state, error) from error
            return False
        # Once for each cause: a run that waits must not look like one that hangs.
        if error.cause not in state.announced:
            state.announced.add(error.cause)
            self._announce(f"{state.model.identity.label}: {error.detail}; retrying")
        wait = delay_before_retry(error, tries.sent, self._patience, draw=self._rng)
        if deadline is not None and _now() + wait >= deadline:
            return False
        self._retrying += state.model.patient
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(state.over.wait(), wait)
        finally:
            self._retrying -= state.model.patient
        return True

    async def _admit(self, state: ModelState, request: Request) -> Claim:
        """Wait for a slot at the model, and for money to pay the attempt."""
        if state.model.patient:
            sent_before = state.reason is None and state.model.holds(request.key)
            return UNCOUNTED if sent_before else await self._reserve(state, request)
        await state.limiter.acquire()
        try:
            return await self._reserve(state, request)
        except BaseException:
            state.limiter.release()
            raise

    async def _reserve(self, state: ModelState, request: Request) -> Claim:
        """Wait for money to pay the attempt; the session ends where there is none."""
        self._check_open(state)
        try:
            while (claim := self.meter.claim(state.model.identity, request)) is None:
                self._short = True
                if text := self.meter.waiting_line():
                    self._announce(text)
                await self.meter.freed()
                self._check_open(state)
        except BudgetSpent as error:
            self.stop(error, send=True)
            raise
        return claim

    async def _attempt(
        self,
        state: ModelState,
        call: Call,
        claim: Claim,
        tries: Attempts,
        deadline: float | None,
    ) -> Reply | CallError:
        """Make one attempt, release its slot and its reserved money, and count its cost."""
        model, sent = state.model, _now()
        seconds = deadline and min(self._patience.attempt_timeout, deadline - sent)
        outcome: Reply | CallError | None = LEFT if model.patient else None
        self._in_flight += 1
        self._landed.clear()
        if model.patient:
            self._gather()
        else:
            self.live += 1
            tries.begin(call.use)
        try:
            if seconds is None:
                outcome = await model.ask(call.request)
            else:
                async with asyncio.timeout(seconds):
                    outcome = await model.ask(call.request)
                state.limiter.learn("success", sent=sent)
            state.reached = True
        except (TimeoutError, CallError) as error:
            late = CallError("timeout", f"no answer within {seconds or 0:.1f} s", retryable=True)
            outcome = error if isinstance(error, CallError) else late
            # While the slot is still held: the call that takes it next must meet the new limit.
            self._learn(state, outcome, sent)
            outcome = outcome.with_traceback(None)  # its frames hold the response
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._landed.set()
            if not model.patient:
                self.live -= 1
                state.limiter.release()
            self.meter.settle(claim, outcome)
            if model.patient and outcome is not LEFT and not isinstance(outcome, AskLive):
                tries.begin(call.use)
            tries.count(outcome, call.use)
        return outcome

    def _learn(self, state: ModelState, error: CallError, sent: float) -> None:
        if error.fatal:
            raise self._give_up(state, error) from error
        state.reached = state.reached or error.cause != "connection"
        if error.retryable and not state.model.patient:
            pause = min(error.retry_after or 0.0, self._patience.total_timeout)
            ending: Ending = "rate limit" if error.cause == "rate_limited" else "trouble"
            state.limiter.learn(ending, sent=sent, pause=pause)

    def _keep(self, answer: Answer, call: Call) -> None:
        """Keep the reply of an answer; the item that it was made for owns it."""
        reply = answer.reply
        if reply is None or call.model.identity.scope == "call":
            return
        self._share(answer.key, reply)
        self._own.keep(call.asker, answer)

    def _share(self, key: str, reply: Reply) -> None:
        """Store a reply for other runs, if it ended by itself."""
        if self._store is not None and reply.finish == "stop":
            self._store.put(bytes.fromhex(key), encoded(reply))

    def _give_up(self, state: ModelState, error: CallError) -> HarnessError:
        state.end(
            ModelError(
                "the model cannot be used",
                where=state.model.identity.label,
                found=str(error),
                hint=HINTS.get(error.cause),
            )
        )
        assert state.reason is not None
        return state.reason

    def _check_open(self, state: ModelState) -> None:
        if state.reason is not None:
            raise state.reason.with_traceback(None)
        try:
            self.meter.check()
        except BudgetSpent as error:
            self.stop(error, send=True)  # the budget does not come back: no call need wait
            raise

    def _state(self, model: Model) -> ModelState:
        state = self._states.get(model)
        if state is None:
            state = ModelState(model=model, limiter=Limiter(model.concurrency))
            self._states[model] = state
            if self._stopped is not None:
                state.end(self._stopped)
        return state

    def _gather(self) -> None:
        """Have models that gather questions send what they have, once no more come."""
        self._came = _now()
        if self._quiet is None:
            self._quiet = asyncio.get_running_loop().call_later(QUIET, self._look_whether_all_came)

    def _look_whether_all_came(self) -> None:
        self._quiet = None
        # A call that is about to be sent again belongs to those that come.
        coming = self._retrying or self.live
        if coming or _now() - self._came < QUIET:
            loop = asyncio.get_running_loop()
            self._quiet = loop.call_later(QUIET / 4, self._look_whether_all_came)
            return
        try:
            for state in list(self._states.values()):
                state.model.gathered(live=not self._short)
            reason = None if self._outbox is None else self._outbox.finish()
        except HarnessError as error:
            reason = error
        if reason is not None:
            self.stop(reason, send=True)


def _answered(call: Call, tries: Attempts, outcome: Reply | CallFailed | None) -> Answer:
    """The answer of the model, with what its attempts cost."""
    failure = None if isinstance(outcome, Reply) else outcome
    call.use.failed += failure is not None
    return Answer(
        reply=outcome if isinstance(outcome, Reply) else None,
        failure=failure,
        key=call.key,
        source="model",
        attempts=tries.sent,
        seconds=_now() - call.began,
        wasted=tries.wasted,
        unreported=tries.unreported,
    )


def _shared(answer: Answer, use: Use, seconds: float = 0.0) -> Answer:
    """The answer that another call was given, which costs nothing more."""
    use.shared += 1
    use.save(answer.reply)
    use.failed += answer.failure is not None
    reply, failure = answer.reply, answer.failure
    return Answer(reply=reply, failure=failure, key=answer.key, source="shared", seconds=seconds)


def _now() -> float:
    return asyncio.get_running_loop().time()
