"""The settings of a run: options that files and variables can also set, and which value holds.

click reads and converts each value, and tells which options the command line gave. What it has no
notion of is here: entries that are merged by name, and the file and line of each value.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.base.errors import HarnessError, UsageError, one_of
from harness.base.home import expanded, home
from harness.base.redaction import names_a_secret, safe_text, without_key_material
from harness.cli.command import Option
from harness.pipeline.settings import (
    ALL_OTHERS,
    LOCAL,
    OF_EXECUTOR,
    hosts_in,
    joined_members,
    parse_args,
    parse_spec,
    split_members,
)
from harness.scoring.grouping import grouped

if TYPE_CHECKING:
    from harness.registry import Plugins

PREFIX = "HARNESS_"
HERE = Path("harness.toml")

USER, FOLDER, ENVIRONMENT, COMMAND = "user file", "folder file", "environment", "command line"
SOURCES = (USER, FOLDER, ENVIRONMENT, COMMAND)
"""Where settings come from; a later one overrides an earlier one."""

NAMES_OF_0_1_0 = {
    "download": ("download", True),
    "offline": ("download", False),
    "no_store": ("reuse", "run"),
    "fresh": ("reuse", "none"),
}
"""Switches of files, variables and Python, each with the option and the value that it stands for
when it is on."""

VARIABLES = {
    "HARNESS_CACHE": "folder of the store of answered calls",
    "HARNESS_DOWNLOADS": "folder of files fetched from the web",
    "OPENAI_BASE_URL": "address of `openai` models without a base_url",
    "OPENAI_API_KEY": "key of `openai` models without an api_key_env or api_key_file",
}
"""Variables that are not options; they are shown even if they are not set."""

_DEEP = ("set", "columns", "values")
"""Options whose entries may be tables in tables."""

_DATA_OF_TASK = re.compile(r"(?P<task>[\w.*?!\[\]-]+)=(?P<place>.*)")
"""`--data` for a task, group or glob; a path with `=` does not match, because of its first `/`."""

_WITH_HOSTS = ("model", "model_args", "judge", "role")
"""Options whose values name the addresses of models."""

_MODEL_NAME = re.compile(r"\w[\w.-]*")


class Setting(Option):
    """An option of a run that the variable `envvar` and settings files can also set.

    `table` is the meaning of a table in a settings file: named "entries", which the command line
    gives one by one and whose value is a mapping, the "arguments" of one text (`A=B,C=D`), or the
    "contents" of the file that the option names. `theirs` are words of lm-evaluation-harness for a
    kind of model or an argument, each with ours.

        Setting(["--model_args"], envvar="HARNESS_MODEL_ARGS", table="arguments")
    """

    def __init__(
        self,
        param_decls: Sequence[str],
        *,
        table: str | None = None,
        theirs: Mapping[str, str] = MappingProxyType({}),
        **attrs: Any,
    ) -> None:
        super().__init__(param_decls, **attrs)
        self.table = table
        self.theirs = theirs

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value; arguments may be a JSON object."""
        for word, ours in self.theirs.items() if isinstance(value, str) else ():
            name = rf'((?:^|,|{{)\s*"?){word}(?="?\s*[=:])'
            value = ours if value == word else re.sub(name, rf"\1{ours}", value)
        if self.table == "arguments" and isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                return self._of_table(json.loads(value))
            except (ValueError, RecursionError) as error:
                raise UsageError(
                    f"{self.opts[0]} begins like a JSON object, and is none that can be used",
                    found=str(error),
                    expected='{"name": value, …}, or name=value,name=value',
                ) from error
        value = super().type_cast_value(ctx, value)
        return entries(self.name, value or ()) if self.table == "entries" else value

    def value_from_envvar(self, ctx: click.Context) -> None:
        """Return None: `settings_in_effect` merges the variable with the files."""
        return

    def read(self, value: Any, where: str, ctx: click.Context) -> Any:
        """A value of a file or variable as the command line would give it; UsageError with the
        place if it is not valid."""
        check_no_secrets(value, where=where, names_are_free=self.table == "entries")
        try:
            if self.table is not None and isinstance(value, Mapping):
                return self._of_table(value)
            texts = [_text(one) for one in (value if isinstance(value, list) else [value])]
            if len(texts) != 1 and not self.multiple:
                raise ValueError("true or false" if self.is_flag else "exactly one value")
            try:
                return self.type_cast_value(ctx, texts if self.multiple else texts[0])
            except click.BadParameter as error:
                named = {"integer": "a whole number", "float": "a number", "path": "a path",
                         "boolean": "true or false"}  # fmt: skip
                raise ValueError(named.get(self.type.name, str(self.metavar))) from error
            except UsageError as error:
                error.where = f"{where} ({error.where})" if error.where else where
                raise
        except ValueError as error:
            found = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            raise UsageError(
                f"the setting {self.name!r} is not valid", where=where,
                found=found.lower() if isinstance(value, bool) else found, expected=str(error),
            ) from error  # fmt: skip

    def _of_table(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values of a table; ValueError for one that the command line could not give."""
        if self.table == "contents":
            return table
        for value in table.values():
            argument(value)
        if self.table == "arguments":
            arguments_text(dict.fromkeys(table, "x"))  # each name is one
            return table
        found = dict(_paths(table, deep=self.name in _DEEP))
        return found if self.name == "set" else {name: argument(one) for name, one in found.items()}


def _paths(table: Mapping[str, Any], *, deep: bool) -> Iterator[tuple[str, Any]]:
    """The entries of a table; with `deep`, nested entries by their dotted paths."""
    for name, value in table.items():
        if deep and isinstance(value, Mapping):
            yield from ((f"{name}.{path}", one) for path, one in _paths(value, deep=True))
        else:
            yield name, value


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        raise ValueError("a value that is not a table")
    if isinstance(value, list):
        raise ValueError("a text, a number, or a list of texts or numbers")
    return argument(value)


def argument(value: Any) -> str:
    """One value as text: lists and tables as JSON; ValueError if the command line has no form."""
    if isinstance(value, str):
        return value
    try:
        if value is not None:
            return str(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
    except TypeError:  # a date of TOML
        pass
    raise ValueError("texts, numbers, true, false, or lists and tables of these")


def arguments_text(args: Mapping[str, str]) -> str:
    """The arguments as `A=B,C=D`; ValueError if the text would not be read back as the same."""
    text = ",".join(f"{name}={value}" for name, value in args.items())
    try:
        same = parse_args(text) == dict(args)
    except HarnessError:
        same = False
    if not same:
        raise ValueError("values without `,name=` inside and without spaces at either end")
    return text


@contextmanager
def usable_arguments(whose: str, *, where: str, found: str | None = None) -> Iterator[None]:
    """Raise the ValueError of a block about a model's arguments as UsageError."""
    try:
        yield
    except ValueError as error:
        raise UsageError(
            f"the arguments {whose} cannot be used", where=where, found=found, expected=str(error)
        ) from error


def entries(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """The named entries that the values of an option give; UsageError for a name given twice."""
    found: dict[str, Any] = {}
    for text in texts:
        name, value = _entry(option, text)
        if name in found and (option, name) == ("data", ALL_OTHERS):
            raise UsageError(
                "--data for all tasks is given twice", found=", ".join(texts),
                expected="one place for all tasks, and --data TASK=DIR for single tasks",
            )  # fmt: skip
        if name in found:
            raise UsageError(f"--{option} sets {name!r} twice")
        found[name] = value
    return found


def _entry(option: str, text: str) -> tuple[str, Any]:
    """The name and the value of one entry; that of data for all other tasks is `*`."""
    from harness.tasks.changes import parse_change
    from harness.tasks.own_columns import read_own_columns

    if option in ("columns", "values"):
        return next(iter(read_own_columns(f"--{option}", [text])))
    if option == "set":
        return parse_change(text)
    if option == "data":
        of_task = _DATA_OF_TASK.fullmatch(text)
        if of_task and not of_task["place"]:
            raise UsageError("--data names no place", found=text, expected="--data TASK=DIR")
        return (of_task["task"], of_task["place"]) if of_task else (ALL_OTHERS, text)
    name, equals, value = text.partition("=")
    if option == "role":
        if not (equals and value):
            raise UsageError("--role needs NAME and SPEC", found=text, expected="--role NAME=SPEC")
        return name, value
    if not (name.strip() and equals and value.strip()):
        raise UsageError("--tag needs a name and a value", found=text, expected="--tag NAME=VALUE")
    return name.strip(), value.strip()


def check_no_secrets(value: Any, *, where: str, names_are_free: bool = False) -> None:
    """Raise UsageError, without repeating the value, if a setting holds a key or a password."""
    found = _secret(value, names_are_free=names_are_free)
    if found is not None:
        raise UsageError(
            "the settings contain a key, token or password",
            where=where,
            found=found,
            expected="api_key_env with the name of a variable that holds the key, or api_key_file "
            "with the path of a file that holds it",
            hint="remove the key from the settings; replace it if others may have read it",
        )


def _secret(value: Any, *, names_are_free: bool) -> str | None:
    if isinstance(value, str):
        redacted = without_key_material(value) if names_are_free else safe_text(value)
        return None if redacted == value else "a text that contains one"
    entries = value if isinstance(value, Mapping) else {}
    for name in entries:
        if names_a_secret(name) and not names_are_free:
            return f"{name} = …"
    inside = entries.values() if entries else value if isinstance(value, list) else ()
    found = (_secret(one, names_are_free=names_are_free) for one in inside)
    return next((one for one in found if one is not None), None)


def settings_of(command: click.Command) -> dict[str, Setting]:
    """The options of a command that settings can set, by name."""
    return {one.name: one for one in command.params if isinstance(one, Setting)}


def named_setting(
    key: str, value: Any, where: str, ctx: click.Context, *, others: Collection[str] = ()
) -> tuple[Setting, Any] | None:
    """The option that a key of a file names, and its value in the form of the command line.

    None for a switch of 0.1.0 that is off. UsageError if no setting has that name; `others` are
    settings that this file does not have.
    """
    name, options = key.replace("-", "_"), settings_of(ctx.command)
    if name in NAMES_OF_0_1_0:
        now, meant = NAMES_OF_0_1_0[name]
        switch = Setting([f"--{name}"], is_flag=True)
        return (options[now], meant) if switch.read(value, where, ctx) else None
    if name in {one.name for one in ctx.command.params} - options.keys():
        raise UsageError(
            f"{name!r} is an option of single commands and cannot be a setting", where=where,
            expected=f"--{name} on the command line",
        )  # fmt: skip
    known = sorted({*options, "models"} - {*others})
    one_of(name, known, f"there is no setting {name!r}", where=where)
    return options[name], options[name].read(value, where, ctx)


@dataclass(frozen=True, kw_only=True)
class Given:
    """A value of an option and its source.

    For an option with named entries, this is one entry, and `entry` is its name.
    """

    option: str
    value: Any
    source: str
    where: str
    entry: str | None = None

    @property
    def slot(self) -> str:
        """What the value sets; of all values for a slot, those of the last source hold."""
        if self.entry is not None:
            return f"{self.option}.{self.entry}"
        return "role.judge" if self.option == "judge" else self.option

    @property
    def belongs_to(self) -> str | None:
        """The slot that, given by a later source, makes this value void."""
        if self.option == "reuse":
            return "store" if self.value == "run" else None
        return {"model_args": "model", "data": "data.*"}.get(self.option)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a command, and those that others override."""

    given: Mapping[str, Sequence[Given]] = field(default_factory=dict)
    """By slot its values, those of the strongest source last."""
    models: Mapping[str, NamedModel] = field(default_factory=dict)
    """The models that settings define, by name."""
    files: Sequence[tuple[str, bool]] = ()
    """The settings files that were looked for, and whether each exists."""
    misspelt: Mapping[str, str] = field(default_factory=dict)
    """Variables that nothing reads, each with the variable that is meant."""
    named: Sequence[str] = ()
    """Where the models are defined that the command calls by name."""
    problem: UsageError | None = None
    """Why the settings are not valid, for a command that works without them."""

    def in_effect(self, slot: str) -> list[Given]:
        """The values of a slot that hold; none if a later source made them void."""
        last = self.given[slot][-1]
        rank = SOURCES.index(last.source)
        void = self.given.get(last.belongs_to or "", ())
        executor = self.given["executor"][-1].value if "executor" in self.given else LOCAL
        if any(SOURCES.index(one.source) > rank for one in void):
            return []
        # What files say of a cluster is for the runs there; a command that says it means it.
        if last.option in OF_EXECUTOR and executor == LOCAL and last.source != COMMAND:
            return []
        return [one for one in self.given[slot] if one.source == last.source]

    def holding(self, option: str | None = None) -> Iterator[Given]:
        """The values in effect, of one option or of all."""
        for slot in self.given:
            yield from (one for one in self.in_effect(slot) if option in (None, one.option))

    def named_in(self) -> dict[str, str]:
        """The file or variable that names a role's model, by role, where the command does not."""
        roles = {"model": "candidate", "judge": "judge"}
        return {
            roles.get(one.option, one.entry or ""): one.where
            for one in self.holding()
            if one.option in (*roles, "role") and one.source != COMMAND
        }

    def file_hosts(self) -> tuple[str, ...]:
        """The hosts of models that only files name, and neither command line nor environment."""
        given = [one for one in self.holding() if one.option in _WITH_HOSTS]
        own = hosts_in(str(one.value) for one in given if one.source in (ENVIRONMENT, COMMAND))
        of_files = [str(one.value) for one in given if one.source in (USER, FOLDER)]
        named = [value for model in self.models.values() for value in model.args.values()]
        return tuple(sorted(hosts_in([*of_files, *named]) - own))

    def warnings(self) -> Iterator[str]:
        """A line for each misspelt variable."""
        for variable, meant in self.misspelt.items():
            yield f"{variable} is set, but nothing reads it: did you mean {meant}?"

    def summary(self) -> str | None:
        """One line with the settings that are not from the command line; None without any."""
        places: dict[str, dict[str, None]] = {}
        for one in self.holding():
            if one.source != COMMAND:
                places.setdefault(one.where.partition(":")[0], {})[one.option] = None
        parts = (f"{', '.join(names)} from {place}" for place, names in places.items())
        return "; ".join(parts) or None

    def with_source(
        self, error: HarnessError, own: Mapping[str, str] = MappingProxyType({})
    ) -> HarnessError:
        """The error; one of usage with the place of the option in it: in `own`, or what set it."""
        if not isinstance(error, UsageError):
            return error
        where = (error.where or "").split()
        named = [word for word in [*where, *error.problem.split()] if word.startswith("--")]
        for word in [*where[:1], *named]:
            option = word.strip("-,:;")
            elsewhere = {one.where for one in self.holding(option) if one.source != COMMAND}
            elsewhere = {own[option]} if option in own else elsewhere
            if option == "model_args" and not any(self.holding(option)):
                elsewhere = set(self.named)
            if elsewhere:
                places = ", ".join(sorted(elsewhere))
                error.where = f"{places} ({error.where})" if error.where else places
                break
        return error


def settings_in_effect(ctx: click.Context) -> Settings:
    """The settings of a command; its options in `ctx` are filled in with the values that hold."""
    options = settings_of(ctx.command)
    found: list[Given] = []
    models: dict[str, NamedModel] = {}
    files: list[tuple[str, bool]] = []

    def add(option: Setting, value: Any, source: str, where: str) -> None:
        for entry, one in value.items() if option.table == "entries" else [(None, value)]:
            found.append(
                Given(option=option.name, value=one, source=source, where=where, entry=entry)
            )

    for path, source in ((user_file(), USER), (HERE, FOLDER)):
        file = read_settings(path)
        files.append((_display_path(path), file is not None))
        if file is not None:
            models |= named_models(file.values.get("models", {}), file.where)
            for key, value in file.values.items():
                where = file.where([key])
                if key != "models" and (named := named_setting(key, value, where, ctx)):
                    add(*named, source, where)
    for name in dict.fromkeys([*options, *NAMES_OF_0_1_0]):
        variable = PREFIX + name.upper()
        lines = [line.strip() for line in os.environ.get(variable, "").splitlines()]
        text = [line for line in lines if line]
        if text and (named := named_setting(name, text, variable, ctx)):
            add(*named, ENVIRONMENT, variable)
    for name, option in options.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            add(option, ctx.params[name], COMMAND, f"--{name}")
    settings = Settings(
        given=grouped((one.slot, one) for one in found), models=models, files=files,
        misspelt=misspelt(options),
    )  # fmt: skip
    filled: dict[str, Any] = {}
    for one in settings.holding():
        if one.entry is None:
            filled[one.option] = one.value
        else:
            filled.setdefault(one.option, {})[one.entry] = one.value
    ctx.params |= filled
    ctx.params["file_hosts"] = settings.file_hosts()
    ctx.params["named_in"] = settings.named_in()
    return replace(settings, named=replace_names(ctx.params, models))


def misspelt(options: Collection[str]) -> dict[str, str]:
    """Misspelt variables, each with the variable of the setting that is meant.

    Only very similar names count: plugins and models have variables of their own.
    """
    found = {}
    for variable in sorted(os.environ.keys() - VARIABLES.keys()):
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        near = get_close_matches(name, [*options, *NAMES_OF_0_1_0], 1, cutoff=0.8)
        if near and near[0] != name:
            found[variable] = PREFIX + near[0].upper()
    return found


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """A settings file: its name as a person writes it, its values and their lines."""

    name: str
    values: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def where(self, path: Sequence[str]) -> str:
        """The file with the line of a key."""
        return f"{self.name}:{self.lines[*path]}"


def user_file() -> Path:
    """The settings file in the user's config folder."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    config = Path(folder) if folder else (home() or Path("/")) / ".config"
    return config / "harness" / "config.toml"


def read_settings(file: Path) -> SettingsFile | None:
    """The settings in a file, None if the file does not exist; UsageError if it cannot be read."""
    name = _display_path(file)
    try:
        text = file.read_text("utf-8")
        values = _expand_home(tomllib.loads(text))
        return SettingsFile(name=name, values=values, lines=lines_of(text))
    except FileNotFoundError:
        return None
    except RecursionError:
        raise UsageError("the settings file is nested too deeply", where=name) from None
    except UsageError as error:
        error.where = name
        raise
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            "the settings file is not TOML", where=name, found=str(error),
            expected='TOML, as `model = "openai"`',
        ) from error  # fmt: skip
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError("the settings file cannot be read", where=name, found=reason) from error


def lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line where each key or table of TOML begins."""
    lines: dict[tuple[str, ...], int] = {}
    header, statement, begin = "", "", 1
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        begin = begin if statement else number
        statement += line
        try:
            read = tomllib.loads(header + statement)
        except tomllib.TOMLDecodeError:  # a value of several lines goes on
            continue
        for path in _keys(read):
            lines.setdefault(path, begin)
        header = statement if statement.lstrip().startswith("[") else header
        statement = ""
    return lines


def _keys(table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The paths of a table and of the tables in it."""
    for name, value in table.items():
        yield (name,)
        if isinstance(value, Mapping):
            yield from ((name, *path) for path in _keys(value))


def _display_path(file: Path) -> str:
    own = home()
    return f"~/{file.relative_to(own)}" if own and file.is_relative_to(own) else str(file)


def _expand_home(value: Any) -> Any:
    """The values with `~/` at the beginning expanded: no shell does it for a file."""
    if isinstance(value, dict):
        return {name: _expand_home(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_expand_home(one) for one in value]
    return str(expanded(value)) if str(value).startswith("~/") else value


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """A model or judge that settings define under a name: `--model local` stands for it."""

    name: str
    kind: str
    """The kind of model or judge, as `openai`."""
    args: Mapping[str, str]
    where: str
    """The file and line of the definition."""

    @property
    def spec(self) -> str:
        """The SPEC that `--model` takes for the same model."""
        return f"{self.kind}:{arguments_text(self.args)}" if self.args else self.kind


def named_models(tables: Any, where: Callable[[Sequence[str]], str]) -> dict[str, NamedModel]:
    """The models of a file's `[models]`, by name; `where(keys)` is the place of a key path."""
    if not isinstance(tables, Mapping):
        raise UsageError(
            "`models` is not a table",
            where=where(["models"]),
            expected='a table [models.NAME] with kind = "openai" and its arguments',
        )
    found = {}
    for name, values in tables.items():
        place = where(["models", name])
        check_no_secrets(values, where=place)
        if not _MODEL_NAME.fullmatch(name):
            raise UsageError("the name of a model is not valid", where=place, found=repr(name),
                             expected="letters, digits, `_`, `-` and `.`")  # fmt: skip
        if not isinstance(values, Mapping) or not isinstance(values.get("kind"), str):
            raise UsageError(
                f"the model {name!r} has no kind",
                where=place,
                expected=f'a table [models.{name}] with kind = "openai", or another, and arguments',
            )
        with usable_arguments(f"of the model {name!r}", where=place):
            texts = {key: argument(value) for key, value in values.items() if key != "kind"}
            arguments_text(texts)
        found[name] = NamedModel(name=name, kind=values["kind"], args=texts, where=place)
    return found


def replace_names(options: dict[str, Any], models: Mapping[str, NamedModel]) -> list[str]:
    """Replace the names of models in the options of a run; return where these are defined."""
    if not models:
        return []
    from harness.registry import load_plugins

    plugins = load_plugins()
    for name, model in models.items():
        if name in plugins.models or name in plugins.judges:
            raise UsageError(
                f"the model {name!r} has the name of a kind of model or judge",
                where=model.where,
                expected="a name that `harness list models` and `harness list judges` do not list",
            )
    roles = options["role"]
    specs = [options["model"] or "", options["judge"] or "", *roles.values()]
    for role in ("model", "judge"):
        options[role] = options[role] and expand(options[role], models, plugins)
    options["role"] = {name: expand(spec, models, plugins) for name, spec in roles.items()}
    words = {word for spec in specs for word in spec.split(":")[:2]}
    return [one.where for name, one in models.items() if name in words]


def expand(spec: str, models: Mapping[str, NamedModel], plugins: Plugins) -> str:
    """The SPEC with the named model in place of its name; arguments in the SPEC take precedence.

    The name is the label of the model unless the SPEC changes what is asked.
    """
    kind, colon, rest = spec.partition(":")
    if kind in models:
        named = models[kind]
        given = parse_spec(spec)
        label = given.given or named.args.get("label") or ("" if given.args else kind)
        args = {**named.args, **given.args, **({"label": label} if label else {})}
        whose = f"given to the model {kind!r}"
        with usable_arguments(whose, where=named.where, found=repr(spec)):
            text = arguments_text(args)
        return f"{named.kind}:{text}" if text else named.kind
    wrapped = plugins.judge(kind).on if colon and kind in plugins.judges else "alone"
    if wrapped == "model":
        return f"{kind}:{expand(rest, models, plugins)}"
    if wrapped == "judges":
        members = (expand(one, models, plugins) for one in split_members(rest))
        return f"{kind}:{joined_members(members)}"
    return spec
