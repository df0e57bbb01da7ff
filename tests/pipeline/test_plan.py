from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from harness.contracts.identity import Identity
from harness.pipeline.plan import Plan, StageRun, State
from harness.pipeline.progress import StageProgress


@dataclass(eq=False)
class FakeModel:
    name: str
    occupies: str | None = "gpu"
    concurrency: int = 4
    identity: Identity = field(default_factory=lambda: Identity(kind="fake", name="x"))


CANDIDATE, JUDGE = FakeModel("candidate"), FakeModel("judge")
A, B = FakeModel("a", "gpu 0"), FakeModel("b", "gpu 1")
C, D = FakeModel("c", "gpu 0"), FakeModel("d", "gpu 1")


def stage_run(task, stage, *models, after=()):
    context = SimpleNamespace(
        task=SimpleNamespace(name=task),
        stage=SimpleNamespace(name=stage, after=after),
        models=models,
    )
    progress = StageProgress(task=task, stage=stage)
    return StageRun(
        context=context, journal=Path("unused"), items=lambda: iter(()), progress=progress
    )


def order_of(runs, resource=lambda model: model.occupies):
    """Admit, finish all that was admitted, and so on: the rounds that come out."""
    plan = Plan(runs=runs, resource=resource)
    rounds = []
    while admitted := plan.admit():
        rounds.append([f"{run.task}.{run.context.stage.name}" for run in admitted])
        for run in admitted:
            run.state = State.DONE
    assert not plan.unfinished()
    return rounds


def test_one_gpu_holds_the_candidate_for_all_stages_of_every_task_and_then_the_judge():
    runs = [
        stage_run("a", "name", CANDIDATE),
        stage_run("a", "support", JUDGE, after=("name",)),
        stage_run("b", "rank", CANDIDATE),
        stage_run("b", "check", JUDGE, after=("rank",)),
    ]
    assert order_of(runs) == [["a.name", "b.rank"], ["a.support", "b.check"]]
    runs = [
        stage_run("a", "one", CANDIDATE),
        stage_run("a", "judged", JUDGE, after=("one",)),
        stage_run("b", "one", CANDIDATE),
        stage_run("b", "two", CANDIDATE, after=("one",)),
    ]
    assert order_of(runs) == [["a.one", "b.one"], ["b.two"], ["a.judged"]]


def test_models_that_occupy_nothing_run_beside_an_engine():
    judge = FakeModel("judge", occupies=None)
    runs = [stage_run("a", "one", CANDIDATE), stage_run("b", "judged", judge), stage_run("c", "x")]
    assert order_of(runs) == [["a.one", "b.judged", "c.x"]]


def test_a_stage_that_needs_two_engines_of_one_gpu_runs_alone():
    both = stage_run("b", "both", CANDIDATE, JUDGE)
    runs = [stage_run("a", "x", CANDIDATE), both, stage_run("c", "y", JUDGE)]
    assert order_of(runs) == [["a.x"], ["b.both"], ["c.y"]]
    plan = Plan(runs=runs, resource=lambda model: model.occupies)
    assert [plan.in_rounds(run) for run in runs] == [False, True, False]


def test_halting_a_task_gives_up_its_later_stages_only():
    first = stage_run("a", "one")
    later, other = stage_run("a", "two", after=("one",)), stage_run("b", "one")
    plan = Plan(runs=[first, later, other], resource=lambda model: None)
    first.state = State.HALTED
    plan.halt("a")
    assert later.state is State.HALTED
    assert later.progress.started is None and later.progress.ended is not None
    assert other.progress.ended is None
    assert plan.unfinished() == [other]


def test_stages_that_each_hold_what_the_other_needs_let_go():
    runs = [
        stage_run("one", "alone", A),
        stage_run("two", "alone", D),
        stage_run("one", "both", A, B, after=("alone",)),
        stage_run("two", "both", C, D, after=("alone",)),
    ]
    # Once both are alone no more, `A` is kept for one's `both` and `D` for that of two.
    assert order_of(runs) == [["one.alone", "two.alone"], ["one.both"], ["two.both"]]


def test_nothing_is_let_go_while_a_stage_still_runs_on_it():
    running, finished = stage_run("one", "alone", A), stage_run("two", "alone", D)
    later = stage_run("two", "both", C, D, after=("alone",))
    crossed = stage_run("three", "both", A, B)
    plan = Plan(runs=[running, finished, later, crossed], resource=lambda model: model.occupies)
    assert plan.admit() == [running, finished]
    finished.state = State.DONE
    assert plan.admit() == []
    running.state = State.DONE
    assert plan.admit() == [later]
