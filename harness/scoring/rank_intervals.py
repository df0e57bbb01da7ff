"""Ranks as intervals, from the paired differences of runs: no order where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harness.scoring.paired_differences import Difference, is_established


class RankInterval(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks that a run may have: `behind` other runs are better, and it is better than `ahead`.

    `best` is 1 more than the number of better runs, and `worst` leaves out the runs that are worse.
    """

    best: int
    worst: int
    behind: tuple[str, ...]
    ahead: tuple[str, ...]


def rank_intervals(
    runs: Sequence[str], differences: Iterable[Difference], *, higher_is_better: bool
) -> dict[str, RankInterval]:
    """By run its ranks, from the differences of all pairs, whose p values are adjusted.

    A run is better than another only where the interval of their paired difference lies wholly on
    its side of 0, and the adjusted p value, if the metric has one, is below 1 − confidence.
    """
    behind: dict[str, list[str]] = {run: [] for run in runs}
    ahead: dict[str, list[str]] = {run: [] for run in runs}
    for each in differences:
        if each.interval is not None and is_established(each):
            pair = each.first, each.second
            better, worse = pair if (each.interval[0] > 0.0) is higher_is_better else pair[::-1]
            ahead[better].append(worse)
            behind[worse].append(better)
    return {
        run: RankInterval(
            best=1 + len(behind[run]),
            worst=len(runs) - len(ahead[run]),
            behind=tuple(behind[run]),
            ahead=tuple(ahead[run]),
        )
        for run in runs
    }
