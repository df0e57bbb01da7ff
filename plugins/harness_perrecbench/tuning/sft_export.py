"""`harness perrec sft-export`: training data from held-out groups.

Training examples are solved questions, each with the ratings that it contains; examples with a
rating of the tests are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from harness import DataError
from harness.base.errors import UsageError
from harness.base.hashing import digest_bytes, stable_int
from harness.contracts.report import Report, Sheet
from harness.runs.atomic_files import atomic_writer, make_folder
from harness_perrecbench.data import load
from harness_perrecbench.data.layout import (
    ALWAYS,
    GROUPS,
    check_not_recorded,
    one_by_one,
    open_levels,
)
from harness_perrecbench.questions import (
    compare_variables,
    prompt_of,
    rank_variables,
    rate_variables,
)
from harness_perrecbench.records import MEMBERS, Group, Level, Member, Options

if TYPE_CHECKING:
    from harness import Dataset
    from harness.prompts import Templates

Format: TypeAlias = Literal["pointwise", "pairwise", "listwise"]
Trace: TypeAlias = tuple[str, str] | tuple[str, str, str | None]
"""A rating in a text, identified by user and item, or by user, title and author."""


Question: TypeAlias = tuple[tuple[Member, ...], dict[str, Any], str | None]
"""The users of a question, the variables of its prompt, and its answer."""


@dataclass(frozen=True, kw_only=True)
class TrainingExample:
    """One question with its answer, None if the truth is unknown or users tie.

    `traces` are all ratings in its text: those that it asks for and those that it shows.
    """

    prompt: str
    variables: dict[str, Any]
    answer: str | None
    traces: frozenset[Trace]


def training_examples(group: Group, form: Format, options: Options) -> Iterator[TrainingExample]:
    """All questions of one format about a group."""
    stage, questions = FORMATS[form]
    for members, variables, answer in questions(group, options):
        yield TrainingExample(
            prompt=prompt_of(stage, options),
            variables=variables,
            answer=answer,
            traces=frozenset(trace for one in members for trace in _traces(group, one)),
        )


def requested_ratings(groups: Iterable[Group]) -> frozenset[Trace]:
    """The ratings that questions about these groups ask for."""
    return frozenset(
        trace
        for group in groups
        for member in group.members
        for trace in _own_traces(group, member)
    )


def line_of(example: TrainingExample, templates: Templates) -> bytes:
    """The example as a line of chat JSONL."""
    template = templates.need("perrecbench", example.prompt, "candidate")
    messages: list[dict[str, str | None]] = [
        {"role": one.role, "content": one.content} for one in template.render(example.variables)
    ]
    messages.append({"role": "assistant", "content": example.answer})
    return json.dumps({"messages": messages}).encode("ascii") + b"\n"


def _pointwise(group: Group, options: Options) -> Iterator[Question]:
    for single in one_by_one(group):
        member = single.member
        known = member.rating is not None
        answer = json.dumps({"predicted_rating": member.rating}) if known else None
        yield (member,), rate_variables(single, options), answer


def _pairwise(group: Group, options: Options) -> Iterator[Question]:
    for first, second in permutations(range(1, len(group.members) + 1), 2):
        pair = (group.members[first - 1], group.members[second - 1])
        order = _order(pair)
        answer = f"[User {'AB'[order[0] - 1]}]" if order else None
        yield pair, compare_variables(group, first, second, options), answer


def _listwise(group: Group, options: Options) -> Iterator[Question]:
    order = _order(group.members)
    answer = json.dumps({"predicted_ranking": order}) if order else None
    yield group.members, rank_variables(group, options), answer


FORMATS: dict[Format, tuple[str, Callable[[Group, Options], Iterator[Question]]]] = {
    "pointwise": ("rate", _pointwise),
    "pairwise": ("compare", _pairwise),
    "listwise": ("rank", _listwise),
}
"""The stage whose prompt each format uses, and its questions about a group."""


def _order(members: tuple[Member, ...]) -> list[int] | None:
    """The users' numbers from 1, strongest preference first; None without one true order."""
    ranks = [member.rank for member in members if member.rank is not None]
    if len(set(ranks)) < len(members):
        return None
    return [ranks.index(rank) + 1 for rank in sorted(ranks)]


