"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.registry.hookspecs import RegisterBenchmark, RegisterRespondent


@hookimpl
def register_benchmarks(register: RegisterBenchmark) -> None:
    register("interests", partial(resolve_name, "harness_interests.benchmark:INTERESTS"))


@hookimpl
def register_respondents(register: RegisterRespondent) -> None:
    words = partial(resolve_name, "harness_interests.baselines:frequent_words")
    register("interests", "name", "candidate", words)
