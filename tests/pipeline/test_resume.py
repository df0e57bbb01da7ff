import json
import os
import time

import msgspec
import pytest

from harness.base.errors import UsageError
from harness.base.hashing import LINE, digest, sealed
from harness.pipeline import resume as folders
from harness.pipeline.preparation import prepare
from harness.pipeline.resume import LockedFolder, lock_folder
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins
from harness.reporting.display import QuietDisplay
from harness.runs.manifest import session_ended, stage_finished
from harness.runs.run_folder import RunFolder

ASKED = {
    "tasks": "interests", "model": "baseline", "roles": {"judge": "lexical"}, "data": "sample",
    "limit": 2,
}  # fmt: skip
SERVED = {"model": "openai:m", "model_args": "base_url=http://127.0.0.1:9/v1"}


@pytest.fixture
def take(tmp_path):
    """Take a folder as a run of these settings does; what was told stands in `take.told`."""
    taken_folders = []

    class Told(QuietDisplay):
        def show_line(self, text, *, problem=False):
            take.told.append(text)

    def take(**given):
        settings = make_settings({**ASKED, "output_path": tmp_path / "runs", **given})
        prepared = prepare(settings, load_plugins())
        taken = lock_folder(prepared, display=Told(None))
        taken_folders.append(taken.folder)
        contexts = {each.task.name: each.contexts(taken.run_id) for each in prepared.tasks}
        taken.begin(prepared, contexts, {})
        return taken

    take.told = []
    yield take
    for folder in taken_folders:
        folder.unlock()


def left(taken, status="interrupted"):
    """The same folder as a run that ended so leaves it."""
    taken.manifest = session_ended(taken.manifest, status)
    taken.save()
    if status == "done":
        taken.delivered()
    taken.folder.unlock()
    return taken.folder.path


def test_a_run_begins_in_a_new_folder_and_says_what_it_is_made_of(take):
    taken = take(seed=5)
    assert taken.resumed is False
    assert taken.run_id == f"{taken.folder.path.name}-{taken.manifest.token}"
    manifest = json.loads((taken.folder.path / "manifest.json").read_text())
    assert (manifest["status"], manifest["seed"], manifest["limit"]) == ("running", 5, 2)
    assert [session["status"] for session in manifest["sessions"]] == ["running"]
    assert manifest["roles"]["judge"]["name"] == "lexical"
    entry = manifest["tasks"]["interests"]
    found = [(stage["name"], stage["file"]) for stage in entry["stages"]]
    assert found == [("name", "1-name.jsonl"), ("support", "2-support.jsonl")]
    assert [stage["components"]["seed"] for stage in entry["stages"]] == [5, 5]
    reasons = ["bundled sample data", "--limit 2", "judged by rule: lexical"]
    assert entry["not_comparable_because"] == reasons
    manifest = taken.manifest
    assert manifest.versions["benchmark interests"] == "1"
    assert set(manifest.versions) >= {"python", "user-understanding-harness", "openai"}
    assert all(len(commit) >= 40 for commit in manifest.commits.values())


def test_what_options_only_point_to_is_kept_by_its_content(take, tmp_path):
    file = tmp_path / "few.csv"
    given = {"tasks": "gist_synthetic", "changes": {"taxonomy": str(file)}}

    def contents(name):
        file.write_text(f"category_id,category_name\n1,{name}\n")
        taken = take(**given)
        left(taken, "done")
        return taken.manifest.tasks["gist_synthetic"].contents

    before, same, edited = contents("Tea"), contents("Tea"), contents("Coffee")
    assert before == same != edited
    assert [*before] == ["taxonomy"]
    assert take().manifest.tasks["interests"].contents == {}


def test_runs_of_one_second_in_two_places_are_two(take, tmp_path):
    one, two = (take(output_path=str(tmp_path / name)) for name in ("a", "b"))
    assert one.run_id != two.run_id


@pytest.mark.parametrize("status", ["running", "interrupted", "failed", "too_many_failures"])
def test_what_was_left_unfinished_is_taken_up(take, status):
    before = take()
    path = left(before, status)
    taken = take()
    assert (taken.folder.path, taken.resumed) == (path, True)
    assert taken.run_id == before.run_id
    assert take.told == [f"resuming {path} ({status.replace('_', ' ')} before)"]
    assert [session.status for session in taken.manifest.sessions] == [status, "running"]


