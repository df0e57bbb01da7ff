"""A group of datasets, also of a file of one's own, has the paper's two tables over all of them."""

TASK = """
task: gist_halves
extends: gist_synthetic
options: {window: 50}
"""
GROUP = """
group: two
tasks: [gist_halves.yaml, gist_synthetic]
analysis: gist-scores
"""


def test_a_group_prints_its_analysis_over_its_tasks(tmp_path, monkeypatch, printed):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "gist_halves.yaml").write_text(TASK)
    (tmp_path / "two.yaml").write_text(GROUP)
    command = [
        "--model", "baseline", "--judge", "lexical", "--data", "sample", "--limit", "2", "--quiet",
        "--verbose", "--output_path", str(tmp_path / "runs"),
    ]  # fmt: skip

    together = printed(*command, "--tasks", str(tmp_path / "two.yaml")).out
    (run,) = (tmp_path / "runs").iterdir()
    shown = printed("show", str(run)).out
    alone = printed(*command, "--tasks", "gist_synthetic").out

    header = "model     halves IG F1  halves IS  synthetic IG F1  synthetic IS"
    for out in (together, shown):
        assert header in out.splitlines()
        assert "Precision and recall, medians in %" in out
    assert "Precision and recall" not in alone
