"""`harness models`, `judges` and `embedders`: what is told of a kind is what it takes."""

import json

from harness_judges.lexical import make as make_lexical
from harness_models.hf_args import OWN as HF_OWN
from harness_models.openai_args import OpenAIArgs
from harness_models.replay import ARGUMENTS as REPLAY
from harness_models.vllm_args import OWN

from harness.contracts.judge import JudgeParts
from harness.registry import load_plugins

ANY_OTHER = "any other"


def test_the_arguments_that_are_listed_are_those_that_are_taken():
    models, judges = load_plugins().models, load_plugins().judges
    assert set(models["openai"].arguments) == set(OpenAIArgs.__struct_fields__)
    assert set(models["vllm"].arguments) - {ANY_OTHER} == set(OWN)
    assert set(models["hf"].arguments) - {ANY_OTHER} == set(HF_OWN)
    assert set(models["baseline"].arguments) == {"respondent"}
    assert set(models["replay"].arguments) == set(REPLAY)
    for name in judges["lexical"].arguments:
        assert make_lexical(JudgeParts(args={name: "0.25"})).name == f"lexical:{name}=0.25"
    assert judges["llm"].arguments == {}


def test_how_a_model_or_judge_is_to_be_named_is_told(printed):
    said = printed("--model", "gpt-4", "--tasks", "interests", "--data", "sample", code=2).err
    assert "a model behind a server is openai:NAME" in said
    said = printed("judges", "llm").out
    assert "llm:openai:model=NAME,base_url=URL" in said
    assert "its plugin declares no arguments" in said


def test_kinds_of_other_plugins_are_listed_as_ours_are(site, printed):
    code = """
        from harness import hookimpl

        @hookimpl
        def register_models(register):
            register("aardvark", str, description="Digs.", arguments={"depth": "in metres"})
    """
    site.install("zoo", {"zoo": "zoo"}, {"zoo.py": code})
    first = printed("models").out.splitlines()[0]
    assert first.split(maxsplit=1) == ["aardvark", "Digs.; arguments depth; plugin zoo"]
    [model] = json.loads(printed("models", "aardvark", "--json").out)["models"]
    assert model == {
        "name": "aardvark", "plugin": "zoo", "distribution": "zoo", "description": "Digs.",
        "arguments": {"depth": "in metres"},
    }  # fmt: skip
