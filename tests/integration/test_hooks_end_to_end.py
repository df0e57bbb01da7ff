"""Observers in a plugin of somebody else's are told what happens in whole runs."""

from __future__ import annotations

import json

import pytest

from harness.testing import faults

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
        raise LookupError(f"no {hook}")


    @hookimpl
    def on_run_start(event):
        note("start", event)


    @hookimpl
    def on_stage_end(event):
        note(f"stage {event.stage}", event)


    @hookimpl
    def on_run_end(event):
        note("end", event)
"""
"""Notes what it is told, and raises."""


@pytest.mark.parametrize(
    ("fails", "status", "code"), [(False, "done", 0), (True, "too_many_failures", 3)]
)
def test_observers_are_told_of_a_run_and_one_that_raises_costs_a_line(  # noqa: PLR0917
    harness, serve, install, monkeypatch, fails, status, code
):
    install(OBSERVER)
    monkeypatch.setenv("EVENTS", str(harness.folder / "events"))
    serve(harness, faults=lambda asked: faults.status(400) if fails and asked.number % 2 else None)
    done = harness.run("--concurrency", "1", "--limit", "20")
    assert (done.code, done.json["status"]) == (code, status)
    told = [json.loads(line) for line in (harness.folder / "events").read_text().splitlines()]
    stages = ["stage name"] if fails else ["stage name", "stage support"]
    assert [hook for hook, _ in told] == ["start", *stages, "end"]
    assert {event["folder"] for _, event in told} == {done.json["folder"]}
    (_, start), (_, name), *_, (_, end) = told
    assert (start["tasks"], start["model"]) == (["interests"], "candidate-model")
    assert (start["resumed"], start["manifest"]) == (False, "running")
    assert (name["task"], name["items"]) == ("interests", 20)
    assert name["failures"] == ({"bad_request": 10} if fails else {})
    assert name["seconds"] > 0
    assert (end["status"], end["exit_code"]) == (status, code)
    # Told after everything was written.
    assert (end["manifest"], end["summaries"]) == (status, 0 if fails else 1)
    (harness.folder / "events").unlink()
    harness.run("--concurrency", "1", "--limit", "20")
    [_, again] = json.loads((harness.folder / "events").read_text().splitlines()[0])
    assert again["resumed"] is fails
    said = [line for line in done.err.splitlines() if line.startswith("plugin 'things'")]
    assert said == [
        "plugin 'things' of acme-things failed in on_run_start: LookupError: no start",
        *(
            f"plugin 'things' of acme-things failed in on_stage_end: LookupError: no {stage}"
            for stage in stages
        ),
        "plugin 'things' of acme-things failed in on_run_end: LookupError: no end",
    ]
