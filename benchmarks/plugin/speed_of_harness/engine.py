"""The model `vllm`, whose server stays open from one run to the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness_models import vllm
from harness_models.server.served import ServedModel

if TYPE_CHECKING:
    from harness import ModelSettings

_kept: list[KeptEngine] = []


class KeptEngine(ServedModel):
    """Started and asked as `--model vllm` is; closed by `end` alone, so that turns share a server.

    `socket` is where its server listens, and `flags` are what that was started with, once it is
    open.
    """

    def __init__(self, settings: ModelSettings) -> None:
        engine = vllm.make(settings).engine
        self.socket = ""
        self.flags: Sequence[str] = ()
        super().__init__(dataclasses.replace(engine, command=self._noted), settings)
        self._usual_command = engine.command

    def _noted(self, socket: str) -> Sequence[str]:
        command = self._usual_command(socket)
        place = command.index("--uds")
        self.socket, self.flags = socket, command[place + 2 :]
        return command

    async def close(self) -> None:
        """Nothing: another run comes."""

    async def end(self) -> None:
        """End the server."""
        await super().close()


def keep(settings: ModelSettings) -> KeptEngine:
    """The engine that runs of `kept` ask from now on."""
    _kept[:] = [KeptEngine(settings)]
    return _kept[0]


def kept(settings: ModelSettings) -> KeptEngine:
    """That engine, with as many requests in flight as a run wants."""
    [engine] = _kept
    engine.concurrency = settings.concurrency or engine.concurrency
    return engine
