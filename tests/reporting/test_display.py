import io
import threading
from collections import Counter
from pathlib import Path

import pytest
from builders.loops import Clock

from harness.pipeline.progress import RunProgress, StageProgress
from harness.reporting.display import PlainDisplay, QuietDisplay, make_display
from harness.reporting.live import LiveDisplay


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Encoded(Terminal):
    encoding = "latin-1"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def stage():
    return StageProgress(task="interests", stage="name", total=40, started=0.0)


@pytest.fixture
def progress(stage):
    return RunProgress(folder=Path("runs/x"), model="openai:gpt", resumed=False, stages=[stage])


@pytest.fixture
def stream():
    return io.StringIO()


@pytest.fixture
def display(stream, clock):
    return PlainDisplay(stream, clock=clock)


def lines(stream):
    return stream.getvalue().splitlines()


def test_a_terminal_with_unicode_is_live_and_anything_else_plain(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(make_display(stream=Terminal()).shown, LiveDisplay)
    assert isinstance(make_display(stream=io.StringIO()).shown, PlainDisplay)
    assert isinstance(make_display(stream=Encoded()).shown, PlainDisplay)
    assert isinstance(make_display(quiet=True, stream=Terminal()).shown, QuietDisplay)
    assert isinstance(make_display(json=True, stream=Terminal()).shown, QuietDisplay)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_display(stream=Terminal()).shown, PlainDisplay)


def test_quiet_tells_problems_only(progress, stage, stream):
    display = QuietDisplay(stream)
    display.start(progress)
    display.show_line("all is well")
    display.stage_started(stage)
    display.show_line("the store\x1b is damaged", problem=True)
    display.stage_ended(stage)
    display.stop()
    assert lines(stream) == ["the store\\x1b is damaged"]


def test_a_stage_has_one_plain_line_when_it_ends(display, stream, progress, stage):
    display.start(progress)
    display.stage_started(stage)
    stage.done, stage.resumed, stage.calls, stage.calls_from_store = 40, 10, 32, 8
    stage.completion_tokens, stage.ended = 6000, 30.0
    stage.failures = Counter(timeout=1, no_json=2)
    display.stage_ended(stage)
    display.show_line("watch out", problem=True)
    display.stop()
    assert lines(stream) == [
        "openai:gpt: 1 stage in runs/x",
        "interests/name: 40 done in 0:30; 10 resumed; 32 calls (25% from the store); "
        "missing 3: no_json 2, timeout 1; 200 tokens/s",
        "! watch out",
    ]


def test_a_stage_that_takes_long_has_a_line_a_minute(display, stream, clock, stage):
    display.stage_started(stage)
    for clock.now, stage.done in ((30.0, 10), (59.0, 20), (60.0, 20), (90.0, 24), (121.0, 32)):
        stage.calls = stage.done
        display.tick()
    assert lines(stream) == [
        "interests/name: 20/40; 50%; 20 calls (0% from the store); 1:00 left",
        "interests/name: 32/40; 80%; 32 calls (0% from the store); 0:41 left",
    ]


def test_a_line_of_a_stage_is_followed_by_why_its_model_is_throttled(
    display, stream, clock, stage, progress
):
    why = "4 of its last 50 answers were HTTP 429"
    progress.limits = lambda: {"openai:gpt": {"limit": 42, "ceiling": 64, "throttled": why}}
    display.start(progress)
    display.stage_started(stage)
    clock.now, stage.in_flight = 60.0, 8
    display.tick()
    display.stop()
    assert lines(stream)[1:3] == [
        "interests/name: 0/40; 0%; time left unknown",
        "throttled: openai:gpt to 42 of 64 requests at once, as 4 of its last 50 answers were "
        "HTTP 429",
    ]


def test_a_display_that_stops_twice_shows_a_stopped_stage_once(display, stream, progress, stage):
    threads = set(threading.enumerate())
    display.start(progress)
    display.stage_started(stage)
    stage.done = 1
    display.stop()
    once = lines(stream)
    display.stop()
    assert once[0] == "openai:gpt: 1 stage in runs/x"
    assert [line.partition(":")[0] for line in once[1:]] == [stage.label]
    assert lines(stream) == once
    assert set(threading.enumerate()) == threads


def test_a_reader_who_went_away_does_not_end_the_run(clock, progress, stage):
    tried, threads = [], set(threading.enumerate())

    class Gone(io.StringIO):
        def write(self, text):
            tried.append(text)
            raise BrokenPipeError

    display = PlainDisplay(Gone(), clock=clock)
    display.start(progress)
    display.stage_started(stage)
    stage.done = 1
    display.stop()
    assert tried == ["openai:gpt: 1 stage in runs/x", "interests/name: stopped at 1/40"]
    assert set(threading.enumerate()) == threads
