"""A machine without a GPU, vLLM, data or network: all obstacles at once, and commands that work."""

import json
import shlex
import sys

import pytest
from builders.commands import run_cli

from harness.cli.main import main
from harness.testing import FaultyServer

ASKED = ("--model", "vllm", "--tasks", "gist_synthetic,perrec_hard")
OBSTACLES = {
    "gpu": "no NVIDIA GPU is on this machine",
    "interpreter": f"vLLM is not installed for {sys.executable}",
    "candidate": "Qwen/Qwen3-8B (about 16 GB) is not in the cache",
    "judge and 3 other roles": "meta-llama/Llama-3.3-70B-Instruct (about 140 GB) is not in the",
}
"""Beside the data of both benchmarks."""


@pytest.fixture(scope="module", autouse=True)
def bare(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        for name in ("PYTHONPATH", "HARNESS_VLLM_PYTHON", "HARNESS_PRETRAINED"):
            patch.delenv(name, raising=False)
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder / "hub"))
        patch.setattr("harness_models.vllm.GPU_DEVICES", ("/no/such/device",))
        yield folder


@pytest.fixture(scope="module")
def page(bare):
    """What the run prints instead of running."""
    done = run_cli(*ASKED, folder=bare)
    assert done.code == 1
    assert not (bare / "runs").exists(), "nothing began"
    return done.err


def commands(page):
    """The printed commands by what they are for, each as one line."""
    lines = page.replace("\\\n", " ").splitlines()
    found = [(line, lines[at + 1]) for at, line in enumerate(lines) if line.endswith(":")]
    return {purpose.strip(): " ".join(command.split()) for purpose, command in found}


def test_all_obstacles_are_in_one_list_of_80_columns_and_the_doctor_finds_the_same(page, printed):
    first, *lines = page.splitlines()
    assert first == "harness: this run cannot start here"
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []
    assert [line for line in lines if line != line.rstrip() or not line] == []
    listed = [line for line in lines if line.startswith("  ✗ ")]
    flat = " ".join(page.split())
    assert len(listed) == len(OBSTACLES) + 2
    assert [f"✗ {about}: {says}" in flat for about, says in OBSTACLES.items()] == [True] * 4
    assert "✗ data: task 'gist_synthetic' needs the hub's data set 'facebook/gistbench'" in flat
    assert "✗ data: task 'perrec_hard_pointwise' cannot get its data" in flat
    assert "--judge openai:base_url=…,model=…" in flat
    found = json.loads(printed("doctor", "--json", *ASKED, code=1).out)["findings"]
    bad = [one for one in found if one["state"] == "bad"]
    assert len(bad) == len(OBSTACLES) + 2
    assert [one for one in bad if f"✗ {one['about']}: {one['says']}" not in flat] == []


def test_the_command_for_now_runs_as_it_is_printed(page, printed):
    command = commands(page)["now, without a GPU:"]
    assert command == (
        "harness --model baseline --judge lexical --tasks gist_synthetic,perrec_hard --data sample"
    )
    assert "perrec_hard" in printed(*shlex.split(command)[1:], "--limit", "2").out


def test_the_command_with_a_server_begins_with_the_users_own(page, capsys):
    command = commands(page)["with a server:"]
    assert command == (
        "harness --model openai --model_args base_url=…,model=… --judge "
        "openai:base_url=…,model=… --tasks gist_synthetic,perrec_hard --data sample"
    )
    with FaultyServer(models=["a", "b"]) as server:
        words = shlex.split(command.replace("base_url=…", f"base_url={server.url}"))[1:]
        words[3], words[5] = words[3].replace("…", "a"), words[5].replace("…", "b")
        code = main([*words, "--limit", "1", "--max_failures", "1.0"])
        assert server.count > 0, "the candidate was asked"
    assert code in (0, 3), capsys.readouterr().err
