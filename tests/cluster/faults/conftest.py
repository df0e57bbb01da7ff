"""A cluster of two nodes that lose processes, and a run of the toys on it.

These tests kill clusters for some minutes: `make test-cluster` runs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders.ray_faults import Nodes, Watched, two_nodes, watched, whole_scores

WANTED = "HARNESS_TEST_CLUSTER"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these tests out unless they are asked for."""
    here = Path(__file__).parent
    for item in items if WANTED not in os.environ else ():
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"{WANTED}=1 kills clusters for some minutes"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, package: Path) -> bytes:
    """The scores of a run by one process that nothing disturbs."""
    return whole_scores(tmp_path_factory.mktemp("whole") / "run", package)


@pytest.fixture(scope="module")
def own_nodes(package: Path) -> Iterator[Nodes]:
    """The cluster of this file, which is not that of the other tests."""
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture
def nodes(own_nodes: Nodes) -> Nodes:
    """The cluster with two living nodes."""
    own_nodes.mend()
    return own_nodes


@pytest.fixture
def run(tmp_path: Path, package: Path, nodes: Nodes) -> Iterator[Watched]:
    """A run on the cluster that is not started yet."""
    with watched(tmp_path, package, nodes.address) as run:
        yield run
