"""Damaged answers: whatever a role answers, no score of the candidate moves without a count.

`break_answers` runs the tasks of all benchmarks on small samples. In each run one role's answers
are damaged: all of them or some, in every try or only in the first ones. The scores are compared
with those of the undamaged run, unit by unit. What may differ follows from what the damaged run
itself counts: missing units, lost shares, and counts of events.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import harness
from harness.base.hashing import stable_int
from harness.contracts.model import CallError, Reply, Request
from harness.pipeline.run import RunResult
from harness.runs.run_folder import RunFolder
from harness.testing.scripted import Answer, ScriptedModel, offered
from harness.testing.trial import moved, right

GIST_ROLES = ("candidate", "judge", "taxonomist", "overlap_judge", "retrieval_judge")
TASKS: dict[str, tuple[int, tuple[str, ...]]] = {
    "interests": (4, ("candidate", "judge")),
    "gist_synthetic": (3, GIST_ROLES),
    "perrec_easy_pointwise": (4, ("candidate",)),
    "perrec_medium_pairwise": (4, ("candidate",)),
    "perrec_hard_pairwise": (3, ("candidate",)),
    "perrec_hard_listwise": (4, ("candidate",)),
    "perrec_medium_pairwise_strict": (3, ("candidate", "profiler")),
    "perrec_easy_listwise_strict": (4, ("candidate", "profiler")),
    "perrec_rating": (6, ("candidate",)),
}
"""Task → how many of its sample are asked about, and the roles that are asked."""

SHARED = {"gist_synthetic"}
"""Tasks in which an answer about one user changes the questions about others."""

COUNTING = {"undecided", "unreadable_comparisons"}
"""Scores that count answers which could not be read."""

ALWAYS = 1_000
"""Tries: more than any stage makes of one question."""


def cut(text: str) -> Answer:
    """The first half of an answer that reached the limit of tokens."""
    return Reply(text=text[: len(text) // 2], finish="length")


def failed(_text: str) -> Answer:
    """A call that brings no answer."""
    return CallError("bad_request", "damaged")


DAMAGES: dict[str, Callable[[str], Answer]] = {
    "blank": lambda _: " \n",
    "cut": cut,
    "refused": lambda _: Reply(text="I cannot help with that.", finish="refused"),
    "failed": failed,
    "prose": lambda _: "I would rather talk about the weather, which is mild today.",
    "empty object": lambda _: "{}",
    "other object": lambda _: '{"weather": "mild"}',
    "broken JSON": lambda _: '[{"interest": ',
    "unknown names": lambda _: '{"1": "weather of Thursday", "2": "weather of Friday"}',
    "one": lambda _: "1",
}
VALID_OF_A_JUDGE = {"one"}
"""Damages that are a verdict of a judge who chooses among numbered options, as right as any."""

VALID_OF_A_PROFILER = {"prose", "empty object", "other object", "broken JSON", "unknown names",
                       "one"}  # fmt: skip
"""A profile is any text."""


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What happens to a role's answers in one run.

    A `share` of the questions is hit, each in its first `tries`.
    """

    task: str
    role: str
    kind: str
    share: float
    tries: int
    seed: int

    @property
    def default_limits(self) -> bool:
        """Whether too many failures end the task, or are accepted so that it has scores."""
        return self.share == 1


def drawn(rng: Random) -> Damage:
    """A damage at random."""
    task, role = rng.choice([(task, role) for task in TASKS for role in TASKS[task][1]])
    valid = VALID_OF_A_PROFILER if role == "profiler" else set()
    if role in ("judge", "overlap_judge", "retrieval_judge"):
        valid = VALID_OF_A_JUDGE
    return Damage(
        task=task,
        role=role,
        kind=rng.choice([kind for kind in DAMAGES if kind not in valid]),
        share=rng.choice([0.1, 0.3, 0.6, 1.0]),
        tries=rng.choice([1, ALWAYS, ALWAYS]),
        seed=rng.randrange(2**32),
    )