def test_a_finished_run_is_reopened_by_retrying_failures_only(take):
    path = left(take(), "done")
    assert left(take(retry_failures=True), "done") == path
    assert left(take()) != path


def run_key(**given):
    """What the folder of a run is found by, where nothing is prepared."""
    return digest(make_settings({**ASKED, **given}).asked())


DECIDES_NOTHING = (
    {"concurrency": 3}, {"patience": {"attempts": 2}}, {"budget": {"calls": 9}},
    {"max_failures": "0.5"}, {"retry_failures": True}, {"one_engine_at_a_time": True},
    {"allow_self_judging": True}, {"use_store": False}, {"executor": "ray", "workers": 8},
)  # fmt: skip
DECIDES_RESULTS = (
    {"tasks": "interests_short"}, {"seed": 1}, {"limit": 3}, {"structured": True}, {"fresh": True},
    {"sampling": {"temperature": 0.5}}, {"changes": {"window": 5}}, {"changes": {"window": 10}},
)  # fmt: skip


def test_settings_that_decide_results_are_another_run_and_others_the_same():
    assert {run_key(**more) for more in DECIDES_NOTHING} == {run_key()}
    others = {run_key(**more) for more in DECIDES_RESULTS}
    assert len({run_key(), *others}) == 1 + len(DECIDES_RESULTS)


def test_a_run_is_found_by_the_key_of_its_settings(take):
    before = take()
    assert before.manifest.run_key == run_key()
    path = left(before)
    assert take(concurrency=3).folder.path == path
    other = left(take(fresh=True))
    assert other != path
    assert left(take(fresh=True)) == other


def aged(path, hours):
    then = time.time() - 3600 * hours
    for file in path.rglob("*"):
        os.utime(file, (then, then))


@pytest.mark.parametrize(
    ("hours", "revision", "same"),
    [(19.9, "", True), (20.1, "", False), (24 * 365, ",revision=a", True)],
)
def test_a_name_without_a_revision_stands_for_the_same_weights_for_so_long(
    take, hours, revision, same
):
    given = {**SERVED, "model_args": SERVED["model_args"] + revision}
    path = left(take(**given))
    aged(path, hours)
    taken = take(**given)
    assert (taken.folder.path == path, taken.resumed) == (same, same)
    assert any("has no revision=" in line for line in take.told) is not same


def test_a_run_that_is_too_old_is_taken_up_where_it_is_written_to_or_named(take):
    path = left(take(**SERVED))
    aged(path, 30)
    (path / "interests").mkdir()
    (path / "interests" / "1-name.jsonl").write_text("")
    assert left(take(**SERVED)) == path
    aged(path, 30)
    assert take(**SERVED).folder.path != path
    aged(path, 30)
    assert take(**SERVED, resume=path).folder.path == path


def test_resuming_another_run_names_what_is_unlike_and_not_what_was_redacted(take):
    args = "base_url=http://someone:correct-horse-battery@127.0.0.1:9/v1"
    given = {"model": "openai:m", "model_args": args}
    path = left(take(**given))
    with pytest.raises(UsageError, match="settings differ from the run's") as caught:
        take(**given, seed=3, resume=path)
    told = str(caught.value)
    assert "found:    seed: 3\n" in told and "expected: seed: 0\n" in told
    assert "correct-horse" not in told
    with pytest.raises(UsageError, match="fresh"):
        take(**given, fresh=True, resume=path)


def test_an_option_that_is_called_a_key_is_no_difference_and_tells_runs_apart(take):
    def settings(number):
        return make_settings({**ASKED, "changes": {"options.key_items": number}})

    taken = take()
    manifest = msgspec.structs.replace(taken.manifest, asked=settings(5).asked())
    taken.folder.write_manifest(manifest)
    kept = taken.folder.manifest()
    assert folders._differences(kept, settings(5)) == {}
    changes = {"options.key_items": 5}, {"options.key_items": 10}
    assert folders._differences(kept, settings(10)) == {"changes": changes}


