"""Runs of tasks in tests: over the bundled sample, with scripted models, in the test's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.testing.scripted import ScriptedModel, offered
from harness.testing.server import FaultyServer

if TYPE_CHECKING:
    from harness.pipeline.run import RunResult

Player: TypeAlias = str | ScriptedModel | FaultyServer
"""The model for a role: a SPEC of the command line, a scripted model, or a running server."""


def run_tasks(
    tasks: str | Sequence[str],
    *,
    folder: Path,
    model: Player = "baseline",
    judge: Player | None = None,
    roles: Mapping[str, Player] | None = None,
    **settings: Any,
) -> RunResult:
    """The result of `harness.evaluate`, over the bundled sample unless `data` is given.

        result = run_tasks("films", folder=tmp_path, model=ScriptedModel("comedy"))

    `folder` gets the run folders and the store of answered calls. `judge` and `roles` give the
    models of the roles other than the candidate. `settings` are further arguments of
    `harness.evaluate`: limit, seed, set, concurrency, max_failures, … An error that a server's
    `answer` raised is raised here.
    """
    from harness.api import evaluate

    players = dict(roles or {}) | ({} if judge is None else {"judge": judge})
    everybody = (model, *players.values())
    scripted = dict.fromkeys(one for one in everybody if isinstance(one, ScriptedModel))
    places: dict[str, Any] = {
        "data": "sample",
        "output_path": folder / "runs",
        "store": folder / "calls.sqlite",
    }
    with offered(tuple(scripted)):
        result = evaluate(
            tasks,
            model=spec_of(model),
            role={role: spec_of(player) for role, player in players.items()},
            **(places | settings),
        )
    for player in everybody:
        if isinstance(player, FaultyServer) and player.mistake is not None:
            raise player.mistake
    return result


def spec_of(player: Player) -> str:
    """The SPEC of a player on the command line."""
    if isinstance(player, ScriptedModel):
        return player.spec
    if isinstance(player, FaultyServer):
        return f"openai:model=m,base_url={player.url}"
    return player
