"""The Ray cluster that a run uses: how this process joins it, and what its nodes have."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from harness.base.errors import HarnessError, ModelError, UsageError
from harness.contracts.finding import Finding, good
from harness.contracts.model import Model
from harness.pipeline.settings import RunSettings

INSTALL = "pip install 'user-understanding-harness[ray]'"
OPTION = "--ray_address"
ADDRESS = re.compile(r"(?:ray://)?(?P<host>\[[^\]\s]+\]|[^:/\s]+):(?P<port>\d{1,5})")
FORMS = "auto, HOST:PORT or ray://HOST:PORT"
RAY_CLIENT = "Starting Ray client server failed"
"""What a head says whose process for a driver outside the cluster has crashed, as gRPC can where it
forks; without its support of forks, nothing of it runs in the new process."""

JOIN = "run `ray start --head` on one machine, and on each other `ray start --address=HOST:6379`"

SECONDS = 10
"""How long a cluster may take to say that it is there; Ray itself would wait for minutes."""

LOOK_SECONDS = 5.0
"""How often a run looks whether the cluster is still there."""

SETTINGS = 4
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, SETTINGS, 0, 0, 0, 0, 0))
"""What a client of HTTP/2 sends first, with an empty frame of settings."""

MEMORY = 256 * 1024**2
"""The bytes of shared memory of a Ray that this process starts: shards and acknowledgements are
small, and Ray would take a third of the machine's memory."""

NAMESPACE = "harness"
"""Where Ray lists the actors of runs by name."""

WORKER, UTILS = "._private.worker", "._private.utils"

_joined: list[tuple[str | None, ExitStack]] = []
"""The address of each `connect` and what its `disconnect` undoes: the first one leaves the cluster,
last."""

_joining = threading.Lock()
"""Held by the thread that connects or disconnects."""


class ClusterError(HarnessError):
    """The Ray cluster cannot be used, or cannot hold what the run needs."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the cluster that is alive, with what Ray may give away there, and has left.

    `here` is true of the node to which this process belongs.
    """

    id: str
    name: str
    address: str
    cpus: float = 0.0
    cpus_free: float = 0.0
    gpus: float = 0.0
    gpus_free: float = 0.0
    here: bool = False


def connect(address: str | None) -> None:
    """Join the cluster at the address, or start a Ray that uses this machine; `disconnect` ends it.

    `auto` is the cluster that RAY_ADDRESS names or that this machine belongs to. In a process that
    has joined a cluster, that one is used, and UsageError raised for the address of another one. A
    Ray that this thread starts ends with the thread. ClusterError if there is no cluster, or Ray is
    not installed.
    """
    with _joining:
        if _ray().is_initialized():
            _check_joined(address)
            joined = ExitStack()
        else:
            joined = _join(address)
        _joined.append((address, joined))


def disconnect() -> None:
    """Undo one `connect`; the last one leaves the cluster.

    A Ray that `connect` started ends then, and its folder is removed.
    """
    with _joining:
        if _joined:
            _joined.pop()[1].close()


def _check_joined(address: str | None) -> None:
    """Raise UsageError for the address of another cluster than the one that this process uses."""
    used = _ray().get_runtime_context().gcs_address
    given = {first for first, _ in _joined[:1]}
    if address in {None, "auto", used, *given}:
        return
    raise UsageError(
        "this process uses another Ray cluster already",
        where=f"{OPTION} {address}",
        found=used,
        expected="the same address",
        hint=f"leave {OPTION} out, or start the run in a process of its own",
    )


def _join(address: str | None) -> ExitStack:
    """What leaves the cluster again."""
    ray = _ray()
    if address is not None:
        _check_there(address)
    with ExitStack() as stack:
        more = {} if address else _of_own_ray(stack)
        stack.enter_context(_variables(RAY_USAGE_STATS_ENABLED="0"))
        # Ray would print what its processes log last on standard output, among the results.
        stack.enter_context(_replaced(WORKER, "print_to_stdstream", lambda *given, **named: None))
        stack.callback(ray.shutdown)
        try:
            # Ray lists the command line of a run, whose arguments may hold keys.
            with _own_sigterm(), _replaced(UTILS, "get_entrypoint_name", lambda: "harness"):
                ray.init(
                    address=address or "local",
                    namespace=NAMESPACE,
                    log_to_driver=False,
                    logging_level="critical",
                    **more,
                )
        except Exception as error:
            raise _error_of(error, address) from error
        joined = stack.pop_all()
    atexit.register(joined.close)
    joined.callback(atexit.unregister, joined.close)
    return joined