def damaging(damage: Damage | None) -> Callable[[Request], Answer]:
    """The answers of a role, damaged where the damage hits them."""
    asked: Counter[int] = Counter()

    def answer_or_damage(request: Request) -> Answer:
        text = right(request)
        if damage is None:
            return text
        # What the user says first is the same in each try.
        first = next(one.content for one in request.messages if one.role == "user")
        question = stable_int(damage.seed, first)
        asked[question] += 1
        hit = question % 1000 < damage.share * 1000 and asked[question] <= damage.tries
        return DAMAGES[damage.kind](text) if hit else text

    return answer_or_damage


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A run with the lines of its scores."""

    result: RunResult
    lines: list[bytes]

    @property
    def units(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def run(task: str, folder: Path, damage: Damage | None = None, **settings: Any) -> Outcome:
    """A run of a task, with one role's answers damaged."""
    limit, roles = TASKS[task]
    models = {
        role: ScriptedModel(
            damaging(damage if damage and role == damage.role else None), name=role, concurrency=16
        )
        for role in roles
    }
    with offered(list(models.values())):
        result = harness.evaluate(
            task,
            model="scripted",
            model_args="model=candidate",
            role={role: model.spec for role, model in models.items() if role != "candidate"},
            data="sample",
            limit=limit,
            output_path=folder,
            reuse="run",
            **settings,
        )
    file = RunFolder(result.folder).scores(task)
    lines = file.read_bytes().splitlines() if result.summaries else []
    return Outcome(result=result, lines=lines)


def problems(before: Outcome, after: Outcome, damage: Damage) -> Iterator[str]:
    """What moved in a damaged run without anything that says so."""
    if not after.result.summaries:
        if after.result.exit_code != 3:
            yield f"no result, and exit code {after.result.exit_code}"
        return
    (old,), (new,) = before.result.summaries, after.result.summaries
    # Whatever one user's interests are changes the distractors of others.
    shared = damage.task in SHARED and run_counts(before) != run_counts(after)
    units = (*before.units, *after.units)
    names = {name for unit in units for name in unit["values"]} - COUNTING
    yield from () if shared else moved(before.lines, after.lines, names=names, excused=set())
    for name, metric in new.metrics.items():
        told = metric.missing_share or new.counts != old.counts
        if metric.value != old.metrics[name].value and not told:
            yield f"{name}: {old.metrics[name].value} → {metric.value}, and nothing is missing"
        if damage.role != "candidate" and metric.left_out != old.metrics[name].left_out:
            yield f"{name} counts as worst what {damage.role} lost"
    if after.result.exit_code != 3:
        for name, stage in new.stages.items():
            if stage.items and not stage.done:
                yield f"{name}: nothing has a value, and exit code {after.result.exit_code}"
            silent = [role for role, use in stage.roles.items() if use.failed == use.calls]
            # A single item never ends a task.
            if damage.default_limits and silent and sum(stage.failures.values()) != 1:
                yield f"{name}: no answer of {silent} could be used, and the run is done"


def run_counts(outcome: Outcome) -> Counter[str]:
    """The counts of a run that are not those of its units."""
    (summary,) = outcome.result.summaries
    counts = Counter(summary.counts)
    for unit in outcome.units:
        counts.subtract(unit["counts"])
    return Counter({name: number for name, number in counts.items() if number})


def break_answers(number: int, folder: Path, *, seed: int = 0) -> Counter[str]:
    """Damage so many runs; AssertionError where a score moved unsaid. How the runs ended."""
    rng = Random(seed)
    undamaged: dict[str, Outcome] = {}
    ended: Counter[str] = Counter()
    places = count()
    for _ in range(number):
        damage = drawn(rng)
        if damage.task not in undamaged:
            undamaged[damage.task] = run(damage.task, folder / str(next(places)))
        accepted = {} if damage.default_limits else {"max_failures": 1.0}
        after = run(damage.task, folder / str(next(places)), damage, **accepted)
        found = list(problems(undamaged[damage.task], after, damage))
        assert not found, f"{damage}: {found}"
        ended[after.result.status] += 1
    return ended
