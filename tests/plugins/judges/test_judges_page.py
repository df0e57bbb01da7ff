"""The example of a judge, and of a question for one, in docs/judges.md: both work as printed."""

import re
from pathlib import Path

import pytest
from builders.texts import write_json_lines

from harness.cli.main import main
from harness.reporting.result import Result
from harness.testing import FaultyServer, run_tasks

PAGE = Path(__file__).parents[3] / "docs" / "judges.md"
PLUGIN = """
from harness import Benchmark, Done, Metric, Score, hookimpl


def load(dataset, options):
    rows = [row for _, row in dataset.table().rows()]
    dataset.choose(row["user"] for row in rows)
    return rows


def score(records, options):
    for record in records["label"]:
        labels = record.outcome.value if isinstance(record.outcome, Done) else ()
        yield Score(id=record.id, user=record.user, values={"praise": labels.count("praise")})


@hookimpl
def register_benchmarks(register):
    from acme_reviews.stages import LABEL

    register("reviews", lambda: Benchmark(
        name="reviews", version=1, stages=(LABEL,), load=load, score=score,
        metrics={"praise": Metric(description="")},
    ))
"""
TASK = """
task: reviews
version: 1
benchmark: reviews
metrics: [praise]
data: {sample: sample, tables: {rows: {files: ["*.jsonl"], columns: {
  user: {}, sentences: {type: list}}}}}
"""


@pytest.fixture
def installed(site):
    """The packages of the page, and the rest of a benchmark that has its stage."""
    files = dict(
        re.findall(r"^\*\*`(acme_\S+)`\*\*\n\n```\w+\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    )
    reviews = {name: text for name, text in files.items() if name.startswith("acme_reviews")}
    judges = {name: text for name, text in files.items() if name.startswith("acme_judges")}
    assert (len(reviews), len(judges)) == (2, 2)
    site.install("acme-judges", {"acme_judges": "acme_judges.plugin"}, judges)
    own = {"acme_reviews/plugin.py": PLUGIN, "acme_reviews/task_configs/reviews.yaml": TASK}
    site.install("acme-reviews", {"acme_reviews": "acme_reviews.plugin"}, reviews | own)
    sample = site.folder / "acme_reviews" / "sample"
    sample.mkdir()
    write_json_lines(
        sample / "rows.jsonl",
        [{"user": "ann", "sentences": ["It is great.", "It broke.", "It came late."]}],
    )
    return site.folder


def judged(tmp_path, task, judge, answer):
    """The outcomes of a task's last stage with a judge whose model answers by a function."""
    with FaultyServer(lambda body: answer(body["messages"][-1]["content"])) as server:
        spec = f"{judge}openai:model=m,base_url={server.url}"
        result = run_tasks(task, folder=tmp_path, judge=spec, limit=1)
    assert result.errors == ()
    return result


def sentences(prompt):
    return re.findall(r"^\d+\. (.+)$", prompt, re.MULTILINE)


def value(result):
    (sample,) = Result.of(result).samples(stage="label")
    return sample.value


@pytest.mark.parametrize("judge", ["", "both-ways:"])
def test_its_question_is_answered_by_a_model_and_by_its_judge(judge, installed, tmp_path):
    def answer(prompt):
        said = ("praise" if "great" in one else "complaint" for one in sentences(prompt))
        return "\n".join(f"{number}. {one}" for number, one in enumerate(said, start=1))

    result = judged(tmp_path, "reviews", judge, answer)
    assert value(result) == ("praise", "complaint", "complaint")


def test_its_judge_keeps_what_is_said_in_both_orders(installed, tmp_path, printed):
    # By place: the first sentence is praise, in either order; so only the middle one is certain.
    result = judged(
        tmp_path, "reviews", "both-ways:", lambda _: "1. praise\n2. complaint\n3. complaint"
    )
    assert value(result) == (None, "complaint", None)
    always_first = judged(tmp_path, "interests", "both-ways:", lambda _: "1")
    everything = judged(
        tmp_path, "interests", "both-ways:", lambda prompt: ",".join(
            map(str, range(1, len(sentences(prompt)) + 1))
        ),
    )  # fmt: skip
    first, whole = (one.summaries[0].metrics["support"].value for one in (always_first, everything))
    assert first == 0.0 < whole
    assert "both-ways" in printed("list", "judges", "both-ways").out
    assert main(["validate", "reviews"]) == 0
