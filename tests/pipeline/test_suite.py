from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from builders.runs import make_manifest

from harness.base.hashing import digest
from harness.pipeline.settings import RunSettings
from harness.pipeline.suite import (
    FinishedRuns,
    PlannedSuiteRun,
    exit_code_of,
    judges_come_later,
    read_suite,
    tagged,
)
from harness.registry import Plugins
from harness.runs.manifest import RoleEntry, Session
from harness.runs.run_folder import RunFolder

SETTINGS = RunSettings(tasks=("t",), model="m", name="night", seed=3)
BY_RULE = {"candidate": RoleEntry(name="m", by_rule=True)}
PINNED = {"candidate": RoleEntry(name="m", identity={"model": {"revision": "a1"}})}
UNPINNED = {"candidate": RoleEntry(name="m", identity={"model": {"run": "r"}})}
PANEL = {
    "judge": RoleEntry(
        name="p",
        identity={"members": {"a": {"model": {"revision": "1"}}, "b": {"model": {"run": "r"}}}},
    )
}


def found(tmp_path: Path, *runs: dict[str, object]) -> str | None:
    """The name of the folder that a suite takes for `SETTINGS`, of runs given newest first."""
    kept = []
    for number, fields in enumerate(runs):
        usual = {
            "run_key": digest(SETTINGS.asked()), "name": "night", "delivered": True,
            "tags": {"suite": "s"}, "roles": BY_RULE,
        }  # fmt: skip
        kept.append((RunFolder(tmp_path / str(number)), make_manifest(**{**usual, **fields})))
    path = FinishedRuns(kept, planned=(), plugins=Plugins.__new__(Plugins)).find(SETTINGS)
    return None if path is None else path.name


def ended(hours: float) -> dict[str, object]:
    at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    return {"sessions": (Session(started=at, ended=at, status="done"),)}


def test_the_newest_run_that_is_done_is_taken(tmp_path):
    assert found(tmp_path, {}, {}) == "0"
    assert found(tmp_path, {"status": "failed"}, {}) == "1"
    assert found(tmp_path) is None
    # Nothing says when it ended.
    assert found(tmp_path, {"roles": UNPINNED}) is None


@pytest.mark.parametrize(
    "other",
    [
        {"status": "running"}, {"delivered": False}, {"name": "other"}, {"run_key": "k"},
        {"tags": {"model": "m"}},
    ],
)  # fmt: skip
def test_a_run_is_another_or_not_done_in_one_respect(tmp_path, other):
    assert found(tmp_path, other) is None


@pytest.mark.parametrize(
    ("roles", "hours", "taken"),
    [
        (PINNED, 1_000, True), (BY_RULE, 1_000, True), (UNPINNED, 19, True), (UNPINNED, 21, False),
        (PANEL, 21, False), (PANEL, 19, True), ({**PINNED, **PANEL}, 21, False),
    ],
)  # fmt: skip
def test_a_name_without_a_revision_means_the_same_weights_for_twenty_hours(
    tmp_path, roles, hours, taken
):
    assert (found(tmp_path, {"roles": roles, **ended(hours)}) == "0") is taken


def test_the_exit_code_of_several_is_that_of_the_worst():
    assert exit_code_of([]) == exit_code_of([0, 0]) == 0
    assert exit_code_of([0, 4]) == 4
    assert exit_code_of([4, 3, 0]) == 3
    assert exit_code_of([3, 4, 1]) == exit_code_of([3, 2]) == 1


def test_tags_of_the_user_come_before_those_of_the_suite():
    given = msgspec.structs.replace(SETTINGS, tags={"model": "mine", "week": "47"})
    assert tagged(SETTINGS, suite="s", entry="e").tags == {"suite": "s", "model": "e"}
    assert tagged(given, suite="s", entry="e").tags == {
        "suite": "s", "model": "mine", "week": "47",
    }  # fmt: skip


def test_judges_come_in_a_second_session_only_if_that_asks_no_failure_a_second_time():
    def planned(**fields):
        settings = msgspec.structs.replace(SETTINGS, **fields)
        return PlannedSuiteRun(name="m", entry="m", seed=0, settings=settings)

    assert judges_come_later([planned(), planned()])
    assert not judges_come_later([planned()])
    assert not judges_come_later([planned(), planned(retry_failures=True)])


GLOB = "models: [{name: night, glob: 'night-*', kind: vllm, args: {tp: 2}}]\ntasks: [t]\n"


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text):
        (tmp_path / "nightly.yaml").write_text(text)
        return read_suite(Path("nightly.yaml"))

    return read


def test_a_glob_is_a_model_for_each_match_chosen_by_its_entry_or_its_name(suite, tmp_path):
    for folder in ("night-b", "night-a", "day", "night-" + "x" * 50 + " 1"):
        (tmp_path / folder).mkdir()
    found = suite(GLOB)
    night_a, night_b, long = found.candidates
    assert long.name == "x" * 38 + "_1"  # only what a label may have
    assert (night_a.name, night_a.entry, night_a.kind) == ("night-a", "night", "vllm")
    assert night_a.args == {"tp": 2, "pretrained": "night-a"}
    assert found.chosen(None) == found.chosen("night") == (night_a, night_b, long)
    assert found.chosen("night-b") == (night_b,)
