"""Our own plugins keep what `check_plugin` asks of everybody's."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from harness.testing import check_plugin

ROOT = Path(__file__).resolve().parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]

SAID = {
    "behaviour": {
        # The other settings ask thousands of prompts by the same stage.
        "tasks": ("behaviour_movies_c", "behaviour_music_c"),
    },
    "horizon": {
        # The other settings ask thousands of cases by the same stages.
        "tasks": ("horizon_next_item_1b", "horizon_long", "horizon_query"),
        "limit": 40,
    },
    "perrecbench": {
        # One task of each way of asking; the others differ in numbers and words.
        "tasks": (
            "perrec_easy_listwise",
            "perrec_easy_pairwise",
            "perrec_easy_pointwise",
            "perrec_easy_listwise_noprofile",
        ),
        "without_answers": ("labelled", "unreadable_comparisons"),
        "limit": 20,
    },
    "usersumbench": {
        # The contexts ask the same questions as `none`.
        "tasks": ("usersum_movielens", "usersum_movielens_hc", "usersum_movielens_none"),
        "without_answers": ("unreadable",),
        "limit": 30,
    },
}
"""What has to be said of a plugin."""


@pytest.mark.parametrize("plugin", sorted(DECLARED["harness.plugins"]))
def test_a_plugin_of_ours_keeps_what_every_plugin_promises(plugin):
    check_plugin(plugin, **SAID.get(plugin, {}))