def nodes() -> tuple[Node, ...]:
    """The nodes of the cluster that are alive, that of this process first, then by name."""
    ray = _ray()
    free = _asked(resources_left)
    own = ray.get_runtime_context().get_node_id()
    found = []
    for each in ray.nodes():
        left, there = free.get(each["NodeID"], {}), each["Resources"]
        if each["Alive"]:
            found.append(Node(
                id=each["NodeID"],
                name=each["NodeManagerHostname"],
                address=each["NodeManagerAddress"],
                cpus=there.get("CPU", 0.0),
                cpus_free=left.get("CPU", 0.0),
                gpus=there.get("GPU", 0.0),
                gpus_free=left.get("GPU", 0.0),
                here=each["NodeID"] == own,
            ))  # fmt: skip
    return tuple(sorted(found, key=lambda one: (not one.here, one.name, one.id)))


def count_nodes() -> int:
    """The number of the cluster's nodes that are alive."""
    return sum(each["Alive"] for each in _ray().nodes())


def head_problem() -> ModelError | None:
    """Why the head of the cluster does not answer; None if it does.

    From outside the cluster it cannot be asked.
    """
    if not _ray(WORKER).global_worker.connected:
        return None
    address = _ray().get_runtime_context().gcs_address
    try:
        _check_there(address)
    except HarnessError as error:
        return ModelError(
            "the head of the cluster does not answer any more",
            where=address,
            found=error.found,
            hint="start the cluster again; the same command continues the run",
        )
    return None


def without_room(gpus: int) -> int:
    """The number of workers with so many GPUs, of all runs, for which Ray has found no node yet."""
    return sum(
        many
        for needs, many in _asked(unplaced)
        if (needs.get("CPU"), needs.get("GPU", 0)) == (1, gpus)
    )


def unplaced() -> list[tuple[dict[str, float], int]]:
    """What the processes need for which Ray has found no node, each with their number.

    One that has a node and still starts there is not among them.
    """
    address = _ray().get_runtime_context().gcs_address
    demands = _ray(".autoscaler.v2.sdk").get_cluster_status(address).resource_demands
    return [
        (each.bundle, each.count)
        for demand in demands.ray_task_actor_demand
        for each in demand.bundles_by_count
    ]


def resources_left() -> dict[str, dict[str, float]]:
    """What Ray may still give away, by node."""
    return dict(_ray("._private.state").available_resources_per_node())


def engines_that_fit(nodes: Sequence[Node], gpus_per_engine: int) -> int:
    """The number of engines that the free CPUs and GPUs hold; each is on one node, with a CPU."""
    return sum(_engines_on(node.cpus_free, node.gpus_free, gpus_per_engine) for node in nodes)


