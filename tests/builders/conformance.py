"""What `check_plugin` is asked about our own plugins."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from builders.behaviour import a_prompt
from harness_behaviour.building import prompt_files
from harness_behaviour.records import Recipe

ROOT = Path(__file__).resolve().parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]

PLUGINS = sorted(DECLARED["harness.plugins"])
BENCHMARKS: dict[str, dict[str, Any]] = {
    # The sample is drawn from logs for seconds; `prompts` rehearses it.
    "behaviour": {"tasks": ("behaviour_movies_c",), "limit": 4},
    "gistbench": {"limit": 3},
    "horizon": {"tasks": ("horizon_next_item_1b", "horizon_query"), "limit": 5},
    "interests": {"tasks": ("interests",), "limit": 4},
    "perrecbench": {
        # One task of each way of asking; the others differ in numbers and words.
        "tasks": ("perrec_easy_listwise", "perrec_easy_pairwise", "perrec_easy_pointwise"),
        "without_answers": ("labelled", "unreadable_comparisons"),
        "limit": 3,
    },
    "usersumbench": {
        # The contexts ask the same questions as these.
        "tasks": ("usersum_movielens", "usersum_movielens_hc"),
        "without_answers": ("unreadable",),
        "limit": 3,
    },
}
"""The plugins with a benchmark, and what of their samples is run."""

OF_TEXTS = ("loads", "tasks", "prompts", "published", "options", "metrics")
OF_RUNS = ("baseline", "repeats", "shares", "records")
OF_BREAKS = ("resumes", "failures")
OF_DAMAGES = ("garbage", "batches", "rows")


@pytest.fixture(scope="session")
def checked(harness_checks, tmp_path_factory):
    """Makes a check of one of our benchmarks, all on the same runs."""
    folder = tmp_path_factory.mktemp("prompts")
    prompts = [
        a_prompt(number, id=f"movies/{number}", user=f"movies/{number}", setting=setting)
        for number, setting in enumerate(("c", "c", "c", "none"))
    ]
    built = prompt_files.Built(
        recipe=Recipe(domain="movies"), prompts=tuple(prompts), cells=(), notes={}
    )
    prompt_files.write(folder, built, {}, option="--out")

    def check(plugin: str, name: str) -> None:
        data = str(folder) if plugin == "behaviour" else "sample"
        harness_checks(plugin, checks=[name], data=data, **BENCHMARKS[plugin])

    return check
