"""The executor that docs/plugins.md shows runs, and outlives a worker."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
METADATA = "Metadata-Version: 2.1\nName: acme-choices\nVersion: 1.0\n"
POINTS = "[harness.plugins]\nacme = acme_choices.plugin\n"
DIES_ONCE = """
    if method == "work" and not os.path.exists("died"):
        open("died", "w").close()
        os._exit(1)
"""


@pytest.fixture
def shown(tmp_path):
    """A folder with the package that the page shows."""
    section = PAGE.read_text("utf-8").partition("\n## An executor\n")[2].partition("\n## ")[0]
    module, hook = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    package = tmp_path / "acme_choices"
    info = tmp_path / "acme_choices-1.0.dist-info"
    for folder in (package, info):
        folder.mkdir()
    (package / "__init__.py").touch()
    (package / "processes.py").write_text(module)
    (package / "plugin.py").write_text(f"from harness import hookimpl\n\n\n{hook}")
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(POINTS)
    return tmp_path


def scores(folder, executor):
    command = [
        sys.executable, "-m", "harness", "--model", "baseline", "--judge", "lexical",
        "--tasks", "interests", "--data", "sample", "--reuse", "run", "--quiet",
        "--executor", executor, "--output_path", executor,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(folder), "HARNESS_CACHE": str(folder / "cache")}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    [summary] = (folder / executor).glob("*/interests/summary.json")
    return json.loads(summary.read_text("utf-8"))["metrics"]


def test_the_executor_of_the_page_runs_as_one_process_and_outlives_a_death(shown):
    file = shown / "acme_choices" / "processes.py"
    answers = "method, given = pickle.loads(await reader.read())"
    [start] = re.findall(rf"\n( +){re.escape(answers)}", file.read_text())
    dies = "".join(f"{start}{line[4:]}\n" for line in DIES_ONCE.splitlines() if line)
    file.write_text(file.read_text().replace(f"{answers}\n", f"{answers}\n{dies}"))
    assert scores(shown, "processes") == scores(shown, "local")
    assert (shown / "died").exists()
