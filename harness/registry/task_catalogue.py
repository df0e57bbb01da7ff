"""The task files of all plugins, and the selection of tasks by `--tasks`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.base.errors import TaskError, did_you_mean, one_of
from harness.base.resources import Bundle
from harness.contracts.task import Base, Group, Task
from harness.tasks.load import Document, load_file, shown
from harness.tasks.matrix import expand
from harness.tasks.resolve import OWN, Resolved, references, resolve
from harness.tasks.task_schema import completeness_errors, document_errors, raise_all

if TYPE_CHECKING:
    from harness.registry import Plugins

SUFFIXES = (".yaml", ".yml")
HOW_TO_LIST = "`harness tasks` lists all tasks"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The tasks and groups that `--tasks` chose, in the order first named, those of groups too."""

    tasks: tuple[Task, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A task or group in a list.

    `members` is None for a task. If a matrix made the task, `pattern` and `about` are the name and
    the description as written in the file.
    """

    name: str
    file: Path
    bundle: str
    description: str
    tags: tuple[str, ...]
    benchmark: str | None = None
    version: int | None = None
    abstract: bool = False
    members: tuple[str, ...] | None = None
    pattern: str | None = None
    about: str = ""


class Catalogue:
    """Finds tasks and groups by name; each file is read once, at first use.

    `include_path`: folders of task files in addition to those of plugins.
    """

    def __init__(self, plugins: Plugins, *, include_path: Sequence[Path] = ()) -> None:
        self._plugins = plugins
        self._bundles = (*plugins.bundles, *map(_included, include_path))
        self._documents: dict[Path, tuple[Document, ...]] = {}
        self._sound: set[tuple[Path, str]] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks that can be run."""
        return tuple(
            entry.name for entry in self.entries if entry.members is None and not entry.abstract
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(entry.name for entry in self.entries if entry.members is not None)

    @functools.cached_property
    def tags(self) -> Mapping[str, tuple[str, ...]]:
        """The names of tasks and groups by tag."""
        tags: dict[str, list[str]] = {}
        for entry in self.entries:
            for tag in () if entry.abstract else entry.tags:
                tags.setdefault(tag, []).append(entry.name)
        return {tag: tuple(tags[tag]) for tag in sorted(tags)}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All tasks and groups by name, bases included, if their files can be read."""
        return self._listing[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of files that cannot be listed, and names that several files define."""
        return self._listing[1]

    def select(self, specs: Sequence[str]) -> Selection:
        """The tasks that names, globs, groups, tags and files select, checked and resolved."""
        tasks: dict[str, Task] = {}
        groups: dict[str, Group] = {}
        for spec in specs:
            for document in self.find(spec):
                self._select(document, tasks, groups, ())
        return Selection(tasks=tuple(tasks.values()), groups=tuple(groups.values()))

    def find(self, spec: str) -> tuple[Document, ...]:
        """The tasks and groups that one element of `--tasks` names, unchecked."""
        if spec.startswith("tag:"):
            return tuple(self._named(name) for name in self._tagged(spec.removeprefix("tag:")))
        if spec.endswith(SUFFIXES):
            return self._in_file(Path(spec).resolve())
        if spec in self._sources:
            return (self._named(spec),)
        if spec in self._patterns:
            return self._patterns[spec]
        if any(character in spec for character in "*?["):
            known = sorted({*self.names, *self.groups})
            matching = [name for name in known if fnmatchcase(name, spec)]
            if not matching:
                raise TaskError(f"no task or group matches {spec!r}", hint=HOW_TO_LIST)
            return tuple(self._named(name) for name in matching)
        if spec in self.tags:
            return tuple(self._named(name) for name in self.tags[spec])
        raise self._unknown(spec, [*self._sources, *self.tags])

    def matching(self, patterns: Sequence[str]) -> tuple[Entry, ...]:
        """The entries to show for patterns; all entries if there is no pattern.

        The name of a task matches only that task, the name of a group the group and its members.
        Any other pattern is a tag, a glob or a part of names. TaskError if a pattern matches
        nothing, or only a file that cannot be listed.
        """
        if not patterns:
            return self.entries
        names: set[str] = set()
        for pattern in patterns:
            found = self._matched(pattern)
            if not found:
                if pattern in self._sources:
                    self.resolved(self._named(pattern))  # raises the reason why it is not listed
                raise self._unknown(pattern, [*self._sources, *self.tags])
            names |= found
        return tuple(entry for entry in self.entries if entry.name in names)

    def _matched(self, pattern: str) -> set[str]:
        if pattern.startswith("tag:"):
            return set(self._tagged(pattern.removeprefix("tag:")))
        if pattern in self.names:
            return {pattern}
        if pattern in self.groups:
            return {pattern, *(member.name for member in self.members(self._named(pattern)))}
        return {
            entry.name
            for entry in self.entries
            if pattern in entry.name
            or pattern in entry.tags
            or pattern == entry.pattern
            or fnmatchcase(entry.name, pattern)
        }

    def resolved(self, document: Document) -> Resolved:
        """A task's file merged with its bases, unchecked."""
        return resolve(document, self._reference)

    def task(self, document: Document) -> Task:
        """The task that a document describes, checked against the schema."""
        resolved = self.resolved(document)
        benchmark = resolved.values.get("benchmark")
        known, broken = self._plugins.benchmarks, self._plugins.broken
        if isinstance(benchmark, str) and broken and benchmark not in known:
            raise TaskError(
                f"no working plugin offers the benchmark {benchmark!r}",
                where=document.where(["task"]),
                found="; ".join(map(str, broken)),
                expected="a working plugin that offers it",
                hint=did_you_mean(benchmark, known),
            )
        self._check(document)
        for base in resolved.documents:
            self._check(base)
            self._check_enclosed(base)
        if resolved.values.get("abstract"):
            lines = {name: self.resolved(self._named(name)).documents for name in self.names}
            heirs = [
                name for name, of in lines.items() if any(one.key == document.key for one in of)
            ]
            raise TaskError(
                f"{document.name!r} is abstract and cannot be run",
                where=document.where(["abstract"], of_key=True),
                expected="a task that can be run",
                hint=f"these tasks extend it: {', '.join(heirs)}" if heirs else None,
            )
        raise_all(completeness_errors(resolved.values, resolved.where))
        values = {key: value for key, value in resolved.values.items() if key not in OWN}
        bases = tuple(Base(base.file, base.name) for base in resolved.documents[:-1])
        try:
            task = msgspec.convert({**values, "name": document.name}, Task, strict=True)
        except msgspec.ValidationError as error:
            raise TaskError(
                f"the task {document.name!r} is invalid",
                where=document.where(["task"]),
                found=str(error),
            ) from error
        return msgspec.structs.replace(task, file=document.file, bases=bases)

    def group(self, document: Document) -> Group:
        """The group that a document describes, checked against the schema; its members exist."""
        self._check(document)
        values = document.values
        return Group(
            name=document.name,
            members=tuple(member.name for member in self.members(document)),
            description=values.get("description", ""),
            tags=tuple(values.get("tags", ())),
            analysis=values.get("analysis"),
            mean=values.get("mean", True),
            file=document.file,
        )

    def members(self, document: Document) -> tuple[Document, ...]:
        """A group's members, unchecked; a file with a matrix means all its tasks."""
        return tuple(
            member
            for path, reference in references(document, "tasks")
            for member in self._referred(reference, document, path)
        )

    def tasks_of(self, group: str) -> tuple[str, ...]:
        """The names of a group's tasks, those of nested groups included."""
        names: dict[str, None] = {}
        seen = set()
        open_groups = [self._named(group)]
        while open_groups:
            document = open_groups.pop()
            seen.add(document.name)
            for member in self.members(document):
                if not member.is_group:
                    names[member.name] = None
                elif member.name not in seen:
                    open_groups.append(member)
        return tuple(names)

    def _select(
        self,
        document: Document,
        tasks: dict[str, Task],
        groups: dict[str, Group],
        above: tuple[Document, ...],
    ) -> None:
        selected = groups if document.is_group else tasks
        earlier = selected.get(document.name)
        if earlier is not None and earlier.file != document.file:
            raise TaskError(
                f"two different files define {document.name!r}",
                where=document.where([]),
                found=f"{shown(document.file)} and {shown(earlier.file or Path())}",
                expected="only one of the two files in --tasks",
            )
        if not document.is_group:
            if earlier is None:
                tasks[document.name] = self.task(document)
            return
        if any(one.file == document.file for one in above):
            circle = [*(one.name for one in above), document.name]
            raise TaskError(
                "groups contain each other in a circle",
                where=above[-1].where(["tasks"]),
                found=" -> ".join(circle[circle.index(document.name) :]),
            )
        if earlier is None:
            groups[document.name] = self.group(document)
        for member in self.members(document):
            self._select(member, tasks, groups, (*above, document))

    @functools.cached_property
    def _read(self) -> tuple[dict[str, tuple[tuple[Document, Bundle], ...]], tuple[str, ...]]:
        """The readable files by the names they define, and the problems of the others."""
        sources: dict[str, list[tuple[Document, Bundle]]] = {}
        problems = []
        seen: set[Path] = set()
        for bundle in self._bundles:
            for file in _yaml_files(bundle.task_configs) if bundle.task_configs else ():
                path = file.resolve()
                if path in seen:
                    continue
                seen.add(path)
                try:
                    documents = self._in_file(path)
                except TaskError as error:
                    problems.append(str(error))
                    continue
                for document in documents:
                    if isinstance(document.values.get("task", document.values.get("group")), str):
                        sources.setdefault(document.name, []).append((document, bundle))
                    else:
                        problems.extend(str(error) for error in document_errors(document))
        return {name: tuple(sources[name]) for name in sorted(sources)}, tuple(problems)

    @property
    def _sources(self) -> dict[str, tuple[tuple[Document, Bundle], ...]]:
        return self._read[0]

    @functools.cached_property
    def _patterns(self) -> Mapping[str, tuple[Document, ...]]:
        """The tasks of each matrix by the name as written, such as `film_{level}`."""
        files: dict[str, dict[Path, None]] = {}
        for given in self._sources.values():
            for document, _ in given:
                if document.pattern is not None:
                    files.setdefault(document.pattern, {})[document.file] = None
        return {
            pattern: tuple(document for file in found for document in self._in_file(file))
            for pattern, found in files.items()
        }

    @functools.cached_property
    def _listing(self) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        entries = []
        problems = list(self._read[1])
        for name, given in self._sources.items():
            try:
                document = self._named(name)
                resolved = document.values if document.is_group else self.resolved(document).values
                members = tuple(name for _, name in references(document, "tasks"))
            except TaskError as error:
                problems.append(str(error))
                continue
            tags = resolved.get("tags", ())
            benchmark, version = resolved.get("benchmark"), resolved.get("version")
            entry = Entry(
                name=document.name,
                file=document.file,
                bundle=given[0][1].name,
                description=str(resolved.get("description") or ""),
                tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
                benchmark=benchmark if isinstance(benchmark, str) else None,
                version=version if isinstance(version, int) else None,
                abstract=resolved.get("abstract") is True,
                members=members if document.is_group else None,
                pattern=document.pattern,
                about=str((document.written or {}).get("description") or ""),
            )
            entries.append(entry)
        return tuple(entries), tuple(problems)

    def _in_file(self, file: Path) -> tuple[Document, ...]:
        """The tasks of a file with a matrix, or a file's one task or group."""
        if file not in self._documents:
            self._documents[file] = expand(load_file(file))
        return self._documents[file]

    def _check(self, document: Document) -> None:
        """Raise the first violation of the schema; each document is checked once."""
        if document.key not in self._sound:
            raise_all(document_errors(document))
            self._sound.add(document.key)

    def _check_enclosed(self, document: Document) -> None:
        """Raise TaskError for a prompt or data folder outside the task's own folder.

        A task of a package may use all of the package. Links count as what they point to.
        """
        home = document.file.parent
        homes = [home.resolve()]
        for bundle in self._bundles:
            if bundle.task_configs and document.file.is_relative_to(bundle.task_configs.resolve()):
                inside = (bundle.task_configs, bundle.prompts, bundle.package)
                homes += [one.resolve() for one in inside if one is not None]
        prompts = document.values.get("prompts", {}).items()
        places = [(["prompts", name], file, "--prompts DIR") for name, file in prompts]
        if (folder := document.values.get("data", {}).get("folder")) is not None:
            places.append((["data", "folder"], folder, "--data DIR"))
        for path, named, option in places:
            file = (home / named).resolve()
            if not any(file.is_relative_to(one) for one in homes):
                raise TaskError(
                    "the task names something outside its own folder",
                    where=document.where(path),
                    found=named if file == home / named else f"{named}, which is {file}",
                    expected=f"a file or folder inside {shown(home)}",
                    hint=f"copy it there, or name it on the command line with {option}",
                )

    def _named(self, name: str) -> Document:
        given = self._sources[name]
        if len(given) > 1:
            raise TaskError(
                f"several files define {name!r}",
                found=" and ".join(shown(document.file) for document, _ in given),
                expected="one file for each name",
                hint="rename one of them, uninstall its plugin, or give the path of the file",
            )
        return given[0][0]

    def _reference(self, reference: str, source: Document, path: Sequence[str | int]) -> Document:
        documents = self._referred(reference, source, path)
        if len(documents) > 1:
            raise TaskError(
                f"{reference!r} names {len(documents)} tasks, but a base must be one task",
                where=source.where(path),
                expected=f"the name of one of them, such as {documents[0].name!r}",
            )
        return documents[0]

    def _referred(
        self, reference: str, source: Document, path: Sequence[str | int]
    ) -> tuple[Document, ...]:
        if reference.endswith(SUFFIXES):
            file = source.file.parent / reference
            if not file.is_file():
                raise TaskError(
                    "no such file",
                    where=source.where(path),
                    found=reference,
                    expected=shown(file),
                )
            return self._in_file(file.resolve())
        try:
            if reference in self._sources:
                return (self._named(reference),)
            if reference in self._patterns:
                return self._patterns[reference]
            raise self._unknown(reference, self._sources)
        except TaskError as error:
            error.where = source.where(path)
            raise

    def _tagged(self, tag: str) -> tuple[str, ...]:
        problem = f"no task or group has the tag {tag!r}"
        one_of(tag, self.tags, problem, TaskError, listed="one of {}", hint=HOW_TO_LIST)
        return self.tags[tag]

    def _unknown(self, name: str, known: Iterable[str]) -> TaskError:
        near = did_you_mean(name, known)
        unreadable = "; ".join([*map(str, self._plugins.broken), *self._read[1]])
        return TaskError(
            f"no task, group or tag is called {name!r}",
            found=f"these could not be read: {unreadable}" if unreadable else None,
            hint=near or HOW_TO_LIST,
        )


def _included(folder: Path) -> Bundle:
    if not _yaml_files(folder):
        raise TaskError(
            "--include_path: no task files in this folder",
            found=str(folder),
            expected="a folder with files ending in " + " or ".join(SUFFIXES),
        )
    return Bundle(str(folder), folder, None, None)


def _yaml_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
