"""The same numbers come out, whoever runs the benchmarks, on however many nodes and workers."""

from __future__ import annotations

import json
import re

import pytest
from builders.clusters import ON_RAY
from builders.toys import current_lines

from harness.base.hashing import stable_int
from harness.testing import faults

pytestmark = ON_RAY
PAYING = {
    "source", "attempts", "from_store", "shared", "asked", "prompt_tokens", "completion_tokens",
    "saved_prompt_tokens", "saved_completion_tokens",
}  # fmt: skip
"""What says whether a question was asked: where items share one, each worker may ask it once."""

MANNERS = 9
CUT, REFUSED, NO_ANSWER = 2, 3, 4


def manner_of(body):
    """How a request is answered: by the request alone."""
    return stable_int(json.dumps(body, sort_keys=True)) % MANNERS


def badly_at_times(request):
    """Cuts one answer in nine, refuses one, and one is no answer."""
    bad = {CUT: faults.TRUNCATED, REFUSED: faults.FILTERED, NO_ANSWER: faults.status(400)}
    return bad.get(manner_of(request.body))


def answering(known):
    """Answers each request by its text: as the rule does, in several manners, or unreadably."""

    def answer(body):
        prompt = body["messages"][-1]["content"]
        text = known.get(prompt) or chosen(prompt)
        return {
            0: f"```json\n{text}\n```",
            1: f"Here is what I found:\n\n{text}\n\nThat is all.",
            5: "I cannot say.",
        }.get(manner_of(body), text)

    return answer


def chosen(prompt):
    """What a judge chooses: every other label, or for each label a category that its text has."""
    labels = re.findall(r"^(\w{1,4})[.:] (.*)", prompt, re.MULTILINE)
    if "Answer with a JSON object" in prompt:
        categories = prompt.split("\n\n")[1].splitlines()
        return json.dumps(
            {label: categories[stable_int(text) % len(categories)] for label, text in labels}
        )
    if exactly := re.search(r"exactly (\d+)", prompt):
        return ", ".join(label for label, _ in labels[: int(exactly[1])])
    return ", ".join(label for label, _ in labels[::2])


def answers_by_rule(run):
    """The answers of a run by rule to its questions."""
    return {
        call["messages"][-1]["content"]: call.get("text") or ""
        for path in run.glob("*/?-*.jsonl")
        for line in path.read_text().splitlines()
        for call in json.loads(line).get("calls", ())
    }


def results(run, may_differ):
    """All that came of a run: scores as bytes, summaries, records, counts of calls."""
    scores = {path.parent.name: path.read_bytes() for path in run.glob("*/scores.jsonl")}
    summaries = {
        path.parent.name: json.loads(path.read_text()) for path in run.glob("*/summary.json")
    }
    assert scores.keys() == summaries.keys() and scores
    for summary in summaries.values():
        del summary["crc32"]
        for stage in summary["stages"].values():
            stage["roles"] = {one: without(may_differ, use) for one, use in stage["roles"].items()}
    session = json.loads((run / "manifest.json").read_text())["sessions"][-1]
    usage = {place: without(may_differ, use) for place, use in session["usage"].items()}
    return scores, summaries, records_of(run, may_differ), usage


def without(names, counts):
    return {name: count for name, count in counts.items() if name not in names}


def records_of(run, may_differ):
    """The current records of each stage by their keys."""
    manifest = json.loads((run / "manifest.json").read_text())
    records = {}
    for name, task in manifest["tasks"].items():
        for stage in task["stages"]:
            for line in current_lines(run, stage["name"], task=task["folder"]):
                calls = [without({"seconds", *may_differ}, call) for call in line.pop("calls", ())]
                del line["crc32"]
                records[name, stage["name"], line.pop("key")] = line, calls
    return records


def ended(run):
    return [run.status, *(str(error).replace(run.folder.name, "RUN") for error in run.errors)]


@pytest.fixture
def compare(runs, serve):
    """Runs tasks on both executors with a server's answers, and compares all that came of them."""

    def compare(tasks, limit, *counts):
        everything = {
            "tasks": tasks, "data": "sample", "limit": limit,
            "max_failures": {"calls": 1.0, "parsing": 1.0, "judging": 1.0, "errors": 0.0},
        }  # fmt: skip
        judged = tasks.startswith("gist")
        may_differ = PAYING if tasks == "usersum" else ()

        def run(executor, name, **options):
            own = {"output_path": runs.folder / name, "store": runs.folder / f"{name}.sqlite"}
            return runs.run(executor, **{**everything, **own, **options})

        rule = {"model": "baseline", "model_args": None}
        by_rule = run("local", "rule", **rule, roles={"judge": "lexical"} if judged else {})
        assert by_rule.status == "done", by_rule.errors
        server = serve(answering(answers_by_rule(by_rule.folder)), faults=badly_at_times)
        place = f"base_url={runs.url},revision=1"
        everything["model_args"] = f"{place},model=candidate"
        everything["roles"] = {"judge": f"openai:{place},model=judge"} if judged else {}
        local = run("local", "local")
        assert server.mistake is None
        wanted = results(local.folder, may_differ)
        stages = [stage for one in wanted[1].values() for stage in one["stages"].values()]
        assert any(one["failures"] for one in stages) and any(one["done"] for one in stages)
        for count in counts:
            on_ray = run("ray", f"ray{count}", workers=count)
            assert ended(on_ray) == ended(local)
            for found, expected in zip(results(on_ray.folder, may_differ), wanted, strict=True):
                assert found == expected

    return compare


@pytest.mark.parametrize(
    ("tasks", "limit", "counts"),
    [
        ("gist_synthetic", 8, (1, 4)),
        ("perrec_easy", 6, (3,)),
        ("usersum", 2, (2,)),
        ("behaviour", 1, (4,)),
        ("horizon_text", 3, (2,)),
    ],
    ids=["gist", "perrec", "usersum", "behaviour", "horizon"],
)
def test_both_executors_give_the_same_numbers(compare, tasks, limit, counts):
    compare(tasks, limit, *counts)
