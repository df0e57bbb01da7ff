"""Stage 1: the candidate names a user's interests, one question a window of the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harness import Calls, DataError, Failure, Parsed, Stage
from harness_gistbench.citations import as_id, meant
from harness_gistbench.interests import folded
from harness_gistbench.parsing import Answer, read_interests
from harness_gistbench.records import SIGNALS, Cited, Line, Options, Prediction, Window
from harness_gistbench.stages.prompt_text import one_line
from harness_gistbench.verification import conditions

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness_gistbench.histories import Histories

MOST_INTERESTS_AN_OBJECT = 2
WORDS = {signal: signal.replace("_", " ") for signal in SIGNALS}


def windows(
    _upstreams: Mapping[str, Records[Any, Any]], data: Histories, options: Options
) -> Iterator[Window]:
    """Each user's history in windows, most recent first, numbered through from 1."""
    for user in data.users:
        history = data.history(user)
        starts = range(0, len(history), options.window)
        for number, start in enumerate(starts, start=1):
            part = history[start : start + options.window]
            window = Window(
                id=f"{user}/{number}",
                user=user,
                number=number,
                of=len(starts),
                signals=data.signals,
                lines=tuple(
                    Line(place, one.object, one.signal, one.text)
                    for place, one in enumerate(part, start=start + 1)
                ),
            )
            if options.object_ids:
                refuse_alike(window)
            yield window


def refuse_alike(window: Window) -> None:
    """DataError if two objects of a window have the same citation."""
    objects: dict[str, str] = {}
    for line in window.lines:
        other = objects.setdefault(as_id(line.object), line.object)
        if other != line.object:
            raise DataError(
                f"two objects of user {window.user!r} are cited alike",
                found=f"{other!r} and {line.object!r}",
                expected="ids that differ in more than spaces, brackets, quotes and #",
                hint="rename one of them, or leave out the option object_ids",
            )


async def predict(item: Window, desk: Desk) -> Prediction | Failure:
    """The interests that the candidate finds in a window, with the lines it cites."""
    options = desk.options
    rules = conditions(options.verification, item.signals)
    names = identifiers(item, options)
    variables = {
        "thing": options.thing,
        "things": options.things,
        "signals": list(item.signals),
        "positive": [list(pair) for pair in rules.positive],
        "negative": [list(pair) for pair in rules.negative],
        "most_interests": MOST_INTERESTS_AN_OBJECT,
        "lines": [
            (name, WORDS[line.signal], one_line(line.text))
            for name, line in zip(names, item.lines, strict=True)
        ],
    }
    answer = await desk.ask(
        "candidate",
        "predict",
        variables,
        read=read_interests,
        truncated="read" if options.truncated == "read" else "fail",
    )
    if not isinstance(answer, Parsed):
        return answer
    prediction = prediction_of(answer.value, item, names, options)
    return msgspec.structs.replace(prediction, truncated=answer.truncated)


def identifiers(window: Window, options: Any) -> list[str]:
    """What each line is cited by: its number, or the object's own id as citations are read."""
    if options.object_ids:
        return [as_id(line.object) for line in window.lines]
    return [str(line.number) for line in window.lines]


def prediction_of(answer: Answer, window: Window, names: Sequence[str], options: Any) -> Prediction:
    """An answer as far as it is read, its citations as numbers of the window's lines.

    `names` are what the lines are cited by. An object's own id stands for all its lines.
    """
    places: dict[str, list[int]] = {}
    for name, line in zip(names, window.lines, strict=True):
        places.setdefault(name, []).append(line.number)
    read = answer.interests[: options.max_interests]
    are_numbers = not options.object_ids
    cited = [
        dict.fromkeys(id for text in one.ids for id in meant(text, places, are_numbers=are_numbers))
        for one in read
    ]
    interests = tuple(
        Cited(one.name, tuple(number for id in ids for number in places.get(id, ())))
        for one, ids in zip(read, cited, strict=True)
    )
    return Prediction(
        interests=interests,
        surplus=len(answer.interests) - len(read),
        malformed=answer.malformed,
        fabricated=sum(id not in places for ids in cited for id in ids),
        overused=overused(interests, window),
        passed_over=answer.passed_over,
    )


def overused(interests: tuple[Cited, ...], window: Window) -> int:
    """How many objects back more than two interests."""
    lines = window.lines
    pairs = {
        (lines[number - lines[0].number].object, name)
        for interest in interests
        for name in (folded(interest.name),)
        for number in interest.numbers
    }
    backs = Counter(name for name, _ in pairs)
    return sum(count > MOST_INTERESTS_AN_OBJECT for count in backs.values())


PREDICT = Stage(
    name="predict",
    version=3,
    item=Window,
    value=Prediction,
    items=windows,
    work=predict,
    roles=("candidate",),
    options=(
        "window",
        "object_ids",
        "truncated",
        "max_interests",
        "verification",
        "thing",
        "things",
    ),
    calls=Calls(least=1, most=1),
)
