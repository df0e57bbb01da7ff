"""People and segments written by hand, and the work of a stage with scripted models."""

import re
from collections import Counter
from itertools import product
from types import SimpleNamespace
from typing import Any

from builders.stages import Worked, work_at_desk
from harness_usersumbench.questions import ordered
from harness_usersumbench.records import TASKS, Activity, Drawn, Options, Person, Segment

from harness.contracts.outcomes import Unreadable

WORDS = {
    "query": "Summarize my taste",
    "thing": "movie",
    "category": "genre",
    "verb": "watched",
}
DAY = 86_400
FIRST = 1_084_636_800  # Sat 05/15/2004 4PM
CUT = Unreadable("truncated", "")


def options(**changed: Any) -> Options:
    """The options of a task, some of them changed."""
    return Options(**{**WORDS, **changed})


def activity(name: str, *categories: str, day: int = 0) -> Activity:
    """Something that a user did so many days after the first day."""
    return Activity(time=FIRST + day * DAY, name=name, categories=categories or ("Drama",))


def person(id: str, *names: str, **changed: Any) -> Person:
    """A user who did these things, a day apart; the future is `Next`."""
    fields = {
        "past": tuple(activity(name, day=day) for day, name in enumerate(names)),
        "future": activity("Next", "Comedy", day=len(names)),
        "activity": Drawn(("Next", "Wrong 1", "Wrong 2", "Wrong 3", "Wrong 4"), (2, 9, 1, 1, 1)),
        "category": Drawn(("Comedy", "War", "Horror", "Musical", "Western"), (9, 8, 7, 6, 5)),
        **changed,
    }
    return Person(id=id, **fields)


def people(*everybody: Person, seed: int = 0, **others: str) -> Any:
    """What is loaded: these users, and whose summary is shown in place of whose."""
    return SimpleNamespace(people=everybody, seed=seed, others=others)


def accuracy_of_rules(everybody: Any, *, seed: int, runs: int) -> dict[str, dict[str, float]]:
    """How often rules that know nothing of a user are right, by task and rule.

    Of options that a rule cannot tell apart, it takes the first shown.
    """

    def year(option: str) -> int:
        return int(option[-5:-1]) if re.search(r"\(\d{4}\)$", option) else 0

    right: dict[str, Counter[str]] = {task: Counter() for task in TASKS}
    asked = 0
    for one, run in product(everybody, range(1, runs + 1)):
        asked += 1
        for task in TASKS:
            drawn = one.activity if task in ("t1", "t2") else one.category
            counts = dict(zip(drawn.options, drawn.counts, strict=True))
            shown = ordered(drawn, seed=seed, user=one.id, task=task, run=run)
            answer = shown.options[shown.right]
            by_rank = sorted(shown.options, key=lambda option: -counts[option])
            chosen = {
                **{f"rank {number}": option for number, option in enumerate(by_rank, 1)},
                **{
                    f"position {at}": option
                    for at, option in zip("ABCDE", shown.options, strict=True)
                },
                "longest": max(shown.options, key=len),
                "shortest": min(shown.options, key=len),
            }
            if task in ("t1", "t2"):
                chosen |= {"newest": max(shown.options, key=year)}
                chosen |= {"oldest": min(shown.options, key=year)}
            right[task].update(rule for rule, option in chosen.items() if option == answer)
    return {task: {rule: hits / asked for rule, hits in right[task].items()} for task in TASKS}


def segment(number: int = 1, of: int = 1, *, user: str = "ann") -> Segment:
    """A segment of two activities."""
    shown = (activity("Heat", "Crime"), activity("Big", "Comedy", day=40 * number))
    return Segment(
        id=f"{user}/{number}", user=user, number=number, of=of, by="count", activities=shown
    )


async def work(stage: Any, item: Any, answers: Any, *, judge: Any = None, **changed: Any) -> Worked:
    """A stage's work, where `answers` may be a function of the prompt's name and variables."""
    given = answers
    if callable(answers):
        given = lambda request: answers(request.topic.prompt, request.topic.variables)  # noqa: E731
    asked = options(**changed)
    return await work_at_desk(
        stage, item, given, benchmark="usersumbench", options=asked, judge=judge
    )
