"""The questions of a task, from whichever of the two layouts its data is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import DataError
from harness.data.wording import listed
from harness_perrecbench.data import published, recorded, singles
from harness_perrecbench.questions import refuse_unwritten

if TYPE_CHECKING:
    from harness.data import Dataset
    from harness_perrecbench.records import Loaded, Options


def load(dataset: Dataset, options: Options) -> Loaded:
    """The questions that the run keeps, complete but for profiles that are still to be made."""
    refuse_unwritten(options)
    rating = options.ask == "rating"
    groups = () if rating else (published.GROUPS[options.split],)
    if all(map(dataset.has, (*published.TABLES, *groups))):
        return singles.load(dataset, options) if rating else published.load(dataset, options)
    if not rating and dataset.has(recorded.GROUPS[options.split]):
        return recorded.load(dataset, options)
    raise _neither(dataset, options, (*published.TABLES, *groups))


def _neither(dataset: Dataset, options: Options, needed: tuple[str, ...]) -> DataError:
    """The error for data that is whole in neither layout."""
    lacking = [name for name in needed if not dataset.has(name)]
    layouts = [f"the published tables {listed(needed)}"]
    if options.ask == "rating":
        problem = "single behaviours need whole histories"
    else:
        problem = "the data holds no whole set of groups"
        layouts.append(f"the table of recorded groups '{recorded.GROUPS[options.split]}'")
    return DataError(
        problem,
        where=f"the data of task '{dataset.task}'",
        found=f"{listed(dataset.tables)}; no {listed(lacking)}",
        expected=", or ".join(layouts),
        hint="; ".join(f"{name}: {dataset.absent[name]}" for name in lacking),
    )
