"""A run in a test: the bundled sample, models of the test's own, nothing kept beside its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.testing.scripted import ScriptedModel, offered
from harness.testing.server import FaultyServer

if TYPE_CHECKING:
    from harness.pipeline.run import RunResult

Player: TypeAlias = str | ScriptedModel | FaultyServer
"""Who plays a role: as the command line names it, a model of the test, or a running server."""


def run_tasks(
    tasks: str | Sequence[str],
    *,
    folder: Path,
    model: Player = "baseline",
    judge: Player | None = None,
    roles: Mapping[str, Player] | None = None,
    **settings: Any,
) -> RunResult:
    """What `harness.evaluate` gives, over the bundled sample unless `data` says otherwise.

    Run folders and the store of answered calls lie in `folder`. `settings` are those of
    `harness.evaluate`: limit, seed, changes, concurrency, max_failures, … What a server's own
    `answer` raised is raised here.
    """
    from harness.api import evaluate

    players = dict(roles or {}) | ({} if judge is None else {"judge": judge})
    everybody = (model, *players.values())
    scripted = dict.fromkeys(one for one in everybody if isinstance(one, ScriptedModel))
    places = {"data": "sample", "output_path": folder / "runs", "store": folder / "calls.sqlite"}
    with offered(tuple(scripted)):
        result = evaluate(
            tasks,
            model=spec_of(model),
            roles={role: spec_of(player) for role, player in players.items()},
            **(places | settings),
        )
    for player in everybody:
        if isinstance(player, FaultyServer) and player.mistake is not None:
            raise player.mistake
    return result


def spec_of(player: Player) -> str:
    """What stands for a player where the command line names one."""
    if isinstance(player, ScriptedModel):
        return player.spec
    if isinstance(player, FaultyServer):
        return f"openai:model=m,base_url={player.url}"
    return player
