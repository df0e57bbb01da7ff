"""Records and a desk written by hand."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from builders.records import WrittenRecords, make_records
from harness_interests.records import Claim, Engagement, History, Interest, Support

from harness.contracts.outcomes import FAILURES


class ScriptedDesk:
    """A desk that gives one prepared outcome and remembers what it was asked."""

    def __init__(self, outcome: Any, **options: Any) -> None:
        self.outcome = outcome
        self.options = SimpleNamespace(**options)
        self.asked: list[tuple[Any, ...]] = []

    async def ask(self, role: str, prompt: str, variables: Any, *, read: Any, tries: int) -> Any:
        self.asked.append((role, prompt, variables, tries))
        return read(self.outcome) if isinstance(self.outcome, str) else self.outcome

    async def judge(self, question: Any, *, role: str) -> Any:
        self.asked.append((role, question))
        return self.outcome


@pytest.fixture
def desk() -> type[ScriptedDesk]:
    return ScriptedDesk


@pytest.fixture
def history() -> Callable[..., History]:
    """A person's history from words: `+bread` was liked, `-trains` skipped."""

    def make(user: str, *words: str) -> History:
        engagements = tuple(Engagement(word[1:], word[0] == "+") for word in words)
        return History(id=user, user=user, engagements=engagements)

    return make


@pytest.fixture
def named() -> Callable[..., WrittenRecords]:
    """Records of the stage "name" from pairs of a history and its outcome.

    An outcome is a failure, or what each interest cites, by its name.
    """

    def make(*pairs: tuple[History, Any]) -> WrittenRecords:
        return make_records(
            (
                item,
                tuple(Interest(name, cited) for name, cited in outcome.items())
                if isinstance(outcome, dict)
                else outcome,
            )
            for item, outcome in pairs
        )

    return make


@pytest.fixture
def judged() -> Callable[..., WrittenRecords]:
    """Records of the stage "support": kept numbers, or a failure, by claim id."""

    def make(outcomes: dict[str, Any]) -> WrittenRecords:
        return make_records(
            (
                Claim(id=id, user=id.rpartition("/")[0], interest="", numbers=(), titles=()),
                outcome if isinstance(outcome, FAILURES) else Support(outcome),
            )
            for id, outcome in outcomes.items()
        )

    return make
