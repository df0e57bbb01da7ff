"""A cluster of two nodes for each file of tests, which this process has joined."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders.clusters import NODE, ray_cluster
from builders.ray_faults import Nodes, Watched, answer, watched, whole_scores
from builders.toys import Runs, toys_installed

from harness.testing import FaultyServer

MODELS = ("candidate", "judge", "referee", "verifier", "predictor", "profiler")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the toy benchmark: one, as a process imports it once."""
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def package(site: Path) -> Iterator[Path]:
    """The package of the toy benchmark, which is installed before the cluster starts and is gone
    when tests of something else run."""
    with toys_installed(site) as package:
        yield package


@pytest.fixture(scope="module")
def cluster(package: Path) -> Iterator[Any]:
    """The cluster: two nodes on this machine. This process has joined it, which saves time."""
    with ray_cluster(NODE, NODE) as cluster:
        import ray
        from harness_ray.cluster import Cluster

        with Cluster(cluster.address):
            yield cluster
        assert not ray.is_initialized()


@pytest.fixture
def nodes(cluster: Any) -> Nodes:
    """The cluster with two living nodes, of which a test may kill the second."""
    nodes = Nodes(cluster, Path(os.environ["RAY_TMPDIR"]))
    nodes.mend()
    return nodes


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, package: Path) -> bytes:
    """The scores of a run by one process that nothing disturbs."""
    return whole_scores(tmp_path_factory.mktemp("whole") / "run", package)


@pytest.fixture
def run(tmp_path: Path, package: Path, nodes: Nodes) -> Iterator[Watched]:
    """A run on the cluster that is not started yet."""
    with watched(tmp_path, package, nodes.address) as run:
        yield run


@pytest.fixture
def runs(tmp_path: Path, package: Path, cluster: Any) -> Iterator[Runs]:
    """Runs in a folder of the test's own."""
    yield Runs(tmp_path, package, cluster.address)
    (package / "engines").unlink(missing_ok=True)
    shutil.rmtree(package / "die", ignore_errors=True)


@pytest.fixture
def serve(runs: Runs) -> Iterator[Callable[..., FaultyServer]]:
    """Start a server that the runs ask; it stops with the test."""
    servers: list[FaultyServer] = []

    def start(says: Any = None, **options: Any) -> FaultyServer:
        options.setdefault("models", MODELS)
        server = FaultyServer(says or answer, **options).start()
        servers.append(server)
        runs.url = server.url
        return server

    yield start
    for server in servers:
        server.stop()
