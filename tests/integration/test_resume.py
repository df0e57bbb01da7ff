"""Killed, interrupted, changed: what was done is done, and nothing is paid for twice."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from builders.runs import write_sealed

from harness.testing import faults

PEOPLE = 40
JUDGE = "judge-model"


def candidate_requests(server):
    return [one for one in server.requests if one["model"] != JUDGE]


def judge_requests(server):
    return [one for one in server.requests if one["model"] == JUDGE]


def paid_twice(server, *, before: int, written_by: float) -> list[str]:
    """Bodies asked again though their answer had gone out long enough before the kill."""
    asked = list(server.asked)
    first = {one.digest: one.at for one in asked[:before]}
    return [one.digest for one in asked[before:] if first.get(one.digest, written_by) < written_by]


@pytest.mark.parametrize("stage", ["name", "support"])
def test_kill_9_in_any_stage_and_the_same_command_goes_on(harness, serve, stage):
    server = serve(harness, latency=0.03)
    wanted = harness.run("--output_path", "whole", "--no_store").summary()["metrics"]
    server.asked.clear()
    server.count = 0

    of_stage = candidate_requests if stage == "name" else judge_requests
    process = harness.start("--concurrency", "2")
    harness.wait_until(lambda: len(of_stage(server)) >= 16)
    killed = time.monotonic()
    harness.kill(process)
    before = server.count
    assert before < PEOPLE + 40

    done = harness.run("--concurrency", "2").ok()
    assert done.summary()["metrics"] == wanted
    # An answer is written at the latest 0.2 s after it came, and it came 0.03 s after it was asked.
    assert paid_twice(server, before=before, written_by=killed - 0.03 - 0.2) == []
    assert len(harness.folders) == 1
    assert [one["status"] for one in harness.manifest()["sessions"]] == ["running", "done"]


def test_a_torn_last_line_costs_that_item_only(harness, serve):
    server = serve(harness)
    assert harness.run().code == 0
    wanted = harness.run("--output_path", "again").summary()["metrics"]
    (folder,) = harness.folders
    manifest = json.loads((folder / "manifest.json").read_text())
    write_sealed(folder / "manifest.json", {**manifest, "status": "running"})
    (journal,) = (folder / "interests").glob("1-*.jsonl")
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-40])
    asked = server.count
    done = harness.run("--no_store").ok()
    assert done.summary()["metrics"] == wanted
    assert server.count == asked + 1
    assert len(journal.read_bytes().splitlines()) == PEOPLE


def test_the_first_ctrl_c_lets_calls_in_flight_finish(harness, serve):
    server = serve(harness, latency=0.3)
    process = harness.start("--concurrency", "8")
    harness.wait_until(lambda: server.count >= 8)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "the same command resumes" in err
    assert json.loads(out)["status"] == "interrupted"
    answered = sum(server.answered.values())
    assert answered == server.count
    before = server.count
    assert harness.run("--concurrency", "8").code == 0
    assert all(count == 1 for count in server.counts.values())
    assert server.count > before


def test_a_second_ctrl_c_stops_at_once(harness, serve):
    server = serve(harness, latency=30)
    process = harness.start("--concurrency", "4")
    harness.wait_until(lambda: server.count >= 4)
    process.send_signal(signal.SIGINT)
    harness.wait_until(lambda: process.poll() is not None or server.count >= 4)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130


def test_a_finished_run_is_not_reopened_and_other_weights_under_one_name_reuse_nothing(
    harness, serve
):
    server = serve(harness)
    assert harness.run().code == 0
    first = server.count
    server.answer = lambda body: (
        "1" if body["model"] == JUDGE else '[{"interest": "x", "items": [1]}]'
    )
    done = harness.run()
    assert done.code == 0
    assert len(harness.folders) == 2
    assert len(candidate_requests(server)) == 2 * PEOPLE
    assert server.count > first + PEOPLE


def test_weights_that_are_pinned_by_a_revision_are_asked_once(harness, serve):
    server = serve(harness)
    pinned = (
        "--model_args", f"base_url={server.url},model=candidate-model,revision=abc",
        "--judge", f"openai:base_url={server.url},model={JUDGE},revision=abc",
    )  # fmt: skip
    one = harness.run(*pinned)
    asked = server.count
    two = harness.run(*pinned)
    assert one.code == two.code == 0
    assert len(harness.folders) == 2
    assert server.count == asked
    assert one.summary()["metrics"] == two.summary()["metrics"]
    fresh = harness.run(*pinned, "--fresh")
    assert fresh.code == 0
    assert server.count == 2 * asked


def test_a_changed_judge_asks_the_candidate_nothing(harness, serve):
    server = serve(harness)
    pinned = f"base_url={server.url},model=candidate-model,revision=abc"
    judges = [f"openai:base_url={server.url},model={name}" for name in (JUDGE, "judge-two")]
    assert harness.run("--model_args", pinned, "--judge", judges[0]).code == 0
    before = len(candidate_requests(server))
    server.answer = lambda body: "1"
    assert harness.run("--model_args", pinned, "--judge", judges[1]).code == 0
    asked = [one["model"] for one in server.requests]
    assert asked.count("candidate-model") == before == PEOPLE
    assert "judge-two" in asked


def test_a_spent_budget_stops_and_a_larger_one_goes_on(harness, serve):
    server = serve(harness)
    done = harness.run("--max_calls", "10", "--concurrency", "2")
    assert done.code == 1
    assert "the budget of calls is spent" in done.err
    # Two of the ten: whether candidate and judge think.
    assert (server.count, server.asked_if_thinking) == (8, 2)
    done = harness.run("--concurrency", "2")
    assert done.code == 0
    assert all(count == 1 for count in server.counts.values())


def test_two_processes_never_write_one_run_folder(harness, serve):
    server = serve(harness, latency=0.2)
    process = harness.start("--concurrency", "2")
    harness.wait_until(lambda: server.count >= 2)
    second = harness.run("--concurrency", "2")
    assert second.code == 1
    assert "is at work in it" in second.err
    harness.kill(process)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_same_seed_same_result_whatever_concurrency_and_hash_seed(harness, serve, seed):
    serve(harness)
    results = []
    for concurrency, hashing in (("1", "0"), ("16", "123")):
        done = harness.command(
            harness.arguments(
                "--concurrency", concurrency, "--seed", seed, "--limit", "25",
                "--no_store", "--output_path", concurrency,
            ),
            PYTHONHASHSEED=hashing,
        ).ok()  # fmt: skip
        (folder,) = (harness.folder / concurrency).iterdir()
        results.append(
            (done.summary()["metrics"], (folder / "interests/scores.jsonl").read_bytes())
        )
    assert results[0] == results[1]


def test_scoring_again_asks_no_model_and_needs_no_store(harness, serve):
    server = serve(harness)
    done = harness.run()
    (folder,) = harness.folders
    summary = (folder / "interests/summary.json").read_bytes()
    (folder / "interests/summary.json").unlink()
    asked = server.count
    server.stop()
    harness.command([*harness.arguments()[:3], "score", str(folder)]).ok()
    assert (folder / "interests/summary.json").read_bytes() == summary
    assert server.count == asked
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE


def test_a_dry_run_asks_nothing_and_leaves_nothing(harness, serve):
    server = serve(harness)
    done = harness.run("--dry_run").ok()
    forecast = done.json
    assert server.count == 0
    assert not (harness.folder / "runs").exists()
    name, support = forecast["stages"]
    assert (name["items"], name["exact"]) == (PEOPLE, True)
    assert name["roles"][0]["calls"] == PEOPLE
    assert "[liked]" in name["roles"][0]["first_prompt"][1]["content"]
    assert support["exact"] is False and support["items"] > 0
    assert "Somebody claims" in support["roles"][0]["first_prompt"][1]["content"]


def pinned(server, **more):
    """Both models with weights that are told apart from any others of their names."""
    rest = "".join(f",{name}={value}" for name, value in more.items())
    return (
        "--model_args", f"base_url={server.url},model=candidate-model,revision=abc{rest}",
        "--judge", f"openai:base_url={server.url},model={JUDGE},revision=abc",
    )  # fmt: skip


def killed_in_the_middle(harness, server, *more):
    """The folder of a run that was killed while the candidate was asked."""
    before = server.count
    process = harness.start("--concurrency", "2", *more)
    harness.wait_until(lambda: server.count >= before + 16)
    harness.kill(process)
    return harness.folders[-1]


def last_written_hours_ago(folder, hours):
    then = time.time() - 3600 * hours
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


def records_in(folder):
    (journal,) = (folder / "interests").glob("1-*.jsonl")
    return len(journal.read_bytes().splitlines())


def test_after_a_day_the_same_name_may_serve_other_weights(harness, serve):
    server = serve(harness, latency=0.03)
    old = killed_in_the_middle(harness, server)
    last_written_hours_ago(old, 21)
    before, kept = server.count, records_in(old)
    done = harness.run().ok()
    assert "has no revision=" in done.err and f"--resume {old.relative_to(harness.folder)}" in (
        done.err
    )
    assert len(harness.folders) == 2
    assert len(candidate_requests(server)) - before == PEOPLE
    assert records_in(old) == kept

    asked_of_candidate = len(candidate_requests(server))
    done = harness.run("--resume", str(old)).ok()
    assert done.json["folder"] == str(old)
    assert len(harness.folders) == 2
    # The store may hold answers whose records the kill came before.
    assert 0 < len(candidate_requests(server)) - asked_of_candidate <= PEOPLE - kept


def test_before_a_day_is_over_an_unfinished_run_is_taken_up(harness, serve):
    server = serve(harness, latency=0.03)
    old = killed_in_the_middle(harness, server)
    last_written_hours_ago(old, 19)
    harness.run().ok()
    assert harness.folders == [old]


def test_pinned_weights_are_the_same_whenever_a_run_is_taken_up(harness, serve):
    server = serve(harness, latency=0.03)
    old = killed_in_the_middle(harness, server, *pinned(server))
    last_written_hours_ago(old, 21)
    done = harness.run(*pinned(server)).ok()
    assert "revision=" not in done.err
    assert harness.folders == [old]


def test_a_judge_without_a_revision_is_reason_enough_to_begin_again(harness, serve):
    server = serve(harness, latency=0.03)
    one_pinned = pinned(server)[:2]
    old = killed_in_the_middle(harness, server, *one_pinned)
    last_written_hours_ago(old, 21)
    done = harness.run(*one_pinned).ok()
    assert "has no revision=" in done.err
    assert len(harness.folders) == 2


def test_a_run_is_resumed_by_the_command_that_began_it_and_no_other(harness, serve):
    server = serve(harness, latency=0.03)
    old = killed_in_the_middle(harness, server)
    before = server.count
    done = harness.run("--resume", str(old), "--seed", "5")
    assert done.code == 2
    assert "seed: 0" in done.err and "seed: 5" in done.err
    assert server.count == before


def test_a_run_at_work_again_has_no_summary_until_it_is_finished(harness, serve):
    title = "Learning to love breathing in crawl"
    server = serve(
        harness,
        faults=lambda asked: (
            faults.status(400) if title in asked.body["messages"][-1]["content"] else None
        ),
    )
    assert harness.run().code == 0
    (folder,) = harness.folders
    summary = folder / "interests" / "summary.json"
    first = json.loads(summary.read_text())
    assert first["metrics"]["support"]["n"] < PEOPLE

    server.faults = lambda asked: faults.SILENCE
    before = server.count
    process = harness.start("--retry_failures")
    harness.wait_until(lambda: server.count > before)
    assert not summary.exists()
    harness.kill(process)
    assert not summary.exists()

    server.faults = ()
    harness.run("--retry_failures").ok()
    assert harness.folders == [folder]
    assert json.loads(summary.read_text())["metrics"]["support"]["n"] == PEOPLE


def test_a_fresh_run_that_was_killed_goes_on_in_its_folder(harness, serve):
    server = serve(harness, latency=0.03)
    assert harness.run(*pinned(server)).code == 0
    whole, (first,) = server.count, harness.folders
    server.faults = lambda asked: faults.SILENCE if asked.number >= whole + 16 else None
    process = harness.start("--concurrency", "2", "--fresh", *pinned(server))
    harness.wait_until(lambda: server.count == whole + 18)
    # An answer is written at the latest 0.2 s after it came.
    time.sleep(0.5)
    harness.kill(process)
    server.faults = ()
    (old,) = set(harness.folders) - {first}
    answered = {one.digest for one in list(server.asked)[whole : whole + 16]}
    # What the journal lacks is in the store, under the keys of this run.
    (journal,) = old.glob("*/1-name.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[4:]))
    done = harness.run(*pinned(server), "--fresh", "--concurrency", "2").ok()
    assert done.json["folder"] == str(old.relative_to(harness.folder))
    assert len(harness.folders) == 2
    assert len(answered) == 16
    assert not answered.intersection(one.digest for one in list(server.asked)[whole + 18 :])


def test_a_fresh_run_that_is_done_is_not_taken_up_by_the_next(harness, serve):
    server = serve(harness)
    assert harness.run(*pinned(server), "--fresh").code == 0
    once = server.count
    assert harness.run(*pinned(server), "--fresh").code == 0
    assert server.count == 2 * once
    assert len(harness.folders) == 2


def test_every_session_keeps_what_its_limiter_went_through(harness, serve):
    serve(harness, faults=lambda asked: faults.status(429) if asked.number in (1, 2, 3) else None)
    budget = ("--max_calls", "12", "--concurrency", "8")
    assert harness.run(*budget).code == 1
    assert harness.run("--concurrency", "8").code == 0
    first, second = harness.manifest()["sessions"]
    limits = first["limits"]["openai:candidate-model"]
    assert (limits["ceiling"], limits["cuts"], limits["lowest"]) == (8, 1, 5)
    assert [one["why"] for one in limits["changes"]][:1] == ["rate limited"]
    assert second["limits"]["openai:candidate-model"]["cuts"] == 0
    assert second["limits"][f"openai:{JUDGE}"]["ceiling"] == 8
    used = [
        session["usage"]["interests/name, candidate"]["attempts"] for session in (first, second)
    ]
    # Two of the twelve were the questions whether candidate and judge think.
    assert used == [10, PEOPLE - 7]


def assert_valid(document, schema):
    import jsonschema
    from golden.result_schemas import schema_file

    shape = json.loads(schema_file(schema).read_text())
    jsonschema.Draft202012Validator(shape).validate(document)


@pytest.mark.parametrize("status", ["done", "interrupted", "failed", "too_many_failures"])
def test_what_a_run_leaves_fits_the_schemas_however_it_ended(harness, serve, status):
    server = serve(harness, latency=0.03)
    if status == "interrupted":
        process = harness.start("--concurrency", "2")
        harness.wait_until(lambda: server.count >= 8)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        code = process.returncode
    else:
        wrong = {"failed": faults.status(401), "too_many_failures": faults.status(400)}
        server.faults = lambda asked: wrong.get(status) if asked.number >= 8 else None
        code = harness.run("--concurrency", "2").code
    assert code == {"done": 0, "interrupted": 130, "failed": 1, "too_many_failures": 3}[status]
    manifest = harness.manifest()
    assert manifest["status"] == manifest["sessions"][-1]["status"] == status
    assert (manifest["problem"] is None) == (status == "done")
    assert_valid(manifest, "manifest.schema.json")
    (folder,) = harness.folders
    summaries = list(folder.glob("*/summary.json"))
    assert len(summaries) == (status == "done")
    for summary in summaries:
        assert_valid(json.loads(summary.read_text()), "summary.schema.json")
