"""The `vllm` kind: its arguments, and what is found before a start with a made-up vllm."""

import json
import sys

import pytest
from harness_models.openai_embeddings import EmbeddingModel
from harness_models.vllm import make
from harness_models.vllm_args import read_args

from harness.base.errors import ModelError, UsageError
from harness.contracts.model import ModelSettings

pytestmark = pytest.mark.usefixtures("package")


def model(structured=False, **given):
    return make(ModelSettings(args={"python": sys.executable, **given}, structured=structured))


def test_the_server_is_started_on_a_socket_with_what_was_said(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    (folder / "adapter_config.json").write_text('{"r": 20}')
    made = model(
        pretrained="~/tiny", tokenizer="~/tiny", lora="~/tiny", dtype="float16", max_num_seqs="16",
        enforce_eager="true", enable_prefix_caching="false", data_parallel_size="2",
        chat_template_kwargs="enable_thinking=false", structured=True,
    )  # fmt: skip
    assert made.server_command() == [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--uds", "SOCKET",
        "--model", str(folder), "--served-model-name", str(folder), "--tokenizer", str(folder),
        "--enable-prompt-tokens-details", "--disable-uvicorn-access-log",
        "--no-enable-prefix-caching", "--generation-config", "vllm", "--dtype", "float16",
        "--max-num-seqs", "16", "--enforce-eager", "--data-parallel-size", "2",
        "--default-chat-template-kwargs", '{"enable_thinking": false}',
        "--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}',
        "--api-server-count", "1", "--enable-lora", "--lora-modules", f"adapter={folder}",
        "--max-lora-rank", "32", "--max-model-len", "100000",
    ]  # fmt: skip
    assert (made.engine.model, made.identity.name) == ("adapter", "tiny+tiny")
    assert (made.occupies, made.concurrency) == ("gpu", 40)
    plain = list(model(pretrained=str(folder), max_model_len="9").server_command())
    assert plain[-4:] == ["--generation-config", "vllm", "--max-model-len", "9"]
    assert plain[-5] == "--enable-prefix-caching"


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


@pytest.mark.usefixtures("serve")
def test_a_vllm_with_the_command_is_started_by_it_and_known_by_its_version(folder, package):
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
    given = {"system_role": "false", "stop": "###", "logprobs": "true", "extra_body.top_k": "20"}
    made = model(pretrained=str(folder), **given)
    assert made.engine.requests == {
        "system_role": False, "stop": ("###",), "logprobs": True, "extra_body": {"top_k": 20},
    }  # fmt: skip
    assert list(made.server_command()) == list(plain.server_command())
    assert made.identity.details == plain.identity.details | {
        "system_role": False, "stop": ["###"], "logprobs": 0, "extra_body": {"top_k": 20},
    }  # fmt: skip


def test_completions_need_no_template_and_are_rendered_with_the_one_that_is_given(folder, tmp_path):
    (folder / "chat_template.jinja").unlink()
    made = model(pretrained=str(folder), endpoint="completions")
    assert made.identity.details["form"] == {"plain": 1}
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
    with pytest.raises(UsageError) as caught:
        model(pretrained=str(folder), revision="main")
    assert caught.value.found == "revision=main"
    (folder / "config.json").rename(folder / "params.json")
    assert model(pretrained=str(folder)).identity.name == "tiny"
    file = tmp_path / "small-Q4_K_M.gguf"
    file.write_bytes(b"GGUF")
    made = model(pretrained=str(file))
    assert (made.identity.name, made.identity.scope) == ("small-Q4_K_M.gguf", "everywhere")
    for elsewhere in ("s3://bucket/night-12", "org/small-GGUF:Q4_K_M"):
        made = model(pretrained=elsewhere)
        assert (made.identity.name, made.identity.scope) == (elsewhere, "run")


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("model.safetensors", b"\x02\0\0\0\0\0\0\0{}" + b"\0", "11 bytes"),
        ("config.json", b'{"max_position', None),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "b.safetensors"}}',
         "no file b.safetensors"),
    ],
)  # fmt: skip
def test_damaged_weights_are_named_before_the_start(folder, name, content, found):
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match="incomplete or damaged") as caught:
        model(pretrained=str(folder))
    assert caught.value.where == str(folder / name)
    assert found in (None, caught.value.found)


