"""UserSumBench's loop over a made-up log through a free model, or the scores of such a run again.

python harness_usersum_loop.py DATA USERS      # runs; store, journal and scoring on
python harness_usersum_loop.py DATA            # scores that run once more
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import harness

TASK = "usersum_movielens_hc"


def run(data: Path, users: int) -> None:
    """Runs the task, checks that all users are scored, and prints the cost of a call."""
    result = harness.evaluate(
        [TASK],
        model="free",
        data=str(data),
        limit=users,
        concurrency=64,
        output_path=data / "runs",
        store=data / "store.sqlite",
    )
    [summary] = result.summaries
    metric = summary.metrics["qm"]
    assert (metric.n, metric.missing) == (users, {}), metric
    uses = {name: stage.roles.values() for name, stage in summary.stages.items()}
    calls = {name: sum(use.calls for use in of) for name, of in uses.items()}
    many = sum(calls.values())
    spent = resource.getrusage(resource.RUSAGE_SELF)
    cost = 1000 * (spent.ru_utime + spent.ru_stime) / many
    print(f"{many:,} calls {calls}, {cost:.2f} ms of processor time a call")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if len(sys.argv) == 3:
        run(folder, int(sys.argv[2]))
    else:
        [path] = [one for one in (folder / "runs").iterdir() if one.is_dir()]
        from harness.cli.main import main

        sys.exit(main(["score", str(path), "--set", "threshold=2"]))
