import io
from collections import Counter
from pathlib import Path

import pytest
from builders.texts import lines_on
from rich.cells import cell_len
from rich.console import Console

from harness.calls.pricing import Cost
from harness.pipeline.progress import ClusterProgress, RunProgress, StageProgress
from harness.reporting.live import LiveDisplay, Picture

SHOW_CURSOR = "\x1b[?25h"


def run(*stages, resumed=False):
    return RunProgress(folder=Path("runs/x"), model="openai:gpt", resumed=resumed, stages=[*stages])


def draw(progress, *, width, height=24, now=60.0):
    picture = Picture(progress, 0.0)
    return lines_on(
        lambda console: console.print(picture.draw(now, width=width, height=height)), width=width
    )


@pytest.fixture
def typical():
    return run(
        StageProgress(
            task="interests", stage="name", total=40, done=40, resumed=12, calls=30,
            calls_from_store=10, prompt_tokens=12_000, completion_tokens=2400, started=0.0,
            ended=30.0, failures=Counter(no_json=2, timeout=1),
        ),
        StageProgress(
            task="interests", stage="support", total=180, done=60, calls=60, calls_from_store=15,
            completion_tokens=600, started=30.0,
        ),
        StageProgress(task="a_task_with_a_long_name", stage="name"),
        resumed=True,
    )  # fmt: skip


def test_eighty_columns(typical):
    # 120 items are left at 20 + 45 asked calls a minute; the bar shows 100 * 2 of 220 * 3.
    assert draw(typical, width=80) == [
        "openai:gpt  runs/x  12 resumed",
        "━━━━━━──────────────  at least 1:51 left, 100 of at least 220 items, 1:00 so far",
        "90 calls, 28% from the store, tokens 12.0k in, 3.0k out, 50/s",
        "missing 3: no_json 2, timeout 1",
        "▸ interests/support  ━━━━━──────────  60/180",
        "  1 done, 1 waiting",
    ]


def test_a_cluster_has_a_line_more(typical):
    typical.cluster = ClusterProgress(workers=3, engines=1, opening=2, lost=1)
    typical.stages[1].in_flight = 1200
    drawn = draw(typical, width=80)
    assert drawn[2:5] == [
        "90 calls, 28% from the store, tokens 12.0k in, 3.0k out, 50/s",
        "3 of 5 workers, 1 engine, 1 worker lost, 1,200 items in flight",
        "missing 3: no_json 2, timeout 1",
    ]
    assert len(drawn) == 7 and max(map(cell_len, drawn)) <= 80
    typical.cluster = ClusterProgress(workers=1, engines=1)
    typical.stages[1].in_flight = 1
    assert draw(typical, width=80)[3] == "1 worker, 1 engine, 1 item in flight"
    typical.cluster = ClusterProgress(workers=64)
    typical.stages[1].in_flight = 0
    assert draw(typical, width=80)[3] == "64 workers, 0 items in flight"


def limiter(**given):
    return {"limit": 300, "ceiling": 300, "throttled": None, **given}


def test_a_model_that_is_throttled_has_a_line_that_says_why(typical):
    full = draw(typical, width=100)
    limits = {"openai:gpt": limiter(), "openai:judge": limiter()}
    typical.limits = lambda: limits
    assert draw(typical, width=100) == full
    why = "21 of its last 98 answers were HTTP 429"
    limits["openai:judge"] = limiter(limit=42, throttled=why)
    assert draw(typical, width=120)[4] == (
        "throttled: openai:judge to 42 of 300 requests at once, "
        "as 21 of its last 98 answers were HTTP 429"
    )
    limits["openai:gpt"] = limiter(throttled="it asked for a pause (Retry-After)")
    assert draw(typical, width=120)[4] == (
        "throttled: openai:gpt to 300 of 300 requests at once, as it asked for a pause "
        "(Retry-After); 1 more"
    )


def test_more_moving_stages_than_lines_are_counted():
    moving = {"stage": "rank", "total": 20, "started": 0.0, "in_flight": 1}
    stages = [StageProgress(task=f"perrec_{number}", **moving) for number in range(54)]
    stages[0].done, stages[0].ended = 20, 1.0
    stages[1].ended = 2.0
    assert "left" in draw(run(*stages), width=80, height=9)[0]
    assert draw(run(*stages), width=80, height=10)[0] == "openai:gpt  runs/x"
    lines = draw(run(*stages), width=80)
    # The cursor stands in the last of 24 lines; head, bar, sums and the last line leave 19.
    assert len(lines) == 23
    assert lines[-1] == "  33 more running, 1 done, 1 stopped"
    for height, drawn in ((1, 1), (2, 1), (4, 3), (9, 8), (10, 9)):
        assert len(draw(run(*stages), width=80, height=height)) == drawn


