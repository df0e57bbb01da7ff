"""Reads suite files: models, tasks and seeds that one command runs together."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harness.base.errors import TaskError, one_of
from harness.base.home import expanded
from harness.contracts.task import Text, Texts, key
from harness.pipeline.specs import LABEL
from harness.tasks.load import Document, load_file
from harness.tasks.task_schema import errors_of

Label = Annotated[
    str,
    key("A name of at most 40 letters, digits, `_`, `-`, `.` and `@`.", pattern=rf"^{LABEL}$"),
]


class SuiteModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of a suite: a SPEC, or a kind with the weights that a glob finds."""

    name: Label
    spec: Text | None = None
    glob: Annotated[Text | None, key("The weights, as `/checkpoints/night-*`.")] = None
    kind: Annotated[Text | None, key("The kind of the models that `glob` finds.")] = None
    argument: Annotated[Text, key("The argument that takes each path of `glob`.")] = "pretrained"
    args: Annotated[dict[str, Any], key("Further arguments of these models.")] = {}


class SuiteFile(msgspec.Struct, frozen=True, kw_only=True):
    """Models × tasks × seeds, the gates that the results must pass, and options of the runs."""

    models: Annotated[
        tuple[SuiteModel, ...],
        key("Models, each with a `name`, and a `spec` or a `glob`.", min_length=1),
    ]
    tasks: Annotated[Texts, key("Tasks and groups, as `--tasks` names them.", min_length=1)]
    judge: Annotated[Text | None, key("The judge, as `--judge` names it.")] = None
    seeds: Annotated[
        tuple[int, ...], key("The seeds with which each model runs.", min_length=1, unique=True)
    ] = (0,)
    limit: Annotated[int | None, key("The most users of a task.", ge=1)] = None
    against: Annotated[Label | None, key("The model that gates compare the others with.")] = None
    gates: Annotated[Texts, key("Gates, as `--gate` of `harness compare`.")] = ()
    options: Annotated[dict[str, Any], key("Other options of `harness run`, by name.")] = {}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One model of a suite: the label of its runs, its entry in the file, and its place there."""

    name: str
    entry: str
    spec: str = ""
    kind: str = ""
    args: dict[str, Any]
    where: str


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite with its models; `document` has the places of its values."""

    name: str
    file: SuiteFile
    candidates: tuple[Candidate, ...]
    document: Document

    def chosen(self, only: str | None) -> tuple[Candidate, ...]:
        """All models, or those that this name of an entry or a model selects; TaskError if none."""
        found = tuple(one for one in self.candidates if only in (None, one.name, one.entry))
        if not found:
            known = [*dict.fromkeys(n for one in self.candidates for n in (one.entry, one.name))]
            problem = "the suite has no such model"
            one_of(str(only), known, problem, TaskError, where="--only", found=only)
        return found


def read_suite(path: Path) -> Suite:
    """The suite in a file; TaskError with line and column if it cannot be used."""
    document = load_file(path, what="suite")
    for error in errors_of(SuiteFile, document):
        raise error
    file = msgspec.convert(document.values, SuiteFile)
    candidates = tuple(
        one
        for number, model in enumerate(file.models)
        for one in _candidates(model, document, number)
    )
    places: dict[str, str] = {}
    for one in candidates:
        if one.name in places:
            raise TaskError(
                f"two models of the suite are called {one.name!r}",
                where=one.where,
                found=f"another in {places[one.name]}",
                expected="a name for each model, as its runs are called so in tables",
            )
        places[one.name] = one.where
    if file.against is not None:
        one_of(
            file.against, places, "`against` names no model of the suite", TaskError,
            where=document.where(["against"]), found=file.against,
        )  # fmt: skip
    if file.gates and file.against is None:
        raise TaskError(
            "gates need `against`",
            where=document.where(["gates"], of_key=True),
            expected=f"`against: NAME` with one of {', '.join(places)}",
        )
    return Suite(name=path.stem, file=file, candidates=candidates, document=document)


def _candidates(model: SuiteModel, document: Document, number: int) -> Iterator[Candidate]:
    """The model of a SPEC, or the models that a glob finds, in the order of their names."""
    place: list[str | int] = ["models", number]
    if (model.spec is None) == (model.glob is None):
        raise TaskError(
            "a model has either `spec` or `glob`",
            where=document.where([*place, "glob"] if model.spec else place, of_key=True),
            found="both" if model.spec else "neither",
            expected="`spec: SPEC`, or `glob: PATH` with `kind: KIND`",
        )
    if model.spec is not None:
        for key in ("kind", "argument", "args"):
            if key in document.values["models"][number]:
                raise TaskError(
                    f"`{key}` belongs to a model with `glob`",
                    where=document.where([*place, key], of_key=True),
                    expected="all arguments of the model in its `spec`",
                )
        where = document.where([*place, "spec"])
        yield Candidate(name=model.name, entry=model.name, spec=model.spec, args={}, where=where)
        return
    if model.kind is None:
        raise TaskError(
            "`kind` is missing",
            where=document.where([*place, "glob"], of_key=True),
            expected="the kind of the models that `glob` finds, such as `kind: vllm`",
        )
    where = document.where([*place, "glob"])
    found = sorted(glob.glob(str(expanded(str(model.glob)))))  # noqa: PTH207 - it may be absolute
    if not found:
        raise TaskError(
            "nothing matches the glob",
            where=where,
            found=model.glob,
            expected="the weights of at least one model; a relative path begins in the folder of "
            "the command",
        )
    for path in found:
        label = re.sub(r"[^\w.@-]", "_", Path(path).name)[-40:].lstrip(".@-") or model.name
        args = {**model.args, model.argument: path}
        yield Candidate(name=label, entry=model.name, kind=model.kind, args=args, where=where)
