"""Three pytest fixtures for tests of plugins, available wherever the harness is installed.

Pytest loads this module at every start, so it imports the harness only when a test uses a fixture.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.pipeline.run import RunResult
    from harness.testing.server import FaultyServer


@pytest.fixture
def harness_server() -> Iterator[FaultyServer]:
    """A model server on 127.0.0.1 that answers "ok"; set its `answer` and its `faults`."""
    from harness.testing.server import FaultyServer

    with FaultyServer() as server:
        yield server


@pytest.fixture
def harness_run(tmp_path: Path) -> Callable[..., RunResult]:
    """Runs tasks over their sample in `tmp_path`: `harness_run("films", model=…)`."""
    from harness.testing.scripted import run_tasks

    return functools.partial(run_tasks, folder=tmp_path)


@pytest.fixture(scope="session")
def harness_checks(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """`check_plugin` whose calls share their runs, so that each check may be a test of its own."""
    from harness.testing.checks import check_plugin

    return functools.partial(check_plugin, folder=tmp_path_factory.mktemp("checks"))
