"""What task and group files may say, and what is made of them: tasks, nothing left to look up.

Errors show what a key means: what its `Key` says, else the first line of its type's docstring.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec


class Key(msgspec.Struct, frozen=True):
    """What a key of a file means, for people, and the bounds of what may stand there.

        size: Annotated[int, Key("How many ids the task keeps.", ge=1)]

    Files are held to the bounds (`harness.tasks.task_schema`), what was stored of a task is not.
    """

    meaning: str | None = None
    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    lt: float | None = None
    min_length: int | None = None
    pattern: str | None = None
    unique: bool = False


Text = Annotated[str, Key(min_length=1)]
Texts = Annotated[tuple[Text, ...], Key(unique=True)]
Name = Annotated[
    str,
    Key(
        "letters, digits, _ and -, beginning with a letter or digit",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$",
    ),
]
Share = Annotated[float, Key(ge=0, le=1)]
Reference = Annotated[str, Key("a task's name, or a YAML file relative to this one", min_length=1)]
References = Annotated[tuple[Reference, ...], Key(min_length=1, unique=True)]
Tags = Annotated[
    tuple[Name, ...],
    Key("Words to choose tasks by, as `--tasks tag:WORD`.", unique=True),
]


class SamplingKeys(TypedDict, total=False):
    """How replies are drawn, as far as one place of a file says it."""

    temperature: Annotated[float, Key("0 for the likeliest reply.", ge=0)]
    max_tokens: Annotated[int, Key("The longest reply, in tokens.", ge=1)]
    top_p: Annotated[
        Annotated[float, Key(gt=0, le=1)] | None,
        Key("The share of probability that tokens are drawn from."),
    ]
    stop: Annotated[tuple[Text, ...], Key("Texts that end a reply.")]


SomeSampling = Annotated[dict[str, Any], SamplingKeys, Key("How replies are drawn.")]
"""Kept as it was written: a TypedDict would turn the 0 of a temperature into 0.0."""


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a column must hold."""

    type: Annotated[
        Literal["string", "integer", "number", "boolean", "list", "object", "any"],
        Key("The kind of every value in it."),
    ] = "string"
    required: Annotated[bool, Key("False where a row may be without it.")] = True
    aliases: Annotated[Texts, Key("Other names that the column goes by.")] = ()
    one_of: Annotated[Texts, Key("The only values there are.")] = ()


class DelimitedSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the table's CSV and TSV files are written, where that is not the usual way."""

    header: Annotated[
        Texts, Key("The names of the columns of files that have no header line.")
    ] = ()
    quotes: Annotated[bool, Key("False where a quotation mark is a character like any other.")] = (
        True
    )
    bare_returns: Annotated[
        Literal["error", "space"],
        Key("What a carriage return inside a line means."),
    ] = "error"


class TableSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files that may hold a table, and its columns."""

    files: Annotated[Texts, Key("Names or globs, tried in order in the folder of the data.")] = ()
    split: Annotated[str | None, Key("The table's split on the hub.")] = None
    hub_files: Annotated[Texts, Key("The table's files on the hub, where it is no split.")] = ()
    delimited: DelimitedSpec = DelimitedSpec()
    required: Annotated[bool, Key("False for a table that the data may be without.")] = True
    entries: Annotated[
        Annotated[tuple[Text, Text], Key(unique=True)] | None,
        Key("The columns for key and value of the entries, where a file is one JSON object."),
    ] = None
    columns: Annotated[
        dict[str, Column],
        Key("The columns by the names that the benchmark knows them by."),
    ] = {}


class HubSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data set on the Hugging Face hub."""

    repo: Annotated[Text, Key("Owner and name, as OWNER/NAME.")]
    config: Annotated[str | None, Key("Which of the data set's configurations.")] = None
    revision: Annotated[str | None, Key("The commit, tag or branch that is read.")] = None


class DataSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the data is and what it must hold.

    `folder` names the machine's place, so that it is no part of what the task is.
    """

    hub: Annotated[
        HubSpec | None,
        Key("The data set on the Hugging Face hub; null where it is not there."),
    ] = None
    folder: Annotated[
        Text | None,
        Key("The folder that holds the data unless --data names another, found from this file."),
    ] = None
    sample: Annotated[
        Text | None,
        Key("The folder inside the plugin's package that holds the bundled sample."),
    ] = None
    size: Annotated[
        Annotated[int, Key(ge=1)] | None,
        Key("How many ids the task keeps, chosen by a stable hash; null for all."),
    ] = None
    tables: Annotated[dict[str, TableSpec], Key("The tables by name.", min_length=1)]


class RoleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who answers for a role unless the command says so, and how replies are drawn."""

    default: Annotated[
        Text | None,
        Key("The model that the role is bound to when the command names none."),
    ] = None
    same_as: Annotated[Text | None, Key("The role whose model this one shares.")] = None
    sampling: SomeSampling = {}


class IntervalSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How intervals are drawn: a bootstrap over users, its bounds percentiles or BCa."""

    draws: Annotated[int, Key("How many resamples are drawn.", ge=1)] = 2000
    confidence: Annotated[float, Key("The share of draws that the interval holds.", gt=0, lt=1)] = (
        0.95
    )
    method: Annotated[
        Literal["percentile", "bca"],
        Key(
            "How the bounds come of the draws: percentile, or bca, corrected for bias and skewness."
        ),
    ] = "percentile"


class TaskFile(TypedDict, total=False):
    """The keys of a task file, as they stand there before its bases are merged in."""

    task: Name
    version: Annotated[
        int,
        Key("Raised whenever the task's results stop being comparable with earlier ones.", ge=1),
    ]
    benchmark: Annotated[Text, Key("The benchmark, as its plugin registered it.")]
    description: Annotated[str, Key("One sentence for `harness tasks`.")]
    tags: Tags
    extends: Annotated[
        Text | References,
        Key("One or several tasks or files whose keys this one starts from; later ones win."),
    ]
    abstract: Annotated[
        bool,
        Key("True for a base that others extend and that cannot be run itself."),
    ]
    matrix: Annotated[
        dict[str, list[str | int | float | bool]],
        Key("Options by name, each with a list of values: makes a task of each combination."),
    ]
    prompts: Annotated[
        dict[
            str,
            Annotated[Text, Key("a template file, relative to this one")],
        ],
        Key("Template files that replace prompts of the benchmark, by <prompt>.<role>."),
    ]
    data: DataSpec
    options: Annotated[
        dict[str, Any],
        Key("The benchmark's own options by name; its plugin says which there are."),
    ]
    roles: Annotated[
        dict[str, RoleSpec],
        Key("What the task says of each role: candidate, judge, …"),
    ]
    stages: Annotated[
        dict[str, Annotated[dict[str, SomeSampling], Key("sampling by role")]],
        Key("Sampling of one role in one stage, where it differs from the role's own."),
    ]
    metrics: Annotated[
        tuple[Text, ...],
        Key(
            "The benchmark's metrics that are reported, the first one foremost.",
            min_length=1,
            unique=True,
        ),
    ]
    least_scored: Annotated[
        Share,
        Key("The share of units that must have a score before a value is shown."),
    ]
    max_failures: Annotated[
        dict[Literal["calls", "parsing", "judging", "errors"], Share],
        Key(
            "The share of a stage's items that may fall out before the task is given up, by family."
        ),
    ]
    interval: Annotated[IntervalSpec, Key("How intervals are drawn: a bootstrap over users.")]


class GroupFile(TypedDict, total=False):
    """The keys of a group file."""

    group: Name
    tasks: Annotated[
        References,
        Key("The tasks, groups or files that belong to it, in the order of its table."),
    ]
    analysis: Annotated[
        Text,
        Key("The analysis that is printed at the end of a run of the group's tasks."),
    ]
    description: Annotated[str, Key("One sentence for `harness tasks`.")]
    tags: Tags


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
