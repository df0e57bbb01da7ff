from typing import Any

import pytest
from builders.runs import make_manifest

from harness.runs.manifest import Manifest, Session
from harness.scoring.finished_task import labels_of


def run(number: int, *, day: int = 1, revision: str = "", **fields: Any) -> Manifest:
    settings = {"model_args": {"revision": revision}} if revision else {}
    return make_manifest(**{
        "run_id": f"2026010{day}T00000{number}-m-0000000{number}", "name": "step",
        "model": "openai:m", "settings": settings,
        "sessions": (Session(started=f"2026-01-0{day}T00:00:00Z"),), **fields,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "labels"),
    [
        ((run(1), run(2, name="other")), ["step", "other"]),
        ((run(1, revision="a"), run(2, revision="b")), ["step a", "step b"]),
        ((run(1, revision="a", model="openai:n"), run(2)), ["step n", "step m"]),
        (
            (run(1, model="vllm:/a/run7/step"), run(2, model="vllm:/a/run8/step")),
            ["step run7/step", "step run8/step"],
        ),
        ((run(1), run(2, day=2)), ["step 2026-01-01", "step 2026-01-02"]),
        ((run(1), run(2)), ["step 00000001", "step 00000002"]),
        (
            (run(1, run_id="20260101T000001-m-a"), run(2, run_id="20260101T000002-m-a")),
            ["step 20260101T000001", "step 20260101T000002"],
        ),
        ((run(1, name=""), run(2, name="")), ["openai:m 00000001", "openai:m 00000002"]),
    ],
)
def test_runs_of_one_label_are_told_apart_by_the_first_that_differs(runs, labels):
    assert [*labels_of(runs).values()] == labels
