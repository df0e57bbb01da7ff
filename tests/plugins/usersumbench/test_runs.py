"""Whole runs over the sample: what they forecast, ask and score."""

import json

import pytest
from builders.usersumbench import options
from harness_usersumbench.benchmark import USERSUMBENCH

from harness.base.errors import UsageError
from harness.cli.main import main
from harness.testing import ScriptedModel

HC = "usersum_movielens_hc"


def answer(request):
    """A summary and a first option; of questions about categories nothing that can be read."""
    if request.topic.prompt == "summarise":
        return f"The user likes {len(request.messages[-1].content)} teas."
    return "I cannot say." if request.topic.variables["asked"] == "category" else "A"


def test_a_verifier_of_rubbish_ends_the_task_before_its_summaries_are_used(harness_run):
    rubbish = {"limit": 4, "roles": {"verifier": ScriptedModel("Lorem ipsum.")}}
    result = harness_run(HC, model="baseline", **rubbish)
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
    # It alone measures nothing, whatever is allowed.
    result = harness_run(HC, model="baseline", max_failures=1.0, **rubbish)
    assert result.exit_code == 3
    assert "these results measure nothing" in result.errors[0].expected


def test_a_predictor_may_be_unreadable_as_the_candidate_may_and_a_judge_may_not(
    harness_run, capsys
):
    model = ScriptedModel(answer)
    result = harness_run("usersum_movielens", model=model, limit=4)
    assert result.exit_code == 0
    [measured], asked = result.summaries, model.count
    # Two of the four tasks ask for a category, three times each of four users.
    assert sum(measured.stages["predict"].failures.values()) == 24
    assert measured.metrics["unreadable"].value == 0.5
    # The threshold and the limit are changed without asking.
    capsys.readouterr()
    changes = ("--set", "threshold=1", "--set", "max_words=2", "--json")
    assert main(["score", str(result.folder), *changes]) == 0
    [run] = json.loads(capsys.readouterr().out)["runs"]
    [again] = run["summaries"]
    assert model.count == asked
    assert again["metrics"]["qm"]["value"] > 0
    assert (measured.metrics["ifm"].value, again["metrics"]["ifm"]["value"]) == (1.0, 0.0)
    assert "the prompts were asked with the old values" in again["not_comparable_because"][-1]

    judged = harness_run(
        "usersum_movielens", model=ScriptedModel(answer), limit=4, set={"autoeval": True},
        judge=ScriptedModel("Good.", name="judge"),
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
