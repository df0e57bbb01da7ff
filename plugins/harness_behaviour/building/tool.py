"""The data tool that builds the prompts of a domain from its logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.analysis.tool_report import check_empty
from harness.base.errors import UsageError
from harness.contracts.report import Report, Sheet
from harness_behaviour import data
from harness_behaviour.building import prompt_files
from harness_behaviour.building.prompt_files import PROMPTS, RECORD
from harness_behaviour.records import Recipe

if TYPE_CHECKING:
    from harness.data import TaskData
    from harness_behaviour.building.prompt_files import Record
    from harness_behaviour.records import Domain

OUT = "--out"
"""The option with the folder of the prompts."""


class Settings(Recipe, frozen=True, kw_only=True):
    """The log, the folder of the prompts, and the rules for them."""

    source: Annotated[
        Path, Meta(description="the folder of MovieLens 1M or last.fm 1K; `sample` for the sample")
    ] = msgspec.field(name="from")
    out: Annotated[Path, Meta(description="the folder that the prompts are written to")]


def run(settings: Settings) -> Report:
    """Write the prompts of a log, and report what came of each cell."""
    check_empty(settings.out, "the folder for the prompts", option=OUT)
    dataset = opened(settings.domain, settings.source, option="--from")
    built = data.build(dataset, data.recipe_for(dataset, settings))
    files = digests(dataset, settings.domain)
    record = prompt_files.write(settings.out, built, files, option=OUT)
    written = f"written: {settings.out}, {len(built.prompts):,} prompts in {PROMPTS}, with {RECORD}"
    return Report(sheets=(table1(record),), notes=(written, *notes(record)))


def digests(dataset: TaskData, domain: Domain) -> dict[str, str]:
    """The digests of the files of a log, by their names."""
    return {
        Path(one["file"]).name: str(one["sha256"])
        for table in data.RAW[domain]
        for one in dataset.described(table)["files"]
    }


def opened(domain: str, folder: Path, *, option: str) -> TaskData:
    """The data in a folder that `option` named, as the tasks of a domain read it."""
    from harness.contracts.task import DataSpec
    from harness.data import open_dataset
    from harness.registry import load_plugins
    from harness.registry.task_catalogue import Catalogue

    if not folder.exists() and folder != Path("sample"):
        raise UsageError(
            "the folder does not exist",
            where=f"{option} {folder}",
            expected="an existing folder, or `sample`",
        )
    task = f"behaviourbench_{domain}"
    plugins = load_plugins()
    catalogue = Catalogue(plugins)
    [document] = catalogue.find(task)
    return open_dataset(
        msgspec.convert(catalogue.resolved(document).values["data"], DataSpec),
        data=str(folder),
        limit=None,
        seed=0,
        package=plugins.package_of("behaviour"),
        task=task,
    )


def table1(record: Record) -> Sheet:
    """What was found of each proxy and length of history, with the paper's Table 1."""
    rows = [
        (one.proxy, one.length, one.groups, one.tried, one.found, one.published,
         *(one.users or (None, None, None)))
        for one in record.cells
    ]  # fmt: skip
    total = sum(one.found for one in record.cells), sum(one.published for one in record.cells)
    short = [one for one in record.cells if one.found < one.published]
    return Sheet(
        title=f"Prompts of {record.domain}",
        columns=(
            *("proxy", "history", "groups", "tried", "prompts", "Table 1"),
            *("users behind one: 25%", "median", "75%"),
        ),
        rows=(*rows, ("total", None, None, None, *total, None, None, None)),
        notes=(
            f"{len(short)} cells have fewer prompts than the paper's Table 1: "
            + ", ".join(f"{one.proxy} at {one.length}" for one in short)
            if short
            else "every cell has as many prompts as in the paper's Table 1",
            "history 0 is (Def): one prompt for each group, which is not drawn",
        ),
    )


def notes(record: Record) -> tuple[str, ...]:
    """What was counted while prompts were built."""
    return tuple(f"{fact}: {number:,}" for fact, number in record.notes.items() if number)
