"""`harness perrec sft-export`: training data from held-out groups, without test ratings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from harness import DataError
from harness.analysis.chat_lines import audit, chat_line, check_new, write_lines
from harness.base.hashing import digest_bytes, stable_int
from harness.contracts.report import Report, Sheet
from harness_perrecbench import questions
from harness_perrecbench.data import layout, load
from harness_perrecbench.paper import WAYS
from harness_perrecbench.records import MEMBERS, Group, Level, Member, Options
from harness_perrecbench.stages import STAGE_OF

if TYPE_CHECKING:
    from harness import Dataset
    from harness.prompts import Templates
    from harness_perrecbench.records import Ask

Trace: TypeAlias = tuple[str, str] | tuple[str, str, str | None]
"""A rating in a text, identified by user and item, or by user, title and author."""


@dataclass(frozen=True, kw_only=True)
class TrainingExample:
    """One question with its answer, None if the truth is unknown or users tie.

    `traces` are all ratings in its text: those that it asks for and those that it shows.
    """

    prompt: str
    variables: dict[str, Any]
    answer: str | None
    traces: frozenset[Trace]


def training_examples(group: Group, form: Ask, options: Options) -> Iterator[TrainingExample]:
    """All questions of one format about a group."""
    every = group.members
    asked: list[tuple[tuple[Member, ...], dict[str, Any]]]
    if form == "pointwise":
        singles = layout.one_by_one(group)
        asked = [((one.member,), questions.rate_variables(one, options)) for one in singles]
    elif form == "pairwise":
        asked = [
            (
                (every[one - 1], every[two - 1]),
                questions.compare_variables(group, one, two, options),
            )
            for one, two in permutations(range(1, len(every) + 1), 2)
        ]
    else:
        asked = [(every, questions.rank_variables(group, options))]
    for members, variables in asked:
        shown = {(user.id, one.title, one.author) for user in members for one in user.shown}
        yield TrainingExample(
            prompt=questions.prompt_of(STAGE_OF[form], options),
            variables=variables,
            answer=_answer(form, members),
            traces=_requested(group, members) | shown,
        )


def requested_ratings(groups: Iterable[Group]) -> frozenset[Trace]:
    """The ratings that questions about these groups ask for."""
    return frozenset(trace for group in groups for trace in _requested(group, group.members))


def _requested(group: Group, members: Iterable[Member]) -> frozenset[Trace]:
    """The ratings in question, also by the thing's name: the thing may have several ids."""
    names = ((group.id,), (group.query.title, group.query.author))
    return frozenset((member.id, *name) for member in members for name in names)


def _answer(form: Ask, members: tuple[Member, ...]) -> str | None:
    """The answer to a question about these users; None without one true rating or order."""
    if form == "pointwise":
        rating = members[0].rating
        return None if rating is None else json.dumps({"predicted_rating": rating})
    ranks = [member.rank for member in members if member.rank is not None]
    if len(set(ranks)) < len(members):
        return None
    order = [ranks.index(rank) + 1 for rank in sorted(ranks)]
    if form == "pairwise":
        return f"[User {'AB'[order[0] - 1]}]"
    return json.dumps({"predicted_ranking": order})


@dataclass(frozen=True)
class Source:
    """The published files in a folder, opened for each level."""

    folder: Path
    datasets: Mapping[Level, Dataset]

    def groups(
        self, split: Literal["test", "held_out"], options: Options, level: str = "all"
    ) -> Iterator[tuple[Level, Group]]:
        """The groups of a level, or of all levels in the folder, each with its level."""
        needed = (*layout.ALWAYS, layout.GROUPS[split])
        there = [one for one in MEMBERS if all(map(self.datasets[one].has, needed))]
        wanted = [one for one in MEMBERS if level == one or (level == "all" and one in there)]
        if not wanted and split == "test":
            raise DataError(
                "there are no test groups to check the training data against",
                where=str(self.folder),
                expected="the published files, with the test groups of at least one level",
            )
        if not wanted or not set(wanted) <= set(there):
            raise DataError(
                "the folder lacks held-out groups, or their histories and items",
                where=str(self.folder),
                found=f"held-out groups of {', '.join(there) or 'no level'}",
                expected=f"the published files, with those of level {level}",
            )
        for one in wanted:
            asked = msgspec.structs.replace(options, ask="listwise", level=one, split=split)
            found = load(self.datasets[one], asked)
            if number := len(found.people):
                raise DataError(
                    "the training data shows profiles, and some users have none",
                    where=str(self.folder),
                    found=f"{number} users without one in held-out groups of level {one}",
                    expected="a profile of each user",
                    hint="use --profile no_text or --profile none, or add the profiles to the data",
                )
            for group in found.groups:
                yield one, group


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

    def file(self, name: str) -> Path:
        """The file for the lines of a format, or of all formats mixed."""
        return self.out / f"train-{name}.jsonl"


