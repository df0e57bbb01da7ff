"""What a dry run counts: in the data where it can, else carried over from a few users."""

import json

import pytest

from harness.base.errors import PromptError
from harness.pipeline.forecast import rehearse
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins

PLUGIN = """
import msgspec

from harness import Benchmark, Calls, Item, Metric, Parsed, Stage, TextReader, hookimpl


class Options(msgspec.Struct, frozen=True, kw_only=True):
    rounds: int = 1


async def talk(item, desk):
    answer = await desk.ask("candidate", "talk", {"item": item.id}, read=TextReader())
    return answer.value if isinstance(answer, Parsed) else answer


async def talk_on(item, desk):
    for turn in range(3):
        answer = await desk.ask(
            "candidate", "talk", {"item": f"{item.id} {turn}"}, read=TextReader()
        )
    return answer.value


async def probe(item, desk):
    answer = await desk.ask("candidate", "probe", {"item": item.id}, read=TextReader())
    return answer.value if isinstance(answer, Parsed) else answer


async def count(item, desk):
    return 1


def one_a_person(upstreams, people, options):
    return [Item(id=row["id"], user=row["id"]) for row in people]


def one_for_all(upstreams, people, options):
    return [Item(id="setting", user="everybody")]


def two_a_person(upstreams, people, options):
    return [
        Item(id=f"{record.id}/{turn}", user=record.user)
        for record in upstreams["talk"] for turn in ("a", "b")
    ]


def as_many_as_the_number(upstreams, people, options):
    return [
        Item(id=f"{record.id}/{turn}", user=record.user)
        for record in upstreams["talk"] for turn in range(int(record.id[1:]) % 4)
    ]


def all_together(upstreams, people, options):
    return [Item(id="all", user="everybody") for _ in list(upstreams["talk"])[:1]]


def of_many(upstreams, people, options):
    return [
        Item(id=record.id, user=record.user) for record in upstreams["talk"] if len(people) > 9
    ]


def load(dataset, options):
    table = dataset.table()
    chosen = set(dataset.choose(row["id"] for _, row in table.rows()))
    return [row for _, row in table.rows() if row["id"] in chosen]


STAGES = (
    Stage("setting", item=Item, value=int, items=one_for_all, work=count),
    Stage(
        "talk", item=Item, value=str, items=one_a_person, work=talk, roles=("candidate",),
        calls=Calls(least=3, most=9),
    ),
    Stage(
        "probe", item=Item, value=str, items=two_a_person, work=probe, roles=("candidate",),
        calls=Calls(least=2, most=5, times="rounds"), options=("rounds",),
        after=("setting", "talk"),
    ),
    Stage(
        "weigh", item=Item, value=str, items=one_a_person, work=talk, roles=("candidate",),
        prompts=("talk",), options=("rounds",),
        # Of p0000, p0001 … every second one makes twice as many calls.
        calls=lambda item, options: Calls(
            least=1 + int(item.id[1:]) % 2, most=3 * options.rounds, times="rounds"
        ),
    ),
    Stage(
        "again", item=Item, value=str, items=two_a_person, work=talk, roles=("candidate",),
        prompts=("talk",), after=("talk",),
        calls=lambda item, options: Calls(least=item.id.endswith("a"), most=4),
    ),
    Stage(
        "differ", item=Item, value=int, items=as_many_as_the_number, work=count, after=("talk",)
    ),
    Stage(
        "insist", item=Item, value=str, items=one_a_person, work=talk_on, roles=("candidate",),
        prompts=("talk",), calls=Calls(least=1, most=1),
    ),
    Stage("union", item=Item, value=int, items=all_together, work=count, after=("talk",)),
    Stage("seldom", item=Item, value=int, items=of_many, work=count, after=("talk",)),
)


@hookimpl
def register_benchmarks(register):
    register("talks", lambda: Benchmark(
        name="talks", version=1, stages=STAGES, load=load, score=lambda records, options: iter(()),
        metrics={"right": Metric(description="")}, options=Options,
    ))


@hookimpl
def register_respondents(register):
    register("talks", "talk", "candidate", lambda: lambda variables, random: "hello")
    register("talks", "probe", "candidate", lambda: lambda variables, random: "yes")
"""
TASK = """
task: talks
version: 1
benchmark: talks
data:
  sample: sample
  tables: {people: {files: [people.jsonl], columns: {id: {type: string}}}}
roles: {candidate: {sampling: {max_tokens: 10}}}
metrics: [right]
"""


