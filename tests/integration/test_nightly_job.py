"""The workflow of docs/nightly.md: its steps run as they stand, with samples, without servers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders.commands import run_cli

IN_PLACE = {
    r"openai:base_url=\$CHECKPOINT_URL[^\"]*": "baseline",
    r"openai:base_url=\$RELEASE_URL[^\"]*": "replay:run=$RELEASE",
    r"openai:base_url=\$JUDGE_URL[^\"]*": "lexical",
    "limit: 100": "limit: 6",
    r"\{max_calls: 20000\}": "{max_calls: 20000, data: sample}",
}
"""What cannot run without servers, and what stands in its place."""


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    text = ((Path(__file__).resolve().parents[2] / "docs") / "nightly.md").read_text("utf-8")
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


def test_the_steps_of_two_nights_run_and_the_gates_decide(job, tmp_path):
    words = "--model baseline --judge lexical --tasks gist_synthetic --data sample --limit 6"
    assert run_cli(*words.split(), "--output_path", "release", folder=tmp_path).code == 0
    (release,) = (tmp_path / "release").iterdir()
    for night in ("night-1", "night-2"):
        env = {"CHECKPOINT": night, "RELEASE": str(release)}
        written = ran(step(job, "Write the suite"), tmp_path, **env)
        assert written.returncode == 0, written.stderr
        done = ran(step(job, "Run and gate"), tmp_path, **env)
        said = " ".join(done.stdout.split())
        assert (done.returncode, said.count("gate holds: ")) == (0, 2), done.stderr
        assert f"{night} − release: 0.000" in said
        assert (tmp_path / "nightly.html").is_file()
    runs = [json.loads(one.read_text("utf-8")) for one in tmp_path.glob("runs/*/manifest.json")]
    assert sorted(one["tags"]["model"] for one in runs) == ["night-1", "night-2", "release"]
    suite = (tmp_path / "nightly.yaml").read_text("utf-8")
    (tmp_path / "nightly.yaml").write_text(suite.replace(">-0.02", ">0.02"))
    failed = ran(step(job, "Run and gate"), tmp_path, **env)
    assert failed.returncode == 4
    assert "gate does not hold: gist_synthetic.mean_ig_f1>0.02" in " ".join(failed.stdout.split())


def test_every_step_names_an_action_or_a_command_and_every_variable_is_set(job):
    for each in job["steps"]:
        assert ("uses" in each) is not ("run" in each)
        for name in re.findall(r"\$(\w+)", each.get("run", "")):
            assert name in job["env"]