def _own_traces(group: Group, member: Member) -> set[Trace]:
    """The rating in question, also by the thing's name: the thing may have several ids."""
    return {(member.id, group.id), (member.id, group.query.title, group.query.author)}


def _traces(group: Group, member: Member) -> set[Trace]:
    """The rating in question, and those that the question shows."""
    shown = {(member.id, one.title, one.author) for one in member.shown}
    return _own_traces(group, member) | shown


@dataclass(frozen=True)
class Source:
    """The published files in a folder, opened for each level."""

    folder: Path
    datasets: Mapping[Level, Dataset]

    def tested(self) -> Iterator[Group]:
        """The test groups of every level that the folder holds."""
        levels = self._levels("test")
        if not levels:
            raise DataError(
                "there are no test groups to check the training data against",
                where=str(self.folder),
                expected="the published files, with the test groups of at least one level",
            )
        options = Options(profile="none", k=1)
        for level in levels:
            yield from self._groups(level, "test", options)

    def held_out(
        self, level: Level | Literal["all"], options: Options
    ) -> Iterator[tuple[Level, Group]]:
        """The held-out groups of a level, or of all levels in the folder, each with its level."""
        held = self._levels("held_out")
        levels = held if level == "all" else [level]
        if not levels or not set(levels) <= set(held):
            raise DataError(
                "the folder lacks held-out groups, or their histories and items",
                where=str(self.folder),
                found=f"held-out groups of {', '.join(held) or 'no level'}",
                expected=f"the published files, with those of level {level}",
            )
        for one in levels:
            for group in self._groups(one, "held_out", options):
                yield one, group

    def _levels(self, split: Literal["test", "held_out"]) -> list[Level]:
        needed = (*ALWAYS, GROUPS[split])
        return [level for level in MEMBERS if all(map(self.datasets[level].has, needed))]

    def _groups(
        self, level: Level, split: Literal["test", "held_out"], options: Options
    ) -> tuple[Group, ...]:
        wanted = msgspec.structs.replace(options, ask="listwise", level=level, split=split)
        found = load(self.datasets[level], wanted)
        if found.people:
            raise DataError(
                "the training data shows profiles, and some users have none",
                where=str(self.folder),
                found=f"{len(found.people)} users without one in held-out groups of level {level}",
                expected="a profile of each user",
                hint="use --profile no_text or --profile none, or add the profiles to the data",
            )
        return found.groups


MIXED = "mixed"

WRITTEN = "written"
LEAKED = "contain a test rating"
UNANSWERED = "truth unknown or tied"
REPEATED = "repeated"
FATES = (WRITTEN, LEAKED, UNANSWERED, REPEATED)
"""The outcomes of questions about held-out groups; all but the first are left out."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `harness perrec sft-export`."""

    data: Annotated[Path, Meta(description="the folder with the published files")]
    out: Annotated[Path, Meta(description="the folder that the training data is written to")]
    level: Annotated[
        Literal["all", "easy", "medium", "hard"],
        Meta(description="the level of the held-out groups; all: every level in the data"),
    ] = "all"
    format: Annotated[
        Literal["all", "pointwise", "pairwise", "listwise"],
        Meta(description="the kind of questions; all: a file for each, and one with all mixed"),
    ] = "all"
    k: Annotated[int, Meta(ge=1, description="the retrieved behaviours of each user")] = 4
    profile: Annotated[
        Literal["full", "no_text", "none"],
        Meta(description="full: profile, mode and average; no_text: mode and average; none: none"),
    ] = "full"
    seed: Annotated[int, Meta(description="decides the order of the mixed file")] = 0

    @property
    def formats(self) -> tuple[Format, ...]:
        return tuple(FORMATS) if self.format == "all" else (self.format,)

    def file(self, name: str) -> Path:
        """The file for the lines of a format, or of all formats mixed."""
        return self.out / f"train-{name}.jsonl"


