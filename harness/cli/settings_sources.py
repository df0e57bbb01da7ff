"""Where settings were given, and which of them hold: files, variables, the command line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from harness.base.errors import UsageError
from harness.cli.named_models import NamedModel, named_models, with_names
from harness.cli.setting import Setting, misspelt, setting_named, settings_of

USER, FOLDER, ENVIRONMENT, COMMAND = "user file", "folder file", "environment", "command line"
HERE = Path("harness.toml")

_SHARED = {"judge": "role.judge", "no_store": "store"}
"""Options that say the same thing as another, and the place of that."""

_HEADER = re.compile(r"\s*\[\[?\s*(?P<path>.+?)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*(?P<path>(?:[\w.\s-]|"[^"]*"|'[^']*')+?)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """What a file of settings says; `name` as a person would write it."""

    name: str
    values: Mapping[str, Any]
    text: str

    def where(self, path: Sequence[str]) -> str:
        """The file, and the line on which something stands where it is written plainly."""
        line = line_of(self.text, path)
        return f"{self.name}:{line}" if line else self.name


@dataclass(frozen=True, kw_only=True)
class SettingValue:
    """A value of an option, and where it was given.

    Of an option that is given entry by entry, this is one entry, and `entry` is its name.
    """

    option: str
    value: Any
    source: str
    where: str
    entry: str | None = None

    @property
    def slot(self) -> str:
        """What it settles: of all that are given for one slot, those given nearest hold."""
        if self.entry is not None:
            return f"{self.option}.{self.entry}"
        return _SHARED.get(self.option, self.option)


@dataclass(frozen=True, kw_only=True)
class EffectiveSettings:
    """All that was given: by slot what each layer says, the last of which holds.

    `files` are those that were looked for, and whether they are there; `misspelt` has variables
    that nothing reads, with the one that must be meant, and `named` is where the models stand that
    are called by name. `problem` is why settings cannot be used, for a command that works without.
    """

    slots: Mapping[str, Sequence[Sequence[SettingValue]]] = field(default_factory=dict)
    models: Mapping[str, NamedModel] = field(default_factory=dict)
    files: Sequence[tuple[str, bool]] = ()
    misspelt: Mapping[str, str] = field(default_factory=dict)
    named: Sequence[str] = ()
    problem: UsageError | None = None

    def holding(self, option: str | None = None) -> Iterator[SettingValue]:
        """What holds, of one option or of all."""
        for layers in self.slots.values():
            yield from (one for one in layers[-1] if option in (None, one.option))

    def warnings(self) -> Iterator[str]:
        """A line for each misspelt variable."""
        for variable, meant in self.misspelt.items():
            yield f"{variable} is set and nothing reads it: did you mean {meant}?"

    def summary(self) -> str | None:
        """In a line, what was not said on the command line and where it was; None for nothing."""
        places: dict[str, dict[str, None]] = {}
        for one in self.holding():
            if one.source != COMMAND:
                places.setdefault(one.where.partition(":")[0], {})[one.option] = None
        said = (f"{', '.join(names)} of {place}" for place, names in places.items())
        return "; ".join(said) or None

    def placed(self, error: UsageError) -> UsageError:
        """The error, with the file or variable that gave the option which it names."""
        where = (error.where or "").split()
        named = [word for word in [*where, *error.problem.split()] if word.startswith("--")]
        for word in [*where[:1], *named]:
            option = word.strip("-,:;")
            elsewhere = {one.where for one in self.holding(option) if one.source != COMMAND}
            if option == "model_args" and not any(self.holding(option)):
                elsewhere = set(self.named)
            if elsewhere:
                places = ", ".join(sorted(elsewhere))
                error.where = f"{places} ({error.where})" if error.where else places
                break
        return error


def effective_settings(ctx: click.Context) -> EffectiveSettings:
    """All layers of settings under a command's options, which are filled in with what holds.

    UsageError, with file and line or the variable, for what cannot be a setting.
    """
    options = settings_of(ctx.command)
    layers: list[list[SettingValue]] = []
    models: dict[str, NamedModel] = {}
    files: list[tuple[str, bool]] = []
    for path, source in ((user_file(), USER), (HERE, FOLDER)):
        file = read_settings(path)
        files.append((_shown(path), file is not None))
        if file is not None:
            models |= named_models(file.values.get("models", {}), file.where)
            layers.append([*_of_file(file, source, ctx)])
    layers.append([*_of_variables(options, ctx)])
    layers.append([
        given
        for name, option in options.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for given in _values(option, ctx.params[name], COMMAND, f"--{name}")
    ])  # fmt: skip
    held = EffectiveSettings(
        slots=_by_slot(layers), models=models, files=files, misspelt=misspelt(options)
    )
    filled: dict[str, Any] = {}
    for one in held.holding():
        entry = one.entry is not None
        filled[one.option] = [*filled.get(one.option, ()), one.value] if entry else one.value
    ctx.params |= filled
    return replace(held, named=with_names(ctx.params, models))


def user_file() -> Path:
    """The settings of this user: in the user's config folder."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "harness" / "config.toml"


