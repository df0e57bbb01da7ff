"""A user's interests, out of the answers to all windows or of the claims made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import Done
from harness_gistbench.records import (
    SIGNALS,
    Claim,
    Evidence,
    Interest,
    Kept,
    Prediction,
    Signal,
    Window,
)

if TYPE_CHECKING:
    from harness import Record


def folded(name: str) -> str:
    """The name that distinguishes interests: case and spaces do not matter."""
    return " ".join(name.casefold().split())


def merged(windows: Iterable[Record[Window, Prediction]]) -> tuple[Interest, ...]:
    """One user's interests, in the order in which they were first named.

    Give all windows of the user, in any order. An interest named in several is one, with the
    citations of all. An object's signals are those of all the user's engagements with it, cited or
    not, and of windows that could not be read as well: evidence is the object, and to cite a like
    does not undo a skip.
    """
    ordered = sorted(windows, key=lambda record: record.item.number)
    names: dict[str, str] = {}
    objects: dict[str, dict[str, None]] = {}
    for record in ordered:
        if not isinstance(record.outcome, Done):
            continue
        lines = record.item.lines
        for interest in record.outcome.value.interests:
            key = folded(interest.name)
            names.setdefault(key, interest.name)
            cited = (lines[number - lines[0].number].object for number in interest.numbers)
            objects.setdefault(key, {}).update(dict.fromkeys(cited))
    evidence = evidence_of(ordered, {one for cited in objects.values() for one in cited})
    return tuple(
        Interest(number=number, name=name, evidence=tuple(evidence[one] for one in objects[key]))
        for number, (key, name) in enumerate(names.items(), start=1)
    )


def evidence_of(
    windows: Iterable[Record[Window, Prediction]], wanted: set[str]
) -> dict[str, Evidence]:
    """Each wanted object with its first text and every signal that it had."""
    texts: dict[str, str] = {}
    signals: dict[str, set[Signal]] = {}
    lines = (line for record in windows for line in record.item.lines if line.object in wanted)
    for line in lines:
        texts.setdefault(line.object, line.text)
        signals.setdefault(line.object, set()).add(line.signal)
    return {
        name: Evidence(name, text, tuple(one for one in SIGNALS if one in signals[name]))
        for name, text in texts.items()
    }


def claimed(claims: Iterable[Record[Claim, Kept]]) -> tuple[Interest, ...]:
    """One user's interests again, from the claims that were made of them, verdict or not."""
    evidence: dict[int, tuple[Evidence, ...]] = {}
    names: dict[int, str] = {}
    for record in sorted(claims, key=lambda record: (record.item.number, record.item.part)):
        claim = record.item
        names[claim.number] = claim.interest
        evidence[claim.number] = (*evidence.get(claim.number, ()), *claim.evidence)
    return tuple(
        Interest(number=number, name=name, evidence=evidence[number])
        for number, name in names.items()
    )
