"""What every role of every stage has asked and cost in this run of the process."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from harness.models import Usage


@dataclass(kw_only=True, slots=True)
class Use:
    """Totals of one role in one stage; tokens are those of replies that a model gave now."""

    calls: int = 0
    from_store: int = 0
    shared: int = 0
    failed: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


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
        return {f"{stage}, {role}": asdict(use) for (stage, role), use in self.totals.items()}


def add_tokens(use: Use, usage: Usage | None) -> None:
    """Count the tokens of one reply."""
    if usage is not None:
        use.prompt_tokens += usage.prompt_tokens
        use.completion_tokens += usage.completion_tokens
        use.cached_tokens += usage.cached_tokens
        use.reasoning_tokens += usage.reasoning_tokens