def read_settings(file: Path) -> SettingsFile | None:
    """What a file says, None where there is no such file; UsageError where it cannot be read."""
    named = _shown(file)
    try:
        text = file.read_text("utf-8")
        return SettingsFile(name=named, values=_at_home(tomllib.loads(text)), text=text)
    except FileNotFoundError:
        return None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            "the settings are not TOML", where=named, found=str(error),
            expected='lines as `model = "openai"`',
        ) from error  # fmt: skip
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError("the settings cannot be read", where=named, found=reason) from error


def line_of(text: str, path: Sequence[str]) -> int | None:
    """The number of the line on which a key or its table begins; None where it cannot be told."""
    header: list[str] = []
    nearest: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _HEADER.fullmatch(line):
            stands = header = _parts(found["path"])
        elif found := _KEY.match(line):
            stands = [*header, *_parts(found["path"])]
        else:
            continue
        if stands[: len(path)] == list(path):
            return number
        if stands and list(path[: len(stands)]) == stands:
            # An inline table, or the header above: the closest that the key is known to be below.
            nearest = number
    return nearest


def _parts(path: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(path)]


def _shown(file: Path) -> str:
    home = Path.home()
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)


def _at_home(value: Any) -> Any:
    """The values with `~/` at the beginning of a text as the user's home: no shell does it here."""
    if isinstance(value, dict):
        return {name: _at_home(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_at_home(one) for one in value]
    return str(Path(value).expanduser()) if str(value).startswith("~/") else value


def _of_file(file: SettingsFile, source: str, ctx: click.Context) -> Iterator[SettingValue]:
    for key, value in file.values.items():
        if key != "models":
            where = file.where([key])
            option = setting_named(key.replace("-", "_"), where, ctx.command)
            yield from _values(option, option.from_file(value, where, ctx), source, where)


def _of_variables(options: Mapping[str, Setting], ctx: click.Context) -> Iterator[SettingValue]:
    for option in options.values():
        text, where = (option.resolve_envvar_value(ctx) or "").strip(), str(option.envvar)
        if text:
            value = option.from_variable(text, where, ctx)
            yield from _values(option, value, ENVIRONMENT, where)


def _values(option: Setting, value: Any, source: str, where: str) -> Iterator[SettingValue]:
    for one in value if option.table == "entries" else [value]:
        entry = option.entry(one)
        yield SettingValue(option=option.name, value=one, source=source, where=where, entry=entry)


def _by_slot(layers: Sequence[Sequence[SettingValue]]) -> dict[str, list[list[SettingValue]]]:
    """By slot what each layer says of it, the farthest layer first."""
    slots: dict[str, list[list[SettingValue]]] = {}
    for layer in layers:
        said: dict[str, list[SettingValue]] = {}
        for one in layer:
            said.setdefault(one.slot, []).append(one)
        for slot, stack in slots.items():
            # Who names a model names its arguments too; a place for all data is meant for all.
            swept = "model" if slot == "model_args" else "data.*" if slot[:5] == "data." else ""
            if slot not in said and swept in said:
                stack.append([])
        for slot, given in said.items():
            slots.setdefault(slot, []).append(given)
    return slots
