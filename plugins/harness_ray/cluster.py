"""The Ray cluster that a run uses: how this process joins and leaves it."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import TracebackType
from typing import Any

from harness.base.errors import HarnessError, UsageError
from harness_ray.places import ClusterError, Node

INSTALL = "pip install 'user-understanding-harness[ray]'"
OPTION = "--ray_address"
ADDRESS = re.compile(r"(?:ray://)?(?P<host>\[[^\]\s]+\]|[^:/\s]+):(?P<port>\d{1,5})")
FORMS = "auto, HOST:PORT or ray://HOST:PORT"
JOIN = "run `ray start --head` on one machine, and on each other `ray start --address=HOST:6379`"

SECONDS = 10
"""How long a cluster may take to say that it is there; Ray itself would wait for minutes."""

IMPATIENT = {
    "RAY_NUM_REDIS_GET_RETRIES": "2",
    "RAY_gcs_rpc_server_connect_timeout_s": "1",
    "RAY_py_gcs_connect_timeout_s": "5",
}
"""How Ray tries to join a cluster: for 16 seconds where what answers is no Ray, not for minutes. It
reads this when it is imported."""

_joined: list[Cluster] = []
"""The cluster that this process has joined, if it has."""

_given: list[bool] = []
"""Not empty once Ray has read the token of this process."""

TOKEN = secrets.token_hex(32)
"""The token of the Rays that this process starts: Ray keeps the first that it reads."""

MEMORY = 256 * 1024**2
"""The bytes of shared memory of a Ray that this process starts: what is passed on is small, and Ray
would take a third of the machine's memory."""


class Cluster:
    """A cluster by its address, or a Ray of this process alone without one.

    In a process that has joined a cluster already, that one is used, and stays joined.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._stack = ExitStack()

    def join(self) -> None:
        """Join the cluster, or start a Ray; ClusterError if there is none, or Ray is missing."""
        with ExitStack() as stack:
            stack.enter_context(_variables(RAY_USAGE_STATS_ENABLED="0"))
            # Ray would tell of a worker's death on standard output, among the results.
            stack.enter_context(_variables(RAY_DEDUP_LOGS="1", RAY_DEDUP_LOGS_SKIP_REGEX="."))
            if self._address is None:
                stack.enter_context(_own_token())
            else:
                stack.enter_context(_variables(**IMPATIENT))
            ray = ray_package()
            if ray.is_initialized():
                self._check_joined(ray.get_runtime_context().gcs_address)
                return
            if self._address is not None:
                _check_there(self._address)
            own = {} if self._address else _of_own_ray(stack)
            stack.callback(ray.shutdown)
            try:
                with _own_sigterm(), _without_arguments():
                    ray.init(
                        address=self._address or "local",
                        namespace="harness",
                        log_to_driver=False,
                        logging_level="critical",
                        **own,
                    )
            except Exception as error:
                raise _error_of(error, self._address) from error
            self._stack = stack.pop_all()
        _joined.append(self)
        atexit.register(self.leave)

    def _check_joined(self, used: str) -> None:
        """Raise UsageError for the address of another cluster than this process uses."""
        if self._address not in {None, "auto", used, *(one._address for one in _joined)}:
            raise UsageError(
                "this process uses another Ray cluster already",
                where=f"{OPTION} {self._address}",
                found=used,
                expected="the same address",
                hint=f"leave {OPTION} out, or start the run in a process of its own",
            )

    def leave(self) -> None:
        """Leave the cluster; a Ray that `join` started ends, and its folder is removed."""
        if self in _joined:
            _joined.remove(self)
            atexit.unregister(self.leave)
            self._stack.close()

    def __enter__(self) -> None:
        self.join()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.leave()


def ray_package() -> Any:
    """The package ray; ClusterError if it is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise ClusterError(
            "Ray is not installed", where="--executor ray", expected="the package ray", hint=INSTALL
        )
    return importlib.import_module("ray")


def nodes() -> tuple[Node, ...]:
    """The nodes of the cluster that are alive, by name."""
    found = [
        Node(
            name=each["NodeManagerHostname"],
            address=each["NodeManagerAddress"],
            cpus=each["Resources"].get("CPU", 0.0),
            gpus=each["Resources"].get("GPU", 0.0),
        )
        for each in ray_package().nodes()
        if each["Alive"]
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.address)))


def _of_own_ray(stack: ExitStack) -> dict[str, Any]:
    """The arguments of a Ray of this process alone."""
    # The path of a socket has at most 107 bytes, and Ray puts 65 below its folder.
    folder = tempfile.mkdtemp(prefix="r-", dir=os.environ.get("RAY_TMPDIR") or "/tmp")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return {"include_dashboard": False, "object_store_memory": MEMORY, "_temp_dir": folder}


def _own_token() -> AbstractContextManager[None]:
    """Give a Ray of this process a token, which is in memory and in no file.

    Ray reads it when it is imported: who imported it before has decided whether it has one.
    """
    if importlib.util.find_spec("ray") is None or ("ray" in sys.modules and not _given):
        return nullcontext()
    _given.append(True)
    return _variables(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN)


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
def _without_arguments() -> Iterator[None]:
    """Hide the arguments of the command, which may hold keys: Ray lists the command of a job, which
    it takes from psutil."""
    import psutil

    own, whole = os.getpid(), psutil.Process.cmdline
    psutil.Process.cmdline = lambda one: ["harness"] if one.pid == own else whole(one)
    try:
        yield
    finally:
        psutil.Process.cmdline = whole


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


def _check_there(address: str) -> None:
    """Raise the error of an address at which no cluster is, within seconds."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address == "auto":
        return  # Ray knows at once whether this machine belongs to one
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise UsageError(f"{OPTION} cannot be used", found=address, expected=FORMS)
    try:
        place = found["host"].strip("[]"), int(found["port"])
        socket.create_connection(place, timeout=SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _none_there(address, str(error)) from error


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
    if address is None:
        return ClusterError("Ray cannot be started on this machine", where=where, found=found)
    if type(error).__name__ == "AuthenticationError" or "AuthToken" in str(error.__cause__):
        return ClusterError(
            "the cluster asks for a token, and this machine has none, or another",
            where=where,
            expected="the token of the cluster",
            hint="copy ~/.ray/auth_token from the head of the cluster to this machine, and set "
            "RAY_AUTH_MODE to token",
        )
    if isinstance(error, ConnectionError):
        if "Could not find any running Ray instance" in found:
            return _none_there(address, "no Ray on this machine, and no RAY_ADDRESS")
        return _none_there(address, f"something that does not answer as Ray does; {found}")
    if "ersion mismatch" in found:
        return ClusterError(
            "the cluster runs another version of Ray or Python",
            where=where,
            found=found,
            expected="the same versions on all machines",
        )
    return ClusterError(
        "the Ray cluster cannot be joined",
        where=where,
        found=found,
        expected="a cluster to which this machine belongs",
        hint=JOIN,
    )
