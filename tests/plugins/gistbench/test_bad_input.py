"""Whole runs with a candidate and judges that misbehave: everything is counted and shown."""

import pytest
from builders.gistbench import make_answer

import harness
from harness.testing import FaultyServer

ROWS = [
    ("ada", f"v{n}", f"jazz video {n}", "explicit_positive" if n % 2 else "implicit_positive", n)
    for n in range(1, 121)
]
ROWS += [("ben", f"w{n}", f"tea video {n}", "implicit_negative", n) for n in range(1, 61)]
GOOD = {
    "verify": "1, 2, 3",
    "taxonomy": '{"1": "Concerts"}',
    "overlap": "NONE",
    "specificity": "item_0, item_1, item_2, item_3, item_4",
}


def stage_of(body):
    """Which stage asks, for the first time or again with what was wrong."""
    text = "\n".join(one["content"] for one in body["messages"])
    marks = {
        "Name the interests of this user": "predict",
        "are cited as evidence": "verify",
        "exactly one category": "taxonomy",
        "It was inferred from": "specificity",
    }
    return next((stage for mark, stage in marks.items() if mark in text), "overlap")


@pytest.fixture
def counted(tmp_path):
    """What the summary of a run counts, and the stages' failures, from answers by stage."""
    file = tmp_path / "engagements.csv"
    header = "user_id,object_id,object_text,interaction_type,interaction_time\n"
    file.write_text(header + "".join(",".join(map(str, row)) + "\n" for row in ROWS))

    def run(**answers):
        def respond(body):
            answer = {**GOOD, **answers}[stage_of(body)]
            return answer(body["messages"][-1]["content"]) if callable(answer) else answer

        with FaultyServer(respond, models=("candidate", "judge")) as server:
            result = harness.evaluate(
                "gist_synthetic",
                model="openai",
                model_args={"base_url": server.url, "model": "candidate"},
                judge=f"openai:model=judge,base_url={server.url}",
                data=str(file),
                output_path=tmp_path / "runs",
                store=tmp_path / "calls.sqlite",
                max_failures=1.0,
            )
        summary = result.summaries[0]
        failures = {name: stage.failures for name, stage in summary.stages.items()}
        return summary, {name: one for name, one in failures.items() if one}

    return run


def first_window(answer, other="[]"):
    """An answer to the first window, and one to the second."""
    return lambda text: answer if "\n[1] (" in text else other


def test_what_a_candidate_says_badly_is_read_and_counted(counted):
    first = '{"interest": "Jazz", "evidence": ["[1]", "2, ID 3", 101, 500, "v7"]}'

    summary, failures = counted(predict=first_window(first, make_answer(jazz=[101])))

    assert summary.counts["citations of lines that are not in the window"] == 3
    assert summary.counts["interests"] == summary.counts["distinct interests"] == 1
    assert failures == {}


def test_a_candidate_that_writes_prose_loses_its_window(counted):
    prose = first_window("I cannot tell.", make_answer(Jazz=[101, 102]))
    summary, failures = counted(predict=prose)
    assert summary.counts["windows that could not be read"] == 1
    assert failures == {"predict": {"no_json": 1}}
    assert summary.metrics["ig_p"].n == 1


PREDICTED = first_window(make_answer(Jazz=[1, 2, 3, 4, 5, 6]))


def test_too_many_wrong_and_repeated_labels_of_the_judges_are_counted(counted):
    named = ", ".join(f"item_{n}" for n in (*range(9), 0, 99))
    summary, failures = counted(predict=PREDICTED, verify="1, 2, 3, 77", specificity=named)

    assert summary.counts["labels of the evidence judge that do not exist"] == 1
    assert summary.counts["labels of the retrieval judge that do not exist"] == 1
    assert summary.counts["labels that the retrieval judge repeated"] == 1
    assert summary.counts["labels of the retrieval judge beyond the number asked for"] == 4
    assert failures == {}


def test_a_judge_without_a_verdict_leaves_the_interest_out_and_worst_is_zero(counted):
    summary, failures = counted(predict=PREDICTED, verify="They all look fine to me.")
    assert list(failures) == ["verify"]
    assert summary.counts["interests without a verdict on their evidence"] == 1
    metric = summary.metrics["ig_p"]
    assert (metric.value, metric.n, metric.counted_as_worst) == (None, 0, 0.0)

    summary, failures = counted(predict=PREDICTED, specificity="I would guess.")
    assert list(failures) == ["specificity"]
    assert summary.counts["interests without a verdict on their retrieval"] == 1
    assert (summary.metrics["is"].value, summary.metrics["is"].counted_as_worst) == (None, 0.0)
    assert summary.metrics["ig_p"].value == 1.0

    summary, failures = counted(predict=PREDICTED, taxonomy='{"1": "No Such Category"}')
    assert failures == {"taxonomy": {"no_category": 1}}
    assert summary.counts["interests without a verdict on their category"] == 1
    assert summary.metrics["ig_r"].value is None
