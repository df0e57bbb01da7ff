"""GISTBench with models that answer badly: everything has its rule, is counted, and is shown."""

from __future__ import annotations

import json
import re

import pytest

from harness.testing import faults

TASK = "gist_synthetic"
PROSE = "Hard to say; I would have to think about that one."
CANDIDATES = ("otherwindow", "invented", "repeated", "object", "flood", "cut", "prose")
"""People after whom the candidate's ways of answering are named."""

FLOOD = [{"interest": f"Trains {n}", "evidence": [n % 12 + 1]} for n in range(10_000)]
TRAINS = {"interest": "Trains", "evidence": [1, 2, 3]}
ANSWERS = {
    "otherwindow": json.dumps([{"interest": "Trains", "evidence": [1, 2, 13, 14]}]),
    "invented": json.dumps([{"interest": "Trains", "evidence": [1, 2, 99, "x7"]}]),
    "repeated": json.dumps([TRAINS, {"interest": " TRAINS", "evidence": [4]}]),
    "object": json.dumps(TRAINS),
    "flood": json.dumps(FLOOD),
    "cut": json.dumps([TRAINS, TRAINS])[:-30],
    "prose": PROSE,
}


def candidate_answers(prompt: str) -> str:
    """One of the bad answers for the first window of a person; nothing more in the second."""
    person = re.search(r"Trains clip \d+ of (\w+)", prompt)[1]
    return ANSWERS[person] if "\n[1] (" in prompt or person == "prose" else "[]"


def log_of_likes(gist) -> str:
    """A file in which each of the people likes 14 clips, which makes two windows."""
    rows = ["user_id,object_id,object_text,interaction_type"]
    rows += [
        f"{person},{person}-{n},Trains clip {n} of {person},explicit_positive"
        for person in CANDIDATES
        for n in range(14)
    ]
    file = gist.folder / "likes.csv"
    file.write_text("\n".join(rows) + "\n")
    return str(file)


def sorted_as(labels: list[tuple[str, str]], category: str) -> str:
    return json.dumps({number: category for number, _ in labels})


@pytest.fixture
def shown(gist):
    """What the command for looking at a run prints of the only one, on one line."""

    def show() -> str:
        done = gist.here("show", f"runs/{gist.folders[0].name}", COLUMNS="200").ok()
        return " ".join(done.out.split())

    return show


def kept_summary(gist) -> dict:
    return json.loads((gist.folders[0] / TASK / "summary.json").read_text())


def test_a_candidate_that_answers_badly_is_read_by_rule_and_every_rule_is_counted(
    gist, serve, shown
):
    def answer(body):
        prompt = body["messages"][1]["content"]
        labels = re.findall(r"^(\d+)\. (.+)$", prompt, re.MULTILINE)
        return {
            "predict": candidate_answers,
            "verify": lambda _: ", ".join(number for number, _ in labels),
            "taxonomy": lambda _: sorted_as(labels, "Trains"),
            "overlap": lambda _: "NONE",
            "specificity": lambda _: "item_0, item_1",
        }[gist.stage_of(body)](prompt)

    def cut_off(asked):
        prompt = asked.body["messages"][1]["content"]
        mine = "[1] (explicit positive) Trains clip 0 of cut" in prompt
        return faults.TRUNCATED if mine else None

    serve(gist, answer=answer, faults=cut_off)
    gist.run("--data", f"gist_synthetic={log_of_likes(gist)}", "--max_failures", "1").ok()
    summary = kept_summary(gist)
    wanted = {
        "citations of lines that are not in the window": 4,
        "interests beyond the most that are read": 9_800,
        "objects cited for more than two interests of a window": 12,
        "answers cut at the token limit and read all the same": 1,
        "windows": 14,
        "windows that could not be read": 2,
        "users without a readable window": 1,
        "interests": 205,
        "distinct interests": 201,
    }
    assert {name: summary["counts"].get(name) for name in wanted} == wanted
    assert summary["stages"]["predict"]["failures"] == {"no_json": 2}
    # Five people are proven to like trains; of two hundred interests with an object each none is.
    precision = summary["metrics"]["mean_ig_p"]
    assert precision["missing"] == {"predict/no_json": 1}
    assert (precision["n"], precision["value"]) == (6, pytest.approx(5 / 6))
    assert precision["counted_as_worst"] == pytest.approx(5 / 7)
    table = shown()
    for name, times in wanted.items():
        assert f"{name} {times:,}" in table
    (truncated,) = [
        json.loads(line)
        for line in next((gist.folders[0] / TASK).glob("1-*")).read_text().splitlines()
        if json.loads(line)["id"] == "cut/1"
    ]
    assert truncated["outcome"]["value"]["truncated"] is True
    assert truncated["calls"][0]["finish"] == "length"