def engines_to_open(
    nodes: Sequence[Node], gpus_per_engine: int, *, asked: int | None, model: str, among: int = 1
) -> int:
    """The number of engines of a model: those asked for by `--engines`, or else as many as have
    the GPUs that they need, or one on each node if they need none, shared among so many runs.

    ClusterError if the cluster has no place for one, UsageError for more than fit.
    """
    fit = engines_that_fit(nodes, gpus_per_engine)
    needed = f"{_needs(gpus_per_engine)} of one node for each engine of {model}"
    if fit < 1:
        problem = f"no node of the cluster has {_needs(gpus_per_engine)} for an engine"
        hint = (
            "add a node that has them, by `ray start --address=…`, or give the model a smaller "
            "tensor_parallel_size; an engine is not spread over nodes"
        )
        if any(_engines_on(node.cpus, node.gpus, gpus_per_engine) for node in nodes):
            problem = "the CPUs or GPUs of the cluster are in use"
            hint = "wait until they are free: `ray status` shows what has them"
        raise ClusterError(problem, where=model, found=said_of(nodes), expected=needed, hint=hint)
    if asked is not None and asked > fit:
        raise _do_not_fit("--engines", asked, fit, nodes, where=model, needed=needed)
    usual = fit if gpus_per_engine else _with_a_cpu(nodes)
    return asked or max(1, usual // among)


def clients_to_open(nodes: Sequence[Node], asked: int | None) -> int:
    """The number of workers of a run without engines: those asked for by `--workers`, or else one
    on each node that has a CPU.

    UsageError for more than there are CPUs. Where others use these now, workers wait for them.
    """
    fit = sum(int(node.cpus) for node in nodes)
    if asked is not None and asked > fit:
        raise _do_not_fit("--workers", asked, fit, nodes, needed=f"{_needs(0)} for each worker")
    return asked or max(1, _with_a_cpu(nodes))


def workers_of(
    models: Sequence[Model], settings: RunSettings, found: Sequence[Node], *, among: int = 1
) -> tuple[int, int]:
    """The number of workers that a run opens on these nodes, and the GPUs that each of them has.

    Each engine has a worker of its own; without engines there are no more workers than requests
    that a server may get at the same time. So many runs share the nodes. UsageError for more
    workers or engines than fit, or engines whose workers would send a server more requests than it
    may get.
    """
    given = {one: many for one in models if (many := shared_concurrency(one)) is not None}
    narrow = min(given, key=lambda one: given[one], default=None)
    engines = [one for one in models if one.occupies is not None]
    if not engines:
        opened = clients_to_open(found, settings.workers)
        return opened if narrow is None else min(opened, given[narrow]), 0
    largest = max(engines, key=lambda one: one.gpus)
    opened = engines_to_open(
        found, largest.gpus, asked=settings.engines, model=largest.identity.label, among=among
    )
    if narrow is not None and given[narrow] < opened:
        raise UsageError(
            "a server may get fewer requests at the same time than the run has engines",
            where=narrow.identity.label,
            found=f"concurrency {given[narrow]}, and {opened} engines of {largest.identity.label}",
            expected=f"a concurrency of {opened} at least: the worker of each engine asks the "
            "server too",
            hint=f"give it, or --engines {given[narrow]}",
        )
    return opened, largest.gpus


def shared_concurrency(model: Model) -> int | None:
    """The requests that the workers of a run together may send to a model at the same time; None
    where each may send as many as the model can use. Each engine has a worker's own."""
    return model.concurrency if model.limited and model.occupies is None else None


def check_models(models: Sequence[Model], settings: RunSettings) -> None:
    """Raise UsageError for a number of workers or engines that none of the models has a use for."""
    check_counts(
        workers=settings.workers,
        engines=settings.engines,
        on_engines=[one.identity.label for one in models if one.occupies is not None],
        by_rest=[one.identity.label for one in models if one.occupies is None],
    )


def check_counts(
    *, workers: int | None, engines: int | None, on_engines: Sequence[str], by_rest: Sequence[str]
) -> None:
    """Raise UsageError for a number of workers or engines that no model of the run has a use for.

    `on_engines` are the models for which the run starts engines, `by_rest` the other ones.
    """
    if engines is not None and not on_engines:
        raise UsageError(
            "--engines needs a model for which the harness starts an engine",
            found=", ".join(by_rest),
            expected="a model such as vllm, or --workers N: the processes that ask servers",
        )
    if workers is not None and not by_rest:
        raise UsageError(
            "--workers needs a model that has a server of its own",
            found=", ".join(on_engines),
            expected="--engines N: each engine has one worker, on the node of the engine",
        )


def said_of(nodes: Sequence[Node]) -> str:
    """The nodes in one line, each with its free CPUs and GPUs."""
    if not nodes:
        return "no node"
    each = ", ".join(
        f"{node.name} ({node.address}): "
        + (f"{node.gpus_free:g} of {_gpus(node.gpus)} and " if node.gpus else "no GPU, ")
        + f"{node.cpus_free:g} of {node.cpus:g} CPUs free"
        for node in nodes
    )
    return f"{len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}: {each}"


def findings(address: str | None) -> Iterator[Finding]:
    """What `harness doctor` says of Ray; ClusterError if the run could not use it."""
    version = _ray().__version__
    if address is None:
        yield good("ray", f"Ray {version}; without {OPTION} a run uses this machine alone")
        return
    connect(address)
    try:
        yield good("ray", f"Ray {version}; {address}: {said_of(nodes())}")
    finally:
        disconnect()


def _ray(part: str = "") -> Any:
    """The package ray, or a module in it; ClusterError if it is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise ClusterError(
            "Ray is not installed", where="--executor ray", expected="the package ray", hint=INSTALL
        )
    return importlib.import_module(f"ray{part}")


def _asked(question: Callable[..., Any], *given: Any) -> Any:
    """The answer to a question that only a process of the cluster can ask: this one, unless it
    joined through ray://."""
    if _ray(WORKER).global_worker.connected:
        return question(*given)
    ray = _ray()
    return ray.get(ray.remote(question).options(num_cpus=0).remote(*given))


def _of_own_ray(stack: ExitStack) -> dict[str, Any]:
    """The arguments of a Ray of this process alone, whose token is in memory and in no file."""
    # The path of a socket has at most 107 bytes, and Ray puts 65 below its folder.
    folder = tempfile.mkdtemp(prefix="r-", dir=os.environ.get("RAY_TMPDIR") or "/tmp")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    stack.callback(_read_token_again)
    stack.enter_context(_variables(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32)))
    _read_token_again()
    return {"include_dashboard": False, "object_store_memory": MEMORY, "_temp_dir": folder}


