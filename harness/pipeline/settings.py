"""The settings of a run as one value, and the SPECs that name models and judges in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import UsageError, one_of
from harness.calls.budget import Budget
from harness.calls.pricing import PriceTable, price_table
from harness.calls.retry import Patience
from harness.contracts.identity import label_of

ALL_OTHERS = "*"
"""The key of `data` for all tasks that it does not name."""

LOCAL = "local"
"""The executor that runs the stages in this process; plugins have the others."""

OF_EXECUTOR = ("ray_address", "workers", "engines")
"""The settings that only executors of plugins read."""

BOUNDS = {f"max_{name}": name for name in Budget.__struct_fields__}
"""The options that bound a budget, each with its name there."""


class FailureLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The largest share of items that may fail, by family, before the run counts as failed.

    The command overrides a task's limits, and these override the defaults here.
    """

    calls: float = 0.1
    parsing: float = 0.5
    judging: float = 0.2
    errors: float = 0.05


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a run, named like the options of `harness run`.

    `asked` gives the settings that decide results, and so which unfinished run the same command
    resumes. `data` is one place for all tasks, or a place by task with `*` for all other tasks.
    `columns` and `values` say how the data names columns and writes values.
    `name` is the run's label in tables, and `tags` select the run among others. `file_hosts` are
    hosts of models that only settings files name, so that keys which no argument names are not
    sent there; `named_in` has the file or variable that names a role's model, where that is not the
    command. The candidate is asked `elsewhere` if its questions go to files. `executor` says
    what runs the stages; `ray_address`, `workers` and `engines` are for one that a plugin has.
    """

    tasks: tuple[str, ...]
    model: str
    model_args: dict[str, str] = {}
    roles: dict[str, str] = {}
    data: str | dict[str, str] | None = None
    columns: dict[str, str] = {}
    values: dict[str, str] = {}
    limit: int | None = None
    seed: int = 0
    changes: dict[str, Any] = {}
    sampling: dict[str, Any] = {}
    structured: bool = False
    allow_self_judging: bool = False
    prompts: Path | None = None
    include_path: tuple[Path, ...] = ()
    num_repeats: int = 1

    offline: bool = False
    download: bool = False
    name: str | None = None
    tags: dict[str, str] = {}
    output_path: Path = Path("runs")
    resume: Path | None = None
    fresh: bool = False
    retry_failures: bool = False
    concurrency: int | None = None
    one_engine_at_a_time: bool = False
    executor: str = LOCAL
    ray_address: str | None = None
    workers: int | None = None
    engines: int | None = None
    patience: Patience = Patience()
    budget: Budget = Budget()
    prices: PriceTable | None = None
    max_failures: dict[str, float] = {}
    store: Path | None = None
    use_store: bool = True
    file_hosts: tuple[str, ...] = ()
    named_in: dict[str, str] = {}
    elsewhere: bool = False

    @property
    def candidate(self) -> Spec:
        """The candidate as a SPEC would name it."""
        return Spec(kind=self.model, args=self.model_args, given=self.name or "")

    @property
    def store_file(self) -> Path | None:
        """The file of the store of calls; None for a run without a store."""
        from harness.calls.store import default_path

        return self.store or default_path() if self.use_store else None

    def asked(self) -> dict[str, Any]:
        """The settings that decide results and so identify the run, as JSON values."""
        names = (
            "tasks", "model", "model_args", "roles", "data", "limit", "seed", "changes",
            "sampling", "structured", "fresh",
        )  # fmt: skip
        asked = {name: msgspec.to_builtins(getattr(self, name)) for name in names}
        asked["model_args"].pop("batch", None)  # how it is asked decides nothing
        asked["roles"] = {role: without_labels(spec) for role, spec in self.roles.items()}
        # A setting that a run does not use must not change its identity.
        if self.num_repeats > 1:
            asked["num_repeats"] = self.num_repeats
        asked |= {name: own for name in ("columns", "values") if (own := getattr(self, name))}
        return asked if self.prompts is None else {**asked, "prompts": str(self.prompts)}

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON values, without the prices, for which a manifest has a field, and
        without what holds for one session."""
        values: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str)
        del values["prices"], values["elsewhere"], values["named_in"]
        return values


