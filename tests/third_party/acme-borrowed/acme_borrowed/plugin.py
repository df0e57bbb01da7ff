"""The hooks of the plugin; all other modules are imported when they are needed."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from harness import hookimpl


@hookimpl
def register_benchmarks(register: Any) -> None:
    register("acme_borrowed", later("benchmark", "BENCHMARK"))


@hookimpl
def register_respondents(register: Any) -> None:
    register(
        "acme_borrowed", "tastes", "candidate", later("baselines", "frequent_words"), version=2
    )
    register("acme_borrowed", "next", "candidate", later("baselines", "shared_words"))


@hookimpl
def register_models(register: Any) -> None:
    register(
        "acme-clerk",
        later("clerk", "Clerk"),
        description="a clerk who knows some shelves by heart",
        arguments={"shelves": "the words that it knows", "model": "its name"},
        shared=("shelves",),
    )


@hookimpl
def register_judges(register: Any) -> None:
    register(
        "acme-strict",
        later("judges", "strict"),
        description="wants the word among the first of a title",
        arguments={"within": "how many words are the first (2)"},
    )
    register(
        "acme-careful", later("judges", "careful"), on="model", description="asks for numbers only"
    )


@hookimpl
def register_embedders(register: Any) -> None:
    arguments = {"letters": "the letters that are counted (aeiou)"}
    register(
        "acme-letters",
        later("letters", "Letters"),
        description="counts letters",
        arguments=arguments,
    )


@hookimpl
def register_analyses(register: Any) -> None:
    about = "which tastes were grounded how often"
    register(
        "acme_borrowed",
        "borrowed-tastes",
        later("tastes", "ANALYSIS"),
        description=about,
        report=True,
    )


@hookimpl
def register_data_tools(register: Any) -> None:
    register(
        "alike", later("tools", "ALIKE"), description="which titles are most alike", command="acme"
    )
    register("acme-loans", later("tools", "LOANS"), description="write loans of invented readers")


@hookimpl
def on_run_end(event: Any) -> None:
    """Adds a line to the file that ACME_BORROWED_LOG names."""
    if os.environ.get("ACME_BORROWED_LOG"):
        with Path(os.environ["ACME_BORROWED_LOG"]).open("a", encoding="utf-8") as log:
            log.write(f"{event.folder.name} {event.status} {event.exit_code}\n")


def later(module: str, name: str) -> Any:
    """A factory that imports the module, gives its arguments to what it finds, or returns it."""

    def make(*given: Any) -> Any:
        found = getattr(import_module(f"acme_borrowed.{module}"), name)
        return found(*given) if given else found

    return make
