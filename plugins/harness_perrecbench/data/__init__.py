"""Loads questions from the published files, or from recorded groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness import DataError
from harness_perrecbench.data import layout
from harness_perrecbench.data.published import load_groups, load_singles
from harness_perrecbench.data.recorded import load_recorded
from harness_perrecbench.questions import check_prompt_exists

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset
    from harness_perrecbench.records import Loaded, Options

__all__ = ["load"]

LINE = "\n      "
"""Begins each further line of a part of an error."""


def load(dataset: Dataset, options: Options) -> Loaded:
    """The questions of the run, and the people whose profiles are missing."""
    check_prompt_exists(options)
    rating = options.ask == "rating"
    groups = () if rating else (layout.GROUPS[options.split],)
    # Tasks of one domain declare no recorded groups, which are of all domains together.
    if {*layout.ALWAYS, *groups} <= dataset.tables.keys():
        return load_singles(dataset, options) if rating else load_groups(dataset, options)
    if not rating and layout.RECORDED_GROUPS[options.split] in dataset.tables:
        return load_recorded(dataset, options)
    if not rating:
        raise _without_groups(dataset, options)
    lacking = [file for table, file in layout.ALWAYS.items() if table not in dataset.tables]
    raise DataError(
        "single behaviours need whole histories, which the data lacks",
        where=str(_folder(dataset)),
        found=f"no {', no '.join(lacking)}",
        expected=" and ".join(layout.ALWAYS.values()),
        hint="give the folder of the published files with --data",
    )


def _without_groups(dataset: Dataset, options: Options) -> DataError:
    """The error for data without a complete set of the level's groups in either layout."""
    folder = _folder(dataset)
    wanted = layout.PUBLISHED[options.split].format(level=options.level)
    names = {**layout.ALWAYS, layout.GROUPS[options.split]: wanted}
    lacking = [name for table, name in names.items() if table not in dataset.tables]
    there = layout.levels(folder, options.split)
    split = "held-out groups" if options.split == "held_out" else "groups"
    found = [f"no {name}" for name in lacking]
    found.append(f"{split} of level {', '.join(there)}" if there else f"{split} of no level")
    if of_domains := layout.domains(folder):
        found.append(f"folders of the domains {', '.join(of_domains)}")
    recorded_name = layout.RECORDED[options.split].format(level=options.level)
    hint = None
    if there and options.level not in there:
        hint = "use --tasks " + " or ".join(f"perrec_{level}_{options.ask}" for level in there)
    elif of_domains:
        hint = f"use --data {folder / of_domains[0]} --set domain={of_domains[0]}"
    return DataError(
        f"the data has no complete set of {split} of level {options.level}",
        where=str(folder),
        found=LINE.join(found),
        expected=LINE.join(
            (
                f"the published files {', '.join(names.values())}",
                f"or the recorded groups {recorded_name}",
            )
        ),
        hint=hint,
    )


def _folder(dataset: Dataset) -> Path:
    return Path(str(dataset.about.get("path", "."))).expanduser()
