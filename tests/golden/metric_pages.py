"""The page of metrics, docs/metrics.md, from what the plugins declare; `make metrics` writes it.

The scores of the baseline come from a run over each sample, everything else from the declarations.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness import Benchmark, Metric
from harness.registry import load_plugins

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"

TASKS = {
    "interests": "interests",
    "gist_synthetic": "gistbench",
    "perrec_hard_listwise": "perrecbench",
    "usersum_movielens": "usersumbench",
    "behaviour_movies_a": "behaviour",
    "horizon_next_item_1a": "horizon_items",
    "horizon_query": "horizon_text",
}
"""The task that stands for each benchmark."""

LIKE_THE_PAPER = {"horizon_query": "horizon_query_1m"}
"""The task that the published values are of, where that has no sample."""

HEAD = """\
# The metrics on one page

The main metrics of each benchmark as its plugin declares them. `harness tasks NAME` lists all
metrics of a task, and [scores-by-hand.md](scores-by-hand.md) works them out.

↑ higher is better, ↓ lower. *Baseline*: `--model baseline`, judged by `lexical`, on the bundled
sample of the named task. *Published*: the lowest and the highest value in the paper for that task;
[Why is this not compared?](comparable.md) says when yours may stand next to them. `make metrics`
writes this page.

| metric | in words | range | baseline | published | what it does not say |
|---|---|---|---|---|---|
"""


def page_text(baselines: Mapping[tuple[str, str], str]) -> str:
    """The content that the page must have, with the baseline's values by task and metric."""
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in _rows(baselines))


def baselines_of(page: str) -> dict[tuple[str, str], str]:
    """The baseline's values by task and metric, as a page has them."""
    found, task = {}, ""
    for line in page.splitlines():
        cells = line.strip("| ").split(" | ")
        if heading := re.fullmatch(r"\*\*.*\*\*, `(\w+)`", cells[0]):
            task = heading[1]
        elif name := re.match(r"`(\w+)`", cells[0]):
            found[task, name[1]] = cells[3]
    return found


def run_baselines() -> dict[tuple[str, str], str]:
    """The baseline's values by task and metric, from a run over each sample."""
    import harness

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        result = harness.evaluate(
            ",".join(TASKS), model="baseline", judge="lexical", data="sample",
            output_path=folder, no_store=True, quiet=True,
        )  # fmt: skip
        for summary in result.summaries:
            for name, metric in summary.metrics.items():
                value = "–" if metric.value is None else f"{metric.value:.3f}"
                found[summary.task, name] = value
    return found


def _rows(baselines: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, ...]]:
    for task, owner in TASKS.items():
        benchmark = load_plugins().benchmark(owner)
        yield f"**{benchmark.name}**, `{task}`", "", "", "", "", ""
        for name, metric in _shown(benchmark, task).items():
            arrow = "↑" if metric.higher_is_better else "↓"
            yield (
                f"`{name}` {arrow}", metric.description, _range(metric),
                baselines.get((task, name), "–"), _published(benchmark, task, name),
                metric.note or "–",
            )  # fmt: skip


def _shown(benchmark: Benchmark, task: str) -> dict[str, Metric]:
    """The main metrics; where none of them has a published value, the first that has one too."""
    of_oracle = benchmark.oracle.main if benchmark.oracle else ()
    main = {*benchmark.main, *of_oracle}
    published = [one for one in benchmark.metrics if _published(benchmark, task, one) != "–"]
    shown = main if main & {*published} else {*main, *published[:1]}
    return {name: metric for name, metric in benchmark.metrics.items() if name in shown}


def _range(metric: Metric) -> str:
    low, high = (None if end is None else f"{end:g}" for end in metric.range)
    return f"{low} to {high}" if high is not None else f"from {low}"


def _published(benchmark: Benchmark, task: str, metric: str) -> str:
    every = benchmark.published() if benchmark.published else ()
    printed = LIKE_THE_PAPER.get(task, task)
    same = [one for one in every if (one.task, one.metric) == (printed, metric)]
    if not same:
        return "–"
    values = sorted(one.value for one in same)
    span = " to ".join(dict.fromkeys(f"{value:.3g}" for value in (values[0], values[-1])))
    return f"{span} ({same[0].source})"


if __name__ == "__main__":
    PAGE.write_text(page_text(run_baselines()), "utf-8")