def test_summaries_of_an_earlier_session_go(take):
    taken = take()
    summary = taken.folder.summary("interests")
    summary.parent.mkdir()
    summary.write_text("{}")
    other = taken.folder.path / "another" / "summary.json"
    other.parent.mkdir()
    other.write_text("{}")
    left(taken, "done")
    take(retry_failures=True)
    assert not summary.exists()
    assert other.exists()


def test_roles_that_differ_between_tasks_are_told_apart(take, tmp_path):
    file = tmp_path / "judged.yaml"
    file.write_text("task: judged\nextends: interests\nroles: {judge: {default: 'openai:j'}}\n")
    other = tmp_path / "differently.yaml"
    other.write_text("task: differently\nextends: interests\nroles: {judge: {default: lexical}}\n")
    roles = take(tasks=[str(file), str(other)], roles={}).manifest.roles
    found = {role: entry.name for role, entry in roles.items()}
    assert found == {"candidate": "baseline", "judge": "j", "differently/judge": "lexical"}


PINNED = {**SERVED, "model_args": "base_url=http://127.0.0.1:9/v1,revision=a"}
JUDGES = "openai:one,base_url=http://127.0.0.1:9/v1", "openai:two,base_url=http://127.0.0.1:9/v1"


def recorded(taken, number, stage, outcome="done", cause="x", *, calls=()):
    """A record of the stage, as the run writes it."""
    key = next(one.key for one in taken.manifest.tasks["interests"].stages if one.name == stage)
    path = taken.folder.journal("interests", number, stage)
    path.parent.mkdir(exist_ok=True)
    line = {"key": "ab" * 16, "stage": key, "outcome": {"type": outcome, "cause": cause}}
    line["calls"] = [{"failure": {"type": "call_failed", "cause": one}} for one in calls]
    path.write_bytes(sealed(json.dumps(line).encode() + b"\n", LINE))


@pytest.mark.parametrize("resume", [True, False])
def test_a_stage_without_an_answer_may_have_another_judge(take, resume):
    before = take(**PINNED, roles={"judge": JUDGES[0]})
    recorded(before, 1, "name")
    recorded(before, 2, "support", "call_failed")
    path = left(before, "failed")
    corrected = {**PINNED, "roles": {"judge": JUDGES[1]}}
    taken = take(**corrected, resume=path if resume else None)
    assert (taken.folder.path, taken.resumed) == (path, True)
    assert take.told[-1] == f"roles: before judge={JUDGES[0]}; now judge={JUDGES[1]}"
    assert taken.manifest.asked["roles"] == {"judge": JUDGES[1]}
    left(taken, "failed")
    take.told.clear()
    taken = take(**corrected)
    assert taken.folder.path == path
    assert take.told == [f"resuming {path} (failed before)"]
    left(taken, "done")
    assert left(take(**corrected, retry_failures=True), "done") == path
    assert take(**corrected).folder.path != path


@pytest.mark.parametrize("calls", [(), ["connection"]], ids=["whole", "of a part of a panel"])
def test_a_stage_with_answers_keeps_its_judge(take, calls):
    before = take(**PINNED, roles={"judge": JUDGES[0]})
    recorded(before, 2, "support", calls=calls)
    path = left(before)
    with pytest.raises(UsageError, match="settings differ from the run's") as caught:
        take(**PINNED, roles={"judge": JUDGES[1]}, resume=path)
    assert f"found:    roles: judge={JUDGES[1]}\n" in str(caught.value)
    assert f"expected: roles: judge={JUDGES[0]}\n" in str(caught.value)
    assert left(take(**PINNED, roles={"judge": JUDGES[1]})) != path


@pytest.mark.parametrize("args", ["other-node:8000/v1", "127.0.0.1:9/v1,concurrency=4"])
def test_pinned_weights_may_move(take, args):
    before = take(**PINNED)
    recorded(before, 1, "name")
    path = left(before)
    moved = {**PINNED, "model_args": f"base_url=http://{args},revision=a"}
    assert left(take(**moved)) == path
    taken = take(**moved, resume=path)
    then, now = (each.manifest.tasks["interests"].stages for each in (before, taken))
    assert [one.key for one in then] == [one.key for one in now]


