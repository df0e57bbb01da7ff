"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness import Benchmark
    from harness.registry.hookspecs import RegisterBenchmark, RegisterRespondent, Respondent


@hookimpl
def register_benchmarks(register: RegisterBenchmark) -> None:
    """Adds the benchmark `interests`."""
    register("interests", make_benchmark)


@hookimpl
def register_respondents(register: RegisterRespondent) -> None:
    """Adds the respondent with which `--model baseline` plays the candidate."""
    register("interests", "name", "candidate", find_respondent)


def make_benchmark() -> Benchmark:
    """The benchmark of this plugin."""
    from harness_interests.benchmark import INTERESTS

    return INTERESTS


def find_respondent() -> Respondent:
    """The respondent of the stage "name"."""
    from harness_interests.baselines import frequent_words

    return frequent_words
