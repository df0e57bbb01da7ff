"""Whole runs over the sample: what they forecast, ask and score."""

import json
import re
from hashlib import sha256

import pytest
from builders.usersumbench import options
from harness_usersumbench.benchmark import USERSUMBENCH

from harness.base.errors import UsageError
from harness.cli.main import main
from harness.testing import ScriptedModel

HC = "usersum_movielens_hc"
FEW = {"limit": 4}


def answer(request):
    """Each segment's first summary names tea, which the verifier corrects to rum."""
    prompt, variables = request.topic.prompt, request.topic.variables
    if prompt in ("segment", "revise", "summarise", "combine"):
        drink = "rum" if prompt == "revise" else "tea"
        text = request.messages[-1].content
        return f"The user likes {drink}{sha256(text.encode()).hexdigest()[:8]}."
    if prompt == "entities":
        return re.search(r"(?:tea|rum)\w+", variables["summary"])[0]
    if prompt == "questions":
        return f'[Question#1: "What is liked?", Answer#1: "{variables["kg_entities"]}"]'
    if prompt == "judgements":
        is_tea = '"tea' in variables["question_answer_pairs"]
        status, reference = ("inconsistent", "rum") if is_tea else ("consistent", "none")
        return f'[Status#1: "{status}", ReferenceAnswer#1: "{reference}"]'
    return {"fits_query": "consistent", "predict": "A"}[prompt]


def test_every_segment_that_is_flagged_is_fixed_and_counted(harness_run):
    model = ScriptedModel(answer)
    [summary] = harness_run(HC, model=model, **FEW).summaries
    roles = ("candidate", "verifier", "predictor")
    assert summary.roles == dict.fromkeys(roles, "model")
    assert {one.topic.role for one in model.requests} == {*roles}
    counts = summary.counts
    assert counts["segments"] > 4
    assert counts["segments flagged and fixed"] == counts["segments"]
    assert counts["checks of segments"] == 2 * counts["segments"]
    assert "segments flagged and left" not in counts
    calls = {role: use.calls for role, use in summary.stages["segment"].roles.items()}
    assert calls == {"candidate": 2 * counts["segments"], "verifier": 8 * counts["segments"]}


RUBBISH = {"model": "baseline", "limit": 4, "roles": {"verifier": ScriptedModel("Lorem ipsum.")}}


def test_a_verifier_of_rubbish_ends_the_task_before_its_summaries_are_used(harness_run):
    result = harness_run(HC, **RUBBISH)
    assert result.exit_code == 3
    [error] = result.errors
    assert error.where == f"{HC}/verify"
    # Four users have ten segments, and nothing that is read flags any.
    assert error.found == (
        "10 of 10 by judging (unread_check 10); the first: the verifier's fits_query, entities "
        "cannot be read; name another verifier with --role verifier=SPEC"
    )
    assert error.expected == "at most 20% (--max_failures judging=0.2)"
    assert "--retry_failures" not in error.hint
    journals = sorted(file.name for file in (result.folder / HC).glob("?-*.jsonl"))
    assert journals == ["2-segment.jsonl", "3-verify.jsonl"]


def test_a_verifier_of_rubbish_alone_measures_nothing_whatever_is_allowed(harness_run):
    result = harness_run(HC, max_failures=1.0, **RUBBISH)
    assert result.exit_code == 3
    assert "these results measure nothing" in result.errors[0].expected


def test_threshold_and_limit_are_changed_without_asking(harness_run, capsys):
    model = ScriptedModel(answer)
    result = harness_run("usersum_movielens", model=model, **FEW)
    asked = model.count
    before = result.summaries[0].metrics
    changes = ("--set", "threshold=1", "--set", "max_words=2")
    capsys.readouterr()
    assert main(["score", str(result.folder), *changes, "--json"]) == 0
    [run] = json.loads(capsys.readouterr().out)["runs"]
    [again] = run["summaries"]
    assert model.count == asked
    assert again["metrics"]["qm"]["value"] > before["qm"].value
    assert (before["ifm"].value, again["metrics"]["ifm"]["value"]) == (1.0, 0.0)
    assert "the prompts were asked with the old values" in again["not_comparable_because"][-1]


def test_a_predictor_may_be_unreadable_as_the_candidate_may_and_a_judge_may_not(harness_run):
    def half(request):
        unread = request.topic.variables.get("asked") == "category"
        return "I cannot say." if unread else answer(request)

    measured = harness_run("usersum_movielens", model=ScriptedModel(half), **FEW)
    assert measured.exit_code == 0
    # Two of the four tasks ask for a category, three times each of four users.
    assert sum(measured.summaries[0].stages["predict"].failures.values()) == 24
    assert measured.summaries[0].metrics["unreadable"].value == 0.5
    judged = harness_run(
        "usersum_movielens", model=ScriptedModel(half), judge=ScriptedModel("Good.", name="judge"),
        set={"autoeval": True}, **FEW,
    )  # fmt: skip
    assert judged.exit_code == 3
    [error] = judged.errors
    assert error.where == "usersum_movielens/rate" and error.found.startswith("4 of 4 by judging")


def test_an_extractor_is_part_of_what_makes_runs_comparable(tmp_path, monkeypatch):
    (tmp_path / "own_linker_of_a_test.py").write_text("def find(summary):\n    return []\n")
    monkeypatch.chdir(tmp_path)
    assert USERSUMBENCH.contents(options()) == {}
    named = USERSUMBENCH.contents(options(extractor="own_linker_of_a_test:find"))
    assert named.keys() == {"extractor"}
    with pytest.raises(UsageError, match="that extractor names"):
        USERSUMBENCH.contents(options(extractor="no_such_module:find"))
