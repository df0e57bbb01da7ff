"""Our own plugins keep what `check_plugin` asks of everybody's: each check is a test."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from harness.testing import CHECKS

ROOT = Path(__file__).resolve().parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
PLUGINS = sorted(DECLARED["harness.plugins"])

ASKED = {
    "behaviour": {"tasks": ("behaviour_movies_c",), "limit": 4},
    "gistbench": {"limit": 3},
    "horizon": {"tasks": ("horizon_next_item_1b", "horizon_long", "horizon_query"), "limit": 8},
    "interests": {"tasks": ("interests",), "limit": 4},
    "perrecbench": {
        # One task of each way of asking; the others differ in numbers and words.
        "tasks": ("perrec_easy_listwise", "perrec_easy_pairwise", "perrec_easy_pointwise"),
        "without_answers": ("labelled", "unreadable_comparisons"),
        "limit": 4,
    },
    "usersumbench": {
        "tasks": ("usersum_movielens", "usersum_movielens_hc"),
        "without_answers": ("unreadable",),
        "limit": 4,
    },
}
"""What of the samples is run: an option in words or numbers takes no other way."""


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_keeps_what_every_plugin_promises(plugin, check, harness_checks):
    harness_checks(plugin, checks=[check], **ASKED.get(plugin, {}))
