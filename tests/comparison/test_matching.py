"""In what two runs differ besides their candidate."""

import pytest
from builders.runs import keep_task, make_task
from builders.stages import make_benchmark, make_stage

from harness.comparison.matching import comparison_set, named_differences, settings_of
from harness.contracts.task import RoleSpec
from harness.runs.manifest import RoleEntry, StageEntry

BENCHMARK = make_benchmark(make_stage("ask", roles=("candidate", "predictor")))


@pytest.fixture
def run(tmp_path):
    def of(
        name, *, predictor="p", noise=0.1, limit=5, data="f", seed=0, same_as=None, named=(), heat=0
    ):
        made = make_task("t", metrics=("score",), roles={"predictor": RoleSpec(same_as=same_as)})
        about = {"kind": "k", "name": predictor, "details": {"noise": noise, "level": noise}}
        roles = {
            "candidate": RoleEntry(name=name, identity={"model": {"kind": "k", "name": name}}),
            "predictor": RoleEntry(name=predictor, identity={"model": about}),
        }
        sampling = {"temperature": heat, "reasoning_tokens": noise}
        components = {"roles": {"predictor": {"sampling": sampling}}} if same_as else {}
        stage = StageEntry(name="ask", file="ask.jsonl", key="k", components=components, items=1)
        return keep_task(
            tmp_path / name, made, stage, entry={"data": {"fingerprint": data}},
            benchmark=BENCHMARK, limit=limit, seed=seed, roles=roles,
            asked={"roles": {role: {"kind": "k"} for role in named}},
        )  # fmt: skip

    return of


def unlike(one, other):
    return named_differences(settings_of(one), settings_of(other))


def test_a_role_that_follows_the_candidate_is_part_of_it_unless_the_user_named_it(run):
    follows = {"same_as": "candidate"}
    one = run("a", predictor="a", noise=0.5, **follows)
    other = run("b", predictor="b", **follows)
    assert unlike(one, other) == ()
    assert {task.run for task in comparison_set([one, other]).members} == {"a", "b"}
    hot = run("d", predictor="d", heat=1, **follows)
    assert unlike(hot, one) == ("predictor's temperature in ask 1 against 0",)
    named = run("c", predictor="b", named=["predictor"], **follows)
    assert unlike(one, named)[0] == "predictor's name the candidate against b"
    assert comparison_set([one, other, named]).refused[0].because[0] == (
        "predictor's name b against the candidate"
    )
    assert unlike(run("a", predictor="a", same_as="judge"), run("b", predictor="b")) != ()


def test_settings_that_differ_are_named(run):
    found = unlike(run("a", limit=5, seed=1, data="f"), run("b", limit=9, data="g"))
    assert found == ("data f against g", "limit 5 against 9", "seed 1 against 0")
