"""Models named in settings: `--model local` stands for the table `[models.local]`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.base.errors import UsageError
from harness.cli.setting import argument, arguments_text, check_no_secrets

if TYPE_CHECKING:
    from harness.registry import Plugins

_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """A model or judge that settings define under a name."""

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
        if not _NAME.fullmatch(name):
            raise UsageError("the name of a model is not valid", where=place, found=repr(name),
                             expected="letters, digits, `_`, `-` and `.`")  # fmt: skip
        if not isinstance(values, Mapping) or not isinstance(values.get("kind"), str):
            raise UsageError(
                f"the model {name!r} has no kind",
                where=place,
                expected=f'a table [models.{name}] with kind = "openai", or another, and arguments',
            )
        try:
            texts = {key: argument(value) for key, value in values.items() if key != "kind"}
            arguments_text(texts)
        except ValueError as error:
            raise UsageError(
                f"the arguments of the model {name!r} cannot be used", where=place,
                expected=str(error),
            ) from error  # fmt: skip
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
                expected="a name that `harness models` and `harness judges` do not list",
            )
    roles = [text.partition("=") for text in options["role"]]
    specs = [options["model"] or "", options["judge"] or "", *(spec for _, _, spec in roles)]
    for role in ("model", "judge"):
        options[role] = options[role] and expand(options[role], models, plugins)
    options["role"] = [
        f"{name}{equals}{expand(spec, models, plugins)}" for name, equals, spec in roles
    ]
    words = {word for spec in specs for word in spec.split(":")[:2]}
    return [one.where for name, one in models.items() if name in words]


def expand(spec: str, models: Mapping[str, NamedModel], plugins: Plugins) -> str:
    """The SPEC with the named model in place of its name; arguments in the SPEC take precedence.

    The name is the label of the model unless the SPEC changes what is asked.
    """
    from harness.pipeline.settings import joined_members, parse_spec, split_members

    kind, colon, rest = spec.partition(":")
    if kind in models:
        named = models[kind]
        given = parse_spec(spec)
        label = given.given or named.args.get("label") or ("" if given.args else kind)
        args = {**named.args, **given.args, **({"label": label} if label else {})}
        try:
            text = arguments_text(args)
        except ValueError as error:
            raise UsageError(
                f"the arguments given to the model {kind!r} cannot be used",
                where=named.where,
                found=repr(spec),
                expected=str(error),
            ) from error
        return f"{named.kind}:{text}" if text else named.kind
    wrapped = plugins.judge(kind).on if colon and kind in plugins.judges else "alone"
    if wrapped == "model":
        return f"{kind}:{expand(rest, models, plugins)}"
    if wrapped == "judges":
        members = (expand(one, models, plugins) for one in split_members(rest))
        return f"{kind}:{joined_members(members)}"
    return spec
