"""Benchmarks on a real engine whose answers make no sense: each failure has its cause."""

from __future__ import annotations

import pytest

from .conftest import WHOLE_PROMPTS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]


@pytest.mark.parametrize(
    ("task", "limited", "stages", "metrics"),
    [
        ("behaviour_movies_a", ("20", "kept=20"), ("recommend",), ("gap",)),
        (
            "usersum_movielens_hc", ("6", "max_words=40"),
            ("segment", "combine", "predict"), ("qm", "ifm", "idm"),
        ),
    ],
    ids=["behaviour", "usersum"],
)  # fmt: skip
def test_every_random_answer_has_a_value_or_a_cause(command, task, limited, stages, metrics):
    limit, change = limited
    done = command.run("--limit", limit, "--set", change, task=task, **WHOLE_PROMPTS)
    assert done.code in (0, 3), done.err
    outcomes = [one["outcome"] for stage in stages for one in command.records(stage)]
    failed = [one for one in outcomes if one["type"] != "done"]
    assert len(failed) > 0
    assert {one["type"] for one in failed} <= {"unreadable", "call_failed"}
    assert all(one["cause"] for one in failed)
    found = done.summary(task)["metrics"]
    for name in metrics:
        missing = found[name]["missing"]
        assert found[name]["n"] + sum(missing.values()) == int(limit)
        assert all(cause.split("/")[1] for cause in missing)
