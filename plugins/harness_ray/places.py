"""How many workers a run has on the nodes of a cluster, and what they need there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.base.errors import HarnessError, UsageError
from harness.contracts.model import Model


class ClusterError(HarnessError):
    """The Ray cluster cannot be used, or cannot hold what the run needs."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the cluster that is alive, with what Ray may give away there."""

    name: str
    address: str
    cpus: float = 0.0
    gpus: float = 0.0


def workers_of(
    models: Sequence[Model], nodes: Sequence[Node], *, workers: int | None, engines: int | None
) -> tuple[int, int]:
    """The number of workers that a run opens on these nodes, and the GPUs that each of them has.

    Each engine has a worker of its own; without engines there is one on each node, and no more than
    requests that a server may get at the same time. UsageError for more workers or engines than
    fit, ClusterError where no engine fits.
    """
    given = {one: one.concurrency for one in models if one.limited and one.occupies is None}
    narrow = min(given, key=lambda one: given[one], default=None)
    with_engines = [one for one in models if one.occupies is not None]
    if not with_engines:
        fit = sum(int(node.cpus) for node in nodes)
        if workers is not None and workers > fit:
            raise _do_not_fit("--workers", workers, fit, nodes, "1 CPU for each worker")
        opened = workers or _with_a_cpu(nodes)
        return opened if narrow is None else min(opened, given[narrow]), 0
    largest = max(with_engines, key=lambda one: one.gpus)
    label, gpus = largest.identity.label, largest.gpus
    fit = sum(int(min(one.cpus, one.gpus // gpus) if gpus else one.cpus) for one in nodes)
    needed = f"{_needs(gpus)} of one node for each engine of {label}"
    if fit < 1:
        raise ClusterError(
            f"no node of the cluster has {_needs(gpus)} for an engine",
            where=label,
            found=said_of(nodes),
            expected=needed,
            hint="add a node that has them, by `ray start --address=…`, or give the model a "
            "smaller tensor_parallel_size; an engine is not spread over nodes",
        )
    if engines is not None and engines > fit:
        raise _do_not_fit("--engines", engines, fit, nodes, needed)
    opened = engines or (fit if gpus else _with_a_cpu(nodes))
    if narrow is not None and given[narrow] < opened:
        raise UsageError(
            "a server may get fewer requests at the same time than the run has engines",
            where=narrow.identity.label,
            found=f"concurrency {given[narrow]}, and {opened} engines of {label}",
            expected=f"a concurrency of {opened} at least: the worker of each engine asks the "
            "server too",
            hint=f"give it, or --engines {given[narrow]}",
        )
    return opened, gpus


def said_of(nodes: Sequence[Node]) -> str:
    """The nodes in one line, each with its CPUs and GPUs."""
    each = ", ".join(
        f"{one.name} ({one.address}): {_gpus(one.gpus) if one.gpus else 'no GPU'}, "
        f"{one.cpus:g} CPUs"
        for one in nodes
    )
    return f"{len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}: {each}" if each else "no node"


def _with_a_cpu(nodes: Sequence[Node]) -> int:
    """The number of nodes that have a CPU for a worker; one at least, which waits for it."""
    return max(1, sum(node.cpus >= 1 for node in nodes))


def _do_not_fit(
    option: str, asked: int, fit: int, nodes: Sequence[Node], needed: str
) -> UsageError:
    return UsageError(
        f"{option} {asked} do not fit on the cluster",
        found=said_of(nodes),
        expected=f"at most {fit}: {needed}",
        hint=f"give {option} {fit}, or leave {option} out: the run then opens as many as it can "
        "use",
    )


def _needs(gpus: int) -> str:
    return f"1 CPU and {_gpus(gpus)}" if gpus else "1 CPU"


def _gpus(many: float) -> str:
    return f"{many:g} {'GPU' if many == 1 else 'GPUs'}"