@pytest.fixture
def forecast_of(site):
    """Rehearses the task `talks` over that many people; the forecast and its stages by name."""

    async def make(people, prompt="Talk of {{ item }}, at length.", **settings):
        rows = [json.dumps({"id": f"p{number:04}"}) for number in range(people)]
        site.install(
            "talks",
            {"talks": "talks_made_up.plugin"},
            {
                "talks_made_up/__init__.py": "",
                "talks_made_up/plugin.py": PLUGIN,
                "talks_made_up/task_configs/talks.yaml": TASK,
                "talks_made_up/prompts/talks/talk.candidate.j2": prompt,
                "talks_made_up/prompts/talks/probe.candidate.j2": "Was it {{ item }}?",
                "talks_made_up/sample/people.jsonl": "\n".join(rows),
            },
        )
        asked = {"tasks": "talks", "model": "baseline", "data": "sample", **settings}
        forecast = await rehearse(make_settings(asked), load_plugins())
        return forecast, {stage.stage: stage for stage in forecast.stages}

    return make


async def test_items_are_counted_or_carried_over_and_what_is_asked_of_them_but_what_was_asked_again(
    forecast_of,
):
    forecast, stages = await forecast_of(120)
    assert [(name, stage.items, stage.exact) for name, stage in stages.items()] == [
        ("setting", 1, True),
        ("talk", 120, True),
        # Two a person, however many items the first of the stages before it has.
        ("probe", 240, False),
        ("weigh", 120, True),
        ("again", 240, False),
        ("differ", stages["differ"].items, False),
        ("insist", 120, True),
        ("union", stages["union"].items, False),
        ("seldom", None, False),
    ]
    assert forecast.rehearsed_users == 5
    [talk], [probe] = stages["talk"].roles, stages["probe"].roles
    assert (talk.calls, probe.calls) == (120, 240)
    assert (talk.most_completion_tokens, probe.most_completion_tokens) == (1200, 2400)
    # "Talk of p0000, at length." has 25 characters, "Was it p0000/a?" has 15, and five people
    # make 125 // 4 and 150 // 4 tokens.
    assert (talk.prompt_tokens, probe.prompt_tokens) == (31 * 24, 37 * 24)
    assert [message.role for message in talk.first_prompt] == ["user"]
    assert talk.first_prompt[0].content.startswith("Talk of p0")
    [insist] = stages["insist"].roles
    # Three calls a person, of which the stage says that one is enough where answers can be read.
    assert (insist.calls, insist.most_completion_tokens) == (120, 1200)
    assert insist.prompt_tokens == pytest.approx(talk.prompt_tokens, rel=0.1)


async def test_how_far_rehearsed_users_lie_apart_is_told_where_they_do(forecast_of):
    # Of four people p0000 to p0003 each has as many items as the number says.
    _, stages = await forecast_of(4)
    found = [stages[name].a_user for name in ("talk", "probe", "differ", "union")]
    assert found == [None, (2, 2), (0, 3), None]


async def test_bounds_are_multiplied_by_an_option_and_may_differ_from_item_to_item(forecast_of):
    _, stages = await forecast_of(120, changes={"rounds": 2})
    assert (stages["talk"].least_calls, stages["talk"].most_calls) == (360, 1080)
    assert (stages["probe"].least_calls, stages["probe"].most_calls) == (960, 2400)
    # Half of 120 people make 1 call at least and half 2, twice; at most 3 * 2 calls, twice.
    assert (stages["weigh"].least_calls, stages["weigh"].most_calls) == (360, 1440)
    # Of two items a person, only the first makes a call at least.
    assert (stages["again"].least_calls, stages["again"].most_calls) == (120, 960)


async def test_a_prompt_that_cannot_be_made_is_told(forecast_of):
    with pytest.raises(PromptError) as caught:
        await forecast_of(3, prompt="Talk of {{ topic }}.")
    assert str(caught.value).startswith("talks/talk: a prompt of this stage cannot be rendered\n")
    assert "talk.candidate.j2:1: the prompt needs the variable 'topic'" in str(caught.value.found)
    assert str(caught.value.found).startswith("PromptError: ")
