"""Pictures of a run as a terminal shows them, and a terminal that is given back whole."""

import io
from collections import Counter
from pathlib import Path

import pytest
from builders.texts import lines_on
from rich.console import Console

from harness.pipeline.progress import RunProgress, StageProgress
from harness.reporting.live import LiveDisplay, Picture, choose_rows

SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"


def run(*stages, resumed=False):
    return RunProgress(folder=Path("runs/x"), model="openai:gpt", resumed=resumed, stages=[*stages])


def draw(progress, *, width, height=24, now=60.0, over=False):
    picture = Picture(progress, 0.0)
    picture.over = over
    return lines_on(
        lambda console: console.print(picture.draw(now, width=width, height=height)), width=width
    )


@pytest.fixture
def typical():
    return run(
        StageProgress(
            task="interests",
            stage="name",
            total=40,
            done=40,
            resumed=12,
            calls=30,
            calls_from_store=10,
            prompt_tokens=12_000,
            completion_tokens=2400,
            started=0.0,
            ended=30.0,
            failures=Counter(no_json=2, timeout=1),
        ),
        StageProgress(
            task="interests",
            stage="support",
            total=180,
            done=60,
            calls=60,
            calls_from_store=15,
            completion_tokens=600,
            started=30.0,
        ),
        StageProgress(task="a_task_with_a_long_name", stage="name"),
        resumed=True,
    )


def test_eighty_columns(typical):
    assert draw(typical, width=80) == [
        "openai:gpt  runs/x  resumed",
        "                                    done   calls  tokens/s  stored          time",
        "✓ interests/name     ━━━━━━        40/40      30        80     33%       in 0:30",
        "    12 resumed  missing 3: no_json 2, timeout 1",
        "▸ interests/support  ━━────       60/180      60        20     25%     1:20 left",
        "· a_task_with…/name  ──────      waiting",
        "  1:00 so far, 90 calls, 28% from the store, tokens 12.0k in, 3.0k out",
    ]


def test_sixty_columns(typical):
    assert draw(typical, width=60) == [
        "openai:gpt  runs/x  resumed",
        "                                  done   calls          time",
        "✓ interests/name   ━━━━━━        40/40      30       in 0:30",
        "    12 resumed  missing 3: no_json 2, timeout 1",
        "▸ intere…/support  ━━────       60/180      60     1:20 left",
        "· a_task_wi…/name  ──────      waiting",
        "  1:00 so far, 90 calls, 28% from the store, tokens 12.0k i…",
    ]


def test_tokens_that_were_not_reported_are_no_number(typical):
    name, support, _ = typical.stages
    name.unreported = 4
    assert draw(typical, width=80)[2].split()[-5:] == ["≥", "80", "33%", "in", "0:30"]
    assert draw(typical, width=80)[-1].endswith("tokens ≥ 12.0k in, ≥ 3.0k out")

    for stage in (name, support):
        stage.prompt_tokens = stage.completion_tokens = 0
    assert draw(typical, width=80)[2].split()[-4:] == ["–", "33%", "in", "0:30"]
    assert draw(typical, width=80)[-1].endswith("from the store, tokens unknown")


@pytest.mark.parametrize("width", [1, 10, 20, 30, 40, 49, 50, 75, 76, 200])
def test_no_width_breaks_a_line(typical, width):
    lines = draw(typical, width=width)

    assert len(lines) == 7
    assert all(len(line) <= width for line in lines)


def test_a_stage_that_was_stopped_early_is_marked():
    stage = StageProgress(task="t", stage="s", total=100, done=20, started=0.0, ended=4.0)

    assert draw(run(stage), width=60)[2] == (
        "✗ t/s    ━━━─────────────       20/100       0       in 0:04"
    )


def test_what_still_ran_when_all_was_over_was_stopped(typical):
    lines = draw(typical, width=60, over=True)

    assert lines[4] == "✗ intere…/support  ━━────       60/180      60       stopped"
    assert lines[6].startswith("  in 1:00, 90 calls")


def test_large_counts_are_shortened():
    stage = StageProgress(task="t", stage="s", total=1_000_000, done=123_456, started=0.0)

    assert "123k/1.0M" in draw(run(stage), width=60)[2]


def test_a_low_terminal_shows_what_runs_and_counts_the_rest():
    ended = [
        StageProgress(task=f"done{n}", stage="s", total=1, done=1, started=0.0, ended=float(n))
        for n in range(3)
    ]
    running = StageProgress(task="running", stage="s", total=2, started=3.0)
    waiting = [StageProgress(task=f"later{n}", stage="s") for n in range(3)]

    lines = draw(run(*ended, running, *waiting), width=60, height=8)

    assert [line.split()[1] for line in lines[2:-1]] == ["done1/s", "done2/s", "running/s", "and"]
    assert lines[-2] == "  … and 1 done, 3 waiting"
    assert len(draw(run(*ended, running, *waiting), width=60, height=8, over=True)) == 10


def test_rows_are_chosen_by_urgency_and_keep_their_order():
    ended = StageProgress(task="t", stage="a", started=0.0, ended=1.0)
    waiting = StageProgress(task="t", stage="b")
    running = StageProgress(task="t", stage="c", started=1.0)

    assert choose_rows([ended, waiting, running], [1, 1, 1], 3) == range(3)
    assert choose_rows([ended, waiting, running], [1, 1, 1], 2) == [0, 2]
    assert choose_rows([ended, waiting, running], [2, 1, 2], 3) == [2]
    assert choose_rows([ended, waiting, running], [1, 1, 1], -5) == [2]


@pytest.fixture
def terminal():
    return Console(file=io.StringIO(), width=80, height=24, force_terminal=True, markup=False)


def test_the_cursor_comes_back_with_the_last_picture(terminal, typical):
    display = LiveDisplay(terminal.file, console=terminal)

    display.start(typical)
    typical.stages[1].done, typical.stages[1].ended = 180, 90.0
    display.stage_ended(typical.stages[1])
    display.stop()
    display.stop()

    shown = terminal.file.getvalue()
    assert shown.count(HIDE_CURSOR) == shown.count(SHOW_CURSOR) == 1
    last = shown[shown.rindex("interests/support") :]
    assert "180/180" in last
    assert "so far" not in last


def test_the_cursor_comes_back_after_an_exception(terminal, typical):
    display = LiveDisplay(terminal.file, console=terminal)

    with pytest.raises(KeyboardInterrupt):
        try:
            display.start(typical)
            raise KeyboardInterrupt
        finally:
            display.stop()

    assert terminal.file.getvalue().rindex(SHOW_CURSOR) > terminal.file.getvalue().rindex(
        HIDE_CURSOR
    )


def test_what_is_told_stands_above_the_rows_and_is_clean(terminal, typical):
    display = LiveDisplay(terminal.file, console=terminal)

    display.start(typical)
    display.show_line("[bold]slowed down[/bold]\x07 by the server", problem=True)
    display.stop()

    assert "[bold]slowed down[/bold]\\x07 by the server" in terminal.file.getvalue()


def test_telling_before_the_start_works(terminal):
    LiveDisplay(terminal.file, console=terminal).show_line("hello")

    assert "hello" in terminal.file.getvalue()
