"""Observers in a plugin of somebody else's are told what happens in whole runs."""

from __future__ import annotations

import json
import signal

import pytest

from harness.testing import faults

PEOPLE = 40

OBSERVER = """
    import json
    import os

    from harness import hookimpl

    def note(hook, event):
        seen = {name: getattr(event, name) for name in event.__struct_fields__}
        seen["manifest"] = json.loads((event.folder / "manifest.json").read_text())["status"]
        seen["summaries"] = len(list(event.folder.glob("*/summary.json")))
        with open(os.environ["EVENTS"], "a") as file:
            print(json.dumps([hook, seen], default=str), file=file)


    @hookimpl
    def on_run_start(event):
        note("start", event)


    @hookimpl
    def on_stage_end(event):
        note("stage", event)


    @hookimpl
    def on_run_end(event):
        note("end", event)
"""

STUMBLING = """
    from harness import hookimpl


    @hookimpl
    def on_run_start(event):
        raise LookupError("no start")


    @hookimpl
    def on_stage_end(event):
        raise LookupError(f"no {event.stage}")


    @hookimpl
    def on_run_end(event):
        raise LookupError("no end")
"""


@pytest.fixture
def events(install, tmp_path, monkeypatch):
    """What the observer was told since the last look, as pairs of hook and event."""
    install(OBSERVER)
    file = tmp_path / "events"
    monkeypatch.setenv("EVENTS", str(file))

    def told():
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        file.unlink()
        return lines

    return told


def hooks(told):
    return [hook if hook != "stage" else f"stage {event['stage']}" for hook, event in told]


def test_observers_are_told_of_a_run_from_its_start_to_its_end(harness, serve, events):
    serve(harness)
    done = harness.run().ok()
    told = events()
    assert hooks(told) == ["start", "stage name", "stage support", "end"]
    start, name, support, end = (event for _, event in told)
    assert {event["folder"] for _, event in told} == {done.json["folder"]}
    assert (start["tasks"], start["model"]) == (["interests"], "candidate-model")
    assert (start["resumed"], start["manifest"]) == (False, "running")
    assert (name["task"], name["items"], name["failures"]) == ("interests", PEOPLE, {})
    assert support["items"] == len(harness.records("support"))
    assert name["seconds"] > 0
    assert (end["status"], end["exit_code"]) == ("done", 0)
    # Told after everything was written.
    assert (end["manifest"], end["summaries"]) == ("done", 1)


def test_observers_are_told_that_a_run_goes_on(harness, serve, events):
    server = serve(harness, latency=0.03)
    process = harness.start("--concurrency", "2")
    harness.wait_until(lambda: server.count >= 16)
    harness.kill(process)
    assert hooks(events()) == ["start"]
    assert harness.run().code == 0
    told = events()
    assert hooks(told) == ["start", "stage name", "stage support", "end"]
    assert told[0][1]["resumed"] is True
    assert told[1][1]["items"] == PEOPLE


def test_observers_are_told_of_a_stage_that_was_given_up(harness, serve, events):
    serve(harness, faults=lambda asked: faults.status(400) if asked.number % 2 else None)
    done = harness.run("--concurrency", "1")
    assert done.code == 3
    told = events()
    assert hooks(told) == ["start", "stage name", "end"]
    assert (told[1][1]["items"], told[1][1]["failures"]) == (PEOPLE, {"bad_request": 20})
    end = told[-1][1]
    assert (end["status"], end["exit_code"]) == ("too_many_failures", 3)
    assert (end["manifest"], end["summaries"]) == ("too_many_failures", 0)


def test_observers_are_told_of_a_run_that_failed(harness, serve, events):
    serve(harness, faults=lambda asked: faults.status(401))
    assert harness.run().code == 1
    told = events()
    assert hooks(told) == ["start", "end"]
    assert (told[-1][1]["status"], told[-1][1]["exit_code"]) == ("failed", 1)


def test_observers_are_told_of_a_run_that_was_interrupted(harness, serve, events):
    server = serve(harness, latency=0.1)
    process = harness.start("--concurrency", "2")
    harness.wait_until(lambda: server.count >= 8)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    told = events()
    assert hooks(told) == ["start", "end"]
    end = told[-1][1]
    assert (end["status"], end["exit_code"]) == ("interrupted", 130)
    assert end["manifest"] == "interrupted"


def test_an_observer_that_raises_costs_a_line_and_nothing_else(harness, serve, install):
    install(STUMBLING)
    serve(harness)
    done = harness.run()
    assert done.code == 0
    assert done.json["status"] == harness.manifest()["status"] == "done"
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE
    assert done.err.splitlines() == [
        "plugin 'things' of acme-things failed in on_run_start: LookupError: no start",
        "plugin 'things' of acme-things failed in on_stage_end: LookupError: no name",
        "plugin 'things' of acme-things failed in on_stage_end: LookupError: no support",
        "plugin 'things' of acme-things failed in on_run_end: LookupError: no end",
    ]
