"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness_behaviour.data import load
from harness_behaviour.metrics import METRICS, score
from harness_behaviour.records import Fit, Options
from harness_behaviour.stages import STAGES

WORDS = {
    "a": "setting a: prompts show demography and history",
    "b": "setting b: prompts show history alone",
    "c": "setting c: prompts show demography alone",
    "_a": "setting a: prompts show demography and history",
    "_b": "setting b: prompts show history alone",
    "_c": "setting c: prompts show demography alone",
    "no_list": "the reply holds no list of titles",
    "empty_list": "the list of the reply holds no title, or no order of its titles",
    "negated": "the list of the reply holds what it does not recommend",
    "random": "one random ranking of each prompt, without a model",
    "popular": "the candidates that most users have but those behind the prompt, without a model",
    "popular in group": "the same among users of the demography, without a model",
    "proxy": "the part of the demography that a prompt shows",
    "H": "the true entropy: how evenly the choices of a group are spread over the candidates",
    "|u_h|": "the number of users behind a prompt",
    "displaced %": "the true share of the candidates that an answer leaves out",
    "to ideal %": "how much of the gap of popular a ranking closes",
}

BEHAVIOUR = Benchmark(
    name="behaviour",
    version=2,
    description="Which ten of fifty movies or tracks does a group of users choose?",
    paper="https://arxiv.org/abs/2507.05266",
    licence="MovieLens: research only, not to be passed on; last.fm 1K: non-commercial use",
    stages=STAGES,
    options=Options,
    scored_with=("fills", "window"),
    load=load,
    score=score,
    metrics=METRICS,
    main=("gap",),
    words=WORDS,
    details=Fit,
)
