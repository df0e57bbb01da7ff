"""Finds the prompt files of all plugins, and compiles them to templates.

A prompt is `<benchmark>/<prompt>.<role>.j2` in one of the folders. Files whose name begins with
`_` are parts for other files to include. A template names the files that it includes, imports or
extends relative to its own folder (`{% include "interests/_person.j2" %}`), and only that folder is
searched, so that a prompt never depends on other plugins.

`prompts/<benchmark>/variables.yaml` maps each variable to its meaning. Where a variable means
something else in one prompt, the prompt's name `<prompt>.<role>` maps to the variables with other
meanings. The file is for people: it affects no digest or key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import PromptError, did_you_mean, one_of
from harness.contracts.model import Message

if TYPE_CHECKING:
    from harness.prompts.environment import Compiled, Folder

ENDING = ".j2"
VARIABLES = "variables.yaml"


@dataclass(frozen=True, kw_only=True)
class Template:
    """One prompt, compiled.

    `name` is `<benchmark>/<prompt>.<role>.j2` and `file` its place. `digest` is a hash over its
    bytes and all files that it includes. `variables` are the names that it may read; a variable of
    a branch that is not taken may be missing.

        templates.need("films", "answer", "candidate").render({"film": "Alien"})
    """

    name: str
    file: Path
    digest: str
    variables: frozenset[str]
    _compiled: Compiled = field(repr=False, compare=False)

    def render(self, variables: Mapping[str, Any]) -> tuple[Message, ...]:
        """The messages for these variables; PromptError where a variable is missing."""
        return self._compiled.render(variables)


class Templates:
    """Finds templates by benchmark, prompt and role, and compiles each of them once."""

    def __init__(self, folders: Sequence[Path], *, homes: Sequence[Path] = ()) -> None:
        """`folders` hold the prompts; files that replace prompts may include files from `homes`."""
        self._paths = tuple(Path(folder) for folder in folders)
        self._homes = tuple(Path(home) for home in homes)
        self._folders: dict[Path, Folder] = {}
        self._found: dict[str, Template | None] = {}
        self._replaced: dict[str, Path] = {}

    def replacing(self, benchmark: str, files: Mapping[str, Path]) -> Templates:
        """These templates with other files for some prompts of a benchmark, by `<prompt>.<role>`.

        Such a file can include files of its own folder or, if it lies in a folder of prompts, of
        that folder. PromptError for a prompt that the benchmark does not have.
        """
        known = self.names(benchmark)
        for name in files:
            problem = f"the benchmark {benchmark!r} has no prompt {name!r} to replace"
            lacks = "a benchmark that has prompts"
            one_of(name, known, problem, PromptError, listed="one of {}", none=lacks)
        changed = Templates(self._paths, homes=self._homes)
        changed._folders = self._folders
        changed._replaced = {f"{benchmark}/{name}{ENDING}": file for name, file in files.items()}
        return changed

    def get(self, benchmark: str, prompt: str, role: str) -> Template | None:
        """The template of a benchmark's prompt for a role; None where no file exists."""
        name = f"{benchmark}/{prompt}.{role}{ENDING}"
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def need(self, benchmark: str, prompt: str, role: str) -> Template:
        """The template; PromptError with the file to write where it does not exist."""
        template = self.get(benchmark, prompt, role)
        if template is not None:
            return template
        wanted = f"{prompt}.{role}"
        known = self.names(benchmark)
        raise PromptError(
            f"the benchmark {benchmark!r} has no prompt {prompt!r} for the role {role!r}",
            found=", ".join(known) or "no prompts of this benchmark",
            expected=f"a file {benchmark}/{wanted}{ENDING} in a folder of prompts",
            hint=did_you_mean(wanted, known),
        )

    def names(self, benchmark: str) -> tuple[str, ...]:
        """The names `<prompt>.<role>` of a benchmark's prompts, sorted."""
        found = {
            file.name.removesuffix(ENDING)
            for folder in self._paths
            for file in (folder / benchmark).glob(f"*.*{ENDING}")
            if not file.name.startswith("_")
        }
        return tuple(sorted(found))

    def everything(self) -> dict[str, tuple[Path, ...]]:
        """The files of every prompt by `<benchmark>/<prompt>.<role>`; more than one is an error."""
        found: dict[str, list[Path]] = {}
        for folder in self._paths:
            for file in folder.glob(f"*/*.*{ENDING}"):
                if not file.name.startswith("_"):
                    name = f"{file.parent.name}/{file.name.removesuffix(ENDING)}"
                    found.setdefault(name, []).append(file)
        return {name: tuple(found[name]) for name in sorted(found)}

    def digests(self, benchmark: str) -> dict[str, str]:
        """The digest of each of a benchmark's prompts, by `<prompt>.<role>`."""
        parts = {name: name.rpartition(".") for name in self.names(benchmark)}
        return {
            name: self.need(benchmark, of, role).digest for name, (of, _, role) in parts.items()
        }

    def _load(self, name: str) -> Template | None:
        if name in self._replaced:
            file = self._replaced[name].resolve()
            if not file.is_file():
                raise PromptError(
                    "this template file does not exist",
                    where=str(file),
                    expected=f"a file for {name}",
                )
            for path in (*self._paths, *self._homes):
                if file.is_relative_to(path.resolve()):
                    part = file.relative_to(path.resolve()).as_posix()
                    return self._compiled(path, part, called=name)
            return self._compiled(file.parent, file.name, called=name)
        holders = [path for path in self._paths if (path / name).is_file()]
        if not holders:
            return None
        if len(holders) > 1:
            raise PromptError(
                "two plugins have a prompt of the same name",
                where=name,
                found=" and ".join(str(path / name) for path in holders),
                expected="one file for each prompt",
                hint="rename the benchmark of one plugin, or uninstall one of the plugins",
            )
        return self._compiled(holders[0], name, called=name)

    def _compiled(self, home: Path, part: str, *, called: str) -> Template:
        if home not in self._folders:
            from harness.prompts.environment import Folder

            self._folders[home] = Folder(home)
        compiled = self._folders[home].compile(part)
        return Template(
            name=called,
            file=home / part,
            digest=compiled.digest,
            variables=compiled.variables,
            _compiled=compiled,
        )


def meanings(file: Path, variables: Iterable[str]) -> dict[str, str | None]:
    """The meaning of each of these variables of a prompt's file; None where none is given."""
    source = file.parent / VARIABLES
    content = _read(source)
    own = content.get(file.stem, {})
    if not isinstance(own, dict):
        raise _invalid(source, file.stem, own, "a mapping of variables to meanings")
    found = {name: own.get(name, content.get(name)) for name in sorted(variables)}
    for name, text in found.items():
        if text is not None and not isinstance(text, str):
            raise _invalid(source, name, text, "its meaning as text")
    return found


def _read(file: Path) -> dict[Any, Any]:
    if not file.is_file():
        return {}
    import yaml

    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise PromptError(
            "the file of variables cannot be read", where=str(file), found=str(error)
        ) from error
    if content is not None and not isinstance(content, dict):
        raise _invalid(file, "the file", content, "a mapping of variables to meanings")
    return content or {}


def _invalid(file: Path, name: str, found: Any, expected: str) -> PromptError:
    return PromptError(
        f"{name!r} cannot be used", where=str(file), found=repr(found)[:100], expected=expected
    )
