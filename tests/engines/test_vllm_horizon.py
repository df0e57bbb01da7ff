"""HORIZON's Tasks 2 and 3 on a real engine, whose queries make no sense, and an index of titles."""

from __future__ import annotations

import json

import pytest
from builders.horizon_reviews import amazon_in, inputs_of

from harness.cli.main import main

from .conftest import WHOLE_PROMPTS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]

FIELDS = {"horizon_query": "queries", "horizon_long": "item_descriptions_timewise"}
USERS = 4


@pytest.mark.parametrize(
    "log",
    [
        "sample",
        pytest.param("All_Beauty", marks=pytest.mark.real_data),
        pytest.param("multicat", marks=pytest.mark.real_data),
    ],
)
def test_texts_at_random_are_searched_and_every_failure_has_a_cause(
    command, monkeypatch, request, capsys, log
):
    monkeypatch.chdir(command.folder)
    data = "sample"
    if log != "sample":
        amazon, data = amazon_in(request.getfixturevalue("real_data")), "data"
        inputs = inputs_of(amazon, log, command.folder)
        assert main(["data", "horizon", *inputs, "--out", data, "--memory", "2GB"]) == 0
    given = ["--data", data, "--embedder", "hashing", "--out", "index"]
    assert main(["horizon", "index", *given]) == 0
    some = ("--role", "retriever=catalogue:index", "--limit", str(USERS))
    done = command.run(*some, task="horizon_text", data=data, **WHOLE_PROMPTS)
    assert done.code in (0, 3), done.err
    asked, searched = command.records("generate"), command.records("retrieve")
    failed = [one["outcome"] for one in asked if one["outcome"]["type"] != "done"]
    assert {one["type"] for one in failed} <= {"unreadable", "call_failed"}
    assert all(one["cause"] for one in failed)
    assert len(searched) == len(asked) - len(failed) > 0
    assert {one["outcome"]["type"] for one in searched} == {"done"}
    calls = [call for one in asked for call in one["calls"]]
    whole = [json.loads(call["text"]) for call in calls if call["finish"] == "stop"]
    assert len(whole) > 0
    assert {name for one in whole for name in one} <= {*FIELDS.values()}
    for task in FIELDS:
        summary = done.summary(task)
        stage, recall = summary["stages"]["generate"], summary["metrics"]["recall_10"]
        use = stage["roles"]["candidate"]
        assert use["asked_schema"] == stage["items"] >= use["met_schema"]
        assert recall["n"] + sum(recall["missing"].values()) == stage["items"] > 0
        assert all(cause.split("/")[1] for cause in recall["missing"])
    capsys.readouterr()
    assert main(["analyse", "horizon-text", str(command.run_folder)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("tiny-candidate") > 1
    assert "Table 5" in shown and "Table 6" in shown
