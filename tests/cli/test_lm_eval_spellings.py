"""The table for those who come from lm-eval, held against what the command does."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli.main import main

TABLE = Path(__file__).parents[2] / "docs" / "coming-from-lm-eval.md"

THEIRS = {
    "--config": ["a.yaml"], "--tasks": ["interests"], "--model": ["baseline"],
    "--model_args": ["a=1"], "--apply_chat_template": [], "--limit": ["3"],
    "--use_cache": ["cache"], "--num_fewshot": ["0"], "--batch_size": ["auto"],
    "--max_batch_size": ["64"], "--device": ["cuda:0"], "--gen_kwargs": ["temperature=0"],
    "--output_path": ["out"], "--log_samples": [], "--samples": ['{"interests": [0]}'],
    "--cache_requests": ["true"], "--check_integrity": [], "--system_instruction": ["Be brief."],
    "--fewshot_as_multiturn": [], "--verbosity": ["INFO"], "--write_out": [],
    "--show_config": [], "--wandb_args": ["project=a"], "--wandb_config_args": ["a=b"],
    "--trackio_args": ["project=a"], "--hf_hub_log_args": ["a=b"], "--predict_only": [],
    "--seed": ["42"], "--trust_remote_code": [], "--confirm_run_unsafe_code": [],
    "--metadata": ["tokenizer=gpt2"], "--include_path": ["tasks"],
}  # fmt: skip
"""The options of `lm-eval run` 0.4.13, but --include_path, each with values that it may have."""

SHORT = {
    "-t": "--tasks", "-M": "--model", "-a": "--model_args", "-L": "--limit", "-c": "--use_cache",
    "-o": "--output_path",
}  # fmt: skip


def told():
    rows = re.findall(r"^\| `(--\w+)` \| (\w+) \|", TABLE.read_text("utf-8"), re.MULTILINE)
    assert len(dict(rows)) == len(rows), "an option has two rows"
    return dict(rows)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The settings of the runs that were asked for; none is made."""
    monkeypatch.chdir(tmp_path)
    found = []

    async def instead(settings, **options):
        found.append(settings)
        return SimpleNamespace(exit_code=0)

    monkeypatch.setattr("harness.pipeline.run.arun", instead)
    return found


def test_the_table_has_each_of_their_options():
    assert told().keys() == THEIRS.keys()


@pytest.mark.parametrize("option", [*THEIRS, *SHORT])
def test_each_option_is_met_as_the_table_says(asked, capsys, option):
    name = SHORT.get(option, option)
    code = main(["run", "--model", "baseline", "--tasks", "t", option, *THEIRS[name]])
    said = capsys.readouterr().err
    if told()[name] == "same":
        assert (code, said, len(asked)) == (0, "", 1)
    else:
        assert (code, len(asked)) == (2, 0)
        assert said.startswith(f"harness: no option '{name}'")


@pytest.mark.parametrize(
    "words",
    [
        ["--limit", "0.5"], ["--seed", "0,1234,1234,1234"], ["--model", "local-completions"],
        ["--model", "openai-completions"],
    ],
)  # fmt: skip
def test_what_means_something_else_here_is_refused(printed, words):
    sample = ["--tasks", "interests_short", "--data", "sample", "--judge", "lexical", "--dry_run"]
    said = printed("run", "--model", "baseline", *sample, *words, code=2).err
    assert words[0].lstrip("-") in said and words[1] in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gen_kwargs", "max_gen_toks=10,max_tokens=5"], "argument 'max_tokens' is given twice"),
        (["--model_args", "num_concurrent=8,concurrency=3", "-M", "local-chat-completions"],
         "argument 'concurrency' is given twice"),
        (["--limit", "3", "gist"], "got unexpected extra argument (gist)"),
    ],
)  # fmt: skip
def test_nothing_that_is_said_is_dropped(asked, printed, words, said):
    assert said in printed("--model", "baseline", "--tasks", "t", *words, code=2).err
    assert asked == []


def test_a_command_behind_run_is_no_run(asked, printed):
    said = printed("run", "show", "runs/x", code=2).err
    assert "got unexpected extra arguments (show runs/x)" in said
    assert asked == []


def test_their_values_reach_our_settings(asked):
    assert main([
        "run", "-t", "a,b", "-M", "local-chat-completions", "-L", "10", "-o", "out",
        "-a", "base_url=http://h/v1,model=m,num_concurrent=3", "-c", "kept",
        '--gen_kwargs=temperature=0.5,max_gen_toks=16,until=["x","y"]', "--seed=-3",
    ]) == 0  # fmt: skip
    (settings,) = asked
    assert settings.tasks == ("a", "b")
    assert settings.model == "openai"
    assert settings.model_args == {"base_url": "http://h/v1", "model": "m", "concurrency": "3"}
    assert settings.sampling == {"temperature": 0.5, "max_tokens": 16, "stop": ["x", "y"]}
    assert (settings.limit, settings.seed) == (10, -3)
    assert (settings.output_path, settings.store) == (Path("out"), Path("kept"))


def test_arguments_may_be_json(asked):
    assert main([
        "-m", "local-chat-completions", "-t", "a", "--gen_kwargs",
        '{"temperature": 0, "until": ["x", "y"], "max_gen_toks": 16}', "--model_args",
        '{"model": "m", "base_url": "http://h/v1", "num_concurrent": 3}',
    ]) == 0  # fmt: skip
    (settings,) = asked
    assert settings.model == "openai"
    assert settings.model_args == {"model": "m", "base_url": "http://h/v1", "concurrency": "3"}
    assert settings.sampling == {"temperature": 0, "max_tokens": 16, "stop": ["x", "y"]}


def test_json_that_is_none_is_refused_and_not_repeated(asked, printed):
    for text in ('{"api_key": "sk-very-secret-1234567890"', "{}x", '{"a": null}', '{"a b": 1}'):
        said = printed("-M", "openai", "-t", "a", "--model_args", text, code=2).err
        assert said.startswith("harness: --model_args begins like a JSON object")
        assert "secret" not in said
    assert asked == []


def test_a_bare_command_starts_no_run_that_only_settings_ask_for(asked, printed, tmp_path):
    (tmp_path / "harness.toml").write_text('model = "baseline"\ntasks = "t"\n')
    assert "`harness run` runs these settings" in printed(code=2).err
    assert asked == []
    assert main(["run"]) == 0
    assert asked[0].tasks == ("t",)
