"""Killed, interrupted, changed: what was done is done, and nothing is paid for twice."""

import json
import time

import pytest

from harness.testing import faults

PEOPLE = 40
JUDGE = "judge-model"


def test_kill_9_in_any_stage_and_the_same_command_goes_on(harness, serve):
    server = serve(harness, latency=0.03)
    wanted = harness.run("--output_path", "whole", "--reuse", "run").summary()["metrics"]
    server.asked.clear()
    server.count = 0

    process = harness.start("--concurrency", "2")
    harness.wait_until(lambda: sum(one["model"] == JUDGE for one in server.requests) >= 16)
    killed = time.monotonic()
    harness.kill(process)
    before = server.count
    assert before < PEOPLE + 40

    done = harness.run("--concurrency", "2").ok()
    assert done.summary()["metrics"] == wanted
    # An answer is written at the latest 0.2 s after it came, and it came 0.03 s after it was asked.
    written_by = killed - 0.03 - 0.2
    asked = list(server.asked)
    first = {one.digest: one.at for one in asked[:before]}
    assert all(first.get(one.digest, written_by) >= written_by for one in asked[before:])
    assert len(harness.folders) == 1
    assert [one["status"] for one in harness.manifest()["sessions"]] == ["running", "done"]


def test_weights_that_are_pinned_by_a_revision_are_asked_once_unless_a_run_is_fresh(harness, serve):
    server = serve(harness)
    few = (*harness.pinned, "--limit", "6")
    one = harness.run(*few).ok()
    asked = server.count
    two = harness.run(*few).ok()
    assert len(harness.folders) == 2
    assert server.count == asked
    assert one.summary()["metrics"] == two.summary()["metrics"]
    harness.run(*few, "--reuse", "none").ok()
    assert server.count == 2 * asked
    # One that did not end is continued by the same command, and one that did is not.
    assert harness.run(*few, "--reuse", "none", "--max_calls", "3").code == 1
    harness.run(*few, "--reuse", "none").ok()
    assert (server.count, len(harness.folders)) == (3 * asked, 4)
    harness.run(*few, "--reuse", "none").ok()
    assert (server.count, len(harness.folders)) == (4 * asked, 5)


def assert_valid(document, schema):
    import jsonschema
    from golden.result_schemas import schema_file

    shape = json.loads(schema_file(schema).read_text())
    jsonschema.Draft202012Validator(shape).validate(document)


@pytest.mark.parametrize(
    ("status", "wrong", "code"),
    [("done", None, 0), ("failed", 401, 1), ("too_many_failures", 400, 3)],
)
def test_what_a_run_leaves_fits_the_schemas_however_it_ended(harness, serve, status, wrong, code):
    fault = wrong and faults.status(wrong)
    serve(harness, faults=lambda asked: fault if asked.number >= 8 else None)
    assert harness.run("--concurrency", "2").code == code
    manifest = harness.manifest()
    assert manifest["status"] == manifest["sessions"][-1]["status"] == status
    assert (manifest["problem"] is None) == (status == "done")
    assert_valid(manifest, "manifest.schema.json")
    (folder,) = harness.folders
    summaries = list(folder.glob("*/summary.json"))
    assert len(summaries) == (status == "done")
    for summary in summaries:
        assert_valid(json.loads(summary.read_text()), "summary.schema.json")
