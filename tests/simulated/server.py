"""The server of a world: what it answers is fixed by its script, how it fails is drawn."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from harness.calls.pricing import Price
from harness.contracts.model import CallError, Reply, Request, Usage

PRICES = {
    "candidate": Price(input=1000.0, output=3000.0),
    "referee": Price(input=500.0, output=500.0),
    "judge": Price(input=2000.0, output=6000.0, cached=500.0),
    "second": Price(input=2000.0, output=6000.0),
}
WORDS = ("ant", "bee", "crow", "deer", "eel", "finch", "goat")

FAULTS = (
    "429", "429 with a pause", "500", "503 with a pause", "reset", "cut body", "no content",
    "late", "never",
)  # fmt: skip
BILLED = {"reset", "cut body"}
"""Faults of attempts that the server may have billed although no answer arrived."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A request that arrived: the question, when, in which session."""

    question: str
    at: float
    session: int


@dataclass
class Session:
    """What one session sent and was billed, what it has in flight, and the answers that it got, by
    their id. What is left of a session that crashed ends in its own account."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)
    in_flight: Counter[str] = field(default_factory=Counter)
    answered: dict[str, tuple[str, float]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


class Server:
    """Answers the questions of one world.

    `faults` is the share of questions whose first attempts fail. `script` decides the texts alone:
    two servers of one script say the same. What no server may see is in a session's `broken`:
    among it what is `forbidden`, and where answers are `stored`, a question that was answered.
    """

    def __init__(
        self, script: int, draw: Random, *, faults: float, latency: float, most: int = 4
    ) -> None:
        self.script, self.draw, self.faults, self.latency, self.most = (
            script, draw, faults, latency, most,
        )  # fmt: skip
        self.session = Session()
        self.sessions: list[Session] = []
        self.budget: Any = None
        self.left: dict[str, list[str]] = {}
        self.forbidden: dict[str, str] = {}
        self.gone_until = 0.0
        self.wired = False
        self.stored = False
        self.answers: set[str] = set()
        self.number = 0

    def begin(self, budget: Any) -> Session:
        """The account of another session."""
        self.session, self.answers = Session(), set()
        self.sessions.append(self.session)
        self.budget = budget
        return self.session

    async def ask(self, name: str, limit: int, request: Request) -> Reply:
        """Answer an attempt, or fail as it was drawn."""
        session = self.session
        question = question_of(name, request)
        self._arrived(session, name, limit, question)
        session.in_flight[name] += 1
        session.in_flight[question] += 1
        try:
            if now() < self.gone_until:
                raise CallError("connection", "refused", retryable=True)
            left = self.left.setdefault(question, self._drawn(question))
            fault = left.pop(0) if left else None
            reply = answer(self.script, name, request)
            assert reply.usage is not None
            try:
                await asyncio.sleep(self._seconds(fault))
            except asyncio.CancelledError:
                if self.draw.random() < 0.7:  # it knows nothing of that, and answers
                    self._bill(session, name, reply.usage)
                raise
            if fault in (None, "late"):
                self._bill(session, name, reply.usage)
                session.tokens += reply.usage.prompt_tokens + reply.usage.completion_tokens
                self.number += 1
                if self.stored and reply.finish == "stop":
                    self.answers.add(question)
                session.answered[f"answer {self.number}"] = question, now()
                return replaced(reply, f"answer {self.number}")
            if fault in BILLED and self.draw.random() < 0.7:
                self._bill(session, name, reply.usage)
            raise self._error(fault, session, name, reply.usage)
        finally:
            session.in_flight[name] -= 1
            session.in_flight[question] -= 1

    def _arrived(self, session: Session, name: str, limit: int, question: str) -> None:
        """Count an attempt, and note what must not have been sent."""
        session.calls += 1
        session.attempts.append(Attempt(question=question, at=now(), session=len(self.sessions)))
        if question in self.forbidden:
            session.broken.append(f"{question!r} was asked, but {self.forbidden[question]}")
        if self.wired:
            return  # it learns later than the client that an attempt is over
        if session.in_flight[question]:
            session.broken.append(f"{question!r} was asked while it was being asked")
        if question in self.answers:
            session.broken.append(f"{question!r} was asked again in one session")
        if session.in_flight[name] >= limit:
            session.broken.append(f"{name}: {session.in_flight[name] + 1} in flight, limit {limit}")
        budget = self.budget
        if budget.calls is not None and session.calls > budget.calls:
            session.broken.append(f"{session.calls} calls, at most {budget.calls}")
        if budget.tokens is not None and session.tokens >= budget.tokens:
            session.broken.append(f"sent when {session.tokens} of {budget.tokens} tokens were used")

    def _bill(self, session: Session, name: str, usage: Usage) -> None:
        session.money += PRICES[name].cost_of(usage)
        budget = self.budget
        if budget.cost is not None and session.money > budget.cost + 1e-9:
            session.broken.append(f"{session.money} billed, at most {budget.cost}")

    def _drawn(self, question: str) -> list[str]:
        """How the first attempts of a question fail."""
        if self.draw.random() >= self.faults:
            return []
        kinds = [self.draw.choice(FAULTS)] if self.draw.random() < 0.5 else FAULTS
        return [self.draw.choice(kinds) for _ in range(self.draw.randint(1, self.most))]

    def _seconds(self, fault: str | None) -> float:
        if fault == "never":
            return 1e6
        if fault == "late":
            return self.draw.uniform(1.0, 900.0)
        return self.latency * self.draw.choice((0.01, 0.5, 1.0, 1.0, 1.0, 3.0))

    def _error(self, fault: str, session: Session, name: str, usage: Usage) -> CallError:
        pause = self.draw.choice((0.0, 0.5, 5.0, 90.0)) if "pause" in fault else None
        if fault.startswith("429"):
            return CallError("rate_limited", "HTTP 429", retryable=True, status=429,
                             retry_after=pause)  # fmt: skip
        if fault.startswith("50"):
            return CallError("server_error", f"HTTP {fault[:3]}", retryable=True,
                             status=int(fault[:3]), retry_after=pause)  # fmt: skip
        if fault == "cut body":
            return CallError("bad_response", "the body ends early", retryable=True)
        if fault == "no content":
            self._bill(session, name, usage)  # and it says what it cost
            session.tokens += usage.prompt_tokens + usage.completion_tokens
            return CallError("no_content", "no content", retryable=True, usage=usage)
        return CallError("connection", "reset by peer", retryable=True)


def now() -> float:
    return asyncio.get_running_loop().time()


def question_of(name: str, request: Request) -> str:
    """The question as a text that no other has: who is asked, what, and for which time."""
    turns = " | ".join(message.content.strip() for message in request.messages)
    return f"{name} #{request.repeat}: {turns}"


def answer(script: int, name: str, request: Request) -> Reply:
    """What the script says: mostly an answer, else none that can be read, a cut or a refused one.

    Some different questions get the very same answer.
    """
    draw = Random(f"{script} {question_of(name, request)}")
    text, finish = _said(name, request, draw), "stop"
    spoilt = draw.random()
    if spoilt < 0.1:
        text = draw.choice(("", "I cannot say.", text[: len(text) // 2], '{"words": [1, 2]}'))
    elif spoilt < 0.15:
        text, finish = text[: len(text) // 2], "length"
    elif spoilt < 0.18:
        text, finish = "no", "refused"
    elif spoilt < 0.22:
        text = f"Well.\n{text}" if name != "judge" else text
    elif spoilt < 0.25:
        text = text + " " * 2500  # so long that it is read in a thread
    length = sum(16 + len(message.content) for message in request.messages)
    # A template may add so much, and thoughts fill what the text leaves.
    prompt = draw.choice((10 + length // 3, 200 + length))
    completion = min(request.sampling.limit, draw.choice((1 + len(text) // 3, 10_000)))
    cached = draw.choice((0, prompt // 2, prompt))
    usage = Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached)
    return Reply(text=text, finish=finish, usage=usage)


def _said(name: str, request: Request, draw: Random) -> str:
    if name == "candidate":
        return json.dumps({"words": sorted(draw.sample(WORDS, draw.randint(1, 3)))})
    if name == "referee" and "large" in request.messages[-1].content:
        return json.dumps({"kind": draw.choice(("small", "large"))})
    if name == "referee":
        return json.dumps({"kind": draw.choice(("bird", "beast"))})
    options = len(re.findall(r"^\d+\. ", request.messages[0].content, re.MULTILINE))
    chosen = [str(number) for number in range(1, options + 1) if draw.random() < 0.6]
    return ", ".join(chosen) or "NONE"


def replaced(reply: Reply, number: str) -> Reply:
    """The reply under this id."""
    return Reply(text=reply.text, finish=reply.finish, usage=reply.usage, id=number)
