"""A catalogue over the task files of one made-up plugin."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from harness.tasks.catalogue import Catalogue

PLUGIN = """
    from harness import Benchmark, Metric, Stage, hookimpl
    import msgspec

    class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        near: float = 1.0

    class Options(msgspec.Struct):
        window: int = 20
        threshold: float = 0.5
        names: tuple[str, ...] = ()
        weights: Weights = Weights()
        extra: dict[str, int] = {}

    def stage(name, **roles):
        return Stage(name, item=None, value=None, items=None, work=None, **roles)

    @hookimpl
    def register_benchmarks(register):
        register("films", lambda: Benchmark(
            name="films", version=1, load=None, score=None, options=Options,
            stages=(stage("guess", roles=("candidate",)), stage("check", judges=("judge",))),
            metrics={"hits": Metric(description=""), "misses": Metric(description="")},
        ))
"""

BASE = """
task: base
version: 1
benchmark: films
data: {tables: {seen: {}}}
metrics: [hits]
"""


@pytest.fixture
def catalogue(site, monkeypatch) -> Callable[..., Catalogue]:
    """Makes a catalogue of files given by name; `base.yaml` is among them unless given.

    The folder of the files is the current one, so that errors name them as they are called.
    """

    def make(**files: str) -> Catalogue:
        texts = {"base": BASE, **files}
        site.install(
            "film-benchmark",
            {"films": "films_made_up.plugin"},
            {
                "films_made_up/plugin.py": PLUGIN,
                **{
                    f"films_made_up/task_configs/{name}.yaml": dedent(text).lstrip("\n")
                    for name, text in texts.items()
                },
            },
        )
        monkeypatch.chdir(site.folder / "films_made_up/task_configs")
        plugins = site.plugins()
        assert plugins.broken == ()
        # Without the house's own files, so that no test depends on them.
        plugins.bundles = plugins.bundles[1:]
        return Catalogue(plugins)

    return make
