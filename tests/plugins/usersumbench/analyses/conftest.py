"""Finished tasks of stored runs, written by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest
from builders.records import make_records
from builders.runs import keep_task, make_line, make_summary, make_task, write_journal
from builders.usersumbench import WORDS, a_question
from harness_usersumbench.benchmark import USERSUMBENCH
from harness_usersumbench.records import (
    TASKS,
    Activity,
    Options,
    Past,
    Rated,
    Ratings,
    Refined,
    Segment,
    Segments,
    Summary,
    count_words,
)

from harness import Done, Unreadable
from harness.contracts.task import IntervalSpec
from harness.runs.manifest import RoleEntry, StageEntry
from harness.scoring.aggregate import Columns
from harness.scoring.summary import RoleUse, StageSummary

LETTERS = ("a", "b", "c", "d", "e")
PAST = (Activity(0, "Heat", ("Action", "Crime")), Activity(3600, "Clue", ("Comedy",)))


@dataclass(frozen=True)
class User:
    """What a test is about: answers as "110?" for each run, and how the summary came to be.

    1 is right, 0 wrong, ? unread. `summary` None is a failed one. `rounds` are of one segment each.
    """

    answers: Sequence[str] = ()
    summary: str | None = "likes action"
    past: tuple[Activity, ...] = PAST
    rounds: tuple[Refined | None, ...] = ()
    marks: tuple[int, int] | None = None


def use(calls, prompt, completion):
    """What one role of a stage used: calls, tokens of prompts, and tokens of answers."""
    return RoleUse(
        calls=calls, from_store=0, failed=0, prompt_tokens=prompt, completion_tokens=completion,
        cached_tokens=0, reasoning_tokens=0, asked_schema=0, met_schema=0, rungs={},
    )  # fmt: skip


@pytest.fixture
def kept(tmp_path):
    """A finished task from its users: journals are written, and scored as any run is.

    `uses` are by stage what its roles used, `roles` the models of other roles than the candidate,
    `read` is how many of how many checks of the verifier could be read; the rest is the summary's.
    """

    def make(
        model, users, *, method="single_step", source="movielens", uses=None, roles=None,
        because=(), units=None, read=None, **more,
    ):  # fmt: skip
        options = Options(**WORDS, source=source, method=method, **more)
        name, path = f"usersum_{source}_{method}", tmp_path / f"run-of-{model}"
        definition = make_task(
            name, benchmark="usersumbench", metrics=("qm",), interval=IntervalSpec(draws=200),
            options=msgspec.to_builtins(options),
        )  # fmt: skip
        stages, entries, values = stages_of(users, options), [], {}
        for stage, pairs in stages.items():
            key, file = stage[0] * 32, f"{stage}.jsonl"
            lines = (make_line(n, *pair, stage=key) for n, pair in enumerate(pairs))
            write_journal(path / name / file, *lines)
            entries.append(StageEntry(name=stage, key=key, file=file, items=len(pairs)))
            values[stage] = make_records(
                (item, one.value if isinstance(one, Done) else one) for item, one in pairs
            )
        scores = list(USERSUMBENCH.score(values, options))
        asked = {"candidate": model, "predictor": model, **(roles or {})}
        used = {"verify": (*reversed(read), ())} if read else {}
        used |= {stage: (1, 1, of) for stage, of in (uses or {}).items()}
        columns = Columns(USERSUMBENCH.metrics, scores)
        summary = make_summary(
            name, roles=asked, comparable=not because, not_comparable_because=because,
            units=len(scores) if units is None else units,
            stages={
                stage: StageSummary(items=items, done=done, failures={}, roles=dict(enumerate(of)))
                for stage, (items, done, of) in used.items()
            },
            metrics=columns.results(interval=definition.interval, seed=0, task=name),
        )  # fmt: skip
        return keep_task(
            path, definition, *entries, benchmark=USERSUMBENCH, scores=scores, summary=summary,
            label=model, options=options, model=model,
            roles={role: RoleEntry(name=of, identity={"name": of}) for role, of in asked.items()},
        )  # fmt: skip

    return make


def stages_of(users, options):
    """The items and outcomes of each stage that the method has."""
    failed = Unreadable("truncated")
    done = {
        name: failed if one.summary is None else Done(Summary(one.summary))
        for name, one in users.items()
    }
    found, everybody = {}, users.items()
    if options.method == "single_step":
        found["summarise"] = [
            (Past(id=name, user=name, activities=one.past), done[name]) for name, one in everybody
        ]
    if options.method == "hierarchy_critique":
        found["segment"] = [pair for name, one in everybody for pair in segments(name, one)]
        found["combine"] = [
            (Segments(id=name, user=name, ranges=(), summaries=()), done[name]) for name in users
        ]
    found["predict"] = [pair for name, one in everybody for pair in asked_of(name, one, options)]
    if options.autoeval:
        found["rate"] = [
            (Rated(id=name, user=name, summary=one.summary), Done(Ratings(*one.marks)))
            for name, one in everybody if one.marks
        ]  # fmt: skip
    return found


def segments(name, one):
    """A segment for each of the given rounds, or one of the whole past; the last comes first."""
    parts = one.rounds or (Refined("", ()),)
    size = -(-len(one.past) // len(parts))
    return [
        (
            Segment(
                id=f"{name}/{number}", user=name, number=number, of=len(parts), by="count",
                activities=one.past[(number - 1) * size : number * size],
            ),
            Unreadable("empty") if refined is None else Done(refined),
        )
        for number, refined in reversed(list(enumerate(parts, 1)))
    ]  # fmt: skip


def asked_of(name, one, options):
    """The questions of a user with their answers; none if the summary failed."""
    summary = one.summary if options.method != "none" else None
    if summary is None and options.method != "none":
        return []
    found = []
    for run, answers in enumerate(one.answers, 1):
        for place, (task, answer) in enumerate(zip(TASKS, answers, strict=True)):
            right = (run + place) % len(LETTERS)
            question = a_question(
                task, run, user=name, history=len(one.past), summary=summary, options=LETTERS,
                words=None if summary is None else count_words(summary), shown=(), right=right,
                popular=0,
            )  # fmt: skip
            chosen = {"1": right, "0": (right + 1) % len(LETTERS)}.get(answer)
            found.append((question, Unreadable("none_named") if chosen is None else Done(chosen)))
    return found
