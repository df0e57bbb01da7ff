"""The pages of a leaderboard as reports of plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.analysis.leaderboard import Board, Leaderboard
from harness.contracts.report import Axis, Cell, Figure, Report, Sheet, Spans
from harness.reporting.text import number
from harness.scoring.paired_differences import Difference
from harness.scoring.rank_intervals import RankInterval
from harness.scoring.summary import MetricResult

STAMP = "NOT COMPARABLE"
DIGITS = 3
ALONE = "alone"
MOST_MODELS = 6
"""More models have no columns on the page over all tasks."""

NO_ORDER = (
    "one model is above another only where the interval of their paired difference leaves out 0 "
    "and the p value, adjusted after Holm for all pairs of this page, is below {level:g}",
    "models with the same ranks are in the order of their names",
)

RANKS = (
    "ranks, with the value in brackets; a rank such as 1–3 is an interval, and a model alone has "
    "none; ↑ more is better, ↓ less is"
)
OVER_ALL = "there is no order over all tasks, as a mean of ranks would hide where models overlap"


def page_title(board: Board) -> str:
    """The title of a page, which says whether its results are comparable with published ones."""
    title = f"{board_name(board)}: {board.metric}"
    return f"{STAMP} with published results: {title}" if board.not_comparable_because else title


def board_name(board: Board) -> str:
    """The task of a page, with what sets the page apart from others of the task."""
    return f"{board.task} ({board.differs})" if board.differs else board.task


def rank_on(board: Board, ranks: RankInterval) -> str:
    """The ranks on a page; a model that stands there alone has none, as its 1 would be no win."""
    if len(board.ranked) == 1:
        return ALONE
    return str(ranks.best) if ranks.best == ranks.worst else f"{ranks.best}–{ranks.worst}"


def board_report(board: Board) -> Report:
    """A page: ranks, history, pairs, and the runs without a rank."""
    why = ", ".join(board.not_comparable_because)
    roles = ", ".join(f"{role} {name}" for role, name in board.roles.items())
    people = "all people" if board.limit is None else f"at most {board.limit} people"
    current = [(one.entry.model, one.common) for one in board.ranked]
    found = [_spans(board, "ranked models", current)] if current else []
    for model, steps in board.history.items():
        entries = [step.entry for step in steps]
        runs = [(f"{one.revision} {one.began[:10]}".strip(), one.result) for one in entries]
        found.append(_spans(board, f"history of {model}", runs))
    left_out = tuple((run, ", ".join(why)) for run, why in board.left_out.items())
    unranked = [Sheet(title="Not ranked", columns=("run", "because"), rows=left_out)]
    return Report(
        notes=(
            *((f"{STAMP} with published results: {why}",) if why else ()),
            f"{board.description} ({'higher' if board.higher_is_better else 'lower'} is better)",
            f"version {board.version} of the task; {people}; seed {board.seed}"
            + (f"; {roles}" if roles else ""),
            *board.doubts,
        ),
        sheets=(_ranks(board), *_history(board), *_pairs(board), *(unranked if left_out else ())),
        figures=tuple(found),
    )


def index_parts(found: Leaderboard) -> Iterator[tuple[str, Sheet, list[Board]]]:
    """The parts of the page over all tasks, comparable pages first: title, table and its boards."""
    for stamped in (False, True):
        boards = [each for each in found.boards if bool(each.not_comparable_because) is stamped]
        if boards:
            title = "with published results"
            title = f"{STAMP} {title}" if stamped else f"Comparable {title}"
            yield title, _index(boards, stamped=stamped), boards


def _index(boards: Sequence[Board], *, stamped: bool) -> Sheet:
    models = sorted({one.entry.model for board in boards for one in board.ranked})
    few = len(models) <= MOST_MODELS
    same = {name: {of(board) for board in boards} for name, of in SETTINGS.items()}
    varied = [name for name, values in same.items() if len(values) > 1]
    alike = [f"{name}: {next(iter(values))}" for name, values in same.items() if len(values) == 1]
    firsts = [
        ", ".join(f"{rank_on(board, one.ranks)} {one.entry.model}" for one in board.ranked[:3])
        for board in boards
    ]
    shared = [
        why for why in boards[0].not_comparable_because
        if all(why in board.not_comparable_because for board in boards)
    ]  # fmt: skip
    if any(len(board.not_comparable_because) > len(shared) for board in boards):
        shared.append("each page says why")
    return Sheet(
        title="",
        columns=("task", "metric", *(models if few else ("models", "first, by rank")), *varied),
        rows=tuple(
            (
                board_name(board), f"{board.metric} {'↑' if board.higher_is_better else '↓'}",
                *(_by_model(board, models) if few else (len(board.ranked), first)),
                *(SETTINGS[name](board) for name in varied),
            )
            for board, first in zip(boards, firsts, strict=True)
        ),
        notes=(
            *((f"{STAMP}: {', '.join(shared)}",) if stamped else ()),
            RANKS, OVER_ALL, *((", ".join(alike),) if alike else ()),
        ),
    )  # fmt: skip


SETTINGS: dict[str, Callable[[Board], str]] = {
    "seed": lambda board: str(board.seed),
    "people": lambda board: "all" if board.limit is None else f"at most {board.limit}",
}


def _by_model(board: Board, models: Sequence[str]) -> Iterator[Cell]:
    found = {one.entry.model: one for one in board.ranked}
    for model in models:
        one = found.get(model)
        yield f"{rank_on(board, one.ranks)} ({number(one.common.value)})" if one else None


def _ranks(board: Board) -> Sheet:
    revision = ("revision",) if any(one.entry.revision for one in board.ranked) else ()
    return Sheet(
        title="Ranks",
        columns=(
            "model", "rank", board.metric, "low", "high", "n", *revision, "run began", "run",
        ),
        rows=tuple(
            (
                one.entry.model, rank_on(board, one.ranks), one.common.value,
                *(one.common.interval or (None, None)), one.common.n,
                *((one.entry.revision,) if revision else ()), one.entry.began, one.entry.run,
            )
            for one in board.ranked
        ),
        notes=(
            f"values with {board.confidence:.0%} intervals over the units that all ranked runs "
            "share",
            *(note.format(level=1 - board.confidence) for note in NO_ORDER),
        ),
        digits=DIGITS,
    )  # fmt: skip


def _pairs(board: Board) -> Iterator[Sheet]:
    names = {one.entry.run: one.entry.model for one in board.ranked}
    if board.differences:
        yield Sheet(
            title="Differences of each two models",
            columns=("first", "second", *_DIFFERENCE, "n"),
            rows=tuple(
                (names.get(each.first), names.get(each.second), *_difference(each), each.n)
                for each in board.differences
            ),
            notes=("first − second, over the units that both have scored",),
            digits=DIGITS,
        )


_DIFFERENCE = ("difference", "low", "high", "p", "p (Holm)")


def _difference(each: Difference | None) -> tuple[Cell, ...]:
    if each is None:
        return (None,) * len(_DIFFERENCE)
    return (each.value, *(each.interval or (None, None)), each.p, each.p_holm)


def _history(board: Board) -> Iterator[Sheet]:
    for model, steps in board.history.items():
        yield Sheet(
            title=f"History of {model}",
            columns=(
                "run began", "revision", board.metric, "low", "high", "n",
                "difference from the run before", *_DIFFERENCE[1:], "run",
            ),
            rows=tuple(
                (
                    one.began, one.revision or one.label, one.result.value,
                    *(one.result.interval or (None, None)), one.result.n,
                    *_difference(step.difference), one.run,
                )
                for step, one in ((step, step.entry) for step in steps)
            ),
            notes=("each difference is over the units that both runs have scored",),
            digits=DIGITS,
        )  # fmt: skip


def _spans(board: Board, title: str, results: Sequence[tuple[str, MetricResult]]) -> Figure:
    bounds = [result.interval or (None, None) for _, result in results]
    stamp = f"{STAMP}: {', '.join(board.not_comparable_because)}"
    return Figure(
        title=title,
        x=Axis(label=board.metric),
        y=Axis(label=""),
        marks=(
            Spans(
                label=board.metric,
                names=tuple(name for name, _ in results),
                low=tuple(low for low, _ in bounds),
                value=tuple(result.value for _, result in results),
                high=tuple(high for _, high in bounds),
            ),
        ),
        stamp=stamp if board.not_comparable_because else "",
    )
