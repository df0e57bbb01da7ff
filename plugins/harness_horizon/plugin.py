"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.contracts.model import Model, ModelSettings
    from harness.registry import hookspecs

PACKAGE = "harness_horizon"

TOOLS = {
    "horizon": (
        "data",
        "curation.build",
        "make histories, splits and cases from raw reviews and metadata",
    ),
    "horizon-describe": (
        "data",
        "curation.describe",
        "describe histories, with the paper's figures",
    ),
    "train": (
        "horizon",
        "recommenders.train_tool",
        "train a recommender of the next item, and write its checkpoint",
    ),
    "drift": (
        "horizon",
        "drift",
        "compare the topics of held-out users and of those tested, with a null",
    ),
}
"""Each tool: the command that it is under, its module, and what it does."""

ANALYSES = {
    "horizon-next-item": (
        "next_item.result_tables.main",
        "Tables 1 to 4 with published rows, and the drops from setting 1a",
    ),
}
"""Each analysis: its function, and what it shows."""

RECOMMENDER = {
    "model": "the folder of a checkpoint, which `harness horizon train` writes",
    "device": "auto (a GPU when there is one), cpu or cuda",
    "concurrency": "requests in flight, which are ranked together; else --concurrency, else 256",
}
"""The arguments of the kind of model `recommender`."""


@hookimpl
def register_benchmarks(register: hookspecs.RegisterBenchmark) -> None:
    register("horizon_items", partial(resolve_name, f"{PACKAGE}.next_item.scores:HORIZON_ITEMS"))


@hookimpl
def register_respondents(register: hookspecs.RegisterRespondent) -> None:
    rule = partial(resolve_name, f"{PACKAGE}.next_item.asking:repeat")
    register("horizon_items", "next_item", "candidate", rule)


@hookimpl
def register_analyses(register: hookspecs.RegisterAnalysis) -> None:
    from harness.analysis.analysis import analysis_from

    for name, (function, description) in ANALYSES.items():
        path = f"{PACKAGE}.{function}"
        make = partial(analysis_from, path, name=name, description=description)
        register("horizon_items", name, make, description=description, report=True)


@hookimpl
def register_models(register: hookspecs.RegisterModel) -> None:
    register(
        "recommender",
        _recommender,
        description="a checkpoint that ranks items, made by `harness horizon train`",
        arguments=RECOMMENDER,
    )


@hookimpl
def register_data_tools(register: hookspecs.RegisterDataTool) -> None:
    from harness.analysis.analysis import tool_from

    for name, (command, module, description) in TOOLS.items():
        make = partial(tool_from, f"{PACKAGE}.{module}.run", name=name, description=description)
        register(name, make, description=description, command=command)


def _recommender(settings: ModelSettings) -> Model:
    from harness_horizon.recommenders.model import make

    return make(settings)
