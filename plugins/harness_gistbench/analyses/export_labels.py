"""Items for human raters, drawn from what the judges of stored runs decided."""

from __future__ import annotations

import csv
import heapq
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import msgspec

from harness.errors import UsageError
from harness.hashing import stable_int
from harness.reporting.text import clean_text
from harness.results.files import atomic_write, storage_error
from harness.results.report import Report, Sheet
from harness_gistbench.analyses.comparing import Run, runs_of
from harness_gistbench.analyses.pairs import QUESTIONS, Pair, Question, judge_of, pairs_of

if TYPE_CHECKING:
    from harness import KeptTask

NameT = TypeVar("NameT")
Cell: TypeAlias = tuple[str, int | None]
"""A model and a category, None for interests without one: what items are spread over."""

ITEM_COLUMNS: dict[Question, tuple[str, ...]] = {
    "evidence": ("task", "item", "interest", "engagement", "text", "rater", "label"),
    "retrieval": ("task", "item", "interest", "text", "rater", "label"),
}
KEY_COLUMNS = ("task", "item", "label", "judge", "run", "dataset", "model", "user", "category",
               "object")  # fmt: skip


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How many items are drawn, and where they go."""

    out: Annotated[str, msgspec.Meta(description="folder for the items and their key")]
    items: Annotated[int, msgspec.Meta(ge=1, description="items of each task")] = 1000
    seed: Annotated[int, msgspec.Meta(description="which items are drawn")] = 0


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One item with where it comes from."""

    pair: Pair
    run: Run
    user: str
    category: int | None


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """Writes the items of both tasks and, apart from them, what the judge said of each."""
    runs = runs_of(tasks)
    folder = Path(options.out).expanduser()
    refuse_unlike(runs)
    refuse_taken(folder)
    drawn = {
        question: draw(runs, question, items=options.items, seed=options.seed)
        for question in QUESTIONS
    }
    write(folder, runs, drawn)
    rows = tuple(
        (
            question,
            len(items),
            *(len(set(part)) for part in zip(*(origin(one) for one in items), strict=True)),
            100 * sum(one.pair.label for one in items) / len(items),
        )
        for question, items in drawn.items()
        if items
    )
    columns = ("task", "items", "models", "datasets", "categories", "users", "judge said yes, %")
    notes = [
        f"{question}: {len(items):,} items are all there are; {options.items:,} were asked for"
        for question, items in drawn.items()
        if len(items) < options.items
    ]
    return Report(
        sheets=(Sheet(title="Items to label", columns=columns, rows=rows, notes=tuple(notes)),),
        notes=(
            f"written to {folder}: evidence.csv and retrieval.csv for the raters, who add their "
            "name and yes or no; key.csv, which they must not see, says what the judge said",
            "models have even shares, within each its categories, and users come before second "
            "items of the same user; shares of yes are therefore not those of all that was judged",
        ),
    )


def refuse_unlike(runs: Iterable[Run]) -> None:
    """Raise UsageError where runs had different judges: labels say something about one."""
    for question in QUESTIONS:
        judges = {run.task.run: judge_of(run, question) for run in runs}
        if len(set(judges.values())) > 1:
            raise UsageError(
                f"the runs had different judges of {question}",
                found=", ".join(f"{judge} in {name}" for name, judge in judges.items()),
                expected="runs of one judge",
                hint="export the items of each judge apart",
            )


def refuse_taken(folder: Path) -> None:
    """Raise UsageError where the folder holds items already: somebody may be labelling them."""
    names = (*(f"{question}.csv" for question in QUESTIONS), "key.csv")
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise UsageError(
            "there are items to label here already",
            where=str(folder),
            found=", ".join(taken),
            expected="a folder without them",
            hint="name another folder",
        )


def origin(one: Drawn) -> tuple[str, str, int | None, str]:
    """What items are spread over."""
    return one.run.model, one.run.dataset, one.category, one.user


