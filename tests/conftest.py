"""What tests of every room use."""

import asyncio
import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from harness.errors import HarnessError
from harness.redaction import safe_text

# No test looks at a clock, and hypothesis would.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parents[1]


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
        yield


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of two people, which no test changes."""
    import harness

    folder = tmp_path_factory.mktemp("runs")
    return harness.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=2,
        output_path=folder, use_store=False,
    ).folder  # fmt: skip


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
