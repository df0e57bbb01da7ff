"""All task files of all plugins, and how `--tasks` chooses among them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import TaskError, did_you_mean
from harness.base.resources import FIRST_PARTY, Bundle
from harness.contracts.task import Base, Group, Task
from harness.tasks.load import Document, load_file, shown
from harness.tasks.matrix import made_by
from harness.tasks.resolve import OWN, Resolved, references, resolve
from harness.tasks.task_schema import completeness_errors, document_errors, raise_first

if TYPE_CHECKING:
    from harness.registry import Plugins

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The tasks that were chosen, in the order first named, and the groups they came through."""

    tasks: tuple[Task, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a list of tasks and groups shows of one of them; `members` are those of a group.

    `pattern` and `about` are name and description as the file writes them that makes the task with
    others.
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
    """Finds tasks and groups by name; reads files when they are first wanted, each once.

    `include_path` are folders of task files beside those that plugins bring.
    """

    def __init__(self, plugins: Plugins, *, include_path: Sequence[Path] = ()) -> None:
        self._plugins = plugins
        self._bundles = (*plugins.bundles, *map(_included, include_path))
        self._documents: dict[Path, tuple[Document, ...]] = {}
        self._sound: set[tuple[Path, str]] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks that can be run."""
        return tuple(
            entry.name for entry in self.entries if entry.members is None and not entry.abstract
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups."""
        return tuple(entry.name for entry in self.entries if entry.members is not None)

    @functools.cached_property
    def tags(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the tasks and groups that bear each tag."""
        tags: dict[str, list[str]] = {}
        for entry in self.entries:
            for tag in () if entry.abstract else entry.tags:
                tags.setdefault(tag, []).append(entry.name)
        return {tag: tuple(tags[tag]) for tag in sorted(tags)}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every task and group by name, bases among them, where their files can be read."""
        return self._listed[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with files that cannot be listed, and names that several files give."""
        return self._listed[1]

    def select(self, specs: Sequence[str]) -> Selection:
        """The tasks that names, globs, groups, tags and files choose, checked and resolved."""
        tasks: dict[str, Task] = {}
        groups: dict[str, Group] = {}
        for spec in specs:
            for document in self.find(spec):
                self._choose(document, tasks, groups, ())
        return Selection(tasks=tuple(tasks.values()), groups=tuple(groups.values()))

    def find(self, spec: str) -> tuple[Document, ...]:
        """The tasks and groups that one part of `--tasks` means, unchecked."""
        if spec.startswith("tag:"):
            return tuple(self._named(name) for name in self._tagged(spec.removeprefix("tag:")))
        if spec.endswith(SUFFIXES):
            return self._in_file(Path(spec))
        if spec in self._sources:
            return (self._named(spec),)
        if spec in self._patterns:
            return self._patterns[spec]
        if any(character in spec for character in "*?["):
            known = sorted({*self.names, *self.groups})
            matching = [name for name in known if fnmatchcase(name, spec)]
            if not matching:
                raise TaskError(f"no task or group matches {spec!r}", hint=self._how_to_list())
            return tuple(self._named(name) for name in matching)
        if spec in self.tags:
            return tuple(self._named(name) for name in self.tags[spec])
        raise self._unknown(spec, [*self._sources, *self.tags])

    def matching(self, patterns: Sequence[str]) -> tuple[Entry, ...]:
        """What is shown for patterns.

        The name of a task is that task alone, that of a group the group with its members; else
        tags, globs and parts of names count. TaskError where a pattern means nothing, or a file
        that cannot be listed.
        """
        if not patterns:
            return self.entries
        shown_names: set[str] = set()
        for pattern in patterns:
            found = self._matched(pattern)
            if not found:
                if pattern in self._sources:
                    self.resolved(self._named(pattern))  # raises why it is not among the entries
                raise self._unknown(pattern, [*self._sources, *self.tags])
            shown_names |= found
        return tuple(entry for entry in self.entries if entry.name in shown_names)

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
        """A task's file with its bases merged in, unchecked."""
        return resolve(document, self._reference)

    def task(self, document: Document) -> Task:
        """The task that a file describes, checked against the schema."""
        self._refuse_broken(document)
        self._check(document)
        resolved = self.resolved(document)
        for base in resolved.documents:
            self._check(base)
        if resolved.values.get("abstract"):
            raise TaskError(
                f"{document.name!r} is a base that others extend",
                where=document.where(["abstract"], of_key=True),
                expected="a task that can be run",
                hint=self._heirs_of(document),
            )
        raise_first(completeness_errors(resolved.values, resolved.where))
        return _task_of(resolved)

    def group(self, document: Document) -> Group:
        """The group that a file describes, checked against the schema; its members exist."""
        self._check(document)
        values = document.values
        return Group(
            name=document.name,
            members=tuple(member.name for member in self.members(document)),
            description=values.get("description", ""),
            tags=tuple(values.get("tags", ())),
            analysis=values.get("analysis"),
            file=document.file,
        )

    def members(self, document: Document) -> tuple[Document, ...]:
        """A group's members, unchecked; a file that makes several tasks stands for all of them."""
        return tuple(
            member
            for path, reference in references(document, "tasks")
            for member in self._referred(reference, document, path)
        )

    def tasks_of(self, group: str) -> tuple[str, ...]:
        """The names of the tasks of a group, those of the groups in it among them."""
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

    def _choose(
        self,
        document: Document,
        tasks: dict[str, Task],
        groups: dict[str, Group],
        above: tuple[Document, ...],
    ) -> None:
        chosen = groups if document.is_group else tasks
        earlier = chosen.get(document.name)
        if earlier is not None and earlier.file != document.file:
            raise TaskError(
                f"two different files are called {document.name!r}",
                where=document.where([]),
                found=f"{shown(document.file)} and {shown(earlier.file or Path())}",
                expected="one of them",
            )
        if not document.is_group:
            if earlier is None:
                tasks[document.name] = self.task(document)
            return
        if any(one.file == document.file for one in above):
            circle = [*(one.name for one in above), document.name]
            raise TaskError(
                "groups hold each other in a circle",
                where=above[-1].where(["tasks"]),
                found=" -> ".join(circle[circle.index(document.name) :]),
            )
        if earlier is None:
            groups[document.name] = self.group(document)
        for member in self.members(document):
            self._choose(member, tasks, groups, (*above, document))

    @functools.cached_property
    def _read(self) -> tuple[dict[str, tuple[tuple[Document, Bundle], ...]], tuple[str, ...]]:
        """Every readable file by the name it gives, and what is wrong with the others."""
        sources: dict[str, list[tuple[Document, Bundle]]] = {}
        problems = []
        seen: set[Path] = set()
        for bundle in self._bundles:
            for file in _yaml_files(bundle.task_configs):
                if file.resolve() in seen:
                    continue
                seen.add(file.resolve())
                try:
                    documents = self._in_file(file)
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
        """The tasks that a file makes by the name that it writes, as `film_{level}`."""
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
    def _listed(self) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        entries = []
        problems = list(self._read[1])
        for name, given in self._sources.items():
            try:
                document = self._named(name)
                entries.append(self._entry(document, given[0][1]))
            except TaskError as error:
                problems.append(str(error))
        return tuple(entries), tuple(problems)

    def _entry(self, document: Document, bundle: Bundle) -> Entry:
        values = document.values if document.is_group else self.resolved(document).values
        members = [name for _, name in references(document, "tasks")]
        tags = values.get("tags", ())
        return Entry(
            name=document.name,
            file=document.file,
            bundle=bundle.name,
            description=str(values.get("description") or ""),
            tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
            benchmark=_only(str, values.get("benchmark")),
            version=_only(int, values.get("version")),
            abstract=values.get("abstract") is True,
            members=tuple(members) if document.is_group else None,
            pattern=document.pattern,
            about=str((document.written or {}).get("description") or ""),
        )

    def _in_file(self, file: Path) -> tuple[Document, ...]:
        """The tasks that a file makes, or its one task or group."""
        path = file.resolve()
        if path not in self._documents:
            self._documents[path] = made_by(load_file(path))
        return self._documents[path]

    def _check(self, document: Document) -> None:
        """Raise the first breach of the schema, looked for once in each document."""
        if document.key not in self._sound:
            raise_first(document_errors(document))
            self._sound.add(document.key)

    def _named(self, name: str) -> Document:
        given = self._sources[name]
        if len(given) > 1:
            found = " and ".join(shown(document.file) for document, _ in given)
            raise TaskError(
                f"the name {name!r} is given by several files",
                found=found,
                expected="one",
                hint="rename one, uninstall its plugin, or name the file itself",
            )
        return given[0][0]

    def _reference(self, reference: str, source: Document, path: Sequence[str | int]) -> Document:
        """The one task that is meant."""
        documents = self._referred(reference, source, path)
        if len(documents) > 1:
            raise TaskError(
                f"{reference!r} makes {len(documents)} tasks, and a base is one",
                where=source.where(path),
                expected=f"the name of one of them, as {documents[0].name!r}",
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
            return self._in_file(file)
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
        if tag not in self.tags:
            raise TaskError(
                f"no task or group bears the tag {tag!r}",
                expected=f"one of {', '.join(self.tags)}" if self.tags else None,
                hint=did_you_mean(tag, self.tags) or self._how_to_list(),
            )
        return self.tags[tag]

    def _unknown(self, name: str, known: Iterable[str]) -> TaskError:
        near = did_you_mean(name, known)
        closed = "; ".join([*map(str, self._plugins.broken), *self._read[1]])
        return TaskError(
            f"no task, group or tag is called {name!r}",
            found=f"these could not be looked into: {closed}" if closed else None,
            hint=near or self._how_to_list(),
        )

    def _refuse_broken(self, document: Document) -> None:
        """Raise the error of the broken plugin that a task's benchmark would have come from."""
        benchmark = self.resolved(document).values.get("benchmark")
        if not isinstance(benchmark, str) or self._plugins.has_benchmark(benchmark):
            return
        bundle = next(
            (one.name for given in self._sources.values() for source, one in given
             if source is document), None,
        )  # fmt: skip
        behind = self._plugins.broken_behind(benchmark, None if bundle == FIRST_PARTY else bundle)
        if behind:
            raise TaskError(
                f"the task {document.name!r} is of a plugin that is broken",
                where=document.where(["task"]),
                found="; ".join(str(one) for one in behind),
                expected=f"a plugin that offers the benchmark {benchmark!r}",
            )

    def _heirs_of(self, document: Document) -> str | None:
        heirs = [
            name
            for name in self.names
            if any(one.key == document.key for one in self.resolved(self._named(name)).documents)
        ]
        return f"it is the base of {', '.join(heirs)}" if heirs else None

    @staticmethod
    def _how_to_list() -> str:
        return "`harness tasks` lists what there is"


def _included(folder: Path) -> Bundle:
    """A folder of task files that the user names; TaskError where there is none in it."""
    if not any(True for _ in _yaml_files(folder if folder.is_dir() else None)):
        raise TaskError(
            "--include_path names no folder of task files",
            found=str(folder),
            expected="a folder with files that end in " + " or ".join(SUFFIXES),
        )
    return Bundle(str(folder), folder, None, None)


def _yaml_files(folder: Path | None) -> Iterable[Path]:
    if folder is None:
        return ()
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def _task_of(resolved: Resolved) -> Task:
    kept = {key: value for key, value in resolved.values.items() if key not in OWN}
    *bases, own = resolved.documents
    try:
        task = msgspec.convert({**kept, "name": own.name}, Task, strict=True)
    except msgspec.ValidationError as error:
        raise TaskError(
            f"the task {own.name!r} cannot be used", where=own.where(["task"]), found=str(error)
        ) from error
    return msgspec.structs.replace(
        task, file=own.file, bases=tuple(Base(base.file, base.name) for base in bases)
    )


def _only(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else None
