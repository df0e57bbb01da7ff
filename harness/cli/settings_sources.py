"""The sources of settings, and which takes effect: files, environment, command line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from click.core import ParameterSource

from harness.base.errors import HarnessError, UsageError
from harness.base.home import expanded, home
from harness.cli.named_models import NamedModel, named_models, replace_names
from harness.cli.setting import Setting, misspelt, setting_named, settings_of
from harness.scoring.grouping import grouped

USER, FOLDER, ENVIRONMENT, COMMAND = "user file", "folder file", "environment", "command line"
HERE = Path("harness.toml")

_SHARED_SLOTS = {"judge": "role.judge", "no_store": "store"}
"""Options that set the same thing as another option, and the slot that they share with it."""

_WITH_HOSTS = ("model", "model_args", "judge", "role")
"""Options whose values name the addresses of models."""

_HEADER = re.compile(r"\s*\[\[?\s*(?P<path>.+?)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*(?P<path>(?:[\w.\s-]|"[^"]*"|'[^']*')+?)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """A settings file: its name as a person writes it, its values and its text."""

    name: str
    values: Mapping[str, Any]
    text: str

    def where(self, path: Sequence[str]) -> str:
        """The file, with the line of a key if the line can be found."""
        line = line_of(self.text, path)
        return f"{self.name}:{line}" if line else self.name


@dataclass(frozen=True, kw_only=True)
class SettingValue:
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
        """What the value sets; of all values for a slot, the last layer takes effect."""
        if self.entry is not None:
            return f"{self.option}.{self.entry}"
        return _SHARED_SLOTS.get(self.option, self.option)


@dataclass(frozen=True, kw_only=True)
class EffectiveSettings:
    """All settings of a command, with the layers that they override."""

    slots: Mapping[str, Sequence[Sequence[SettingValue]]] = field(default_factory=dict)
    """By slot the values of each layer; the last layer takes effect."""
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

    def holding(self, option: str | None = None) -> Iterator[SettingValue]:
        """The values in effect, of one option or of all."""
        for layers in self.slots.values():
            yield from (one for one in layers[-1] if option in (None, one.option))

    def named_in(self) -> dict[str, str]:
        """The file or variable that names a role's model, by role, where the command does not."""
        roles = {"model": "candidate", "judge": "judge"}
        return {
            roles.get(one.option, one.entry or ""): one.where
            for one in self.holding()
            if one.option in (*roles, "role") and one.source != COMMAND
        }

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


def effective_settings(ctx: click.Context) -> EffectiveSettings:
    """The settings of a command; its options in `ctx` are filled in with the values in effect."""
    options = settings_of(ctx.command)
    layers: list[list[SettingValue]] = []
    models: dict[str, NamedModel] = {}
    files: list[tuple[str, bool]] = []
    for path, source in ((user_file(), USER), (HERE, FOLDER)):
        file = read_settings(path)
        files.append((_display_path(path), file is not None))
        if file is not None:
            models |= named_models(file.values.get("models", {}), file.where)
            layers.append([*_of_file(file, source, ctx)])
    of_variables: list[SettingValue] = []
    for option in options.values():
        text, where = (option.resolve_envvar_value(ctx) or "").strip(), str(option.envvar)
        if text:
            value = option.from_variable(text, where, ctx)
            of_variables += _values(option, value, ENVIRONMENT, where)
    layers.append(of_variables)
    layers.append([
        given
        for name, option in options.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for given in _values(option, ctx.params[name], COMMAND, f"--{name}")
    ])  # fmt: skip
    effective = EffectiveSettings(
        slots=_by_slot(layers), models=models, files=files, misspelt=misspelt(options)
    )
    filled: dict[str, Any] = {}
    for one in effective.holding():
        entry = one.entry is not None
        filled[one.option] = [*filled.get(one.option, ()), one.value] if entry else one.value
    ctx.params |= filled
    ctx.params["file_hosts"] = _file_hosts(effective)
    ctx.params["named_in"] = effective.named_in()
    return replace(effective, named=replace_names(ctx.params, models))


def _file_hosts(effective: EffectiveSettings) -> tuple[str, ...]:
    """The hosts of models that only files name, and neither command line nor environment."""
    from harness.pipeline.settings import hosts_in

    given = [one for one in effective.holding() if one.option in _WITH_HOSTS]
    own = hosts_in(str(one.value) for one in given if one.source in (ENVIRONMENT, COMMAND))
    of_files = [str(one.value) for one in given if one.source in (USER, FOLDER)]
    named = [value for model in effective.models.values() for value in model.args.values()]
    return tuple(sorted(hosts_in([*of_files, *named]) - own))


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
        return SettingsFile(name=name, values=_expand_home(tomllib.loads(text)), text=text)
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


def line_of(text: str, path: Sequence[str]) -> int | None:
    """The number of the line where a key or its table begins; None if it is not found."""
    header: list[str] = []
    nearest: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _HEADER.fullmatch(line):
            current = header = _parts(found["path"])
        elif found := _KEY.match(line):
            current = [*header, *_parts(found["path"])]
        else:
            continue
        if current[: len(path)] == list(path):
            return number
        if current and list(path[: len(current)]) == current:
            # An inline table, or the header above: the nearest line that is known to hold the key.
            nearest = number
    return nearest


def _parts(path: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(path)]


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


def _of_file(file: SettingsFile, source: str, ctx: click.Context) -> Iterator[SettingValue]:
    for key, value in file.values.items():
        if key != "models":
            where = file.where([key])
            option = setting_named(key.replace("-", "_"), where, ctx.command)
            yield from _values(option, option.from_file(value, where, ctx), source, where)


def _values(option: Setting, value: Any, source: str, where: str) -> Iterator[SettingValue]:
    for one in value if option.table == "entries" else [value]:
        entry = option.entry(one)
        yield SettingValue(option=option.name, value=one, source=source, where=where, entry=entry)


def _by_slot(layers: Sequence[Sequence[SettingValue]]) -> dict[str, list[list[SettingValue]]]:
    """By slot the values of each layer, in order of precedence: the last layer takes effect."""
    from harness.pipeline.settings import LOCAL, OF_EXECUTOR

    slots: dict[str, list[list[SettingValue]]] = {}
    for layer in layers:
        given = grouped((one.slot, one) for one in layer)
        for slot, stack in slots.items():
            # A layer that sets the model replaces its arguments in earlier layers, and one that
            # sets the place of all data replaces the places of single tasks.
            replaces = "model" if slot == "model_args" else "data.*" if slot[:5] == "data." else ""
            if slot not in given and replaces in given:
                stack.append([])
        for slot, values in given.items():
            slots.setdefault(slot, []).append(values)
    executor = slots["executor"][-1][0].value if "executor" in slots else LOCAL
    for stack in [slots[name] for name in OF_EXECUTOR if name in slots and executor == LOCAL]:
        # What files say of a cluster is for the runs there; a command that says it means something.
        if stack[-1][0].source != COMMAND:
            stack.append([])
    return slots
