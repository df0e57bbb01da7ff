"""People and segments written by hand, and the work of a stage with scripted models."""

from types import SimpleNamespace
from typing import Any

from builders.stages import Worked, work_at_desk
from harness_usersumbench.records import Activity, Drawn, Options, Person, Question, Segment

from harness.contracts.outcomes import Unreadable

WORDS = {"query": "Summarize my taste", "thing": "movie", "category": "genre", "verb": "watched"}
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


def a_question(task: str = "t2", run: int = 2, *, user: str = "ann", **changed: Any) -> Question:
    """A question to a user about five options, of which the first is right."""
    fields = {
        "id": f"{user}/{task}/{run}", "user": user, "task": task, "run": run, "history": 3,
        "summary": "Likes tea.", "words": 2, "shown": (activity("Heat", "Crime"),),
        "options": ("Next", "Wrong", "Big", "Jaws", "Rio"), "right": 0, "popular": 1,
    }  # fmt: skip
    return Question(**{**fields, **changed})


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