def test_an_identity_holds_what_decides_answers_and_not_how_fast_they_come(folder, package):
    # Addresses and logs are not known without a look at the parser.
    names = ("master_addr", "node_rank", "log_level", "data_parallel_rank")
    more = "\n".join(f"parser.add_argument('--{n.replace('_', '-')}')" for n in names)
    server = package / "entrypoints" / "openai" / "api_server.py"
    server.write_text(server.read_text().replace("if __name__", more + "\nif __name__"))
    plain = model(pretrained=str(folder)).identity
    assert (plain.kind, plain.name, plain.scope) == ("vllm", "tiny", "everywhere")
    assert plain.details["engine"] == {"generation_config": "vllm"}
    fast = {"tensor_parallel_size": "2", "max_num_seqs": "4", "gpu_memory_utilization": "0.5"}
    assert model(pretrained=str(folder), **fast, **dict.fromkeys(names, "1")).identity == plain
    told = {"chat_template_kwargs": "enable_thinking=false"}
    for other in ({"dtype": "float16"}, told, {"structured": True}):
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
    told = tmp_path / "hub" / "models--org--name" / "snapshots" / "ab12" / "tokenizer_config.json"
    told.parent.mkdir(parents=True)
    told.write_text("{}")
    with pytest.raises(ModelError, match="the checkpoint has no chat template") as caught:
        model(pretrained="org/name")
    assert caught.value.where == str(told)


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


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(
    ("given", "count", "share"),
    [
        ({}, 1, 0.92),
        ({"preset": "h200", "tensor_parallel_size": "2", "pipeline_parallel_size": "3"}, 6, 0.94),
        ({"data_parallel_size": "4", "gpu_memory_utilization": ".5"}, 4, 0.5),
    ],
)
def test_what_an_engine_wants_of_gpus_unless_a_ray_cluster_has_them(folder, given, count, share):
    wanted = model(pretrained=str(folder), **given).engine.memory
    assert (wanted.name, wanted.count, wanted.share) == ("vllm:tiny", count, share)
    assert model(pretrained=str(folder), data_parallel_backend="ray", **given).engine.memory is None


@pytest.mark.usefixtures("cuda")
def test_only_a_vllm_for_cpus_is_started_where_there_is_no_gpu(folder, package, monkeypatch):
    monkeypatch.setattr("harness_models.vllm.GPU_DEVICES", ("/no/such/device",))
    with pytest.raises(ModelError, match="no NVIDIA GPU is on this machine"):
        model(pretrained=str(folder))
    (package.parent / "torch" / "version.py").write_text("cuda: Optional[str] = None\n")
    made = model(pretrained=str(folder), tensor_parallel_size="2")
    assert (made.occupies, made.gpus, made.engine.memory) == ("gpu", 0, None)
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(ModelError, match="vLLM is not installed") as caught:
        model(pretrained=str(folder))
    assert f"for {sys.executable}" in str(caught.value).replace("\n   ", "")