@dataclass
class Export:
    """Training data without test ratings, as lines of chat JSONL.

    State: the lines by their digest, the ratings in them (`traces`), and the outcomes of questions;
    all grow with each group.
    """

    tested: frozenset[Trace]
    templates: Templates
    lines: dict[Format, dict[str, bytes]] = field(default_factory=dict)
    traces: set[Trace] = field(default_factory=set)
    fates: Counter[tuple[Format, Level, str]] = field(default_factory=Counter)

    def add(self, group: Group, form: Format, level: Level, options: Options) -> None:
        """Add the questions of one format about a group, without those that must be left out."""
        lines = self.lines.setdefault(form, {})
        for example in training_examples(group, form, options):
            if example.traces & self.tested:
                fate = LEAKED
            elif example.answer is None:
                fate = UNANSWERED
            else:
                line = line_of(example, self.templates)
                key = digest_bytes(line)
                fate = REPEATED if key in lines else WRITTEN
                lines[key] = line
                self.traces |= example.traces
            self.fates[form, level, fate] += 1

    def audit(self) -> Sheet:
        """The number of ratings that training data and tests share; DataError unless it is 0."""
        shared = self.tested & self.traces
        named = [sum(len(one) == 3 for one in traces) for traces in (self.tested, self.traces)]
        if shared:
            raise DataError(
                "the training data contains test ratings, so nothing was written",
                found=f"{len(shared)}, such as {min(map(str, shared))}",
                expected="training data without any rating of the tests",
            )
        return Sheet(
            title="Audit of users and things",
            columns=("in tests", "in training data", "shared"),
            rows=((*named, len(shared)),),
            notes=(
                "Training data contains the ratings that it asks for and those that it shows. "
                "Pairs are compared by the item's id, and by title and author.",
            ),
        )

    def counts(self) -> Sheet:
        """A sheet with the outcomes of questions of each format and level."""
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

    def format_fates(self) -> str:
        """The number of questions with each outcome, in words."""
        totals: Counter[str] = Counter()
        for (*_, fate), number in self.fates.items():
            totals[fate] += number
        return "; ".join(f"{fate}: {number}" for fate, number in totals.items())

    def mixed(self, seed: int) -> list[bytes]:
        """The lines of all formats in the order of a stable hash."""
        lines = {key: line for each in self.lines.values() for key, line in each.items()}
        return [lines[key] for key in sorted(lines, key=lambda key: stable_int("mixed", seed, key))]


def run(settings: Settings) -> Report:
    """Write the training data, and report its counts and the audit against all test groups."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates
    from harness.registry import load_plugins

    plugins = load_plugins()
    templates = Templates(prompt_folders(plugins))
    datasets = open_levels(settings.data, plugins)
    check_not_recorded(settings.data, datasets, "training data")
    return export_from(Source(folder=settings.data, datasets=datasets), templates, settings)


def export_from(source: Source, templates: Templates, settings: Settings) -> Report:
    """The report of an export from an open folder, after its files are written."""
    check_not_written(settings)
    options = Options(profile=settings.profile, k=settings.k)
    export = Export(tested=requested_ratings(source.tested()), templates=templates)
    for level, group in source.held_out(settings.level, options):
        for form in settings.formats:
            export.add(group, form, level, options)
    audit = export.audit()
    files = write(export, settings)
    return Report(sheets=(export.counts(), audit), notes=_notes(files, settings))


def check_not_written(settings: Settings) -> None:
    """Raise UsageError if the folder already contains training data."""
    there = [name for name in (*FORMATS, MIXED) if settings.file(name).exists()]
    if there:
        raise UsageError(
            "the folder already contains training data",
            where=str(settings.out),
            found=", ".join(settings.file(name).name for name in there),
            expected="--out: a folder without training data, or one that does not exist yet",
        )


def write(export: Export, settings: Settings) -> list[Path]:
    """Write a file for each format with lines, and the mixed file for `--format all`."""
    found: dict[str, Iterable[bytes]] = {
        form: lines.values() for form, lines in export.lines.items() if lines
    }
    if not found:
        raise DataError(
            "the held-out groups give no training data",
            where=str(settings.data),
            found=export.format_fates() or "no held-out groups",
            expected="questions with a known answer and without test ratings",
        )
    if settings.format == "all":
        found[MIXED] = export.mixed(settings.seed)
    make_folder(settings.out, option="--out")
    for name, lines in found.items():
        with atomic_writer(settings.file(name), option="--out") as file:
            file.writelines(lines)
    return [settings.file(name) for name in found]


def _notes(files: list[Path], settings: Settings) -> tuple[str, ...]:
    notes = [f"written: {', '.join(map(str, files))}"]
    if settings.profile != "none":
        notes.append(
            "Averages, most common ratings and published profiles come from whole histories, which "
            "may include test ratings; the audit covers single ratings only."
        )
    return tuple(notes)