@pytest.mark.parametrize(
    "args", ["base_url=http://other-node:8000/v1", "base_url=http://127.0.0.1:9/v1,revision=b"]
)
def test_what_may_be_other_weights_is_another_run(take, args):
    path = left(take(**(SERVED if "revision" not in args else PINNED)))
    with pytest.raises(UsageError, match="settings differ from the run's"):
        take(**{**SERVED, "model_args": args}, resume=path)
    assert left(take(**{**SERVED, "model_args": args})) != path


MOVED = {**SERVED, "model_args": "base_url=http://other-node:8000/v1"}
BACK = "make the server answer at http://127.0.0.1:9/v1 and repeat the first command"


def test_a_run_that_another_address_would_pay_again_says_so(take):
    before = take(**SERVED)
    recorded(before, 1, "name")
    path = left(before)
    with pytest.raises(UsageError) as caught:
        take(**MOVED, resume=path)
    assert caught.value.hint == BACK
    assert left(take(**MOVED)) != path
    (said,) = take.told
    assert said.startswith(f"{path} is unfinished and differs only in an address. ")
    assert said.endswith(f"A new run begins; to finish the old one instead, {BACK}")


@pytest.mark.parametrize("case", ["no answers", "at work", "another limit", "done"])
def test_nothing_is_said_of_runs_that_lose_nothing_by_another_address(take, case):
    before = take(**SERVED, **({"limit": 3} if case == "another limit" else {}))
    if case != "no answers":
        recorded(before, 1, "name")
    if case != "at work":
        left(before, "done" if case == "done" else "interrupted")
    left(take(**MOVED))
    assert take.told == []


def test_finished_stages_are_known_before_the_manifest_is_written_anew(take):
    before = take(**PINNED)
    for stage in ("name", "support"):
        before.manifest = stage_finished(before.manifest, "interests", stage, items=1)
    path = left(before)

    def unrecorded(done=False, **given):
        settings = make_settings({**ASKED, **PINNED, **given})
        prepared = prepare(settings, load_plugins())
        folder = RunFolder(path)
        manifest = folder.manifest()
        taken = LockedFolder(folder=folder, manifest=manifest, resumed=True, done=done)
        contexts = {each.task.name: each.contexts(taken.run_id) for each in prepared.tasks}
        return [context.stage.name for context in taken.unrecorded(settings, contexts)]

    recorded(before, 1, "name")
    recorded(before, 2, "support", "call_failed", "bad_request")
    assert unrecorded() == []
    recorded(before, 2, "support", calls=["timeout"])
    assert unrecorded() == ["support"]
    recorded(before, 1, "name", "call_failed", "connection")
    assert unrecorded() == ["name", "support"]
    assert unrecorded(done=True) == []
    assert unrecorded(retry_failures=True) == ["name", "support"]
    assert unrecorded(seed=1) == ["name", "support"]


def test_another_name_or_tag_resumes_the_same_run(take):
    before = take(**PINNED, name="first", tags={"week": "47"})
    path = left(before)
    named = take(**{**SERVED, "model_args": f"{PINNED['model_args']},label=second"})
    assert (named.folder.path, named.manifest.label) == (path, "second")
    assert named.manifest.run_key == before.manifest.run_key
    left(named)
    again = take(**PINNED, roles={"judge": "lexical:label=words"}, tags={"who": "ada"})
    assert (again.folder.path, again.manifest.label) == (path, "second")
    assert again.manifest.tags == {"week": "47", "who": "ada"}
    assert again.manifest.roles["judge"].name == "words"
    assert again.manifest.asked == before.manifest.asked
    stages = [each.manifest.tasks["interests"].stages for each in (before, again)]
    assert stages[0] == stages[1]


def test_a_checkpoint_served_under_the_same_name_does_not_go_on_with_that_of_another_label(take):
    unnamed = left(take(**SERVED))
    first = left(take(**SERVED, name="step-1000"))
    assert first == unnamed  # a run without a name is given one
    second = left(take(**SERVED, name="step-2000"))
    assert second != first
    assert [said for said in take.told if "not resumed" in said] == [
        f"{first} is not resumed: it is called step-1000, and without revision= step-2000 may be "
        f"other weights; --resume {first} resumes and renames it"
    ]
    assert left(take(**SERVED, name="step-1000")) == first
    assert left(take(**SERVED)) == second
    renamed = take(**SERVED, name="step-3000", resume=first)
    assert (renamed.folder.path, renamed.manifest.label) == (first, "step-3000")
