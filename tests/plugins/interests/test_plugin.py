"""That the task says what the code takes as usual."""

from pathlib import Path

import msgspec
import yaml
from harness_interests.benchmark import INTERESTS
from harness_interests.records import Options

TASKS = Path(__file__).parents[3] / "task_configs/interests"


def test_the_task_says_what_the_code_takes_as_usual():
    task = yaml.safe_load((TASKS / "interests.yaml").read_text())
    assert task["options"] == msgspec.to_builtins(Options())
    assert task["metrics"] == list(INTERESTS.metrics)
    assert INTERESTS.main == ("support",)
