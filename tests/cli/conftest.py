"""A small run kept in a folder, and a plugin whose benchmark it is of."""

import pytest
from builders.runs import KEY, make_entry, make_line, make_manifest, make_task, write_journal

from harness.cli.show import show
from harness.contracts.model import Message, Usage
from harness.contracts.outcomes import Broken, Unreadable
from harness.contracts.records import CallRecord, Done
from harness.registry import load_plugins
from harness.runs.manifest import RoleEntry, StageEntry, session_started, stage_finished
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import score_task

PLUGIN = """
from harness.registry.hookspecs import hookimpl
from harness.contracts.benchmark import Benchmark, Metric
from harness.contracts.stage import Item, Stage
from harness.contracts.records import Score


class Person(Item, frozen=True, kw_only=True):
    history: str


async def work(item, desk):
    raise AssertionError("scoring works on nothing")


def score(records, options):
    for record in records["name"]:
        outcome = record.outcome
        if hasattr(outcome, "value"):
            yield Score(id=record.id, user=record.user, values={"many": len(outcome.value)})
        else:
            yield Score(id=record.id, user=record.user, missing={"many": outcome.cause})


@hookimpl
def register_benchmarks(register):
    register("toybench", lambda: Benchmark(
        name="toybench", version=1, load=None, score=score,
        metrics={"many": Metric(description="interests named")},
        stages=(Stage(name="name", item=Person, value=list[str], items=None, work=work,
                      roles=("candidate",)),),
    ))
"""


@pytest.fixture
def toy_plugin(site):
    """An installed distribution whose plugin registers the benchmark `toybench`."""
    site.install("toybench", {"toybench": "toybench_plugin"}, {"toybench_plugin.py": PLUGIN})


def record(number, user, outcome, *calls):
    item = {"id": f"{user}/1", "user": user, "history": "cats"}
    return make_line(number, item, outcome, calls=calls)


ASKED = CallRecord(
    role="candidate", prompt="name", key="k",
    messages=(Message("system", "Be brief."), Message("user", "Line one\nline two: cats")),
    text='\x1b[31m["cats", "tea"]\x07', reasoning="They like [bold]cats[/bold] in a café\x9b.",
    finish="stop", rung="brackets", usage=Usage(prompt_tokens=12, completion_tokens=7),
    seconds=1.5,
)  # fmt: skip
BROKEN = Broken(
    "ValueError", "Traceback (most recent call last):\n  File x\nValueError: odd\x1b[2J"
)


@pytest.fixture
def kept_run(tmp_path):
    """A run of one finished task with two people and one unfinished task, not yet scored."""
    folder = RunFolder(tmp_path / "runs" / "20260101T000000-m-01234567")
    tasks = {}
    for name in ("toy", "later"):
        task = make_task(name, benchmark="toybench", metrics=("many",))
        tasks[name] = make_entry(task, StageEntry(name="name", key=KEY, file="1-name.jsonl"))
    manifest = make_manifest(
        status="interrupted", model="m-1", tasks=tasks, roles={"candidate": RoleEntry(name="m-1")}
    )
    named = (
        record(1, "ann", Done(["cats", "tea"]), ASKED),
        record(2, "bob", Unreadable("no_json", "no bracket in \x1b]0;x\x07it")),
        record(3, "cid", BROKEN),
    )
    write_journal(folder.journal("toy", 1, "name"), *named)
    write_journal(folder.journal("later", 1, "name"), record(1, "ann", Done(["go"])))
    folder.write_manifest(session_started(stage_finished(manifest, "toy", "name", items=3)))
    return folder


@pytest.fixture
def scored_run(kept_run, toy_plugin):
    """The kept run with the scores of `toy`; its task `later` stays unfinished."""
    benchmark = load_plugins().benchmark("toybench")
    score_task(kept_run, kept_run.manifest(), "toy", benchmark)
    return kept_run


@pytest.fixture
def shown(capsys):
    """What `harness show` prints with some arguments; it must go well."""

    def run(*arguments):
        assert show.main(arguments, standalone_mode=False) is None
        return capsys.readouterr().out

    return run
