"""Finished tasks of stored runs, written by hand."""

import msgspec
import pytest
from builders.runs import keep_task, make_summary, make_task
from harness_behaviour.benchmark import BEHAVIOUR
from harness_behaviour.metrics import MORE_USERS, THIRDS, USERS
from harness_behaviour.records import Fit, Options

from harness.contracts.records import Score
from harness.contracts.task import IntervalSpec

CAUSE = "recommend/no_list"


def prompt(entropy, gap=1.0, **more):
    """How a ranking fits a prompt, whose baselines have gaps of 2, 1.5 and 0.5."""
    usual = {"setting": "a", "proxy": "age", "length": 3, "users": 4}
    baselines = {"random": 2.0, "popular": 1.5, "popular_in_group": 0.5}
    usual["cross_draws"] = (entropy + 2, entropy + 1.8, entropy + 2.4)
    for name, value in baselines.items():
        usual[f"cross_{name}"] = entropy + value
        usual[f"cross_1e3_{name}"] = entropy + value / 2
        usual[f"displaced_{name}"] = value / 10
    if gap is not None:
        usual |= {"cross": entropy + gap, "cross_1e3": entropy + gap / 2, "displaced": gap / 10,
                  "filled": 0}  # fmt: skip
    return Fit(entropy=entropy, **{**usual, **more})


def score(number, fit, third):
    """The score of a prompt, as the benchmark makes it."""
    id = f"p{number:04}"
    if fit.setting == "none":
        return Score(id=id, user=id, details=fit)
    values = {f"gap_{name}": getattr(fit, f"cross_{name}") - fit.entropy
              for name in ("random", "popular", "popular_in_group")}  # fmt: skip
    if fit.cross is not None:
        values |= {"gap": fit.cross - fit.entropy, "gap_1e3": fit.cross_1e3 - fit.entropy,
                   "displaced": fit.displaced}  # fmt: skip
    return Score(
        id=id,
        user=id,
        values=values,
        missing={} if fit.cross is not None else {"gap": CAUSE},
        details=fit,
        slices={
            "proxy": fit.proxy,
            "history": str(fit.length),
            "users": next((name for most, name in USERS if fit.users <= most), MORE_USERS),
            "entropy": third,
        },
    )


@pytest.fixture
def kept(tmp_path):
    """A finished task, from how the rankings of a model fit its prompts."""

    def make(model, fits, *, thirds=(), run=None, **more):
        options = Options(**more)
        task = make_task(
            f"behaviour_{options.domain}_{options.setting}",
            benchmark="behaviour",
            metrics=("gap",),
            options=msgspec.to_builtins(options),
            interval=IntervalSpec(draws=200),
        )
        named = thirds or [THIRDS[3 * number // len(fits)] for number in range(len(fits))]
        return keep_task(
            tmp_path / (run or f"run-of-{model}"),
            task,
            scores=[score(n, *one) for n, one in enumerate(zip(fits, named, strict=True))],
            label=model,
            benchmark=BEHAVIOUR,
            options=options,
            summary=make_summary(task.name, benchmark="behaviour", model=model, units=len(fits)),
        )

    return make
