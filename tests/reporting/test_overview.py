"""What is printed of a run of many tasks."""

import pytest
from builders.runs import make_metric, make_summary
from builders.texts import lines_on
from inline_snapshot import snapshot
from msgspec.structs import replace

from harness.reporting.overview import print_results
from harness.scoring.summary import RoleUse, StageSummary


def metric(value, missing=(), **more):
    interval = (value - 0.1, value + 0.1) if value else None
    usual = make_metric(
        value, n=40, interval=interval, missing=dict(missing), counted_as_worst=value
    )
    return replace(usual, **more)


def task(number, **more):
    usual = make_summary(
        f"task_{number}", model="openai:gpt", units=40,
        roles={"candidate": "openai:gpt", "judge": "openai:llama"},
        data={"origin": "local", "path": "people.csv"},
        metrics={
            "tau": metric(number / 10, note="of few"),
            "random": metric(0.5, {"no_json": 3}, baseline=True),
        },
        stages={"name": StageSummary(items=40, done=40, failures={}, roles={})},
    )  # fmt: skip
    return replace(usual, **more)


def printed(*summaries):
    return lines_on(lambda console: print_results(summaries, "runs/one", console), width=80)


def test_of_many_tasks_thinking_is_noted_as_well():
    use = RoleUse(
        calls=60, from_store=0, failed=60, prompt_tokens=0, completion_tokens=0, cached_tokens=0,
        reasoning_tokens=0, asked_schema=0, met_schema=0, thought_out=59, rungs={},
    )  # fmt: skip
    stage = StageSummary(items=60, done=0, failures={"truncated": 60}, roles={"candidate": use})
    tasks = [replace(task(n), thinks=True) for n in range(1, 6)]
    tasks[1] = replace(tasks[1], stages={"rank": stage})
    lines = printed(*tasks)
    assert lines[0] == f"5 tasks  {tasks[0].model}, with thinking"
    (note,) = [n for n, line in enumerate(lines) if "rank, candidate" in line]
    assert " ".join(line.strip() for line in lines[note : note + 2]) == (
        f"{tasks[1].task}: rank, candidate: 59 of 60 replies spent their limit on thinking: "
        "switch it off or allow more; `harness show RUN --failures` says how"
    )


def test_of_many_tasks_the_table_and_what_must_be_known_is_printed(table):
    lost = {"tau": metric(0.3, {"no_json": 4, "timeout": 1}, left_out=0.4)}
    withheld = {"tau": metric(None, undefined="too few")}
    stamped = {"comparable": False, "not_comparable_because": ("--limit 40",)}
    summaries = [
        task(1, **stamped),
        task(2, **stamped),
        task(3, metrics=lost, **stamped),
        task(4, metrics=withheld, **stamped),
        task(5, **(stamped | {"not_comparable_because": ("--limit 40", "own prompts: x")})),
    ]
    shown = table(
        printed(*summaries),
        "5 5", "┃ 40", "┃ 5", "task_1 1 0.100 0.000 0.200", "task_2 2 0.200 0.100 0.300",
        "task_3 3 0.300 0.200 0.400", "task_4 4", "task_5 5 0.500 0.400 0.600", "task_3: 3 5 4 1",
        "task_4: 4",
    )  # fmt: skip
    assert shown == snapshot("""\
5 tasks  openai:gpt
judge: openai:llama
data: people.csv
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ NOT COMPARABLE with published results ┃
┃ --limit 40                            ┃
┃ own prompts: x (task_5)               ┃
┗━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┛

task                       tau
──────────────────────────────
task_1 *  0.100 [0.000, 0.200]
task_2 *  0.200 [0.100, 0.300]
task_3 *  0.300 [0.200, 0.400]
task_4 *                     –
task_5 *  0.500 [0.400, 0.600]
* not comparable with published results
  tau: of few
  task_3: tau: 5 missing (no_json 4, timeout 1); the value counts them as worst
  task_4: tau: no value: too few
`harness show runs/one` shows each task in full
""")


@pytest.mark.parametrize(("many", "in_full"), [(1, True), (4, True), (5, False)])
def test_few_tasks_are_printed_in_full(many, in_full):
    lines = printed(*(task(number) for number in range(1, many + 1)))
    assert ("stage  items  done  missing" in lines) is in_full
    assert ("`harness show runs/one` shows each task in full" in lines) is not in_full
