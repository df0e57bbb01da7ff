"""The workflow of docs/ci.md: its steps run as they stand, with samples in place of servers."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders.commands import run_cli

DOCS = Path(__file__).resolve().parents[2] / "docs"
IN_PLACE = {
    r'--model openai *\\\s*--model_args "[^"]*"': "--model baseline",
    r'--judge "[^"]*"': "--judge lexical",
    r"--limit 100": "--limit 12 --data sample",
}
"""What cannot run without servers, and what stands in its place."""


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    text = (DOCS / "ci.md").read_text("utf-8")
    (found,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    workflow = yaml.safe_load(found)
    assert {"name", True, "concurrency", "jobs"} == workflow.keys()  # YAML reads `on` as true
    return workflow["jobs"]["evaluate"]


def step(job: dict[str, Any], name: str) -> str:
    (found,) = [each for each in job["steps"] if each.get("name") == name]
    command = found["run"]
    for pattern, instead in IN_PLACE.items():
        command = re.sub(pattern, instead, command)
    return command


def ran(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    here = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command], cwd=folder, text=True, capture_output=True,
        env={**os.environ, "PATH": here, "HARNESS_CACHE": str(folder / "store"), **variables},
        timeout=120, check=False,
    )  # fmt: skip


def test_the_steps_of_two_nights_run_and_the_gate_decides(job, tmp_path):
    for night in ("night-1", "night-2"):
        done = ran(step(job, "Run"), tmp_path, CHECKPOINT=night)
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "result.json").read_text())["exit_code"] == 0
    gate = step(job, "Gate")
    done = ran(gate, tmp_path, BASELINE="night-1", CHECKPOINT="night-2")
    assert (done.returncode, done.stdout.count("gate holds: ")) == (0, 2), done.stderr
    gates = json.loads((tmp_path / "comparison.json").read_text())["gates"]
    assert [(one["holds"], one["value"], one["metric"]) for one in gates] == [
        (True, 0.0, "mean_ig_f1"), (True, 0.0, "is"),
    ]  # fmt: skip
    for name, night in (("$CHECKPOINT", "night-2"), ("$BASELINE", "night-1")):
        gate = gate.replace(name, night)
    words = shlex.split(gate.replace("\\\n", " ").replace(">-0.02", ">0.02"))
    failed = run_cli(*words[1:], folder=tmp_path)
    assert failed.code == 4
    said = "gate does not hold: gist_synthetic.mean_ig_f1>0.02: night-2 − night-1: 0.000"
    assert said in " ".join(failed.out.split())


def test_every_step_names_an_action_or_a_command_and_every_variable_is_set(job):
    for each in job["steps"]:
        assert ("uses" in each) is not ("run" in each)
        for name in re.findall(r"\$(\w+)", each.get("run", "")):
            assert name in job["env"]
