"""Compiles and renders template files: Jinja, sandboxed and strict.

This module imports jinja2, and is itself imported only with the first template.

A template with blocks named `system`, `user`, `assistant` (or `user_1`, `assistant_1`, …) gives one
message for each block, in the order of the file; a block in a loop or a condition gives a message
each time it is reached. Only code, comments and white space are allowed outside these blocks. A
template without such blocks is one user message.

Bytes are exact. Jinja's `trim_blocks` and `lstrip_blocks` are on: the newline after a tag and the
spaces before a tag on its own line belong to the tag. So does one newline before the
`{% endblock %}` of a message, and the newline at the end of a template without messages. All other
text of the file is in the message. An empty message is left out.

The same variables give the same messages: `random` and `lipsum` are removed. `tojson` writes plain
JSON, in which non-ASCII characters and `<` are not escaped.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Literal, TypeVar

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.base.errors import PromptError
from harness.base.hashing import digest, digest_bytes
from harness.contracts.model import Message

RENDERING_VERSION = 1
"""To be raised when the same file and variables give other messages than before."""

TURN = re.compile(r"(?:system|user|assistant)(?:_\d+)?")
TURN_FILTER = "turn of"
"""The filter around the content of each message; its space keeps it out of templates."""

Role = Literal["system", "user", "assistant"]
T = TypeVar("T")


class Turn(str):
    """The text of one message; its type distinguishes it from all other output."""

    __slots__ = ("role",)
    role: Role

    @classmethod
    def of(cls, text: str, role: Role) -> Turn:
        """The text as a message of a role."""
        turn = cls(text)
        turn.role = role
        return turn


class PromptEnvironment(ImmutableSandboxedEnvironment):
    """Jinja with the settings of prompts."""

    def __init__(self, loader: jinja2.BaseLoader) -> None:
        super().__init__(
            loader=loader,
            autoescape=False,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            cache_size=-1,
            finalize=_printable,
        )
        self.globals.pop("lipsum")
        self.filters.pop("random")
        self.filters["tojson"] = lambda value, indent=None: json.dumps(
            value, indent=indent, ensure_ascii=False, allow_nan=False
        )
        self.filters[TURN_FILTER] = Turn.of

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The names that every template may use, in one dict, since each rendering copies it."""
        return {**self.globals, **(d or {})}


@dataclass(frozen=True)
class Source:
    """One file as it was read: its tree, the files that it needs, and the names that it defines."""

    file: Path
    data: bytes
    tree: nodes.Template
    needs: tuple[str, ...]
    parents: tuple[str, ...]
    has_turns: bool
    defines: frozenset[str]


@dataclass(frozen=True)
class Compiled:
    """A prompt that is ready to render."""

    template: jinja2.Template
    digest: str
    variables: frozenset[str]
    has_turns: bool

    def render(self, variables: Mapping[str, Any]) -> tuple[Message, ...]:
        """The messages for these variables."""
        template = self.template
        try:
            context = template.new_context(dict(variables))
            parts = list(template.root_render_func(context))
        except Exception as error:
            raise _render_error(error, str(template.filename), variables) from error
        if not self.has_turns:
            parts = [Turn.of("".join(parts), "user")]
        messages = []
        for part in filter(None, parts):
            if type(part) is Turn:
                messages.append(Message(part.role, str(part)))
            elif not part.isspace():
                raise PromptError(
                    "the template has text outside the blocks that are messages",
                    where=str(template.filename),
                    found=repr(part.strip()[:80]),
                    expected="all text inside a block named system, user or assistant",
                )
        if not messages:
            raise PromptError(
                "the rendered prompt is empty",
                where=str(template.filename),
                expected="at least one message with text",
            )
        return tuple(messages)


