"""The fixtures as a plugin author has them: found by pytest without a line of configuration."""

import os
import subprocess
import sys

TEST = """
from harness.testing import ScriptedModel

INTEREST = '[{"interest": "trains", "items": [1, 2, 3]}]'


def test_a_run(harness_run, tmp_path):
    result = harness_run("interests", model=ScriptedModel(INTEREST), judge="lexical", limit=2)
    assert result.status == "done"
    assert result.folder.parent == tmp_path / "runs"
    assert (tmp_path / "calls.sqlite").is_file()


def test_a_server(harness_run, harness_server):
    harness_server.answer = lambda body: INTEREST
    result = harness_run("interests", model=harness_server, judge="lexical", limit=2)
    assert result.summaries[0].stages["name"].done == harness_server.count == 2
"""

LOADED = """
import sys
import harness.testing.pytest_plugin
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "harness"))
"""


def test_the_fixtures_are_there_wherever_the_harness_is(tmp_path):
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "HARNESS_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert not (tmp_path / "cache").exists(), "a run in a test leaves the user's store alone"


def test_they_cost_who_does_not_use_them_next_to_nothing():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["harness", "harness.testing", "harness.testing.pytest_plugin"]
