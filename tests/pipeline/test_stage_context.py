"""What a stage's key is made of, what it is not made of, and what a stage may reach."""

from dataclasses import dataclass, replace

import msgspec
import pytest
from builders.runs import make_task
from builders.stages import make_benchmark, make_contexts, make_stage

from harness.base.errors import TaskError, UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import Sampling
from harness.contracts.task import RoleSpec
from harness.pipeline import preparation
from harness.pipeline.desk import Binding


class Options(msgspec.Struct, frozen=True):
    window: int = 3
    weight: float = 1e-05
    shown: bool = True


@dataclass(eq=False)
class FakeModel:
    identity: Identity
    concurrency: int = 4
    occupies: str | None = None


@dataclass(eq=False)
class FakeJudge:
    version: int = 2
    name: str = "llm"
    models: tuple[FakeModel, ...] = ()


CANDIDATE = Identity(kind="fake", name="small", details={"revision": "a"})
JUDGE = Identity(kind="fake", name="big", details={"host": "h"}, scope="run")
ASK = make_stage("ask", version=4, roles=("candidate",), options=("window", "weight"))
WEIGH = make_stage("weigh", judges=("judge",), after=("ask",))


@pytest.fixture
def made(tmp_path):
    """The contexts of both stages; with changes to what they are made from."""

    def make(*, prompts=None, roles=None, stages=None, name="t", **changes):
        texts = {
            "ask.candidate": "say it", "weigh.judge": "right?", "other.candidate": "unused",
            **(prompts or {}),
        }  # fmt: skip
        for prompt, text in texts.items():
            file = tmp_path / "toy" / f"{prompt}.j2"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        task = make_task(
            name, version=changes.pop("task_version", 1), roles=roles or {},
            stages=changes.pop("samplings", {}), tags=changes.pop("tags", ()),
            description=changes.pop("description", ""),
        )  # fmt: skip
        candidate = FakeModel(changes.pop("candidate", CANDIDATE))
        judge = FakeModel(changes.pop("judge", JUDGE))
        adapter = FakeJudge(version=changes.pop("judge_version", 2), models=(judge,))
        label = changes.pop("label", "fake:small")
        benchmark = make_benchmark(
            *(stages or (ASK, WEIGH)), version=changes.pop("benchmark_version", 9), options=Options
        )
        bindings = {
            "candidate": Binding(role="candidate", label=label, model=candidate),
            "judge": Binding(role="judge", label="fake:big", model=judge, judge=adapter),
        }
        usual = {"bindings": bindings, "options": Options(), "seed": 7, "run_id": "monday"}
        return make_contexts(tmp_path, task, benchmark, **{**usual, **changes})

    return make


