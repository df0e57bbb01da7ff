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
    "sft-export": (
        "horizon",
        "text.sft_export",
        "write training data for a language model: the next item of a history, as chat",
    ),
    "index": (
        "horizon",
        "catalogue.index_tool",
        "embed the titles of a catalogue, and build the index that tasks in words search",
    ),
    "drift": (
        "horizon",
        "drift",
        "compare the topics of held-out users and of those tested, with a null",
    ),
}
"""Each tool: the command that it is under, its module, and what it does."""

CONTINUES = ("horizon", "train", "index")
"""The tools that go on in a folder that they left unfinished."""

ANALYSES = {
    "horizon-next-item": (
        "horizon_items",
        "next_item.result_tables.main",
        "Tables 1 to 4 with published rows, and the drops from setting 1a",
    ),
    "horizon-text": (
        "horizon_text",
        "text.text_tables.main",
        "Tables 5 and 6 with published rows, and Table 10's layout for single queries",
    ),
    "horizon-recall": (
        "horizon_text",
        "text.text_tables.curves",
        "recall over the length of the list, of the title itself and by cosine",
    ),
}
"""Each analysis: its benchmark, its function, and what it shows."""

RULES = {
    ("horizon_items", "next_item"): "next_item.asking:repeat",
    **{
        ("horizon_text", prompt): "text.searching:of_the_history"
        for prompt in ("next", "next_code", "long", "long_code", "one")
    },
}
"""The rule with which `--model baseline` answers each prompt of a benchmark's candidate."""

MODELS = {
    "recommender": (
        "recommenders.model:make",
        "a checkpoint that ranks items, made by `harness horizon train`",
        {
            "model": "the folder of a checkpoint, which `harness horizon train` writes",
            "device": "auto (a GPU when there is one), cpu or cuda",
            "concurrency": "requests in flight, ranked together; else --concurrency, else 256",
        },
    ),
    "catalogue": (
        "catalogue.retriever:make",
        "the titles nearest to queries, from an index made by `harness horizon index`",
        {
            "model": "the folder of an index, of `harness horizon index`; else the bundled sample",
            "embedder": "the SPEC of the same embedder elsewhere, with `;` for `,`",
            "device": "auto (exact search on a GPU with room, else the index's own), cpu or cuda",
            "concurrency": "requests in flight, searched together; else --concurrency, else 256",
        },
    ),
}
"""Each kind of model: its module, what it does, and its arguments."""


@hookimpl
def register_benchmarks(register: hookspecs.RegisterBenchmark) -> None:
    register("horizon_items", partial(resolve_name, f"{PACKAGE}.next_item.scores:HORIZON_ITEMS"))
    register("horizon_text", partial(resolve_name, f"{PACKAGE}.text.finding:HORIZON_TEXT"))


@hookimpl
def register_respondents(register: hookspecs.RegisterRespondent) -> None:
    for (benchmark, prompt), rule in RULES.items():
        make = partial(resolve_name, f"{PACKAGE}.{rule}")
        register(benchmark, prompt, "candidate", make)


@hookimpl
def register_analyses(register: hookspecs.RegisterAnalysis) -> None:
    from harness.analysis.analysis import analysis_from

    for name, (benchmark, function, description) in ANALYSES.items():
        path = f"{PACKAGE}.{function}"
        make = partial(analysis_from, path, name=name, description=description)
        register(benchmark, name, make, description=description, report=True)


@hookimpl
def register_models(register: hookspecs.RegisterModel) -> None:
    for name, (path, description, arguments) in MODELS.items():
        make = partial(_model, f"{PACKAGE}.{path}")
        register(name, make, description=description, arguments=arguments)


@hookimpl
def register_data_tools(register: hookspecs.RegisterDataTool) -> None:
    from harness.analysis.analysis import tool_from

    for name, (command, module, description) in TOOLS.items():
        make = partial(
            tool_from,
            f"{PACKAGE}.{module}.run",
            name=name,
            description=description,
            continues=name in CONTINUES,
        )
        register(name, make, description=description, command=command)


def _model(path: str, settings: ModelSettings) -> Model:
    return resolve_name(path)(settings)  # type: ignore[no-any-return]
