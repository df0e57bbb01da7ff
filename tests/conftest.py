"""What tests of every room use."""

import asyncio
import functools
import gc
import importlib.metadata
import inspect
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import settings

from harness import registry
from harness.base.errors import HarnessError
from harness.base.redaction import safe_text
from harness.calls.store import Store
from harness.pipeline import resume
from harness.registry import GROUP, Plugins, plugins_from
from harness.registry.task_catalogue import Catalogue

# No test looks at a clock, and hypothesis would.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_finish() -> None:
    """What the tests are made of stays: no collection of garbage looks at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real third-party files; the test is skipped, and says so, where it is absent.

    Their owners' terms keep them out of the project: HARNESS_REAL_DATA names another place.
    """
    folder = ROOT / os.environ.get("HARNESS_REAL_DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}: set HARNESS_REAL_DATA")
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever runs the tests may have settings of their own, which are none of the tests'."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for name in [one for one in os.environ if one.startswith(("OPENAI_", "AZURE_OPENAI_"))]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_commit() -> Iterator[None]:
    """The commit is read once, as each run in this process would call git for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resume, "_commits", functools.cache(resume._commits))
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache of the test's own."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder without settings of anybody."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open store without answers."""
    store = Store.open(tmp_path / "calls.sqlite")
    yield store
    store.close()


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of two people, which no test changes."""
    import harness

    folder = tmp_path_factory.mktemp("runs")
    return harness.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=2,
        output_path=folder, reuse="run",
    ).folder  # fmt: skip


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the recorded runs, each by the name of its benchmark; no test changes them."""
    folder = tmp_path_factory.mktemp("recorded") / "runs"
    return shutil.copytree(ROOT / "tests/recorded/runs", folder)


@pytest.fixture
def wording(tmp_path: Path) -> Callable[..., str]:
    """The words of an error, once its kind, its place and the value it found are as given.

    Only these words may stand in a snapshot: `--inline-snapshot=fix` must not hide that an error
    is of another kind or has another cause. DIR stands for the folder of the test, and any other
    name for the folder that is given by it. A pattern stands for what the machine words itself.
    """

    def words(error, kind, where, found, **folders):
        def shown(text):
            for name, folder in [*folders.items(), ("DIR", tmp_path)]:
                text = text.replace(str(folder), name)
            return safe_text(text)

        assert type(error) is kind
        for text, given in ((error.where, where), (error.found, found)):
            if isinstance(given, re.Pattern):
                assert given.fullmatch(shown(text))
            else:
                assert (text and shown(text)) == given
        parts = {"": error.problem, "expected: ": error.expected, "to do: ": error.hint}
        return "\n".join(shown(name + part) for name, part in parts.items() if part is not None)

    return words


@pytest.fixture
def raised(wording: Callable[..., str]) -> Callable[..., str]:
    """The words of the error that a call raises, or the coroutine that it gives.

    assert raised(DataError, load, file, where="DIR/a.csv", found="'x'") == snapshot("no number")
    """

    def of(kind, call, *given, where=None, found=None, **folders):
        with pytest.raises(HarnessError) as caught:
            result = call(*given)
            if inspect.iscoroutine(result):
                asyncio.run(result)
        return wording(caught.value, kind, where, found, **folders)

    return of


@pytest.fixture
def exits(wording: Callable[..., str], monkeypatch, capsys) -> Callable[..., str]:
    """The words of the error that a command prints last before it exits with the code given.

    assert exits(1, DataError, "score none", where="runs", found="none") == snapshot("no such run")
    """
    from harness.cli.main import main

    printed, text_of = [], HarnessError.__str__

    def noted(error):
        printed.append(error)
        return text_of(error)

    monkeypatch.setattr(HarnessError, "__str__", noted)

    def of(code, kind, command, *, where=None, found=None, run=main, says="harness", **folders):
        for name, folder in folders.items():
            command = command.replace(name, str(folder))
        printed.clear()
        capsys.readouterr()
        assert run(shlex.split(command)) == code
        assert capsys.readouterr().err.endswith(f"{says}: {text_of(printed[-1])}\n")
        return wording(printed[-1], kind, where, found, **folders)

    return of


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """What a command prints, once it has ended with the code given.

    assert "no such run" in printed("score", "none", code=1).err
    """
    from harness.cli.main import main

    def of(*words, code=0):
        assert main([*words]) == code
        return capsys.readouterr()

    return of


class Site:
    """A folder of installed distributions that is on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self,
        distribution: str,
        points: Mapping[str, str],
        files: Mapping[str, str],
        *,
        extras: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Put a distribution with these entry points, files, and extras of one package there."""
        info = self.folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
            + "".join(
                f"Provides-Extra: {extra}\nRequires-Dist: {package}; extra == '{extra}'\n"
                for extra, package in extras.items()
            )
        )
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
        for path, text in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))

    def plugins(self) -> Plugins:
        """The plugins of these distributions and of no others."""
        return plugins_from(
            point
            for distribution in importlib.metadata.distributions(path=[str(self.folder)])
            for point in distribution.entry_points
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site that is forgotten after the test, with every module that came from it."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    registry.reset()
    yield Site(folder)
    registry.reset()
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if any(str(place).startswith(str(folder)) for place in places):
            del sys.modules[name]


FILMS = """
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

FILM_TASK = """
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
        texts = {"base": FILM_TASK, **files}
        site.install(
            "film-benchmark",
            {"films": "films_made_up.plugin"},
            {
                "films_made_up/plugin.py": FILMS,
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