def make_settings(given: Mapping[str, Any], *, whole: bool = True) -> RunSettings:
    """The settings of a run from the values of a command line or a caller.

    `tasks` may be one text with commas, `model` a SPEC such as `openai:NAME`, `model_args` a text;
    `max_failures` may be one share or a text, `prices` a file or a mapping; `max_calls`,
    `max_tokens` and `max_cost` go into the budget. Raises UsageError for a value that cannot be
    used, and for settings without tasks or model unless `whole` is false.
    """
    values: dict[str, Any] = msgspec.to_builtins(dict(given), enc_hook=str)
    bounds = {bound: values.pop(option) for option, bound in BOUNDS.items() if option in values}
    if bounds:
        values["budget"] = {**(values.get("budget") or {}), **bounds}
    for name in values:
        one_of(name, RunSettings.__struct_fields__, f"no setting is named {name!r}")
    for name in ("tasks", "include_path"):
        several = values.get(name) or ()
        values[name] = [several] if isinstance(several, str) else list(several)
    values["tasks"] = [name for text in values["tasks"] for name in task_names(str(text))]
    args = values.get("model_args") or {}
    args = parse_args(args) if isinstance(args, str) else args
    spec = parse_spec(str(values.get("model") or ""))
    values["model"] = spec.kind
    for name, value in args.items():
        as_json = isinstance(value, bool | list | tuple | Mapping)
        args[name] = json.dumps(value) if as_json else str(value)
    changed = args.keys() & {"model", "pretrained", "revision"}
    label = args.pop("label", "" if changed else spec.given)
    values["model_args"] = {**spec.args, **args}
    values["name"] = values.get("name") or label or None
    if values["name"] is not None:
        checked_label(str(values["name"]), "--name")
    if values.get("prices") is not None:
        values["prices"] = msgspec.to_builtins(price_table(given["prices"]))
    if "max_failures" in values:
        values["max_failures"] = failure_shares(values["max_failures"])
    try:
        settings = msgspec.convert(values, RunSettings, dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        raise UsageError("a setting cannot be used", found=str(error)) from error
    if whole and not settings.tasks:
        raise UsageError(
            "no task to run",
            expected="--tasks NAME,…",
            hint="`harness tasks` lists the tasks, `harness run --help` all options",
        )
    if whole and not settings.model:
        raise UsageError(
            "no model to ask", expected="--model KIND", hint="--model baseline works offline"
        )
    _check_ranges(settings)
    return settings


def task_names(text: str) -> list[str]:
    """The names in one value of `--tasks`."""
    return [name.strip() for name in text.split(",") if name.strip()]


def failure_shares(given: Any) -> dict[str, float]:
    """The shares by family, from `0.2` for all families or `calls=0.1,parsing=0.5` for some."""
    names = FailureLimits.__struct_fields__
    if isinstance(given, str) and "=" in given:
        given = parse_args(given)
    if not isinstance(given, Mapping):
        given = dict.fromkeys(names, given)
    shares = {}
    for name, share in given.items():
        try:
            shares[name] = float(share)
            good = name in names and 0 <= shares[name] <= 1
        except (TypeError, ValueError):
            good = False
        if not good:
            raise UsageError(
                "--max_failures cannot be used",
                found=f"{name}={share}",
                expected=f"a share from 0 to 1, or FAMILY=SHARE with {', '.join(names)}",
            )
    return shares


def _check_ranges(settings: RunSettings) -> None:
    counts = {
        "limit": settings.limit,
        "num_repeats": settings.num_repeats,
        "concurrency": settings.concurrency,
        "workers": settings.workers,
        "engines": settings.engines,
        "attempts": settings.patience.attempts,
        "max_calls": settings.budget.calls,
        "max_tokens": settings.budget.tokens,
    }
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UsageError(f"--{name} must be at least 1", found=str(count))
    cost = settings.budget.cost
    if cost is not None and not 0 < cost < float("inf"):
        raise UsageError("--max_cost must be an amount of money above 0", found=str(cost))
    seconds = {
        "timeout": settings.patience.attempt_timeout,
        "total_timeout": settings.patience.total_timeout,
        "start_timeout": settings.patience.start_timeout,
    }
    for name, value in seconds.items():
        if not 0 < value < float("inf"):
            raise UsageError(f"--{name} must be a number of seconds above 0", found=str(value))
    for name in OF_EXECUTOR:
        value = getattr(settings, name)
        if settings.executor == LOCAL and value is not None:
            raise UsageError(
                f"--{name} needs --executor ray",
                found=f"{value}, with --executor {LOCAL}",
                expected="--executor ray, which runs on a Ray cluster",
                hint=f"give --executor ray, or leave --{name} out",
            )


LATEST = "latest"
"""The newest run, where a command takes a run."""

LABEL = r"\w[\w.@-]{0,39}"
"""What the label of a model and the name of a run look like."""

_LABEL = re.compile(LABEL)
_LABEL_IN_SPEC = re.compile(r"(?<=[:,])(?:label|batch)=[^,+]*,?")
_HOST = re.compile(r"https?://(?:[^\s/@]*@)?([^\s/@,;+?#\"']+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A model or judge as a user or a task names it; `rest` is the text after `KIND:`.

    `given` is the argument `label=`, which decides nothing but the label and is not in `args`.
    """

    kind: str
    args: Mapping[str, str]
    rest: str = ""
    given: str = ""

    @property
    def label(self) -> str:
        """The kind and the model's name, as keys and errors have it."""
        name = self.args.get("model") or self.args.get("pretrained")
        return f"{self.kind}:{name}" if name else self.kind

    @property
    def shown(self) -> str:
        """The label in tables."""
        return label_of(self.kind, self.args, self.given)


def parse_args(text: str) -> dict[str, str]:
    """The mapping in `a=b,c=d`; a part without `=` belongs to the value before it."""
    args: dict[str, str] = {}
    last: str | None = None
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if equals and is_argument(name.strip()):
            last = name.strip()
            if last in args:
                raise UsageError(f"argument {last!r} is given twice", found=text)
            args[last] = value.strip()
        elif last is not None:
            args[last] += f",{part}"
        else:
            raise UsageError("this is no argument", found=part, expected="name=value,name=value")
    return args


def is_argument(name: str) -> bool:
    """Whether an argument can have this name: words with dots between them."""
    return all(part.isidentifier() for part in name.split("."))


def parse_spec(text: str) -> Spec:
    """The SPEC in `KIND`, `KIND:name=value,…` or `KIND:MODEL`, short for `KIND:model=MODEL`."""
    kind, _, rest = text.partition(":")
    first, _, others = rest.partition(",")
    name, equals, _ = first.partition("=")
    if rest and not (equals and is_argument(name.strip())):
        args = {"model": first, **parse_args(others)}
    else:
        args = parse_args(rest)
    given = args.pop("label", "")
    return Spec(kind=kind, args=args, rest=rest, given=given and checked_label(given, "label="))


def checked_label(text: str, where: str) -> str:
    """The text, if it can be the label of a model or the name of a run; UsageError otherwise."""
    if not _LABEL.fullmatch(text) or text == LATEST:
        raise UsageError(
            "this cannot be a label",
            where=where,
            found=text,
            expected="at most 40 letters, digits, `_`, `-`, `.` and `@`, and not `latest`",
        )
    return text


def without_labels(text: str) -> str:
    """The text of a SPEC without `label=` and `batch=`, which decide nothing."""
    if not _LABEL_IN_SPEC.search(text):
        return text
    return re.sub(r"[:,]+(?=\+|$)", "", _LABEL_IN_SPEC.sub("", text))


def hosts_in(texts: Iterable[str]) -> frozenset[str]:
    """The hosts of all addresses in SPECs or arguments, each with its port if it has one."""
    return frozenset(found.lower() for text in texts for found in _HOST.findall(text))


def split_members(text: str) -> tuple[str, ...]:
    """The SPECs in `SPEC+SPEC+…`: split at each `+` before a letter, not at `\\+`."""
    parts = re.split(r"(?<!\\)\+(?=[^\W\d_])", text)
    return tuple(part.replace("\\+", "+") for part in parts if part)


def joined_members(specs: Iterable[str]) -> str:
    """The SPECs as one text that `split_members` splits again."""
    return "+".join(re.sub(r"\+(?=[^\W\d_])", r"\\+", spec) for spec in specs)
