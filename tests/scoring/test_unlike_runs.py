"""In what two runs differ besides their candidate, and what makes them agree."""

import pytest
from builders.runs import make_entry, make_finished_task, make_manifest, make_summary, make_task
from builders.stages import make_benchmark, make_stage

from harness.runs.manifest import RoleEntry, StageEntry
from harness.scoring.unlike_runs import unlike

BENCHMARK = make_benchmark(make_stage("ask", roles=("candidate", "predictor")))


@pytest.fixture
def run(tmp_path):
    def of(name, *, predictor="p", noise=0.1, limit=5, data="f", seed=0):
        made = make_task("t", metrics=("score",))
        about = {"kind": "k", "name": predictor, "details": {"noise": noise, "level": noise}}
        roles = {
            "candidate": RoleEntry(name=name, identity={"model": {"kind": "k", "name": name}}),
            "predictor": RoleEntry(name=predictor, identity={"model": about}),
        }
        stage = StageEntry(name="ask", file="ask.jsonl", key="k", components={}, items=1)
        entry = make_entry(made, stage, data={"fingerprint": data})
        manifest = make_manifest(
            run_id=name, limit=limit, seed=seed, tasks={"t": entry}, roles=roles
        )
        return make_finished_task(
            tmp_path / name, made, label=name, manifest=manifest, entry=entry,
            benchmark=BENCHMARK, summary=make_summary("t"),
        )  # fmt: skip

    return of


def test_another_candidate_alone_is_no_difference(run):
    assert unlike(run("a"), run("b")) is None


def test_a_role_that_another_model_plays_is_named_once_without_its_details(run):
    found = unlike(run("a", predictor="a", noise=0.5), run("b", predictor="b"))
    assert found.because == ("predictor a against b",)
    assert found.short == "predictor a"
    assert found.needed == ("the same predictor (--role predictor=SPEC)",)


def test_a_role_of_the_same_name_is_told_apart_by_its_details(run):
    found = unlike(run("a", noise=0.5), run("b"))
    assert found.because == ("predictor's noise, predictor's level 0.5 against 0.1",)
    assert found.needed == ("the same predictor (--role predictor=SPEC)",)


def test_settings_have_the_option_that_sets_them(run):
    found = unlike(run("a", limit=5, seed=1, data="f"), run("b", limit=9, data="g"))
    assert found.needed == ("the same data (--data)", "the same --limit", "the same --seed")
    assert found.because == ("data f against g", "limit 5 against 9", "seed 1 against 0")
    assert found.short == "data f"