def test_all_that_decides_records_stands_in_the_components(made, monkeypatch):
    monkeypatch.setattr(preparation, "LADDER_VERSION", 6)
    ask, weigh = made()
    digests = [
        ask.components["prompts"]["ask.candidate"],
        weigh.components["prompts"]["weigh.judge"],
    ]
    assert all(len(digest) == 32 for digest in digests) and digests[0] != digests[1]
    assert ask.components == {
        "benchmark": "toy", "stage": "ask", "version": 4,
        "options": {"window": 3, "weight": 1e-05},
        "prompts": {"ask.candidate": digests[0]},
        "roles": {
            "candidate": {
                "model": {"kind": "fake", "name": "small", "details": {"revision": "a"}},
                "sampling": {
                    "temperature": 0.0, "max_tokens": 1024, "top_p": None, "stop": (),
                },
            }
        },
        "ladder": 6, "seed": 7, "structured": False, "fresh": None,
    }  # fmt: skip
    assert weigh.components["options"] == {}
    assert weigh.components["roles"]["judge"]["judge"] == {"name": "llm", "version": 2}
    assert weigh.components["roles"]["judge"]["model"] == {
        "kind": "fake", "name": "big", "details": {"host": "h"}, "run": "monday",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"seed": 8}, "both"),
        ({"structured": True}, "both"),
        ({"fresh": True}, "both"),
        ({"options": Options(window=4)}, "ask"),
        ({"options": Options(weight=2e-05)}, "ask"),
        ({"prompts": {"ask.candidate": "say it \n\n"}}, "ask"),
        ({"prompts": {"weigh.judge": "wrong?"}}, "weigh"),
        ({"candidate": Identity(kind="fake", name="small", details={"revision": "b"})}, "ask"),
        ({"judge": Identity(kind="fake", name="huge")}, "weigh"),
        ({"judge_version": 3}, "weigh"),
        ({"roles": {"candidate": RoleSpec(sampling={"temperature": 0.5})}}, "ask"),
        ({"roles": {"judge": RoleSpec(sampling={"max_tokens": 5})}}, "weigh"),
        ({"samplings": {"weigh": {"judge": {"stop": ["\n"]}}}}, "weigh"),
        ({"sampling": {"temperature": 0.5}}, "ask"),
        ({"run_id": "tuesday"}, "weigh"),  # the judge has no revision
        ({"stages": (replace(ASK, version=5), WEIGH)}, "ask"),
        ({"options": Options(shown=False)}, "none"),
        ({"prompts": {"other.candidate": "still unused"}}, "none"),
        ({"name": "another"}, "none"),
        ({"task_version": 2}, "none"),
        ({"benchmark_version": 10}, "none"),
        ({"description": "said better", "tags": ("x",)}, "none"),
        ({"label": "what tables call it"}, "none"),
        ({"samplings": {"ask": {"judge": {"max_tokens": 5}}}}, "none"),
    ],
    ids=str,
)
def test_what_enters_the_key_of_a_stage_and_what_does_not(made, change, changed):
    before, after = made(), made(**change)
    keys = [old.key != new.key for old, new in zip(before, after, strict=True)]
    assert keys == {
        "both": [True, True], "ask": [True, False], "weigh": [False, True], "none": [False, False],
    }[changed]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({"seed": 8}, True),
        ({"structured": True}, True),
        ({"options": Options(window=4)}, True),
        ({"prompts": {"ask.candidate": "say it twice"}}, False),
        ({"candidate": Identity(kind="fake", name="huge")}, False),
        ({"sampling": {"temperature": 0.5}}, False),
        ({"fresh": True}, False),
        ({"stages": (replace(ASK, version=5), WEIGH)}, False),
        ({"stages": (replace(ASK, name="beg", prompts=("ask",)), WEIGH)}, False),
    ],
    ids=str,
)
def test_memos_depend_on_who_is_asked_what_and_not_on_options(made, change, shared):
    assert (made()[0].memo_key == made(**change)[0].memo_key) == shared


def test_each_fresh_run_has_keys_of_its_own(made):
    keys = {made(fresh=True, run_id=run)[0].key for run in ("monday", "tuesday")}
    assert len(keys) == 2


def test_sampling_comes_from_role_then_stage_then_for_the_candidate_from_the_command(made):
    roles = {
        "candidate": RoleSpec(sampling={"temperature": 0.1, "max_tokens": 10, "top_p": 0.5}),
        "judge": RoleSpec(sampling={"temperature": 0.2}),
    }
    samplings = {"ask": {"candidate": {"temperature": 0.3, "max_tokens": 30}}}
    ask, weigh = made(roles=roles, samplings=samplings, sampling={"temperature": 0.9})
    model = ask.model("candidate")
    expected = Sampling(temperature=0.9, max_tokens=30, top_p=0.5)
    assert ask.sampling("candidate", model) == expected
    assert weigh.sampling("judge", model) == Sampling(temperature=0.2)


@pytest.mark.parametrize(
    ("given", "found", "expected", "hint"),
    [
        ({"temprature": 0.5}, "temprature",
         "one of temperature, max_tokens, top_p, top_k, presence_penalty, stop, reasoning_tokens",
         "did you mean 'temperature'?"),
        ({"temperature": "hot"}, 'temperature="hot"', "a number", None),
        ({"max_tokens": 1.5}, "max_tokens=1.5", "a whole number", None),
        ({"top_p": 10**400}, f"top_p=1{'0' * 79}…", "Number out of range", None),
    ],
)  # fmt: skip
def test_a_wrong_sampling_is_the_commands_fault_or_the_tasks(made, given, found, expected, hint):
    with pytest.raises(UsageError, match="role 'candidate' in stage 'ask' of") as caught:
        made(sampling=given)
    error = caught.value
    assert (error.where, error.found, error.expected, error.hint) == (
        "--gen_kwargs", found, expected, hint,
    )  # fmt: skip
    with pytest.raises(TaskError, match="role 'judge' in stage 'weigh' of") as caught:
        made(sampling={"temperature": 0.5}, roles={"judge": RoleSpec(sampling=given)})
    assert (caught.value.where, caught.value.found) == (None, found)