def test_a_stage_counts_as_moving_for_a_while_after_its_last_move():
    stage = StageProgress(task="t", stage="s", total=20, started=0.0, in_flight=1)
    picture = Picture(run(stage), 0.0)

    def last(now):
        drawn = picture.draw(now, width=60, height=24)
        return str(drawn.renderables[-1]).strip()

    assert last(1.0).endswith("0/20")
    stage.in_flight = 0
    assert last(5.5).endswith("0/20")
    assert last(6.0) == "1 waiting"
    stage.done = 1
    assert last(7.0).endswith("1/20")
    assert last(11.5).endswith("1/20")
    assert last(12.0) == "1 waiting"


def cost(paid, *, unknown=0):
    return Cost(
        model="m", currency="EUR", priced=True, asked=5, paid=paid, paid_unknown=unknown,
        reused=0, saved=0.0, saved_unknown=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("costs", "most", "shown"),
    [
        ({}, None, "90 calls"),
        ({"a": cost(0.25), "b": cost(1.0)}, None, "paid 1.25 EUR, 90 calls"),
        ({"a": cost(0.25)}, 2.0, "paid 0.2500 of 2.00 EUR, 90 calls"),
        ({"a": cost(0.25, unknown=1)}, None, "paid ≥ 0.2500 EUR, 90 calls"),
        ({"a": cost(None, unknown=5)}, None, "paid unknown EUR, 90 calls"),
    ],
)
def test_the_cost_so_far_stands_first_among_the_sums(typical, costs, most, shown):
    typical.costs, typical.max_cost = lambda: costs, most
    assert draw(typical, width=120)[2].startswith(shown + ", 28% from the store")


@pytest.mark.parametrize("width", [1, 2, 5, 10, 20, 30, 39, 40, 60, 80, 200])
@pytest.mark.parametrize(
    "task", ["t", "a_name_of_sixty_characters_" * 2 + "sixty", "推薦評価の課題" * 5]
)
def test_no_width_and_no_name_breaks_a_line(width, task):
    stages = [
        StageProgress(task=task, stage="name", total=0, started=0.0, in_flight=1),
        StageProgress(task=task, stage="support", started=0.0),
        StageProgress(task=task, stage="rank", total=1_000_000, done=123_456, started=0.0),
        StageProgress(task=task, stage="waits"),
    ]
    lines = draw(run(*stages), width=width)
    assert len(lines) == 7
    assert all(cell_len(line) <= width for line in lines)


@pytest.fixture
def terminal():
    return Console(file=io.StringIO(), width=80, height=24, force_terminal=True, markup=False)


def test_the_picture_goes_and_the_cursor_comes_back_and_what_is_told_is_clean(terminal, typical):
    display = LiveDisplay(terminal.file, console=terminal)
    display.start(typical)
    typical.stages[1].done, typical.stages[1].ended = 180, 90.0
    display.stage_ended(typical.stages[1])
    display.stop()
    display.stop()
    shown = terminal.file.getvalue()
    assert shown.count("\x1b[?25l") == shown.count(SHOW_CURSOR) == 1
    lines = shown[shown.rindex("openai:gpt") :].split("\n")
    assert "so far" in lines[1]
    # Every line of the last picture is erased, and nothing is written after that.
    erased = "\r" + "\x1b[1A\x1b[2K" * (len(lines) - 1)
    assert lines[-1] == SHOW_CURSOR + erased
    display = LiveDisplay(terminal.file, console=terminal)
    display.start(typical)
    display.show_line("[bold]slowed down[/bold]\x07 by the server", problem=True)
    display.stop()
    assert "[bold]slowed down[/bold]\\x07 by the server" in terminal.file.getvalue()


def test_tokens_that_were_not_reported_are_no_number(typical):
    name, support, _ = typical.stages
    name.unreported = 4
    assert draw(typical, width=80)[2].endswith("tokens ≥ 12.0k in, ≥ 3.0k out, ≥ 50/s")
    for stage in (name, support):
        stage.prompt_tokens = stage.completion_tokens = 0
    assert draw(typical, width=80)[2].endswith("from the store, tokens unknown")