def _read_token_again() -> None:
    """Have Ray read the variables of its token again, which it keeps once it has read them."""
    raylet = _ray("._raylet")
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextmanager
def _variables(**values: str) -> Iterator[None]:
    """Set these environment variables until the end."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM, which `ray.init` replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _replaced(part: str, name: str, instead: Callable[..., Any]) -> Iterator[None]:
    """Have a module of Ray call another function until the end."""
    module = _ray(part)
    before = getattr(module, name)
    setattr(module, name, instead)
    try:
        yield
    finally:
        setattr(module, name, before)


def _check_there(address: str) -> None:
    """Raise the error of an address at which no cluster is, within seconds."""
    resolved = _resolved(address)
    found = ADDRESS.fullmatch(resolved)
    if found is None:
        raise UsageError(f"{OPTION} cannot be used", found=resolved, expected=FORMS)
    try:
        place = found["host"].strip("[]"), int(found["port"])
        with socket.create_connection(place, timeout=SECONDS) as connection:
            there = os.environ.get("RAY_USE_TLS", "0") != "0" or _speaks_http2(connection)
    except (OSError, OverflowError) as error:
        raise _none_there(address, str(error)) from error
    if not there:
        raise _none_there(address, "a server that is no Ray")


def _speaks_http2(connection: socket.socket) -> bool:
    """Whether the other side answers as every server of gRPC does: with a frame of settings."""
    connection.sendall(HELLO)
    answer = connection.recv(9)
    return len(answer) > 3 and answer[3] == SETTINGS


def _resolved(address: str) -> str:
    """The address that `auto` stands for; every other address as it is."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address != "auto":
        return address
    try:
        return str(_ray("._private.services").canonicalize_bootstrap_address(address))
    except (ConnectionError, ValueError) as error:
        raise _none_there(address, "no Ray on this machine, and no RAY_ADDRESS") from error


def _none_there(address: str, found: str) -> ClusterError:
    return ClusterError(
        "no Ray cluster is at this address",
        where=f"{OPTION} {address}",
        found=found,
        expected="a cluster that runs, and to which this machine belongs",
        hint=f"{JOIN}; without {OPTION} a run uses this machine alone",
    )


def _error_of(error: Exception, address: str | None) -> HarnessError:
    """What Ray raised, in words for the user of a run."""
    if isinstance(error, HarnessError):
        return error
    where = f"{OPTION} {address}" if address else "--executor ray"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = " ".join([type(error).__name__ + ":", *lines[:6]])
    if "ersion mismatch" in found:
        return ClusterError(
            "the cluster runs another version of Ray or Python",
            where=where,
            found=found,
            expected="the same versions on all machines",
        )
    if type(error).__name__ == "AuthenticationError" or "AuthToken" in str(error.__cause__):
        return ClusterError(
            "the cluster asks for a token, and this machine has none, or another",
            where=where,
            expected="the token of the cluster",
            hint="copy ~/.ray/auth_token from the head of the cluster to this machine, and set "
            "RAY_AUTH_MODE to token",
        )
    if RAY_CLIENT in found:
        return ClusterError(
            "the head of the cluster could not start the process for this driver",
            where=where,
            found=RAY_CLIENT,
            hint="repeat the command; where this happens often, start the head by "
            "`GRPC_ENABLE_FORK_SUPPORT=0 ray start --head`",
        )
    if address is None:
        return ClusterError("Ray cannot be started on this machine", where=where, found=found)
    return ClusterError(
        "the Ray cluster cannot be joined",
        where=where,
        found=found,
        expected="a cluster to which this machine belongs",
        hint=JOIN,
    )


def _engines_on(cpus: float, gpus: float, gpus_per_engine: int) -> int:
    """The number of engines for which a node has so many CPUs and GPUs."""
    return int(min(cpus, gpus // gpus_per_engine) if gpus_per_engine else cpus)


def _with_a_cpu(nodes: Sequence[Node]) -> int:
    """The number of nodes that have a CPU for a worker."""
    return sum(node.cpus >= 1 for node in nodes)


def _do_not_fit(
    option: str,
    asked: int,
    fit: int,
    nodes: Sequence[Node],
    *,
    needed: str,
    where: str | None = None,
) -> UsageError:
    return UsageError(
        f"{option} {asked} do not fit on the cluster",
        where=where,
        found=said_of(nodes),
        expected=f"at most {fit}: {needed}",
        hint=f"give {option} {fit}, or leave {option} out: the run then opens as many as it can "
        "use",
    )


def _needs(gpus: int) -> str:
    return f"1 CPU and {_gpus(gpus)}" if gpus else "1 CPU"


def _gpus(many: float) -> str:
    return f"{many:g} GPU" if many == 1 else f"{many:g} GPUs"
