"""A stage: one step of a method, the items that it works on, and the desk at which it does."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from random import Random
from typing import Any, Literal, Protocol, TypeVar, overload

import msgspec

from harness.contracts.judge import Classified, Classify, Select, Selected
from harness.contracts.outcomes import CallFailed, NoVerdict, Parsed, Reader, Unreadable
from harness.contracts.records import Records

T = TypeVar("T")

CANDIDATE = "candidate"
"""The role of the model that is evaluated."""


class Memo(Protocol):
    """A small table that runs share; the first value written for a key stays.

    known = desk.memo("categories").known(["jazz", "bebop"])
    """

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of those of the keys that have one."""

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold for these keys from now on: the given ones, or earlier ones."""


class Desk(Protocol):
    """The desk: what one item's worker asks, judges, reads and logs with."""

    @property
    def options(self) -> Any:
        """The options that the stage declares; reading any other raises.

        window = desk.options.window
        """

    @property
    def random(self) -> Random:
        """A generator seeded for this item: the same numbers in every process.

        order = desk.random.sample(titles, k=len(titles))
        """

    @property
    def log(self) -> logging.Logger:
        """The stage's logger.

        desk.log.info("%s has no history", item.user)
        """

    def memo(self, name: str) -> Memo:
        """A table shared by runs of this stage with equal version, prompts, models and sampling.

        Options and seed do not separate tables: a memo keeps conventions, not samples. If its
        values depend on anything else, put that into the name.

            found = desk.memo("categories").keep({"bebop": "jazz"})
        """

    async def ask(
        self,
        role: str,
        prompt: str,
        variables: Mapping[str, Any],
        *,
        read: Reader[T],
        tries: int = 1,
        repeat: int = 0,
        truncated: Literal["fail", "read"] = "fail",
        corrected: bool = False,
    ) -> Parsed[T] | Unreadable | CallFailed:
        """What the role's model answered, read; asked up to `tries` times while unreadable.

        Each try is a repeat of its own, so it has an answer of its own; `repeat` numbers questions
        that are asked several times on purpose. A reply that was cut at the token limit is a
        failure unless `truncated="read"`; at a temperature up to 0.1 it is not asked for again,
        since it would be cut again. With `corrected`, each try after the first shows the previous
        answer and why it could not be read.

            answer = await desk.ask("candidate", "rate", {"title": title}, read=RATING, tries=3)
            return answer.value if isinstance(answer, Parsed) else answer
        """

    @overload
    async def judge(self, question: Select, *, role: str = "judge") -> Selected | NoVerdict: ...

    @overload
    async def judge(self, question: Classify, *, role: str = "judge") -> Classified | NoVerdict: ...

    async def judge(
        self, question: Select | Classify, *, role: str = "judge"
    ) -> Selected | Classified | NoVerdict:
        """What the role's judge decided.

        verdict = await desk.judge(Select(prompt="verify", subject=interest, options=titles))
        """


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of a stage's work: one question where possible.

    A subclass adds everything that the work needs; the hash of an item is the key of its record:

        class Window(Item, frozen=True, kw_only=True):
            titles: tuple[str, ...]
    """

    id: str
    """Unique among the items of its stage."""

    user: str
    """The person the item is about; intervals are clustered by user."""


@dataclass(frozen=True, kw_only=True)
class Calls:
    """How many calls one item makes if every answer can be read at once.

    A stage whose option `samples` multiplies its calls: `Calls(least=1, most=2, times="samples")`.
    """

    least: int = 1
    most: int = 1
    times: str = ""
    """A declared option, a whole number, that multiplies both."""


@dataclass(frozen=True)
class Stage:
    """One step of a method: where its items come from, and what is done with each.

    Items wait in a JSON file between the two, so an item must survive a round trip through JSON.

        Stage("rate", item=Pair, value=Rating, items=pairs, work=rate, roles=("candidate",))
    """

    name: str
    """The stage's name, and the name of its prompt unless `prompts` lists others."""

    _: KW_ONLY
    item: type[Item]
    value: Any
    items: Callable[[Mapping[str, Records[Any, Any]], Any, Any], Iterable[Item]]
    """`items(records by stage, data, options)` yields the items; it sees the stages in `after`."""

    work: Callable[[Any, Desk], Awaitable[Any]]
    """`await work(item, desk)` returns the item's value, or the failure that prevented one."""

    version: int = 1
    """Raise it when the code changes what the stage records."""

    roles: tuple[str, ...] = ()
    """The roles that `work` asks with `desk.ask`."""

    scored: bool = True
    """False for roles that only help: their answers may be unreadable as seldom as a judge's."""

    judges: tuple[str, ...] = ()
    """The roles that `work` asks with `desk.judge`."""

    prompts: tuple[str, ...] = ()
    """The templates that it may use; its own name if empty."""

    recorded: Callable[[Any], Item] | None = None
    """The item as its record holds it, without what the record's calls hold anyway; the record's
    key is that of the whole item."""

    options: tuple[str, ...] = ()
    """The options that `items` and `work` may read; no others enter the stage's key."""

    after: tuple[str, ...] = ()
    """The stages that must be finished before this one begins."""

    calls: Calls | Callable[[Any, Any], Calls] = Calls()
    """The calls of an item, or a function of an item and the declared options."""

    sequential: bool = False
    """Whether most questions of an item follow from answers, so that they cannot wait for batches:
    a patient model is asked live."""

    when: Callable[[Any, Any], bool] | None = None
    """Whether a task has this stage, from its data and all options. Without the stage there are no
    records, and a role that no other stage asks needs no model."""

    asks: Callable[[Any], Collection[str]] | None = None
    """Which of `prompts` are used, from all options; all of them if not given."""

    role_hint: str = ""
    """What to do if a role of this stage has no model."""

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the templates that the stage may use."""
        return self.prompts or (self.name,)

    def asked(self, options: Any) -> frozenset[str]:
        """The prompts that the stage may use with these options, as `<prompt>.<role>`."""
        prompts = self.templates if self.asks is None else self.asks(options)
        roles = (*self.roles, *self.judges)
        return frozenset(f"{prompt}.{role}" for prompt in prompts for role in roles)
