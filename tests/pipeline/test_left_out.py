"""Runs without a stage, which a task has only with certain data, and without a value of one."""

import pytest
from builders.texts import write_json_lines

from harness.api import aevaluate
from harness.pipeline.forecast import rehearse
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins

PLUGIN = """
from harness import Benchmark, Done, Item, Metric, Parsed, Score, Stage, TextReader, hookimpl


class Talk(Item, frozen=True, kw_only=True):
    about: str | None


async def ask(role, prompt, item, desk):
    answer = await desk.ask(role, prompt, {"about": item.about or "?"}, read=TextReader())
    return answer.value if isinstance(answer, Parsed) else answer


def unknown(data):
    return [row["id"] for row in data if row["about"] is None]


def talks(upstreams, data, options):
    made = upstreams["look"].values() if "look" in upstreams else ()
    found = {item.id: text for item, text in made}
    for row in data:
        yield Talk(id=row["id"], user=row["id"], about=row["about"] or found[row["id"]])


def load(dataset, options):
    rows = [row for _, row in dataset.table().rows()]
    chosen = set(dataset.choose(row["id"] for row in rows))
    return [{"about": None} | row for row in rows if row["id"] in chosen]


def score(records, options):
    for record in records["talk"]:
        long = len(record.outcome.value) if isinstance(record.outcome, Done) else 0
        yield Score(id=record.id, user=record.user, values={"long": float(long)})


LOOK = Stage(
    "look", item=Talk, value=str, roles=("finder",), when=lambda data, options: bool(unknown(data)),
    items=lambda _, data, options: [Talk(id=one, user=one, about=None) for one in unknown(data)],
    work=lambda item, desk: ask("finder", "look", item, desk),
)
TALK = Stage(
    "talk", item=Talk, value=str, roles=("candidate",), after=("look",), items=talks,
    work=lambda item, desk: ask("candidate", "talk", item, desk),
)


@hookimpl
def register_benchmarks(register):
    register("talks", lambda: Benchmark(
        name="talks", version=1, stages=(LOOK, TALK), load=load, score=score,
        metrics={"long": Metric(description="")},
    ))


@hookimpl
def register_respondents(register):
    register("talks", "look", "finder", lambda: lambda variables, random: "birds")
    register("talks", "talk", "candidate", lambda: lambda variables, random: variables["about"])
"""
TASK = """
task: talks
version: 1
benchmark: talks
data:
  tables:
    people: {files: [people.jsonl], columns: {id: {}, about: {required: false}}}
metrics: [long]
"""
KNOWN = [{"id": "ann", "about": "owls"}, {"id": "ben", "about": "chess"}]
UNKNOWN = [{"id": "ann", "about": "owls"}, {"id": "ben"}]


@pytest.fixture
def settings(site, tmp_path):
    """Settings of a run of the task over some people, its plugin installed."""

    def make(people, plugin=PLUGIN, **more):
        site.install(
            "talks",
            {"talks": "talks_left_out.plugin"},
            {
                "talks_left_out/__init__.py": "",
                "talks_left_out/plugin.py": plugin,
                "talks_left_out/task_configs/talks.yaml": TASK,
                "talks_left_out/prompts/talks/look.finder.j2": "Look: {{ about }}",
                "talks_left_out/prompts/talks/talk.candidate.j2": "Talk of {{ about }}",
            },
        )
        data = write_json_lines(tmp_path / "people" / "people.jsonl", people).parent
        return {
            "tasks": "talks", "model": "baseline", "data": str(data), "output_path": tmp_path,
            "store": tmp_path / "calls.sqlite", **more,
        }  # fmt: skip

    return make


async def test_a_run_goes_without_the_stage_and_without_its_role(settings):
    result = await aevaluate(**settings(KNOWN))
    (summary,) = result.summaries
    assert list(summary.stages) == ["talk"]
    assert summary.metrics["long"].value == 4.5
    assert [file.name for file in sorted((result.folder / "talks").glob("*.jsonl"))] == [
        "2-talk.jsonl", "scores.jsonl",
    ]  # fmt: skip


async def test_a_run_that_has_it_feeds_the_next_stage(settings):
    (summary,) = (await aevaluate(**settings(UNKNOWN, role={"finder": "baseline"}))).summaries
    assert {name: stage.items for name, stage in summary.stages.items()} == {"look": 1, "talk": 2}
    assert summary.metrics["long"].value == 4.5


async def test_a_run_in_which_a_stage_has_no_value_measures_nothing_and_says_so(settings):
    silent = PLUGIN.replace('variables["about"])', '"")')
    result = await aevaluate(**settings(KNOWN, plugin=silent, max_failures=1.0))
    assert result.exit_code == 3
    assert "no item has a value" in str(result.errors[0])


MANY = [{"id": f"p{number}", "about": "owls"} for number in range(40)]


@pytest.mark.parametrize("number", [0, 39])
async def test_a_dry_run_has_the_stages_of_the_whole_data(settings, number):
    one_unknown = [*MANY[:number], {"id": f"p{number}"}, *MANY[number + 1 :]]
    asked = settings(one_unknown, roles={"finder": "baseline"})
    forecast = await rehearse(make_settings(asked), load_plugins())
    told = [(each.stage, each.items, each.least_calls) for each in forecast.stages]
    assert told[0] == ("look", 1, 1)
    assert [stage for stage, *_ in told] == ["look", "talk"]


async def test_a_dry_run_has_no_stage_that_the_whole_data_lacks(settings):
    few = PLUGIN.replace("bool(unknown(data))", "len(data) < 10")
    forecast = await rehearse(make_settings(settings(MANY, plugin=few)), load_plugins())
    assert [(each.stage, each.items) for each in forecast.stages] == [("talk", 40)]
