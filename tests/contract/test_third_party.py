"""A benchmark of somebody else's, shipped as a wheel of its own, works like one of ours."""

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

FILES = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-moods"
version = "3.1"
dependencies = ["user-understanding-harness"]

[project.entry-points."harness.plugins"]
moods = "acme_moods.plugin"
""",
    "acme_moods/__init__.py": "",
    "acme_moods/plugin.py": '''
from harness import Metric, TextReader, hookimpl, simple


@hookimpl
def register_benchmarks(register):
    register("moods", make)


@hookimpl
def register_respondents(register):
    register("moods", "answer", "candidate", lambda: respond)


def make():
    return simple(
        "moods",
        build=lambda row: {"day": row["day"]},
        read=TextReader(),
        score=lambda row, answer: {"right": float(answer == row["mood"])},
        metrics={"right": Metric(description="Share of days whose mood was named.")},
    )


def respond(variables, random):
    """Right about sunny days and nothing else."""
    return "glad" if "sun" in variables["day"] else "calm"
''',
    "acme_moods/task_configs/moods.yaml": """
task: moods
version: 1
benchmark: moods
description: Name the mood of a day.
tags: [acme]
data:
  sample: sample
  tables:
    days:
      files: [days.jsonl]
      columns:
        id: {type: string}
        day: {type: string}
        mood: {type: string}
roles:
  candidate:
    sampling: {temperature: 0.0, max_tokens: 8}
metrics: [right]
""",
    "acme_moods/prompts/moods/answer.candidate.j2": "How does this day feel? {{ day }}",
    "acme_moods/sample/days.jsonl": "\n".join(
        json.dumps({"id": f"d{number}", "day": day, "mood": mood})
        for number, (day, mood) in enumerate(
            [("sun and sea", "glad"), ("sun again", "glad"), ("a storm", "cross"), ("fog", "cross")]
        )
    ),
}


@pytest.fixture(scope="module")
def installed(environment, tmp_path_factory):
    """The environment of the built wheel with the third party's wheel beside it."""
    project = tmp_path_factory.mktemp("acme")
    for name, text in FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", str(project)],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    [wheel] = (project / "dist").glob("*.whl")
    environment.install(wheel)
    yield environment
    python = str(environment.folder / "bin" / "python")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "uninstall", "-qy", "acme-moods"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip


def test_its_task_is_listed_beside_ours(installed):
    listed = installed.said("harness", "tasks", "--json")
    assert '"moods"' in listed
    assert '"interests"' in listed


def test_its_task_validates(installed):
    assert "moods: ok" in installed.said("harness", "validate", "moods")


def test_its_task_runs_on_its_own_sample_with_its_own_respondent(installed):
    folder = installed.elsewhere / "acme-runs"
    installed.said(
        "harness", "--model", "baseline", "--tasks", "moods", "--data", "sample",
        "--output_path", str(folder),
    )  # fmt: skip
    [summary] = folder.glob("*/moods/summary.json")
    right = json.loads(summary.read_text("utf-8"))["metrics"]["right"]
    assert (right["value"], right["n"], right["missing"]) == (0.5, 4, {})


def test_its_records_hold_its_own_prompt(installed):
    folder = installed.elsewhere / "acme-prompts"
    installed.said(
        "harness", "--model", "baseline", "--tasks", "tag:acme", "--data", "sample",
        "--limit", "4", "--output_path", str(folder),
    )  # fmt: skip
    [journal] = folder.glob("*/moods/1-answer.jsonl")
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    asked = {line["calls"][0]["messages"][0]["content"] for line in lines}
    assert "How does this day feel? a storm" in asked
