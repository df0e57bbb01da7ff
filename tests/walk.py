"""How many files a small run enters, and one of its items: `make weight WALK=1`, or this script.

The run has one person of the sample of `gist_synthetic`, the model `baseline` and the judge
`lexical`; the item is that of the stage `predict`. A file counts if it is imported or a function
of it is called, by whatever works the run or the item. With `--names` the files are listed.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

from weight import ROOT

STAGE = "predict"
RUN = "run --model baseline --judge lexical --tasks gist_synthetic --data sample --limit 1"

in_item: ContextVar[bool] = ContextVar("in_item", default=False)
"""Whether what runs now works the item: tasks that it starts inherit this."""


def walk() -> tuple[set[str], set[str]]:
    """The files of the harness and of its plugins that the run enters, and those of the item."""
    of_run, of_item = set[str](), set[str]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            of_run.add(frame.f_code.co_filename)
            if in_item.get():
                of_item.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    from builders.commands import run_cli

    from harness.pipeline.executors.lanes import Lanes

    process = Lanes._process

    async def marked(self: Lanes, job: Any) -> None:
        in_item.set(job.queue.run.context.stage.name == STAGE)
        await process(self, job)
        in_item.set(False)

    Lanes._process = marked  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        run_cli(*RUN.split(), folder=Path(folder)).ok()
    sys.setprofile(None)
    threading.setprofile(None)
    own = (f"{ROOT}/harness/", f"{ROOT}/plugins/")
    run, item = ({name for name in files if name.startswith(own)} for files in (of_run, of_item))
    return run, item


if __name__ == "__main__":
    for what, files in zip(("a small run", f"an item of {STAGE}"), walk(), strict=True):
        sys.stdout.write(f"{len(files):>12}  files that {what} enters\n")
        if "--names" in sys.argv:
            names = (Path(file).relative_to(ROOT) for file in sorted(files))
            sys.stdout.writelines(f"{'':14}{name}\n" for name in names)
