"""`check_plugin`, which tests whether an installed plugin behaves as the harness requires."""

from __future__ import annotations

import functools
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import HarnessError, one_of
from harness.tasks.load import shown
from harness.testing.checks import CHECKS, Check
from harness.testing.trial import Finding, SampleRunFailed, SampleRuns, plugin_under_test


class NotConforming(AssertionError):
    """A plugin has problems; `findings` holds all of them."""

    def __init__(self, plugin: str, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        count = f"{len(findings)} finding{'' if len(findings) == 1 else 's'}"
        lines = "\n\n".join(str(finding) for finding in findings)
        super().__init__(f"the plugin {plugin!r} has {count}:\n\n{lines}")


def check_plugin(
    name: str,
    *,
    tasks: Sequence[str] = (),
    checks: Sequence[str] = (),
    without_answers: Sequence[str] = (),
    limit: int | None = None,
    data: str = "sample",
    folder: Path | None = None,
    versions: str | Path | None = None,
) -> None:
    """Raise NotConforming with all problems of an installed plugin.

        def test_the_plugin_conforms():
            check_plugin("films", versions="tests/versions.json")

    `name` is the name of its entry point or package. `tasks` are the tasks to run, by default all
    tasks with a sample. `checks` are names in `CHECKS`, by default all. `without_answers` names
    metrics that have a value even if no question was answered, such as a share of unreadable
    replies. `limit` is how many users of a large sample are asked about, by default all; `data` is
    a folder that is asked about in place of the sample. Calls with the same `folder` share their
    runs: the pytest fixture `harness_checks` has one for all tests. `versions` is the file that
    pins the versions of stages; `python -m harness.testing.versions` writes it.
    """
    for check in checks:
        one_of(check, CHECKS, f"no check is named {check!r}")
    chosen = {check: CHECKS[check] for check in CHECKS if check in (checks or CHECKS)}
    with tempfile.TemporaryDirectory(prefix="harness-check-") as temporary:
        asked = {
            "tasks": tuple(tasks), "without_answers": tuple(without_answers), "limit": limit,
            "data": data,
        }  # fmt: skip
        trial = _trial(name, folder or Path(temporary), tuple(asked.items()))
        if trial.plugin.loaded is None:
            chosen = {"loads": CHECKS["loads"]}  # without a plugin, all other checks would pass
        elif versions is not None:
            chosen["versions"] = functools.partial(_unpinned, file=Path(versions))
        findings = [
            finding for check, found in chosen.items() for finding in _made(check, found, trial)
        ]
    if findings:
        raise NotConforming(name, findings)


@functools.lru_cache(maxsize=8)
def _trial(name: str, folder: Path, asked: tuple[tuple[str, Any], ...]) -> SampleRuns:
    """The runs of a plugin, which are made once in a folder."""
    return SampleRuns(plugin_under_test(name), folder / name, **dict(asked))


def _made(name: str, check: Check, trial: SampleRuns) -> Iterator[Finding]:
    """The findings of one check; an error of the check is a finding as well."""
    try:
        for finding in check(trial):
            yield replace(finding, check=name)
    except SampleRunFailed as reason:
        problem, to_do = f"this check cannot run: {reason}", "correct that first"
    except HarnessError as error:
        problem, to_do = str(error), "correct the cause of the error"
    except Exception:  # foreign code: the other checks still run
        problem = traceback.format_exc().strip()
        to_do = "correct the error at the end of the traceback"
    else:
        return
    yield Finding(f"plugin {trial.plugin.name}", problem, to_do, check=name)


def _unpinned(trial: SampleRuns, file: Path) -> Iterator[Finding]:
    from harness.testing.versions import command_for, pin_problems, pins_of, read_pins

    place = shown(file)
    command = command_for(trial.plugin.name, place)
    pinned, now = read_pins(file), pins_of(trial.plugin)
    for line in pin_problems(pinned, now, command=command):
        problem, _, to_do = line.partition(": ")
        yield Finding(place, problem, to_do)