def draw(runs: Sequence[Run], question: Question, *, items: int, seed: int) -> list[Drawn]:
    """Items spread evenly over models, within each over categories, and there over users.

    The judgements are read twice, so that no more than the items drawn are ever held.
    """
    sizes: Counter[Cell] = Counter()
    for cell, found in judged(runs, question):
        sizes[cell] += len(found)
    shares = spread(sizes, items, seed)
    kept: dict[Cell, list[tuple[int, int, Drawn]]] = defaultdict(list)
    for cell, found in judged(runs, question):
        found.sort(key=lambda one: stable_int(seed, one.pair.item))
        places = [(turn, stable_int(seed, one.pair.item), one) for turn, one in enumerate(found)]
        kept[cell] = heapq.nsmallest(
            shares[cell], [*kept[cell], *places], key=lambda each: each[:2]
        )
    drawn = [one for cell in kept.values() for _, _, one in cell]
    return sorted(drawn, key=lambda one: stable_int(seed, "order", one.pair.item))


def judged(runs: Iterable[Run], question: Question) -> Iterator[tuple[Cell, list[Drawn]]]:
    """What was judged of each user and category of each run."""
    for run in runs:
        categories = {
            interest.name: interest.category
            for _, profile in run.profiles()
            for interest in profile.interests
        }
        for user, pairs in pairs_of(run, question):
            of_category: dict[int | None, list[Drawn]] = defaultdict(list)
            for pair in pairs:
                category = categories.get(pair.interest)
                of_category[category].append(
                    Drawn(pair=pair, run=run, user=user, category=category)
                )
            for category, drawn in of_category.items():
                yield (run.model, category), drawn


def spread(sizes: Mapping[Cell, int], total: int, seed: int) -> dict[Cell, int]:
    """How many of the total each cell gives: models alike, and within each its categories."""
    models: Counter[str] = Counter()
    for (model, _), size in sizes.items():
        models[model] += size
    shares: dict[Cell, int] = {}
    for model, share in even(models, total, seed).items():
        shares |= even(
            {cell: size for cell, size in sizes.items() if cell[0] == model}, share, seed
        )
    return shares


def even(sizes: Mapping[NameT, int], total: int, seed: int) -> dict[NameT, int]:
    """Shares of a total as alike as the sizes allow; what cannot be halved falls by seed."""
    shares = dict.fromkeys(sizes, 0)
    waiting = sorted(sizes, key=lambda name: stable_int(seed, repr(name)))
    left = min(total, sum(sizes.values()))
    while left:
        each = max(1, left // len(waiting))
        for name in waiting:
            more = min(each, sizes[name] - shares[name], left)
            shares[name] += more
            left -= more
        waiting = [name for name in waiting if shares[name] < sizes[name]]
    return shares


def write(folder: Path, runs: Sequence[Run], drawn: Mapping[Question, Sequence[Drawn]]) -> None:
    """Put the items and their key into the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error, option="--out") from error
    for question, items in drawn.items():
        columns = ITEM_COLUMNS[question]
        rows = [{"task": question, **shown(one.pair)} for one in items]
        atomic_write(folder / f"{question}.csv", as_csv(columns, rows), option="--out")
    key = [key_row(question, one) for question, items in drawn.items() for one in items]
    atomic_write(folder / "key.csv", as_csv(KEY_COLUMNS, key), option="--out")


def shown(pair: Pair) -> dict[str, str]:
    """What a rater sees of an item, and the cells that they fill."""
    return {
        "item": pair.item,
        "interest": pair.interest,
        "engagement": pair.engagement,
        "text": pair.text,
        "rater": "",
        "label": "",
    }


def key_row(question: Question, one: Drawn) -> dict[str, str]:
    """What the raters must not see of an item."""
    return {
        "task": question,
        "item": one.pair.item,
        "label": "yes" if one.pair.label else "no",
        "judge": judge_of(one.run, question),
        "run": one.run.task.run,
        "dataset": one.run.dataset,
        "model": one.run.model,
        "user": one.user,
        "category": "" if one.category is None else str(one.category),
        "object": one.pair.object,
    }


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """Rows of those columns as a CSV file."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: cell(text) for name, text in row.items()} for row in rows)
    return file.getvalue().encode()


def cell(text: str) -> str:
    """A text as a spreadsheet shows it and does not take for a formula."""
    shown = clean_text(text)
    return f"'{shown}" if shown.lstrip().startswith(("=", "+", "-", "@")) else shown
