"""What every role of every stage has asked and cost in this run of the process."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from harness.contracts.model import CallError, Reply, Usage

IN_THE_DARK = frozenset({"timeout", "connection", "bad_response", "no_content"})
"""Causes of attempts that the server may have worked on; an error status means that it has not."""


@dataclass(kw_only=True, slots=True)
class Spend:
    """Tokens of some calls; of `untold` calls not all tokens were told."""

    calls: int = 0
    untold: int = 0
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
    """Totals of one role in one stage; tokens are those that were told of attempts made now.

    `asked` calls had an attempt; of `untold` of them not all tokens were told. What begins with
    `saved` is of replies that were there, from the store or an identical call.
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
        """Count a reply that was there."""
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
        """What was asked now."""
        return Spend(
            calls=self.asked,
            untold=self.untold,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
        )

    def saved(self) -> Spend:
        """What was there."""
        return Spend(
            calls=self.from_store + self.shared,
            untold=self.saved_untold,
            prompt_tokens=self.saved_prompt_tokens,
            cached_tokens=self.saved_cached_tokens,
            completion_tokens=self.saved_completion_tokens,
        )


class UsageBook:
    """Totals by (stage, role)."""

    def __init__(self) -> None:
        self.totals: dict[tuple[str, str], Use] = {}

    def of(self, stage: str, role: str) -> Use:
        """The totals of one role in one stage."""
        use = self.totals.get((stage, role))
        if use is None:
            use = self.totals[stage, role] = Use()
        return use

    def as_json(self) -> dict[str, dict[str, int]]:
        """All totals under `stage, role`."""
        return {usage_name(stage, role): asdict(use) for (stage, role), use in self.totals.items()}


@dataclass(kw_only=True, slots=True)
class Attempts:
    """What the attempts of one call came to.

    `wasted` are tokens of those that brought no reply; of `untold` attempts, that of the reply
    included, no tokens were told though the server may have worked on them.
    """

    sent: int = 0
    wasted: Usage | None = None
    untold: int = 0

    def told(self, outcome: Reply | CallError | None, use: Use) -> None:
        """Count what an attempt told of its tokens; None was given up before it ended."""
        usage = None if outcome is None else outcome.usage
        add_tokens(use, usage)
        if usage is None and in_the_dark(outcome):
            use.untold += not self.untold
            self.untold += 1
        if usage is not None and isinstance(outcome, CallError):
            self.wasted = usage if self.wasted is None else _sum(self.wasted, usage)


def in_the_dark(outcome: Reply | CallError | None) -> bool:
    """Whether an attempt of which no usage was told may have cost something."""
    return not isinstance(outcome, CallError) or outcome.cause in IN_THE_DARK


def player_name(role: str, member: str = "") -> str:
    """What those who play a role are counted under: members of a judge that is several apart."""
    return f"{role} {member}" if member else role


def usage_name(stage: str, role: str) -> str:
    """Under what a manifest keeps the totals of one role in one stage."""
    return f"{stage}, {role}"


def add_tokens(use: Use, usage: Usage | None) -> None:
    """Count the tokens of one attempt."""
    if usage is not None:
        use.prompt_tokens += usage.prompt_tokens
        use.completion_tokens += usage.completion_tokens
        use.cached_tokens += usage.cached_tokens
        use.reasoning_tokens += usage.reasoning_tokens


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        **{name: getattr(one, name) + getattr(other, name) for name in Usage.__struct_fields__}
    )