class Folder(jinja2.BaseLoader):
    """A folder of prompt files; each file is read once, so that its hash matches the text used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sources: dict[str, Source | None] = {}
        self._environment = PromptEnvironment(self)

    def compile(self, name: str) -> Compiled:
        """The compiled prompt of that name, with a digest over all files that it needs."""
        try:
            sources = self._closure(name)
            own = sources[name]
            assert own is not None
            template = self._environment.get_template(name)
            contents = {
                part: digest_bytes(source.data) if source else None
                for part, source in sources.items()
            }
            variables: set[str] = set()
            for source in sources.values():
                if source:
                    # An included file sees the names that this one imports and sets.
                    made = source.defines | own.defines
                    variables |= meta.find_undeclared_variables(source.tree) - made
            return Compiled(
                template=template,
                digest=digest({"rendering": RENDERING_VERSION, "name": name, "files": contents}),
                variables=frozenset(variables),
                has_turns=self._has_turns(own),
            )
        except PromptError:
            raise
        except Exception as error:
            raise _render_error(error, str(self._path / name), {}) from error

    def load(
        self,
        environment: jinja2.Environment,
        name: str,
        globals: Any = None,
    ) -> jinja2.Template:
        """The compiled file of that name, for Jinja, which calls this method."""
        source = self._source(name)
        if source is None:
            raise jinja2.TemplateNotFound(name)
        code = environment.compile(source.tree, name, str(source.file))
        return environment.template_class.from_code(environment, code, globals or {}, lambda: True)

    def _closure(self, name: str) -> dict[str, Source | None]:
        """Every file that the prompt may use; None for a file that does not exist."""
        found: dict[str, Source | None] = {}
        waiting = [name]
        while waiting:
            part = waiting.pop()
            if part in found:
                continue
            found[part] = source = self._source(part)
            if source is None:
                continue
            for line, names in _required(source.tree):
                if not any(self._source(each) for each in names):
                    raise PromptError(
                        "the template needs a file that does not exist",
                        where=f"{source.file}:{line}",
                        found=" or ".join(map(repr, names)),
                        expected=" or ".join(str(self._path / each) for each in names),
                        hint="name the files that a template includes, imports or extends relative "
                        f"to its own folder of prompts, here {self._path}; no other folder is "
                        "searched",
                    )
            waiting.extend(source.needs)
        return dict(sorted(found.items()))

    def _has_turns(self, own: Source) -> bool:
        above = filter(None, map(self._source, own.parents))
        return own.has_turns or any(map(self._has_turns, above))

    def _source(self, name: str) -> Source | None:
        if name not in self._sources:
            self._sources[name] = self._read(name)
        return self._sources[name]

    def _read(self, name: str) -> Source | None:
        parts = PurePosixPath(name)
        file = self._path / name
        if (
            parts.is_absolute()
            or ".." in parts.parts
            or "\\" in name
            or not file.resolve().is_relative_to(self._path.resolve())
        ):
            raise PromptError(
                "a template names a file outside its folder of prompts",
                where=str(self._path),
                found=name,
                expected="the name of a file in the folder, such as interests/_person.j2",
            )
        if not file.is_file():
            return None
        data = file.read_bytes()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise PromptError(
                "the template is not valid UTF-8",
                where=f"{file}:{line}",
                found=str(error),
                hint="save the file as UTF-8",
            ) from error
        try:
            tree = self._environment.parse(text, name, str(file))
        except jinja2.TemplateSyntaxError as error:
            raise PromptError(
                f"the template has a syntax error: {error.message}", where=f"{file}:{error.lineno}"
            ) from error
        return Source(
            file=file,
            data=data,
            tree=tree,
            needs=_needs(tree, file),
            parents=tuple(
                node.template.value
                for node in tree.find_all(nodes.Extends)
                if isinstance(node.template, nodes.Const) and isinstance(node.template.value, str)
            ),
            has_turns=_prepare_turns(tree, file),
            defines=frozenset(_defined_names(tree)),
        )


def _needs(tree: nodes.Template, file: Path) -> tuple[str, ...]:
    names = []
    for name in meta.find_referenced_templates(tree):
        if name is None:
            raise PromptError(
                "a template names another one by an expression, so its files cannot be hashed",
                where=str(file),
                expected='include, import and extends with literal names: {% include "a/_b.j2" %}',
            )
        names.append(name)
    return tuple(names)


def _required(tree: nodes.Template) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The line of each reference, and the files of which one must exist; no `ignore missing`."""
    kinds = (nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)
    found: Iterator[Any] = itertools.chain(*(tree.find_all(kind) for kind in kinds))
    for node in found:
        if not (isinstance(node, nodes.Include) and node.ignore_missing):
            named = node.template.as_const()
            yield node.lineno, (named,) if isinstance(named, str) else tuple(named)


def _defined_names(tree: nodes.Template) -> Iterator[str]:
    """The names that a template sets, imports or defines at its top level, for all its blocks."""
    for node in tree.body:
        if isinstance(node, nodes.Assign):
            yield from (name.name for name in node.find_all(nodes.Name) if name.ctx == "store")
        elif isinstance(node, nodes.Macro):
            yield node.name
        elif isinstance(node, nodes.Import):
            yield node.target
        elif isinstance(node, nodes.FromImport):
            yield from (name if isinstance(name, str) else name[1] for name in node.names)


def _prepare_turns(tree: nodes.Template, file: Path) -> bool:
    """Whether any block is a message; makes each message one Turn, without its last newline."""
    turns = [block for block in tree.find_all(nodes.Block) if TURN.fullmatch(block.name)]
    for turn in turns:
        for inner in turn.find_all(nodes.Block):
            if TURN.fullmatch(inner.name):
                raise PromptError(
                    f"the message {inner.name!r} is inside the message {turn.name!r}",
                    where=f"{file}:{inner.lineno}",
                    expected="one message after the other, not nested",
                )
        last = turn.body[-1] if turn.body else None
        if isinstance(last, nodes.Output) and isinstance(last.nodes[-1], nodes.TemplateData):
            last.nodes[-1].data = last.nodes[-1].data.removesuffix("\n")
        role = [nodes.Const(turn.name.partition("_")[0])]
        made = nodes.Filter(None, TURN_FILTER, role, [], None, None, lineno=turn.lineno)
        turn.body = [nodes.FilterBlock(turn.body, made, lineno=turn.lineno)]
    return bool(turns)


def _printable(value: T) -> T:
    if value is None:
        raise jinja2.UndefinedError("a printed value is None")
    return value


def _render_error(error: Exception, where: str, variables: Mapping[str, Any]) -> PromptError:
    place = _place(error.__traceback__)
    if place is not None:
        where = place
    elif isinstance(error, jinja2.TemplateSyntaxError):
        where = f"{error.filename or where}:{error.lineno}"
    missing = re.fullmatch(r"'(\w+)' is undefined", str(error))
    if isinstance(error, jinja2.UndefinedError) and missing:
        given = ", ".join(sorted(variables)) or "no variables"
        return PromptError(
            f"the prompt needs the variable {missing[1]!r}, which was not given (given: {given})",
            where=where,
        )
    if isinstance(error, jinja2.TemplateNotFound):
        return PromptError(
            "the template needs a file that does not exist", where=where, found=str(error.name)
        )
    if isinstance(error, RecursionError):
        return PromptError("the template is nested too deeply, or uses itself", where=where)
    text = str(error) or type(error).__name__
    kind = "" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: "
    return PromptError(f"the prompt cannot be rendered: {kind}{text}", where=where)


def _place(trace: TracebackType | None) -> str | None:
    """File and line of the innermost template in a traceback."""
    place = None
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            place = f"{template.filename}:{template.get_corresponding_lineno(trace.tb_lineno)}"
        trace = trace.tb_next
    return place
