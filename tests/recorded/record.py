"""Record the runs that tests of reports, tables and comparisons read: `make recorded`.

Each is a run of the baseline on a part of a benchmark's sample. Record them again, and commit them,
when what a run writes has changed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUNS = HERE / "runs"
ASKED: dict[str, dict[str, object]] = {
    "interests": {"tasks": "interests", "judge": "lexical", "num_repeats": 2},
    "gistbench": {"tasks": "gist_synthetic", "judge": "lexical", "limit": 6},
    "perrecbench": {"tasks": "perrec_easy", "limit": 12},
    "usersumbench": {"tasks": "usersum_movielens,usersum_movielens_hc", "limit": 4},
    "behaviour": {"tasks": "behaviour_movies", "limit": 6},
    "horizon_items": {"tasks": "horizon_next_item_1a", "limit": 6},
}
"""What is asked for, by benchmark."""


def main() -> int:
    """Make all runs anew."""
    sys.path.insert(0, str(HERE.parent))
    from builders.runs import write_sealed

    import harness

    shutil.rmtree(RUNS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HARNESS_CACHE"] = folder
        os.chdir(folder)
        for benchmark, asked in ASKED.items():
            result = harness.evaluate(
                model="baseline", data="sample", output_path="runs",
                no_store=True, quiet=True, **asked,
            )  # fmt: skip
            shutil.copytree(result.folder, RUNS / benchmark)
    for file in RUNS.rglob("*.json"):
        # Where the checkout lies is nobody's business.
        text = file.read_text("utf-8").replace(f"{ROOT}/", "")
        write_sealed(file, json.loads(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
