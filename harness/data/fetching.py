"""What may be fetched from the network, and what turns the network off."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import HarnessError

if TYPE_CHECKING:
    from harness.base.errors import Unavailable
    from harness.contracts.task import BuildSpec

OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")

_TRUE = {"1", "true", "yes", "on"}


class NotKept(HarnessError):
    """Data would be fetched or built."""


@dataclass(frozen=True, kw_only=True)
class BuildTool:
    """A data tool with all its options, except its inputs and its folder.

    `run` writes the data into a folder that does not exist yet, from the files of each input, and
    calls its last argument with what is done. If it `continues`, it goes on in a folder that it
    left unfinished.
    """

    plugin: str
    options: Mapping[str, Any]
    run: Callable[[Mapping[str, Sequence[Path]], Path, Callable[..., None]], None]
    continues: bool = False


@dataclass(frozen=True, kw_only=True)
class Fetching:
    """What may be fetched: nothing if `offline`, large files unasked with `download`.

    `say` shows a line. `tools` finds the data tools that build data; with `look`, none is built.
    With `stop`, NotKept is raised where something would be fetched or built.

    State: `failed` holds why downloads could not be had, so that several tasks try each once.
    """

    offline: bool = False
    download: bool = False
    look: bool = False
    stop: bool = False
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)
    tools: Callable[[BuildSpec], BuildTool] | None = None
    failed: dict[bytes, Unavailable] = field(default_factory=dict)

    def begin(self, line: str) -> None:
        """Show what is fetched or built now."""
        if self.stop:
            raise NotKept(line)
        self.say(line)

    def why_offline(self) -> str | None:
        """What turns the network off, as it follows `because`; None if nothing does."""
        if self.offline:
            return "of --offline"
        variable = next((one for one in OFFLINE if os.environ.get(one, "").lower() in _TRUE), None)
        return None if variable is None else f"{variable} is set"
