"""Whole runs that files of settings ask for."""

import json
import re
import sys


def write(harness, url, more=""):
    (harness.folder / "harness.toml").write_text(
        f"""
        model = "served"
        judge = "lexical"
        tasks = "interests"
        limit = 8
        {more}
        [data]
        interests = "sample"
        [models.served]
        kind = "openai"
        base_url = "{url}"
        model = "candidate-model"
        """
    )


def test_a_run_that_a_budget_ended_is_taken_up_when_the_file_has_a_larger_one(harness, serve):
    server = serve()
    write(harness, server.url, "max_calls = 3\nconcurrency = 1")
    stopped = harness.here("run", "--json")
    assert stopped.code == 1
    assert (server.count, server.asked_if_thinking) == (2, 1)
    write(harness, server.url)
    harness.here("run", "--json").ok()
    assert server.count == 8
    (folder,) = harness.folders
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["settings"]["limit"] == 8
    assert manifest["asked"]["model_args"] == {"base_url": server.url, "model": "candidate-model"}
    # The same, said in full on the command line, is the same run.
    (harness.folder / "harness.toml").unlink()
    harness.here(
        "--model", "openai", "--model_args", f"base_url={server.url},model=candidate-model",
        "--judge", "lexical", "--tasks", "interests", "--data", "interests=sample", "--limit", "8",
        "--json",
    ).ok()  # fmt: skip
    # Of two runs that begin within one second, the later one's name has a number at its end.
    first, second = (re.search("-[0-9a-f]{8}(?=-|$)", one.name)[0] for one in harness.folders)
    assert first == second


def test_from_python_no_settings_are_read(harness):
    (harness.folder / "harness.toml").write_text("this is no TOML")
    code = (
        "import harness; r = harness.evaluate('interests', model='baseline', judge='lexical', "
        "data='sample', limit=2); print(r.status, r.summaries[0].seed)"
    )
    done = harness.process([sys.executable, "-c", code], HARNESS_SEED="5")
    assert (done.code, done.out) == (0, "done 0\n"), done.err
