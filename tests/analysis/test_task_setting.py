"""What a task sets otherwise than usual, in words."""

from types import SimpleNamespace

import msgspec

from harness.analysis.task_setting import TaskSetting, changed_options


class Options(msgspec.Struct):
    level: str = "easy"
    thought: bool = False
    shots: int = 0
    min_age: float = 2.0


SETTING = TaskSetting(
    passed_over={"level"},
    sampling={"temperature": 0.1},
    words={("thought", True): "chain of thought"},
    counted={"shots"},
)


def task(*, sampling=None, asked=None, prompts=None, **options):
    roles = {"candidate": SimpleNamespace(sampling=sampling or {})}
    return SimpleNamespace(
        options=Options(**options),
        task=SimpleNamespace(prompts=prompts or {}, roles=roles),
        manifest=SimpleNamespace(asked={"sampling": asked or {}}),
    )


def test_only_what_is_not_usual_is_a_change():
    assert changed_options(task(level="hard", shots=0)) == {"level": "hard"}
    assert SETTING.describe(task(sampling={"temperature": 0.1})) == ""
    found = SETTING.describe(task(sampling={"temperature": 0.1}, asked={"temperature": 0.7}))
    assert found == "temperature 0.7"


def test_a_setting_names_options_then_sampling_then_prompts():
    asked = task(
        level="hard", thought=True, shots=3, min_age=2.5,
        sampling={"temperature": 0.1, "top_p": 0.9}, asked={"max_tokens": 5},
        prompts={"rate": "/home/ada/my.j2"},
    )  # fmt: skip
    assert SETTING.describe(asked) == (
        "chain of thought, 3 shots, min age 2.5, top p 0.9, max tokens 5, own prompt my.j2"
    )
    assert SETTING.describe(asked, but={"thought", "shots"}).startswith("min age 2.5")
