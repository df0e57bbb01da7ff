"""`harness perrec sft-export`: data to tune a model with, from held-out groups alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from harness import DataError, DataTool
from harness.errors import UsageError
from harness.hashing import digest_bytes, stable_int
from harness.results.files import atomic_writer, storage_error
from harness.results.report import Report, Sheet
from harness_perrecbench.records import MEMBERS, Group, Level, Options
from harness_perrecbench.tuning.lessons import (
    FORMATS,
    Format,
    Trace,
    asked_for,
    lessons,
    line_of,
)

if TYPE_CHECKING:
    from harness.prompting import Templates
    from harness_perrecbench.tuning.held_out import Source

MIXED = "mixed"

WRITTEN = "written"
LEAKED = "tell of a test rating"
UNANSWERED = "truth unknown or equal"
REPEATED = "repeated"
FATES = (WRITTEN, LEAKED, UNANSWERED, REPEATED)
"""What became of the questions about held-out groups; all but the first are left out."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Which held-out groups become training data, as which questions, and where it goes."""

    data: Annotated[Path, Meta(description="the folder with the published files")]
    out: Annotated[Path, Meta(description="the folder that the training data is written to")]
    level: Annotated[
        Literal["all", "easy", "medium", "hard"],
        Meta(description="whose held-out groups; all are those of the levels that the data has"),
    ] = "all"
    format: Annotated[
        Literal["all", "pointwise", "pairwise", "listwise"],
        Meta(description="which questions; all are a file for each and one with all mixed"),
    ] = "all"
    k: Annotated[int, Meta(ge=1, description="how many retrieved behaviours a user shows")] = 4
    profile: Annotated[
        Literal["full", "no_text", "none"],
        Meta(description="with profile, mode and average; without its text; without all three"),
    ] = "full"
    seed: Annotated[int, Meta(description="decides the order of the mixed file")] = 0

    @property
    def formats(self) -> tuple[Format, ...]:
        return tuple(FORMATS) if self.format == "all" else (self.format,)

    def file(self, name: str) -> Path:
        """Where the lines of a format go, or those of all formats mixed."""
        return self.out / f"train-{name}.jsonl"


@dataclass
class Export:
    """Training data free of what tests ask for, as lines of chat JSONL.

    State: the lines by their digest, the ratings that they tell of, and what became of each
    question; all grow with each group that is added.
    """

    tested: frozenset[Trace]
    templates: Templates
    lines: dict[Format, dict[str, bytes]] = field(default_factory=dict)
    told: set[Trace] = field(default_factory=set)
    fates: Counter[tuple[Format, Level, str]] = field(default_factory=Counter)

    def add(self, group: Group, form: Format, level: Level, options: Options) -> None:
        """Takes in the questions of one format about a group, but for those that must stay out."""
        lines = self.lines.setdefault(form, {})
        for lesson in lessons(group, form, options):
            if lesson.traces & self.tested:
                fate = LEAKED
            elif lesson.answer is None:
                fate = UNANSWERED
            else:
                line = line_of(lesson, self.templates)
                key = digest_bytes(line)
                fate = REPEATED if key in lines else WRITTEN
                lines[key] = line
                self.told |= lesson.traces
            self.fates[form, level, fate] += 1

    def audit(self) -> Sheet:
        """The count of ratings that training data and tests share; DataError where there is one."""
        shared = self.tested & self.told
        if shared:
            raise DataError(
                "the training data tells of ratings that tests ask for, so nothing was written",
                found=f"{len(shared)}, such as {min(map(str, shared))}",
                expected="none",
            )
        return Sheet(
            title="Audit of users and things",
            columns=("tests ask for", "training data tells of", "shared"),
            rows=((_named(self.tested), _named(self.told), len(shared)),),
            notes=(
                "Training data tells of what it asks for and of the behaviours that it shows. "
                "Pairs are compared by the item's id, and by title and author.",
            ),
        )

    def counts(self) -> Sheet:
        """What became of the questions of each format and level."""
        rows: list[tuple[str | int, ...]] = [
            (form, level, *(self.fates[form, level, fate] for fate in FATES))
            for form in FORMATS
            for level in MEMBERS
        ]
        return Sheet(
            title="Questions about held-out groups",
            columns=("format", "level", *FATES),
            rows=tuple(row for row in rows if any(row[2:])),
            notes=("All but the first count are left out.",),
        )

    def told_apart(self) -> str:
        """How many questions came to which end, in words."""
        ends: Counter[str] = Counter()
        for (*_, fate), number in self.fates.items():
            ends[fate] += number
        return "; ".join(f"{fate}: {number}" for fate, number in ends.items())

    def mixed(self, seed: int) -> list[bytes]:
        """The lines of all formats in the order of a stable hash."""
        lines = {key: line for each in self.lines.values() for key, line in each.items()}
        return [lines[key] for key in sorted(lines, key=lambda key: stable_int("mixed", seed, key))]


def run(settings: Settings) -> Report:
    """Writes the training data, and gives its counts and the audit against all test groups."""
    from harness.pipeline.preparation import prompt_folders
    from harness.plugin_manager import load_plugins
    from harness.prompting import Templates
    from harness_perrecbench.tuning.held_out import opened

    plugins = load_plugins()
    templates = Templates(prompt_folders(plugins))
    return exported(opened(settings.data, plugins), templates, settings)


def exported(source: Source, templates: Templates, settings: Settings) -> Report:
    """The same for a folder that is open already."""
    refuse_overwriting(settings)
    options = Options(profile=settings.profile, k=settings.k)
    export = Export(tested=asked_for(source.tested()), templates=templates)
    for level, group in source.held_out(settings.level, options):
        for form in settings.formats:
            export.add(group, form, level, options)
    audit = export.audit()
    files = write(export, settings)
    return Report(sheets=(export.counts(), audit), notes=_notes(files, settings))


def refuse_overwriting(settings: Settings) -> None:
    """Raise UsageError where training data in the folder would be written over or stay beside."""
    there = [name for name in (*FORMATS, MIXED) if settings.file(name).exists()]
    if there:
        raise UsageError(
            "the training data cannot be written there",
            where=str(settings.out),
            found=", ".join(settings.file(name).name for name in there),
            expected="a folder without training data, or one that does not exist yet",
        )


def write(export: Export, settings: Settings) -> list[Path]:
    """Writes a file for each format that has lines, and one with all where all were wanted."""
    found: dict[str, Iterable[bytes]] = {
        form: lines.values() for form, lines in export.lines.items() if lines
    }
    if not found:
        raise DataError(
            "the held-out groups give no training data",
            where=str(settings.data),
            found=export.told_apart() or "no held-out groups",
            expected="questions whose answer is known, about users and things of no test",
        )
    if settings.format == "all":
        found[MIXED] = export.mixed(settings.seed)
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(settings.out, error, option="--out") from error
    for name, lines in found.items():
        with atomic_writer(settings.file(name), option="--out") as file:
            file.writelines(lines)
    return [settings.file(name) for name in found]


def _notes(files: list[Path], settings: Settings) -> tuple[str, ...]:
    notes = [f"written: {', '.join(map(str, files))}"]
    if settings.profile != "none":
        notes.append(
            "Averages, most common ratings and published profiles come from whole histories, in "
            "which a rating that a test asks for may stand; the audit is about what is told "
            "rating by rating."
        )
    return tuple(notes)


def _named(traces: Iterable[Trace]) -> int:
    return sum(len(trace) == 3 for trace in traces)


SFT_EXPORT = DataTool(
    name="sft-export",
    description="write training data from held-out groups",
    run=run,
    options=Settings,
)
