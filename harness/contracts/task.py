"""The keys of task and group files, and the tasks and groups that are made from them.

Errors show the meaning of a key: that of its `key`, or else the first line of its type's docstring.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

import msgspec
from msgspec import Meta

from harness.contracts.stage import CANDIDATE


def key(meaning: str | None = None, **bounds: Any) -> Meta:
    """The meaning of a key in a file for people, and the bounds of its value.

        size: Annotated[int, key("How many ids the task keeps.", ge=1)]

    Bounds are named as in `msgspec.Meta`, but hold in files alone and not in stored tasks. Further
    ones: `unique`, a list without duplicates; `one_key`, exactly one of the keys; `keys`, the type
    that lists the keys of a dictionary which stays as it is written.
    """
    return Meta(description=meaning, extra=bounds or None)


Text = Annotated[str, key(min_length=1)]
Texts = Annotated[tuple[Text, ...], key(unique=True)]
Name = Annotated[
    str,
    key(
        "letters, digits, _ and -, beginning with a letter or digit",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$",
    ),
]
Encoding = Literal["utf-8", "iso-8859-1", "windows-1252"]
Share = Annotated[float, key(ge=0, le=1)]
Reference = Annotated[str, key("a task's name, or a YAML file relative to this one", min_length=1)]
References = Annotated[tuple[Reference, ...], key(min_length=1, unique=True)]
Tags = Annotated[
    tuple[Name, ...],
    key("Words to choose tasks by, as `--tasks tag:WORD`.", unique=True),
]


Digest = Annotated[
    str,
    key(
        "sha256: or md5: and the digits, in small letters",
        pattern=r"^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})$",
    ),
]


class SamplingKeys(TypedDict, total=False):
    """How replies are sampled, as far as one part of a file sets it."""

    temperature: Annotated[float, key("0 for the likeliest reply.", ge=0)]
    max_tokens: Annotated[int, key("The longest answer, in tokens.", ge=1)]
    reasoning_tokens: Annotated[
        int, key("The tokens on top of it for the reasoning of a model that thinks.", ge=0)
    ]
    top_p: Annotated[
        float | None,
        key("The share of probability that tokens are sampled from.", gt=0, le=1),
    ]
    top_k: Annotated[
        int | None,
        key("How many of the likeliest tokens are sampled from.", ge=1),
    ]
    presence_penalty: Annotated[
        float | None,
        key("How much less likely a token becomes once it has occurred.", ge=-2, le=2),
    ]
    stop: Annotated[tuple[Text, ...], key("Texts that end a reply.")]


SomeSampling = Annotated[dict[str, Any], key("How replies are sampled.", keys=SamplingKeys)]
"""Kept as written: a TypedDict would turn a temperature of 0 into 0.0."""


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of a column."""

    type: Annotated[
        Literal["string", "integer", "number", "boolean", "list", "object", "any"],
        key("The type of its values."),
    ] = "string"
    required: Annotated[bool, key("False if rows may leave it out.")] = True
    aliases: Annotated[Texts, key("Other names of the column.")] = ()
    called: Annotated[
        Text | None,
        key("The column's only name in the data, instead of its own name and its aliases."),
    ] = None
    one_of: Annotated[Texts, key("The only valid values.")] = ()
    values: Annotated[
        dict[str, str],
        key("What values in the data stand for, as {like: explicit_positive}."),
    ] = {}

    def names(self, own: str) -> tuple[str, ...]:
        """The names that the column may have in the data; `own` is the benchmark's name for it."""
        return (own, *self.aliases) if self.called is None else (self.called,)


class DelimitedSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The format of the table's CSV and TSV files, if it is not the usual one."""

    delimiter: Annotated[
        Annotated[str, key(pattern=r'^[^"\r\n]+$')] | None,
        key("The text between two cells; files of any ending may then be read."),
    ] = None
    encoding: Annotated[Encoding, key("The encoding of the text.")] = "utf-8"
    header: Annotated[Texts, key("The names of the columns, for files without a header line.")] = ()
    quotes: Annotated[bool, key("False if a quotation mark is an ordinary character.")] = True
    bare_returns: Annotated[
        Literal["error", "space"],
        key("The meaning of a carriage return inside a line."),
    ] = "error"
    surplus: Annotated[
        Literal["error", "last"],
        key("The meaning of cells beyond the last column: an error, or text of the last one."),
    ] = "error"


class TableSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files and columns of a table."""

    files: Annotated[Texts, key("Names or globs, tried in order in the data folder.")] = ()
    split: Annotated[str | None, key("The table's split on the hub.")] = None
    hub_files: Annotated[Texts, key("The table's files on the hub, if it is not a split.")] = ()
    delimited: DelimitedSpec = DelimitedSpec()
    required: Annotated[bool, key("False if the data may leave the table out.")] = True
    entries: Annotated[
        tuple[Text, Text] | None,
        key("The columns for the keys and values of a file that is one JSON object.", unique=True),
    ] = None
    rows_at: Annotated[
        tuple[Text, ...] | None,
        key("The keys that lead to the rows in a file that is one JSON object; [] if it is a row."),
    ] = None
    columns: Annotated[
        dict[str, Column],
        key("The columns by the benchmark's names for them."),
    ] = {}


class HubSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A data set on the Hugging Face hub."""

    repo: Annotated[Text, key("Owner and name, as OWNER/NAME.")]
    config: Annotated[str | None, key("The data set's configuration.")] = None
    revision: Annotated[str | None, key("The commit, tag or branch to read.")] = None


FileName = Annotated[str, key("a file name", pattern=r"^[\w-][\w.-]*$")]
Contents = Annotated[dict[str, Digest], key("The digests of files in the archive.")]
Terms = Annotated[Text | None, key("The owner's terms in one line.")]


class UrlSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file or archive (zip, tar, gz, zst) on the web, which is fetched once and kept."""

    address: Annotated[
        str,
        key(
            "an address as https://host/file.zip, without a user or password",
            pattern=r"^https?://[^\s/@]+/\S*$",
        ),
    ]
    digest: Annotated[Digest | None, key("The digest of the file that its owner publishes.")] = None
    name: Annotated[
        FileName | None, key("The file's name, if the address does not end with it.")
    ] = None
    contents: Contents = {}
    terms: Terms = None


class DriveSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file or archive of Google Drive that everybody may read, fetched once and kept."""

    file: Annotated[
        str,
        key("the file's id, as in drive.google.com/file/d/ID", pattern=r"^[\w-]{10,}$"),
    ]
    name: Annotated[FileName, key("The file's name, whose end says how to unpack it.")]
    digest: Annotated[Digest | None, key("The digest of the file that its owner publishes.")] = None
    contents: Contents = {}
    terms: Terms = None

    @property
    def address(self) -> str:
        """The page that shows the file."""
        return f"https://drive.google.com/file/d/{self.file}/view"


class HubFilesSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files of a data set on the Hugging Face hub."""

    repo: Annotated[Text, key("Owner and name, as OWNER/NAME.")]
    files: Annotated[Texts, key("Names or globs in the data set.", min_length=1)]
    revision: Annotated[str | None, key("The commit, tag or branch to read.")] = None


class InputSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files for a data tool: exactly one of its kinds."""

    hub: HubFilesSpec | None = None
    url: UrlSpec | None = None
    drive: DriveSpec | None = None


Inputs = Annotated[
    tuple[Annotated[InputSpec, key(one_key=True)], ...],
    key("The places of the files, which are all fetched.", min_length=1),
]


class BuildSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Data that a data tool of the plugin makes, once for the same inputs and options."""

    tool: Annotated[Text, key("The data tool by its name.")]
    options: Annotated[dict[str, Any], key("The tool's options by name.")] = {}
    inputs: Annotated[
        dict[str, Inputs],
        key("The tool's options that take files, each with the places of its files."),
    ] = {}


class AskSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Data that only a person can get: its owner wants to be asked, or forbids more."""

    steps: Annotated[tuple[Text, ...], key("What to do, step by step.", min_length=1)]
    terms: Terms = None


class SourceSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A source of data: exactly one of its kinds."""

    hub: HubSpec | None = None
    url: UrlSpec | None = None
    drive: DriveSpec | None = None
    build: BuildSpec | None = None
    ask: AskSpec | None = None


Sources = Annotated[
    tuple[Annotated[SourceSpec, key(one_key=True)], ...],
    key("The places that the data comes from by itself; the first that has it is taken."),
]


class KnownFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact about one table of the published data: a count or a digest.

    A `digest` with a `column` is that of the column's distinct values, sorted and joined by
    newlines, and without a column that of the table's file.
    """

    table: Annotated[Text, key("The table.")]
    rows: Annotated[int | None, key("How many rows it has.", ge=1)] = None
    column: Annotated[Text | None, key("The column of `values` or `digest`.")] = None
    values: Annotated[int | None, key("How many distinct values the column has.", ge=1)] = None
    digest: Annotated[
        Annotated[str, key("64 digits in small letters", pattern=r"^[0-9a-f]{64}$")] | None,
        key("The SHA-256 of the column's distinct values, or of the table's file."),
    ] = None


class DataSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the data is and what it must contain.

    `folder` depends on the machine and `sources` on servers, so they are not part of the task's
    hash, except the first data set of the hub: the fingerprint of the data counts.
    """

    sources: Sources = ()
    folder: Annotated[
        Text | None,
        key("The folder of the data, relative to this file; --data overrides it."),
    ] = None
    sample: Annotated[
        Text | None,
        key("The folder of the bundled sample, inside the plugin's package."),
    ] = None
    size: Annotated[
        int | None,
        key("How many ids the task keeps, chosen by a stable hash; null for all.", ge=1),
    ] = None
    known: Annotated[
        tuple[KnownFact, ...],
        key("Facts about the published data; results on other data are marked."),
    ] = ()
    tables: Annotated[dict[str, TableSpec], key("The tables by name.", min_length=1)]


class RoleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model of a role unless the command names one, and how replies are sampled."""

    default: Annotated[
        Text | None,
        key("The model of the role if the command names none."),
    ] = None
    same_as: Annotated[Text | None, key("The role whose model this one shares.")] = None
    sampling: SomeSampling = {}


class IntervalSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How intervals are computed: a bootstrap over users with percentile or BCa bounds."""

    draws: Annotated[int, key("The number of resamples.", ge=1)] = 2000
    confidence: Annotated[float, key("The share of resamples inside the interval.", gt=0, lt=1)] = (
        0.95
    )
    method: Annotated[
        Literal["percentile", "bca"],
        key("The method of the bounds: percentile, or bca, corrected for bias and skewness."),
    ] = "percentile"


class TaskFile(TypedDict, total=False):
    """The keys of a task file; the required ones must be there once its bases are merged."""

    task: Name
    version: Required[
        Annotated[
            int,
            key("Raise it when results are no longer comparable with earlier ones.", ge=1),
        ]
    ]
    benchmark: Required[Annotated[Text, key("The name of a benchmark that a plugin registers.")]]
    description: Annotated[str, key("One sentence for `harness tasks`.")]
    tags: Tags
    extends: Annotated[
        Text | References,
        key("One or several tasks or files to inherit keys from; later ones win."),
    ]
    abstract: Annotated[
        bool,
        key("True for a base that other tasks extend and that cannot be run itself."),
    ]
    matrix: Annotated[
        dict[str, Annotated[list[str | int | float | bool], key(min_length=1)]],
        key("Options by name, each with a list of values.", min_length=1),
    ]
    prompts: Annotated[
        dict[
            str,
            Annotated[Text, key("a template file, relative to this one")],
        ],
        key("Template files that replace prompts of the benchmark, by <prompt>.<role>."),
    ]
    data: Required[DataSpec]
    options: Annotated[
        dict[str, Any],
        key("The benchmark's options by name."),
    ]
    roles: Annotated[
        dict[str, RoleSpec],
        key("Settings of each role: candidate, judge, …"),
    ]
    stages: Annotated[
        dict[str, Annotated[dict[str, SomeSampling], key("sampling by role")]],
        key("Sampling of a role in one stage, if it differs from the role's own."),
    ]
    metrics: Required[
        Annotated[
            tuple[Text, ...],
            key(
                "The metrics to report, the main one first.",
                min_length=1,
                unique=True,
            ),
        ]
    ]
    least_scored: Annotated[
        Share,
        key("The share of units that must have a score before a value is shown."),
    ]
    max_failures: Annotated[
        dict[Literal["calls", "parsing", "judging", "errors"], Share],
        key("The share of a stage's items that may fail before the task is given up, by family."),
    ]
    interval: Annotated[IntervalSpec, key("How intervals are computed: a bootstrap over users.")]


class GroupFile(TypedDict, total=False):
    """The keys of a group file."""

    group: Required[Name]
    tasks: Required[
        Annotated[
            References,
            key("The tasks, groups or files of the group, in the order of its table."),
        ]
    ]
    analysis: Annotated[
        Text,
        key("The analysis to print at the end of a run of the group's tasks."),
    ]
    mean: Annotated[
        bool,
        key("Whether the mean of its tasks says something (true); not if they are controls."),
    ]
    description: Annotated[str, key("One sentence for `harness tasks`.")]
    tags: Tags


class Base(msgspec.Struct, frozen=True):
    """A base of a task."""

    file: Path
    name: str


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task that can be run, merged with its bases."""

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
    """The sampling of each role in a stage, if it differs from the role's own."""

    prompts: dict[str, str] = {}
    """The files that replace prompts of the benchmark, by `<prompt>.<role>`."""

    interval: IntervalSpec = IntervalSpec()
    least_scored: float = 0.0
    max_failures: dict[str, float] = {}
    """The share of a stage's items that may fail, by family, if the default does not fit."""

    file: Path | None = None
    bases: tuple[Base, ...] = ()

    def named_by(self, role: str, given: Collection[str]) -> str:
        """The role whose model a role has: its own, or that of the role that it is `same_as`.

        `given` are the roles that the user named.
        """
        wanted = self.roles.get(role)
        if role in given or role == CANDIDATE or wanted is None or wanted.same_as is None:
            return role
        return self.named_by(wanted.same_as, given)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A name for several tasks or groups."""

    name: str
    members: tuple[str, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    analysis: str | None = None
    mean: bool = True
    file: Path | None = None
