"""What the stages of GISTBench hand on, for a user called ada unless it is said otherwise."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness_gistbench.records import (
    Cited,
    Claim,
    Evidence,
    Line,
    PoolObject,
    Prediction,
    TestSet,
    Verification,
    Window,
)

LIKED, WATCHED, SKIPPED = "explicit_positive", "implicit_positive", "implicit_negative"


def make_window(
    *lines: Line,
    user: str = "ada",
    number: int = 1,
    of: int = 1,
    signals: tuple[str, ...] = (LIKED, WATCHED, SKIPPED),
) -> Window:
    """A window of these lines."""
    return Window(
        id=f"{user}/{number}", user=user, number=number, of=of, signals=signals, lines=lines
    )


def predicting(**changed: Any) -> dict[str, Any]:
    """The options of the first stage."""
    return {
        "window": 100, "object_ids": False, "truncated": "read", "max_interests": 200,
        "verification": Verification(), "thing": "video", "things": "videos", **changed,
    }  # fmt: skip


def make_answer(**cited: Iterable[Any]) -> str:
    """What a candidate says that names interests and cites this of each."""
    return json.dumps([{"interest": name, "evidence": ids} for name, ids in cited.items()])


def make_prediction(interests: Mapping[str, tuple[int, ...]], **happened: Any) -> Prediction:
    """The interests of an answer with the numbers that each cites."""
    cited = tuple(Cited(name, numbers) for name, numbers in interests.items())
    return Prediction(interests=cited, **happened)


def make_claim(
    number: int, name: str, evidence: Iterable[Evidence] = (), *, user: str = "ada", part: int = 1
) -> Claim:
    """A part of the claim of an interest."""
    return Claim(
        id=f"{user}/{number}/{part}", user=user, interest=name, number=number, part=part,
        evidence=tuple(evidence),
    )  # fmt: skip


def make_test_set(
    number: int, backing: tuple[int, ...], *, size: int = 50, user: str = "ada"
) -> TestSet:
    """A test set of that many objects, of which those at these places back the interest."""
    objects = tuple(PoolObject(str(place), "") for place in range(size))
    return TestSet(
        id=f"{user}/{number}", user=user, interest="", number=number, objects=objects,
        backing=backing,
    )  # fmt: skip
