"""Observers in a plugin of somebody else's are told what happens in whole runs."""

import json

from harness.testing import faults

OBSERVER = """
    import json
    import os

    from harness import hookimpl

    def note(event):
        seen = {name: getattr(event, name) for name in event.__struct_fields__}
        seen["manifest"] = json.loads((event.folder / "manifest.json").read_text())["status"]
        with open(os.environ["EVENTS"], "a") as file:
            print(json.dumps(seen, default=str), file=file)
        raise LookupError("no event")


    for name in ("on_run_start", "on_stage_end", "on_run_end"):
        globals()[name] = hookimpl(lambda event: note(event))
"""
"""Notes what it is told, and raises."""


def test_observers_are_told_of_a_run_and_one_that_raises_costs_a_line(
    harness, serve, install, monkeypatch
):
    install(OBSERVER)
    events = harness.folder / "events"
    monkeypatch.setenv("EVENTS", str(events))
    serve(harness, faults=lambda asked: faults.status(400) if asked.number % 2 else None)
    for resumed in (False, True):
        done = harness.run("--concurrency", "1", "--limit", "20")
        start, name, end = map(json.loads, events.read_text().splitlines())
        events.unlink()
        folder = {"folder": done.json["folder"]}
        assert start == folder | {
            "tasks": ["interests"], "model": "candidate-model", "resumed": resumed,
            "manifest": "running",
        }  # fmt: skip
        assert name.pop("seconds") >= 0 and end.pop("seconds") > 0
        assert name == folder | {
            "task": "interests", "stage": "name", "items": 20, "failures": {"bad_request": 10},
            "manifest": "running",
        }  # fmt: skip
        # Told after everything was written.
        assert end == folder | {
            "status": "too_many_failures", "exit_code": 3, "manifest": "too_many_failures",
        }  # fmt: skip
        for hook in ("on_run_start", "on_stage_end", "on_run_end"):
            said = f"plugin 'things' of acme-things failed in {hook}: LookupError: no event"
            assert said in done.err.splitlines()
