"""The prompts of user behaviour prediction: built of a log, or loaded as a run's three tasks do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from harness_behaviour.building.tool import Settings, opened, run
from harness_behaviour.data import load
from harness_behaviour.records import Options

if __name__ == "__main__":
    what, domain, folder, *out = sys.argv[1:]
    recipe: dict[str, Any] = {"domain": domain}
    if what == "build":
        report = run(Settings(source=Path(folder), out=Path(*out), **recipe))
        print(report.notes[0])
    else:
        dataset = opened(domain, Path(folder), option="FOLDER")
        prompts = [
            one
            for setting in ("a", "b", "c")
            for one in load(dataset, Options(setting=setting, **recipe))
        ]
        print(f"{len(prompts):,} prompts")
