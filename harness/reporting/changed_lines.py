"""The units that changed most between two runs, with the commands that show them, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.reporting.text import clean_text, number, signed
from harness.scoring.comparison_document import Comparison

INDENT = "  "


def changed_lines(
    comparisons: Sequence[Comparison], names: Mapping[str, str], *, most: int, both: bool = False
) -> Iterator[str]:
    """How many units changed in the first main metric of each task, and the largest changes.

    Metrics have different scales, so the changes stand metric by metric, in the order of the tasks.
    `names` are the labels of runs. The command of each change shows it in the first of two runs,
    and with `both` a second one in the other run.
    """
    found = [
        (comparison, changes)
        for comparison in comparisons
        for changes in comparison.changed or ()
        if changes.metric in comparison.main[:1]
    ]
    if not found:
        return
    counts = [
        f"{sum(getattr(changes, what) for _, changes in found):,} {words}"
        for what, words in (("better", "better"), ("worse", "worse"), ("same", "the same"))
    ]
    firsts = {changes.first for _, changes in found}
    whose = f" of {names[next(iter(firsts))]}" if len(firsts) == 1 else ""
    yield f"units{whose}: {', '.join(counts)}"
    every = [(comparison, changes, one) for comparison, changes in found for one in changes.largest]
    metrics = list(dict.fromkeys(changes.metric for _, changes in found))
    every.sort(key=lambda one: (metrics.index(one[1].metric), -abs(one[2].first - one[2].second)))
    for comparison, changes, one in every[:most]:
        about = [names[changes.first]] if len(firsts) > 1 else []
        about += [clean_text(name) for name in (comparison.task, changes.metric, one.unit)]
        change = f"{signed(one.first - one.second):>6}  {number(one.second)} → {number(one.first)}"
        yield f"{INDENT}{change}  {', '.join(about)}"
        for command in one.commands if both else one.commands[:1]:
            yield f"{INDENT}{INDENT}{clean_text(command)}"
    held = sum(changes.better + changes.worse for _, changes in found)
    if held > most:
        yield f"{INDENT}and {held - min(most, len(every)):,} more"
