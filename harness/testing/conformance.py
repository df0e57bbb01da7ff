"""`check_plugin`: whether an installed plugin keeps what every plugin of the harness promises."""

from __future__ import annotations

import functools
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.base.errors import HarnessError, UsageError, did_you_mean
from harness.tasks.load import shown
from harness.testing.checks import CHECKS, Check, Finding
from harness.testing.trial import CannotBeTried, Trial, subject


class NotConforming(AssertionError):
    """A plugin that does not keep what it promises; `findings` are all that were made."""

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
    versions: str | Path | None = None,
) -> None:
    """Raise NotConforming with everything that is wrong with an installed plugin.

    `name` is that of its entry point or of its package. `tasks` are those that are run, all that
    have a sample unless given; `checks` some of `CHECKS`, all unless given. `without_answers` are
    metrics that have a value even where no question was answered, as the share of what could not be
    read. `versions` is the file that pins the versions of stages, which `python -m
    harness.testing.versions` writes.
    """
    chosen = _chosen(checks)
    one = subject(name)
    with tempfile.TemporaryDirectory(prefix="harness-check-") as folder:
        trial = Trial(one, Path(folder), tasks=tasks, without_answers=without_answers)
        if one.loaded is None:
            chosen = {"loads": CHECKS["loads"]}  # of nothing, all else would hold
        elif versions is not None:
            chosen["versions"] = functools.partial(_unpinned, file=Path(versions))
        findings = [
            finding for check, found in chosen.items() for finding in _made(check, found, trial)
        ]
    if findings:
        raise NotConforming(name, findings)


def _chosen(names: Sequence[str]) -> dict[str, Check]:
    for name in names:
        if name not in CHECKS:
            raise UsageError(
                f"no check {name!r}", expected=", ".join(CHECKS), hint=did_you_mean(name, CHECKS)
            )
    return {name: check for name, check in CHECKS.items() if name in (names or CHECKS)}


def _made(name: str, check: Check, trial: Trial) -> Iterator[Finding]:
    """The findings of one check; one that breaks off is a finding as well."""
    try:
        yield from check(trial)
    except CannotBeTried as reason:
        problem, to_do = f"cannot be tried: {reason}", "mend that first"
    except HarnessError as error:
        problem, to_do = str(error), "mend what the error names"
    except Exception:  # foreign code is called, and the other checks are still to be made
        problem = traceback.format_exc().strip()
        to_do = "mend what the traceback ends with"
    else:
        return
    yield Finding(check=name, where=f"plugin {trial.subject.name}", problem=problem, to_do=to_do)


def _unpinned(trial: Trial, file: Path) -> Iterator[Finding]:
    from harness.testing.versions import command_for, complaints, pins_of, read_pins

    place = shown(file)
    command = command_for(trial.subject.name, place)
    pinned, now = read_pins(file), pins_of(trial.subject)
    for line in complaints(pinned, now, command=command):
        problem, _, to_do = line.partition(": ")
        yield Finding(check="versions", where=place, problem=problem, to_do=to_do)