VERDICTS = {
    "astronomy": PROSE,
    "basketball": "1, 99",
    "camping": "NONE, 1",
    "hiking": "1, 1",
}
RETRIEVED = {
    "knitting": "item_0, item_99",
    "photography": ", ".join(f"item_{n}" for n in range(12)),
    "trains": PROSE,
}
BEYOND_RANGE = "77, 78"


def test_a_judge_that_fails_in_every_way_is_corrected_then_counted(gist, serve, shown):
    def topic_of(body) -> str:
        said = re.search(r"interest: (\w+) clips", body["messages"][1]["content"])
        return said[1].casefold() if said else ""

    def answer(body):
        stage, topic = gist.stage_of(body), topic_of(body)
        if stage == "verify" and topic == "knitting" and len(body["messages"]) == 2:
            return BEYOND_RANGE
        if stage == "verify" and topic in VERDICTS:
            return VERDICTS[topic]
        if stage == "specificity" and topic in RETRIEVED:
            return RETRIEVED[topic]
        if stage == "overlap":
            return PROSE
        right = gist.answer(body)
        return right.replace("Gardening & Planting", "Lawns") if stage == "taxonomy" else right

    def broken(asked):
        gardening = gist.stage_of(asked.body) == "verify" and topic_of(asked.body) == "gardening"
        return faults.status(500) if gardening else None

    server = serve(gist, answer=answer, faults=broken)
    gist.run("--attempts", "2", "--max_failures", "1", model="omega").ok()
    summary = kept_summary(gist)
    # Each topic is one of the first five of five people, and proven of four: all but the third.
    wanted = {
        "interests": 40,
        "interests without a verdict on their evidence": 15,
        "interests that could not be mapped": 5,
        "labels of the evidence judge that do not exist": 5,
        "labels that the evidence judge repeated": 5,
        "labels of the retrieval judge that do not exist": 4,
        "labels of the retrieval judge beyond the number asked for": 36,
        "interests without a verdict on their retrieval": 4,
        "overlap questions without a verdict": summary["stages"]["overlap"]["items"] - 1,
        "distinct interests without a category": 1,
    }
    assert {name: summary["counts"].get(name) for name in wanted} == wanted
    failures = {name: one["failures"] for name, one in summary["stages"].items()}
    assert failures == {
        "predict": {},
        "verify": {"schema": 10, "server_error": 5},
        "taxonomy": {},
        "overlap": {"schema": summary["stages"]["overlap"]["items"] - 1},
        "specificity": {"schema": 4},
    }
    precision, specificity = (summary["metrics"][name] for name in ("mean_ig_p", "mean_is"))
    assert precision["missing_share"] == pytest.approx(15 / 40)
    assert precision["counted_as_worst"] < precision["value"]
    # More than half of what would be tested for specificity has no verdict.
    assert specificity["missing_share"] > 0.5
    assert specificity["value"] is None
    assert "less than the required 50%" in specificity["undefined"]
    table = shown()
    for name, times in wanted.items():
        assert f"{name} {times}" in table

    retried = [
        body["messages"]
        for body in server.requests
        if topic_of(body) == "knitting" and len(body["messages"]) > 2
    ]
    assert len(retried) == 5
    for system, question, said, correction in retried:
        assert (system["role"], question["role"]) == ("system", "user")
        assert said == {"role": "assistant", "content": BEYOND_RANGE}
        assert correction["role"] == "user"
        assert "it names labels, none of which exists" in correction["content"]
    tries = [one for one in server.requests if topic_of(one) == "camping"]
    assert len(tries) == 3 * 5
    assert "it says NONE and names labels" in tries[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("said", ["1", "{}", '{"1": "Weather of Thursday"}', PROSE])
def test_a_taxonomist_of_no_use_ends_the_task_and_is_never_the_candidates_zero(gist, serve, said):
    def answer(body):
        return said if gist.stage_of(body) == "taxonomy" else gist.answer(body)

    serve(gist, answer=answer)
    # A single failure does not end a task: there has to be more than one batch.
    few = ("--set", "interests_a_question=3")
    ended = gist.run(*few, model="omega")
    assert ended.code == 3
    assert "gist_synthetic/taxonomy: too many items failed" in ended.err
    assert "by judging" in ended.err

    accepted = gist.run(*few, "--max_failures", "1", model="omega")
    assert accepted.code == 3
    assert "gist_synthetic/taxonomy: no item has a value" in accepted.err
    metrics = kept_summary(gist)["metrics"]
    assert {name: one["value"] for name, one in metrics.items()} == dict.fromkeys(metrics)
    assert all(one["missing_share"] == 1.0 for one in metrics.values())