def test_doctor_shows_a_servers_start_and_gpu_holder(folder, printed, smi, request, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HARNESS_CACHE", str(folder.parent / "cache"))
    args = f"pretrained={folder},python={sys.executable}"
    run = ("--model", "vllm", "--model_args", args, "--tasks", "interests", "--judge", "lexical")
    run = (*run, "--data", "sample")
    smi("0, GPU-4a8e, NVIDIA H100, 81559, 60004, 20994\n", "4711, GPU-4a8e, 59990, python\n")
    told = printed("doctor", "--json", *run, code=1).out
    [server] = json.loads(told)["servers"]
    command = server["command"]
    assert server["model"] == "vllm:tiny"
    assert command.startswith(f"{sys.executable} -m vllm.entrypoints.openai.api_server --uds SOCK")
    assert command.endswith("--max-model-len 100000")
    shown = printed("doctor", *run, code=1).out
    assert shown.endswith(f"  vllm:tiny starts:\n    {command}\n")
    # A run knows it only once the engine is wanted, since the store may hold all answers.
    request.getfixturevalue("cuda")
    said = " ".join(printed(*run, code=1).err.split())
    assert "process 4711 (python) holds 59990 MiB" in said


def read(concurrency=None, **given):
    return read_args(ModelSettings(args=given, concurrency=concurrency))


def test_arguments_go_before_the_environment_and_that_before_the_usual(monkeypatch):
    monkeypatch.delenv("HARNESS_VLLM_PYTHON", raising=False)
    args = read()
    assert (args.model, args.python) == ("Qwen/Qwen3-8B", sys.executable)
    assert args.engine == {"enable_prefix_caching": "true", "generation_config": "vllm"}
    monkeypatch.setenv("HARNESS_PRETRAINED", "org/mine")
    monkeypatch.setenv("HARNESS_VLLM_PYTHON", "/opt/python")
    assert (read().model, read().python) == ("org/mine", "/opt/python")
    assert read().note == (
        "no model given: using org/mine (from HARNESS_PRETRAINED; pretrained=… chooses another)"
    )
    args = read(pretrained="org/other", python="/usr/python")
    assert (args.model, args.python) == ("org/other", "/usr/python")


def test_what_is_given_goes_before_a_preset_and_that_before_the_defaults():
    told = {"enable_thinking": False, "effort": "low"}
    for text in ("enable_thinking=false;effort=low", json.dumps(told)):
        assert read(chat_template_kwargs=text).chat_template_kwargs == told
    args = read(preset="h200", max_num_batched_tokens="4096")
    assert args.engine == {"enable_prefix_caching": "true", "generation_config": "vllm",
                           "max_num_seqs": "1024", "gpu_memory_utilization": "0.94",
                           "max_num_batched_tokens": "4096"}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "in_flight"),
    [
        ({}, 288),
        ({"max_num_seqs": "16"}, 24),
        ({"max_num_seqs": "64", "data_parallel_size": "4"}, 288),
    ],
)
def test_more_requests_are_in_flight_than_the_engines_hold_unless_it_is_said(given, in_flight):
    assert read(**given).concurrency == in_flight
    assert read(concurrency=5, **given).concurrency == 5
    own = ModelSettings(args={"concurrency": "7", **given}, concurrency=5)
    assert read_args(own).concurrency == 7


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"port": "8000"}, "port=8000"),
        ({"preset": "a100"}, "preset=a100"),
        ({"max_num_seqs": "many"}, "max_num_seqs=many"),
        ({"tensor_parallel_size": "0"}, "tensor_parallel_size=0"),
        ({"enable_prefix_caching": "maybe"}, "enable_prefix_caching=maybe"),
        ({"chat_template": "/no/such.jinja"}, "chat_template=/no/such.jinja"),
        ({"chat_template_kwargs": "thinking"}, "chat_template_kwargs=thinking"),
        ({"chat_template_kwargs": "{broken"}, "chat_template_kwargs={broken"),
        ({"pretrained": "a", "model": "b"}, "model=b"),
        ({"dtype": ""}, "dtype="),
        ({"thinking": "maybe"}, "thinking=maybe"),
        ({"system_role": "maybe"}, "system_role=maybe"),
        *(
            ({"gpu_memory_utilization": one}, f"gpu_memory_utilization={one}")
            for one in ("0", "1.1", "92%", "-1", "nan")
        ),
        *(({"gpus": one}, f"gpus={one}") for one in ("all", "3-1", "0;1", "-1")),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(given, found):
    with pytest.raises(UsageError, match="an argument of the vllm model cannot be used") as caught:
        read(**given)
    assert caught.value.found == found