@dataclass
class Export:
    """Training data without test ratings, as lines of chat JSONL.

    State: the lines by their digest, the ratings in them, and the outcomes of questions.
    """

    tested: frozenset[Trace]
    templates: Templates
    lines: dict[Ask, dict[str, bytes]] = field(default_factory=dict)
    traces: set[Trace] = field(default_factory=set)
    fates: Counter[tuple[Ask, Level, str]] = field(default_factory=Counter)

    def add(self, group: Group, form: Ask, level: Level, options: Options) -> None:
        """Add the questions of one format about a group, without those that must be left out."""
        lines = self.lines.setdefault(form, {})
        for example in training_examples(group, form, options):
            if example.traces & self.tested:
                fate = LEAKED
            elif example.answer is None:
                fate = UNANSWERED
            else:
                template = self.templates.need("perrecbench", example.prompt, "candidate")
                line = chat_line(template.render(example.variables), example.answer)
                key = digest_bytes(line)
                fate = REPEATED if key in lines else WRITTEN
                lines[key] = line
                self.traces |= example.traces
            self.fates[form, level, fate] += 1

    def audit(self) -> Sheet:
        """The number of ratings that training data and tests share; DataError unless it is 0."""
        return audit(
            self.tested,
            self.traces,
            "rating",
            "Training data contains the ratings that it asks for and those that it shows. "
            "Pairs are compared by the item's id, and by title and author.",
        )

    def counts(self) -> Sheet:
        """A sheet with the outcomes of questions of each format and level."""
        rows = (
            (form, level, *(self.fates[form, level, fate] for fate in FATES))
            for form in WAYS
            for level in MEMBERS
        )
        return Sheet(
            title="Questions about held-out groups",
            columns=("format", "level", *FATES),
            rows=tuple(row for row in rows if any(row[2:])),
            notes=("All but the first count are left out.",),
        )

    def files(self, settings: Settings) -> dict[str, Iterable[bytes]]:
        """The lines of each file; DataError without any.

        For `--format all` a mixed one has them in the order of a stable hash.
        """
        found: dict[str, Iterable[bytes]] = {
            form: lines.values() for form, lines in self.lines.items() if lines
        }
        if not found:
            totals: Counter[str] = Counter()
            for (*_, fate), number in self.fates.items():
                totals[fate] += number
            fates = "; ".join(f"{fate}: {number}" for fate, number in totals.items())
            raise DataError(
                "the held-out groups give no training data",
                where=str(settings.data),
                found=fates or "no held-out groups",
                expected="questions with a known answer and without test ratings",
            )
        if settings.format == "all":
            every = {key: line for lines in self.lines.values() for key, line in lines.items()}
            keys = sorted(every, key=lambda key: stable_int(MIXED, settings.seed, key))
            found[MIXED] = [every[key] for key in keys]
        return found


def run(settings: Settings) -> Report:
    """Write the training data, and report its counts and the audit against all test groups."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates
    from harness.registry import load_plugins

    plugins = load_plugins()
    datasets = layout.open_levels(settings.data, plugins)
    layout.check_not_recorded(settings.data, datasets, "training data")
    source = Source(folder=settings.data, datasets=datasets)
    return export_from(source, Templates(prompt_folders(plugins)), settings)


def export_from(source: Source, templates: Templates, settings: Settings) -> Report:
    """The report of an export from an open folder, after its files are written."""
    check_new((settings.file(name) for name in (*WAYS, MIXED)), settings.out)
    options = Options(profile=settings.profile, k=settings.k)
    tested = [group for _, group in source.groups("test", Options(profile="none", k=1))]
    export = Export(tested=requested_ratings(tested), templates=templates)
    for level, group in source.groups("held_out", options, settings.level):
        for form in WAYS:
            if settings.format in ("all", form):
                export.add(group, form, level, options)
    shared = export.audit()
    files = {settings.file(name): lines for name, lines in export.files(settings).items()}
    notes = [write_lines(files, settings.out)]
    if settings.profile != "none":
        notes.append(
            "Averages, most common ratings and published profiles come from whole histories, which "
            "may include test ratings; the audit covers single ratings only."
        )
    return Report(sheets=(export.counts(), shared), notes=tuple(notes))
