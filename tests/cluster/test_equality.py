"""The same numbers come out, whoever runs the benchmarks, on however many nodes and workers."""

from __future__ import annotations

import json
import re

import pytest

from harness.base.hashing import stable_int
from harness.testing import faults

MAY_DIFFER = {
    "attempts": "which of two equal questions of the candidate is sent depends on the moment",
    "from_store": "so does which of them finds the answer in the store",
    "shared": "and which joins one in flight",
    "asked": "the questions that are left for the model",
    "saved": "their tokens",
}
"""What the counts of a stage's calls may differ in, with the reasons; `calls` may not."""

MANNERS = 9
CUT, REFUSED, NO_ANSWER = 2, 3, 4


def manner_of(body):
    """How a request is answered, by its text alone; the taxonomy is asked in other portions by
    each run, so that it gets good answers only."""
    prompt = body["messages"][-1]["content"]
    return MANNERS if "Put each of these" in prompt else stable_int(prompt) % MANNERS


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


def results(run):
    """All that the numbers of a run are: scores as bytes, and summaries without what may differ."""
    scores = {path.parent.name: path.read_bytes() for path in run.glob("*/scores.jsonl")}
    summaries = {}
    for path in run.glob("*/summary.json"):
        summary = json.loads(path.read_text())
        del summary["crc32"]
        for stage in summary["stages"].values():
            for counts in stage.get("roles", {}).values():
                for name in MAY_DIFFER:
                    counts.pop(name, None)
        summaries[path.parent.name] = summary
    return scores, summaries


CASES = [
    ("gist_synthetic", "judge", 6, {}),
    ("perrec_easy", None, 6, {}),
    ("usersum", None, 2, {}),
    ("behaviour", None, 2, {}),
    ("horizon", None, 3, {}),
]


@pytest.mark.parametrize(("tasks", "judge", "limit", "more"), CASES, ids=[one[0] for one in CASES])
def test_both_executors_give_the_same_numbers(runs, serve, cluster, tasks, judge, limit, more):
    everything = {
        "tasks": tasks, "data": "sample", "limit": limit, **more,
        "max_failures": {"calls": 1.0, "parsing": 1.0, "judging": 1.0, "errors": 0.0},
    }  # fmt: skip
    lexical = {"judge": "lexical"} if judge else {}
    by_rule = runs.run(
        "local", **everything, model="baseline", model_args=None, roles=lexical,
        output_path=runs.folder / "rule", store=runs.folder / "rule.sqlite",
    )  # fmt: skip
    assert by_rule.status == "done", by_rule.errors
    server = serve(answering(answers_by_rule(by_rule.folder)), faults=badly_at_times)
    everything["roles"] = {judge: f"openai:base_url={runs.url},model={judge}"} if judge else {}

    def run(executor, name, **options):
        place = {"output_path": runs.folder / name, "store": runs.folder / f"{name}.sqlite"}
        return runs.run(executor, **everything, **place, **options)

    local = run("local", "local")
    assert server.mistake is None
    scores, summaries = results(local.folder)
    assert scores and len(scores) == len(summaries)
    assert any(stage["failures"] for one in summaries.values() for stage in one["stages"].values())
    for workers in (1, 3):
        on_ray = run("ray", f"ray{workers}", workers=workers)
        assert on_ray.status == local.status
        assert [str(one) for one in on_ray.errors] == [str(one) for one in local.errors]
        assert results(on_ray.folder) == (scores, summaries)
