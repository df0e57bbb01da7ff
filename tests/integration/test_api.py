"""The harness from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness as package
from harness.base.errors import ModelError, UsageError
from harness.testing import faults

pytestmark = pytest.mark.usefixtures("own_cache")
SAMPLE = {"model": "baseline", "judge": "lexical", "data": "sample", "limit": 5}


def test_evaluate_gives_typed_results(tmp_path):
    result = package.evaluate("interests", output_path=tmp_path / "runs", **SAMPLE)
    assert (result.status, result.exit_code, result.errors) == ("done", 0, ())
    (summary,) = result.summaries
    assert summary.task == "interests"
    assert summary.metrics["support"].n == 5
    assert summary.not_comparable_because == (
        "bundled sample data",
        "--limit 5",
        "judged by rule: lexical",
    )
    assert (result.folder / "interests" / "summary.json").exists()


async def test_aevaluate_works_where_a_loop_runs_and_evaluate_says_so(tmp_path):
    result = await package.aevaluate(["interests"], output_path=tmp_path / "runs", **SAMPLE)
    assert result.status == "done"
    with pytest.raises(UsageError, match=r"await harness\.aevaluate"):
        package.evaluate("interests", output_path=tmp_path / "runs", **SAMPLE)


def test_an_unknown_setting_names_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'limit'"):
        package.evaluate("interests", model="baseline", limt=3)


def test_a_run_that_cannot_go_on_raises_and_keeps_its_folder(tmp_path, serve):
    server = serve(faults=lambda asked: faults.status(401))
    args = {"base_url": server.url, "model": "m"}
    settings = {**SAMPLE, "model": "openai", "model_args": args}
    with pytest.raises(ModelError, match="auth"):
        package.evaluate("interests", output_path=tmp_path / "runs", **settings)
    (folder,) = Path(tmp_path / "runs").iterdir()
    assert '"status": "failed"' in (folder / "manifest.json").read_text()


def test_every_public_name_is_there_and_listed():
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(dir(package)) == set(package.__all__)
