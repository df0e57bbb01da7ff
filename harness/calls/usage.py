"""Counts the calls and tokens of every role in every stage, in this process and in workers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from harness.contracts.model import CallError, Reply, Usage

POSSIBLY_BILLED = frozenset({"timeout", "connection", "bad_response", "no_content"})
"""Causes of failed attempts that may have been billed; an error status means that none was."""


@dataclass(kw_only=True, slots=True)
class Spend:
    """The tokens of some calls; `unreported` calls reported no usage, at least for one attempt."""

    calls: int = 0
    unreported: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def add(self, usage: Usage | None) -> None:
        """Count the tokens of one attempt."""
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.cached_tokens += usage.cached_tokens
            self.completion_tokens += usage.completion_tokens


@dataclass(kw_only=True, slots=True)
class Use:
    """The totals of one role in one stage; tokens are the reported ones of new attempts.

    `asked` calls sent an attempt; `untold` of them had one that may have been billed but reported
    no usage. Fields that begin with `saved` count replies from the store or an identical call.
    """

    calls: int = 0
    asked: int = 0
    from_store: int = 0
    shared: int = 0
    failed: int = 0
    attempts: int = 0
    untold: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    saved_untold: int = 0
    saved_prompt_tokens: int = 0
    saved_completion_tokens: int = 0
    saved_cached_tokens: int = 0

    def save(self, reply: Reply | None) -> None:
        """Count a reply from the store or an identical call."""
        if reply is None:
            return
        usage = reply.usage
        if usage is None:
            self.saved_untold += 1
        else:
            self.saved_prompt_tokens += usage.prompt_tokens
            self.saved_completion_tokens += usage.completion_tokens
            self.saved_cached_tokens += usage.cached_tokens

    def paid(self) -> Spend:
        """The tokens of calls that were asked now."""
        return Spend(
            calls=self.asked,
            unreported=self.untold,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
        )

    def saved(self) -> Spend:
        """The tokens of replies that were reused."""
        return Spend(
            calls=self.from_store + self.shared,
            unreported=self.saved_untold,
            prompt_tokens=self.saved_prompt_tokens,
            cached_tokens=self.saved_cached_tokens,
            completion_tokens=self.saved_completion_tokens,
        )


class UsageBook:
    """Totals by (stage, role), of this process, and of the workers that report theirs."""

    def __init__(self) -> None:
        self.totals: defaultdict[tuple[str, str], Use] = defaultdict(Use)
        self._workers: dict[str, Mapping[str, Mapping[str, int]]] = {}

    def of(self, stage: str, role: str) -> Use:
        """The totals of one role in one stage."""
        return self.totals[stage, role]

    def take(self, worker: str, report: Mapping[str, Mapping[str, int]]) -> None:
        """Take the `as_json()` of a worker; it replaces the worker's earlier one."""
        self._workers[worker] = report

    def as_json(self) -> dict[str, dict[str, int]]:
        """All totals under `stage, role`, with those that every worker reported last."""
        totals = dict(self.totals)  # a display may ask in another thread
        summed = {
            usage_name(stage, role): Counter(asdict(use)) for (stage, role), use in totals.items()
        }
        for report in list(self._workers.values()):
            for name, use in report.items():
                summed.setdefault(name, Counter()).update(use)
        return {name: dict(use) for name, use in summed.items()}


@dataclass(kw_only=True, slots=True)
class Attempts:
    """The attempts of one call.

    `wasted`: the tokens of attempts that brought no reply. `unreported`: attempts, with or without
    a reply, that may have been billed but reported no usage. `causes` are those of the failed ones.
    """

    sent: int = 0
    causes: tuple[str, ...] = ()
    wasted: Usage | None = None
    unreported: int = 0

    def begin(self, use: Use) -> None:
        """Count one that is sent."""
        self.sent += 1
        use.attempts += 1
        use.asked += self.sent == 1

    def count(self, outcome: Reply | CallError | None, use: Use) -> None:
        """Count the usage of an attempt; None for one that was cancelled."""
        if isinstance(outcome, CallError):
            self.causes = (*self.causes, outcome.cause)
        usage = None if outcome is None else outcome.usage
        if usage is None:
            if possibly_billed(outcome):
                use.untold += not self.unreported
                self.unreported += 1
            return
        use.prompt_tokens += usage.prompt_tokens
        use.completion_tokens += usage.completion_tokens
        use.cached_tokens += usage.cached_tokens
        use.reasoning_tokens += usage.reasoning_tokens
        if isinstance(outcome, CallError):
            self.wasted = usage if self.wasted is None else _sum(self.wasted, usage)


def possibly_billed(outcome: Reply | CallError | None) -> bool:
    """Whether the attempt may have been billed although no usage was reported."""
    return not isinstance(outcome, CallError) or outcome.cause in POSSIBLY_BILLED


def player_name(role: str, member: str = "") -> str:
    """The name under which a role is counted; members of a panel are counted apart."""
    return f"{role} {member}" if member else role


def usage_name(stage: str, role: str) -> str:
    """The key of a role's totals in one stage, in manifests."""
    return f"{stage}, {role}"


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        **{name: getattr(one, name) + getattr(other, name) for name in Usage.__struct_fields__}
    )
