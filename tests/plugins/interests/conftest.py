"""Histories and what was named in them, written by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from builders.records import WrittenRecords, make_records
from harness_interests.records import Engagement, History, Interest


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
