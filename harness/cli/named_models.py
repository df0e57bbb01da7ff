"""Models that settings give a name: `--model local` for what `[models.local]` says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.cli.settings_text import argument, arguments_text
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.plugin_manager import Plugins

_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """What a name stands for: a kind of model, or a judge, with arguments; and who says so."""

    name: str
    kind: str
    args: Mapping[str, str]
    where: str

    @property
    def spec(self) -> str:
        """The same as `--model` would take it."""
        return f"{self.kind}:{arguments_text(self.args)}" if self.args else self.kind


def named_model(name: str, values: Any, where: str) -> NamedModel:
    """The model that a table `[models.NAME]` describes; UsageError for one that describes none."""
    if not _NAME.fullmatch(name):
        raise UsageError("no name for a model", where=where, found=repr(name),
                         expected="letters, digits, `_`, `-` and `.`")  # fmt: skip
    if not isinstance(values, Mapping) or not isinstance(values.get("kind"), str):
        raise UsageError(
            f"the model {name!r} is of no kind",
            where=where,
            expected=f'a table [models.{name}] with kind = "openai" or another, and its arguments',
        )
    args = {key: value for key, value in values.items() if key != "kind"}
    try:
        texts = {key: argument(value) for key, value in args.items()}
        arguments_text(texts)
    except ValueError as error:
        raise UsageError(
            f"the arguments of the model {name!r} cannot be used", where=where, expected=str(error)
        ) from error
    return NamedModel(name=name, kind=values["kind"], args=texts, where=where)


def refuse_taken(models: Mapping[str, NamedModel], plugins: Plugins) -> None:
    """Raise UsageError for a name that a plugin's model or judge has, which it would hide."""
    for name, model in models.items():
        if plugins.has_model(name) or plugins.has_judge(name):
            raise UsageError(
                f"{name!r} is a kind of model or judge, and cannot name another",
                where=model.where,
                expected="another name",
            )


def expanded(spec: str, models: Mapping[str, NamedModel], plugins: Plugins) -> str:
    """A SPEC with what a name in it stands for; arguments after the name win over its own."""
    from harness.pipeline.roles import joined_members, parse_spec, split_members

    kind, colon, rest = spec.partition(":")
    if kind in models:
        named = models[kind]
        args = {**named.args, **parse_spec(spec).args}
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
    if colon and plugins.has_judge(kind) and plugins.judge(kind).on == "model":
        return f"{kind}:{expanded(rest, models, plugins)}"
    if colon and plugins.has_judge(kind) and plugins.judge(kind).on == "judges":
        members = (expanded(one, models, plugins) for one in split_members(rest))
        return f"{kind}:{joined_members(members)}"
    return spec
