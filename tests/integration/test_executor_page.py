"""The executor that docs/plugins.md shows runs, and outlives a worker."""

import re
from pathlib import Path

import pytest
from builders.commands import run_cli

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
DIES_ONCE = """
    if method == "work" and not os.path.exists("died"):
        open("died", "w").close()
        os._exit(1)
"""


@pytest.mark.usefixtures("own_cache")
def test_the_executor_of_the_page_runs_as_one_process_and_outlives_a_death(
    site, tmp_path, monkeypatch
):
    section = PAGE.read_text("utf-8").partition("\n## An executor\n")[2].partition("\n## ")[0]
    module, hook = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    answers = "method, given = pickle.loads(await reader.read())"
    [start] = re.findall(rf"\n( +){re.escape(answers)}", module)
    dies = "".join(f"{start}{line[4:]}\n" for line in DIES_ONCE.splitlines() if line)
    site.install("acme-choices", {"acme": "acme_choices.plugin"}, {
        "acme_choices/__init__.py": "",
        "acme_choices/processes.py": module.replace(f"{answers}\n", f"{answers}\n{dies}"),
        "acme_choices/plugin.py": f"from harness import hookimpl\n\n\n{hook}",
    })  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    processes, local = (
        run_cli(
            "--model", "baseline", "--judge", "lexical", "--tasks", "interests", "--data", "sample",
            "--reuse", "run", "--json", "--executor", executor, folder=tmp_path,
        ).ok().summary()["metrics"]
        for executor in ("processes", "local")
    )  # fmt: skip
    assert processes == local
    assert (tmp_path / "died").exists()
