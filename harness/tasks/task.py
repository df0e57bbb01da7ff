"""A task as its YAML file describes it, resolved: nothing inherited is left to look up."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one column of a table must hold."""

    type: Literal["string", "integer", "number", "boolean", "list", "object", "any"] = "string"
    required: bool = True
    aliases: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()


class DelimitedSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the CSV and TSV files of a table are written, where that is not the usual way.

    `header` names the columns of files that have no header line. Without `quotes` a quotation mark
    is a character like any other. `bare_returns` is what a carriage return inside a line means: an
    error, or a space.
    """

    header: tuple[str, ...] = ()
    quotes: bool = True
    bare_returns: Literal["error", "space"] = "error"


class TableSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One named table: the files that may hold it, and its columns.

    `files` are names or globs, tried in order in the folder that `--data` names and in the sample's
    folder; `split` is its split on the hub, or `hub_files` its files there. A table that is not
    `required` may be absent. `entries` name the two columns, key and value, of files that are one
    JSON object with an entry a row.
    """

    files: tuple[str, ...] = ()
    split: str | None = None
    hub_files: tuple[str, ...] = ()
    delimited: DelimitedSpec = DelimitedSpec()
    columns: dict[str, Column] = {}
    required: bool = True
    entries: tuple[str, str] | None = None


class HubSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data set on the Hugging Face hub."""

    repo: str
    config: str | None = None
    revision: str | None = None


class DataSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a task's data is and what it holds.

    `folder` is where it lies unless `--data` says so; it names the machine's place, so that it is
    no part of what the task is. `sample` is a folder inside the plugin's package; `size` is how
    many ids the task keeps.
    """

    tables: dict[str, TableSpec]
    hub: HubSpec | None = None
    folder: str | None = None
    sample: str | None = None
    size: int | None = None


class RoleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task says of a role: the model it defaults to, or the role it shares, and sampling."""

    default: str | None = None
    same_as: str | None = None
    sampling: dict[str, Any] = {}


class IntervalSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How intervals are drawn: a bootstrap over users, its bounds percentiles or BCa."""

    draws: int = 2000
    confidence: float = 0.95
    method: Literal["percentile", "bca"] = "percentile"


class Base(msgspec.Struct, frozen=True):
    """A task that another one was merged over: its file, and its name there."""

    file: Path
    name: str


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One runnable task.

    `stages` maps a stage to each role's sampling there. `prompts` maps prompts of the benchmark, as
    `<prompt>.<role>`, to the files that replace them. Where a smaller share of the units than
    `least_scored` has a score, no value is shown, for it would speak of too few. `bases` are the
    tasks that it was merged over, later ones over earlier. `max_failures` are shares of items that
    may fall out before the task is given up, where the usual ones do not fit.
    """

    name: str
    version: int
    benchmark: str
    data: DataSpec
    metrics: tuple[str, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    roles: dict[str, RoleSpec] = {}
    stages: dict[str, dict[str, dict[str, Any]]] = {}
    prompts: dict[str, str] = {}
    interval: IntervalSpec = IntervalSpec()
    least_scored: float = 0.0
    max_failures: dict[str, float] = {}
    file: Path | None = None
    bases: tuple[Base, ...] = ()


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A name for several tasks or groups; `analysis` is printed over a run of its tasks."""

    name: str
    members: tuple[str, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    analysis: str | None = None
    file: Path | None = None
