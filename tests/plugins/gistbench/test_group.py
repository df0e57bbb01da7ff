"""A run of several datasets ends with the paper's two tables over all of them."""

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
        "--output_path", str(tmp_path / "runs"),
    ]  # fmt: skip

    together = printed(*command, "--tasks", str(tmp_path / "two.yaml")).out
    alone = printed(*command, "--tasks", "gist_synthetic").out

    header = "model     halves IG F1  halves IS  synthetic IG F1  synthetic IS"
    assert header in together.splitlines()
    assert "Precision and recall, medians in %" in together
    assert "Precision and recall" not in alone
