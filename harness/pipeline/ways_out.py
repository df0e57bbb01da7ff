"""The commands that can run in place of one that cannot."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from harness.base.errors import HarnessError
from harness.contracts.finding import WIDTH
from harness.pipeline.preparation import prepare
from harness.pipeline.roles import JUDGE
from harness.pipeline.settings import RunSettings
from harness.pipeline.specs import parse_args

if TYPE_CHECKING:
    from harness.registry import Plugins

WAYS = {
    "now, without a GPU": ("baseline", "", "lexical"),
    "with a server": ("openai", "base_url=…,model=…", "openai:base_url=…,model=…"),
}
"""The model with its arguments, and the judge; the user fills in what is left open."""

FILLED = "http://127.0.0.1:1"
"""Stands for what the user fills in while a command is tried, which asks no server."""


def ways_out(settings: RunSettings, plugins: Plugins, *, lacks_data: bool) -> list[str]:
    """The lines of commands for the same tasks that can be prepared, below what each is for.

    They have the data of the settings, or the bundled sample if a run `lacks_data`.
    """
    data = settings.data if isinstance(settings.data, str) and not lacks_data else "sample"
    lines = []
    for purpose, (kind, args, judge) in WAYS.items():
        trial = RunSettings(
            tasks=settings.tasks, model=kind, model_args=parse_args(args.replace("…", FILLED)),
            roles={JUDGE: judge.replace("…", FILLED)}, allow_self_judging=True, data=data,
            include_path=settings.include_path, use_store=False,
        )  # fmt: skip
        try:
            tasks = prepare(trial, plugins, say=lambda line: None).tasks
        except HarnessError:
            continue
        judged = any(JUDGE in each.bindings for each in tasks)
        named = ("--model", kind), ("--model_args", args), ("--judge", judge if judged else "")
        own = ("--tasks", ",".join(settings.tasks)), ("--data", data)
        folders = (("--include_path", str(one)) for one in settings.include_path)
        # A blank of its own keeps an option and its value on one line.
        words = [f"{name}\0{value}" for name, value in named if value]
        words += [f"{name}\0{shlex.quote(value)}" for name, value in (*own, *folders)]
        text = textwrap.fill(
            " ".join(["harness", *words]), WIDTH - 2, initial_indent="    ",
            subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        lines += [f"  {purpose}:", text.replace("\n", " \\\n").replace("\0", " ")]
    return lines
