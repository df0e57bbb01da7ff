"""`harness … --rescore_only`: a finished run of the same command, scored under other options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from harness.cli.errors import print_error
from harness.cli.score import NamedRun, print_run, rescore_run
from harness.errors import DataError, HarnessError, UsageError

if TYPE_CHECKING:
    from harness.pipeline.settings import RunSettings
    from harness.plugin_manager import Plugins
    from harness.results.folder import RunFolder
    from harness.results.manifest import Manifest
    from harness.results.rescoring import Rescoring
    from harness.tasks.task import Task

FREE = ("changes", "fresh")
"""What a run may have been asked differently: what was changed, and whether answers were old."""

MOST_TOLD = 5


def rescore_only(settings: RunSettings, *, json: bool) -> int:
    """Print the newest finished run of these settings as scored under them; the exit code."""
    from harness.plugin_manager import load_plugins
    from harness.tasks.catalogue import Catalogue
    from harness.tasks.changes import apply_changes
    from harness.tasks.repeats import repeat_of

    plugins = load_plugins()
    chosen = Catalogue(plugins, include_path=settings.include_path).select(settings.tasks).tasks
    changed = apply_changes(chosen, settings.changes, benchmark=plugins.benchmark)
    wanted = [repeat_of(task, k) for k in range(1, settings.num_repeats + 1) for task in changed]
    folder, manifest, ways = _find(settings, wanted, plugins)
    run = NamedRun(named=str(folder.path), opened=(folder, manifest))
    with TemporaryDirectory(prefix="harness-score-") as scratch:
        rescore_run(run, ways, {manifest.run_id: manifest.model}, into=Path(scratch))
    if json:
        from harness.cli.json_output import print_json

        print_json({"runs": [run.as_json()], "comparisons": []})
    else:
        print_run(run)
    for error in run.errors:
        print_error(error)
    return run.errors[0].exit_code if run.errors else 0


def _find(
    settings: RunSettings, wanted: Sequence[Task], plugins: Plugins
) -> tuple[RunFolder, Manifest, list[Rescoring]]:
    """The newest finished run that needs no more than scoring; an error that says what there is."""
    from harness.redaction import redacted_args, without_key_material
    from harness.results.unlike import told, unlike

    asked = _without_free(without_key_material(redacted_args(settings.asked())))
    first: HarnessError | None = None
    others = []
    for folder, manifest in _runs(settings.output_path):
        different = unlike(_without_free(manifest.asked), asked)
        if different:
            others.append(f"{folder.path.name}: {'; '.join(told(different))}")
        elif manifest.status != "done":
            others.append(f"{folder.path.name}: not finished ({manifest.status})")
        elif absent := [task.name for task in wanted if task.name not in manifest.tasks]:
            others.append(f"{folder.path.name}: this run does not hold task {', '.join(absent)}")
        else:
            try:
                return folder, manifest, _ways(manifest, wanted, plugins)
            except UsageError as error:
                first = first or error
    if first is not None:
        raise first
    more = [f"and {len(others) - MOST_TOLD} more"] if len(others) > MOST_TOLD else []
    raise DataError(
        "no finished run was asked this",
        where=str(settings.output_path),
        found="\n            ".join([*others[:MOST_TOLD], *more]) or "no run",
        expected=f"a run of {', '.join(settings.tasks)} with the same model, roles, data, limit, "
        "seed and sampling",
        hint="the same command without --rescore_only makes one; runs elsewhere are found with "
        "--output_path",
    )


def _ways(manifest: Manifest, wanted: Sequence[Task], plugins: Plugins) -> list[Rescoring]:
    from harness.results.rescoring import rescoring

    return [
        rescoring(manifest.tasks[task.name].task(), task, plugins.benchmark(task.benchmark))
        for task in wanted
    ]


def _without_free(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name not in FREE}


def _runs(output_path: Path) -> Iterator[tuple[RunFolder, Manifest]]:
    """The runs in a folder, newest first; what is no run, or cannot be read, is passed over."""
    from harness.results.folder import RunFolder

    found = []
    for path in output_path.iterdir() if output_path.is_dir() else ():
        folder = RunFolder(path)
        try:
            manifest = folder.manifest()
        except HarnessError:
            continue
        started = manifest.sessions[0].started if manifest.sessions else ""
        found.append((started, manifest.run_id, folder, manifest))
    for _, _, folder, manifest in sorted(found, key=lambda each: each[:2], reverse=True):
        yield folder, manifest
