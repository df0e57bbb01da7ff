"""How many workers a run has, and what each of them needs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from harness_ray.places import ClusterError, Node, workers_of

from harness.base.errors import UsageError


def node(name="a", cpus=8.0, gpus=0.0):
    return Node(name=name, address=f"{name}:1", cpus=cpus, gpus=gpus)


class Player(SimpleNamespace):
    """What is looked at of a model."""

    __hash__ = object.__hash__

    def __init__(self, label, **more):
        rest = {"limited": False, "concurrency": 16, "occupies": None, "gpus": 0}
        super().__init__(identity=SimpleNamespace(label=label), **rest | more)


def server(concurrency=None):
    """A model that has a server of its own, with a number of requests or without."""
    given = {} if concurrency is None else {"limited": True, "concurrency": concurrency}
    return Player("served", **given)


def engine(gpus):
    """A model for which each worker starts an engine."""
    return Player("engine", occupies="gpus", gpus=gpus)


SMALL, LARGE = node(cpus=2.0), node("b", cpus=8.0)
TWO, EIGHT = node(gpus=2.0), node("b", gpus=8.0)


@pytest.mark.parametrize(
    ("models", "nodes", "asked", "expected"),
    [
        ([server()], [SMALL, LARGE], {}, (2, 0)),  # one on each node
        ([server()], [SMALL, node("head", cpus=0.0)], {}, (1, 0)),
        ([server()], [node(cpus=0.0)], {}, (1, 0)),  # which waits for a node
        ([server()], [SMALL, LARGE], {"workers": 10}, (10, 0)),
        ([server(3), server(5)], [SMALL, LARGE], {"workers": 10}, (3, 0)),
        ([server(1)], [SMALL, LARGE], {}, (1, 0)),
        ([], [SMALL, LARGE], {}, (2, 0)),
        ([engine(1)], [TWO, EIGHT], {}, (10, 1)),
        ([engine(4)], [TWO, EIGHT], {}, (2, 4)),  # two GPUs of another node are no use
        ([engine(3)], [TWO, EIGHT], {}, (2, 3)),
        ([engine(1), engine(8)], [TWO, EIGHT], {}, (1, 8)),
        ([engine(1)], [node(cpus=3.0, gpus=8.0)], {}, (3, 1)),
        ([engine(1)], [TWO, EIGHT], {"engines": 3}, (3, 1)),
        ([engine(0)], [SMALL, LARGE], {}, (2, 0)),
        ([engine(0)], [SMALL, LARGE], {"engines": 10}, (10, 0)),
        ([engine(1), server(10)], [TWO, EIGHT], {}, (10, 1)),
        ([engine(1), server()], [TWO, EIGHT], {}, (10, 1)),
    ],
)
def test_as_many_workers_as_are_of_use(models, nodes, asked, expected):
    assert workers_of(models, nodes, **{"workers": None, "engines": None} | asked) == expected


@pytest.mark.parametrize(
    ("models", "nodes", "asked", "refused"),
    [
        (
            [server()], [SMALL, LARGE], {"workers": 11},
            (UsageError, "2 nodes: a (a:1): no GPU, 2 CPUs, b (b:1): no GPU, 8 CPUs", "at most 10"),
        ),
        ([engine(1)], [TWO], {"engines": 3}, (UsageError, "1 node: a (a:1): 2 GPUs,", "at most 2")),
        ([engine(1)], [], {}, (ClusterError, "no node", "1 CPU and 1 GPU of one node")),
        ([engine(4)], [TWO], {}, (ClusterError, "1 node: a (a:1): 2 GPUs,", "4 GPUs of one")),
        (
            [engine(1), server(1)], [TWO], {},
            (UsageError, "concurrency 1, and 2 engines of engine", "a concurrency of 2 at least"),
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(models, nodes, asked, refused):
    kind, found, expected = refused
    with pytest.raises(kind) as caught:
        workers_of(models, nodes, **{"workers": None, "engines": None} | asked)
    assert type(caught.value) is kind
    assert caught.value.found.startswith(found) and expected in caught.value.expected
