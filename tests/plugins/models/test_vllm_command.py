"""The command of the engines' page as a user types it: a whole run whose `vllm` is made up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders.commands import run_cli
from builders.processes import lives
from freeze.stored import baseline_answers

pytestmark = pytest.mark.slow

ASKED = ("--model", "vllm", "--tasks", "gist_synthetic,perrec_hard")
MORE = ("--judge", "lexical", "--data", "sample", "--limit", "3")
FAKE_SERVER = Path(__file__).with_name("fake_server.py")

VLLM = """
import json, os, sys
from pathlib import Path

if __name__ == "__main__":
    told = {"words": sys.argv[1:], "processes": [os.getpid(), os.getppid()]}
    with Path(os.environ["TOLD"]).open("a") as file:
        print(json.dumps(told), file=file)
    socket = sys.argv[sys.argv.index("--uds") + 1]
    files = ["--starts", os.environ["STARTS"], "--answers", os.environ["ANSWERS"]]
    fake = os.environ["FAKE_SERVER"]
    os.execv(sys.executable, [sys.executable, "-I", fake, "--uds", socket, *files])
"""
"""Tells how it was started and by which process, and becomes the fake server."""

MAIN = {
    "gist_synthetic": {"ig_p": 0.969, "is": 0.8},
    "perrec_hard_pointwise": {"ptc": 0.889},
    "perrec_hard_pairwise": {"ptc": 0.889},
    "perrec_hard_listwise": {"ptc": 0.889},
}
"""The main metrics of a model that answers as the baseline does."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A file with what the baseline answers to all questions of the command."""
    folder = tmp_path_factory.mktemp("baseline")
    environment = {**os.environ, "HARNESS_CACHE": str(folder / "cache")}
    run_cli("--model", "baseline", *ASKED[2:], *MORE, folder=folder, environment=environment).ok()
    (run,) = (folder / "runs").iterdir()
    file = folder / "answers.json"
    file.write_text(json.dumps(baseline_answers(run)))
    return file


@pytest.fixture
def run(package, serve, folder, tmp_path, answers):
    """Runs the command with the weights of a folder; gives what came of it."""
    (package / "entrypoints" / "cli" / "main.py").write_text(VLLM)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HARNESS_")},
        "HARNESS_VLLM_PYTHON": sys.executable, "HARNESS_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": "1", "COLUMNS": "120", "FAKE_SERVER": str(FAKE_SERVER),
        "ANSWERS": str(answers), "STARTS": str(tmp_path / "starts"), "TOLD": str(tmp_path / "told"),
    }  # fmt: skip
    words = ("--model_args", f"pretrained={folder}", "--output_path", "runs")
    return subprocess.run(
        [Path(sys.executable).with_name("harness"), *ASKED, *MORE, *words], cwd=tmp_path,
        env=environment, timeout=240, check=False, capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_both_benchmarks_are_answered_by_one_engine_that_ends_with_the_run(run, folder, tmp_path):
    assert run.returncode == 0, run.stderr
    summaries = [json.loads(file.read_text()) for file in tmp_path.glob("runs/*/*/summary.json")]
    assert {
        one["task"]: {name: round(one["metrics"][name]["value"], 3) for name in one["main"]}
        for one in summaries
    } == MAIN
    table = {line.split()[0] for line in run.stdout.splitlines() if "↑" in line}
    assert table >= {"gist_synthetic", "perrec_hard", *MAIN}

    (told,) = map(json.loads, (tmp_path / "told").read_text().splitlines())
    assert told["words"][:3] == ["serve", str(folder), "--uds"]
    assert told["words"].count(str(folder)) == 2, "as the weights, and as the name of the model"
    assert (tmp_path / "starts").read_text() == "start\n"
    assert [pid for pid in told["processes"] if lives(pid)] == []
    assert not Path(told["words"][3]).exists(), "the socket"
