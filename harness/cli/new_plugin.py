"""`harness new-plugin NAME`: a new package with a benchmark to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.cli.command import PATH, argument, command, option


@command("harness new-plugin my-bench", "harness new-plugin my-bench --stages --into ~")
@argument("name", metavar="NAME", help="of the package, as my-bench; its task is my_bench")
@option("--into", metavar="DIR", type=PATH, default=".", help="where its folder is created (here)")
@option(
    "--stages", is_flag=True, help="two stages, options and a judge, instead of one question a row",
)  # fmt: skip
def new_plugin(name: str, into: Path, stages: bool) -> int:
    """Create a package that installs, runs with the baseline and passes its own tests: pyproject,
    task, prompt, sample, baseline, tests. Then change it to your benchmark.
    """
    from harness.cli.scaffold import SIMPLE, STAGES, write_plugin

    written = write_plugin(name, STAGES if stages else SIMPLE, into=into)
    folder = shlex.quote(str(written.folder))
    print(f"{written.folder}: {len(written.files)} files. Next:")
    print(f"  pip install -e {folder}")
    print(f"  {written.run}")
    print(f"  python -m pytest {folder}")
    return 0
