"""A key that a model is given, wherever it is planted, is neither written nor printed."""

import json
from base64 import b64encode
from urllib.parse import quote

import pytest
from harness_models.plugin import KINDS

from harness.cli.main import main
from harness.testing import FaultyServer, faults

KEY = "plantedkey9f8e/7d6c5b4a+0123456789abcde="
assert len(KEY) == 40

TRACES = (
    KEY[:12],
    quote(KEY, safe="")[:20],
    *(b64encode(f"{lead}{KEY}".encode()).decode()[4:20] for lead in ("", "x", "xx")),
)
"""Something of every form in which a text could hold the key."""

FORMS = (
    KEY,
    json.dumps(KEY).replace("/", "\\/").replace("+", "\\u002B"),
    quote(KEY, safe=""),
    b64encode(f"Bearer {KEY}".encode()).decode(),
    b64encode(f"bob:{KEY}".encode()).decode(),
    f"{KEY[:20]}***",
)
"""How servers repeat a key."""

LEAST = {
    "openai": "base_url=http://127.0.0.1:9/v1,model=m", "vllm": "pretrained=/no/such/folder",
    "hf": "pretrained=/no/such/folder", "baseline": "", "replay": "run=/no/such/run",
}  # fmt: skip
ELSEWHERE = {
    "openai": ("api_key", "token", "extra_body.auth.token", "extra_body.headers"),
    "vllm": ("hf_token", "api_key", "ssl_keyfile_password", "speculative_config"),
    "hf": ("hf_token", "api_key", "some_config"),
    "baseline": ("token",),
    "replay": ("token",),
}
"""Arguments that no list names: for a server, for its requests, or for nobody."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder, a home and a cache of its own, without a hub."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path


def traces(folder, capsys, *, given=()):
    """Where a trace of the key was printed or written, but for the files that were given it."""
    printed = capsys.readouterr()
    texts = {"stdout": printed.out.encode(), "stderr": printed.err.encode()}
    for file in folder.rglob("*"):
        texts[f"name of {file}"] = str(file.relative_to(folder)).encode()
        if file.is_file() and file.name not in given:
            texts[str(file)] = file.read_bytes()
    for name, text in texts.items():
        yield from (f"{name}: {trace}" for trace in TRACES if trace.encode() in text)


def arguments():
    """Every argument of every kind of model, and how the key is planted in it."""
    for kind, (_, listed) in KINDS.items():
        for name in (*(each for each in listed if each != "any other"), *ELSEWHERE[kind]):
            value = KEY
            if name == "chat_template_kwargs":
                value = f"hf_token={KEY}"
            elif name.endswith(("extra_body", "_config", "headers")):
                value = json.dumps({"auth": [{"token": KEY}]})
            yield kind, name, value


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_in_an_argument_is_refused_and_not_repeated(folder, capsys, monkeypatch, kind):
    for of, name, value in arguments():
        if of != kind:
            continue
        least = [part for part in LEAST[kind].split(",") if part.partition("=")[0] != name]
        given = ",".join([*filter(None, least), f"{name}={value}"])
        known = name not in ELSEWHERE[kind] and value == KEY
        if known:  # nothing but its variable tells that this text is a key
            monkeypatch.setenv("OUR_SERVICE_KEY", KEY)
        run = ["--model", kind, "--model_args", given, "--tasks", "interests", "--data", "sample"]
        assert main([*run, "--judge", "lexical"]) == 2, (kind, name)
        if not known:
            judge = ["--judge", f"{kind}:{given}"]
            assert main([*run[:1], "baseline", *run[4:], *judge]) == 2, (kind, name)
            assert main(["doctor", "--settings", *run[:4], *judge]) == 0
        said = capsys.readouterr()
        assert f"an argument of the {kind} model is a key, token or password" in said.err
        assert f" {name}" in said.err
        assert not [trace for trace in TRACES if trace in said.out + said.err], (kind, name)
        monkeypatch.delenv("OUR_SERVICE_KEY", raising=False)
    twice = f"{LEAST[kind]},api_key={KEY},api_key={KEY}"
    assert main([*run[:3], twice, *run[4:], "--judge", "lexical"]) == 2
    assert main(["doctor", *run[:4]]) == 1
    assert list(traces(folder, capsys)) == []


def echo(asked):
    """Answers and errors that repeat the key, each in another form, as JSON and as text."""
    form = FORMS[asked.number // 3 % len(FORMS)]
    if asked.number % 3 == 0:
        return faults.status(400, message=f"no {form}")
    if asked.number % 3 == 1:
        body = f'{{"error": "{form}'
        return faults.Fault(status=500, body=body)
    message = {"role": "assistant", "content": f"it is {KEY}", "reasoning": f"so {KEY}"}
    return faults.Fault(choice={"message": message})


@pytest.mark.parametrize(
    "place", ["variable", "own variable", "file", "address", "header", "azure"]
)
def test_a_key_in_its_place_is_sent_and_neither_written_nor_printed(
    folder, capsys, monkeypatch, place
):
    with FaultyServer(faults=echo, models=faults.status(401, message=f"no {KEY}")) as server:
        url, more = server.url, ""
        if place == "variable":
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
        elif place == "own variable":
            monkeypatch.setenv("OUR_SERVER", KEY)
            more = ",api_key_env=OUR_SERVER"
        elif place == "file":
            (folder / "its-place").write_text(KEY)
            more = ",api_key_file=its-place"
        elif place == "address":
            url = url.replace("//", f"//bob:{quote(KEY, safe='')}@")
        elif place == "header":
            monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Gateway: Bearer {KEY}\nCookie: a={KEY}")
        argument = f"base_url={url}"
        if place == "azure":
            monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
            argument = f"azure_endpoint={url.removesuffix('/v1')}"
        run = [
            "--model", "openai", "--model_args", f"{argument},model=m{more}", "--judge", "lexical",
            "--tasks", "interests", "--data", "sample", "--attempts", "2",
        ]  # fmt: skip
        assert main([*run, "--limit", "6"]) in (0, 3)
        sent = " ".join(value for asked in server.asked for value in asked.headers.values())
        assert KEY in sent or b64encode(f"bob:{KEY}".encode()).decode() in sent
        main([*run, "--limit", "6", "--retry_failures"])
        [done] = (folder / "runs").iterdir()
        main([*run, "--limit", "6", "--resume", str(done)])
        for words in (
            ["show", str(done), "--failures"], ["score", str(done)],
            ["export", str(done), "--format", "lm-eval", "--output_path", "exported"],
            ["doctor", "--ask", *run], ["config", *run], [*run, "--dry_run"],
            [*run, "--write_requests", "asked"],
        ):  # fmt: skip
            main(words)
    learnt = json.loads((done / "manifest.json").read_text())["sessions"][0]["limits"]
    assert "keys_redacted" in json.dumps(learnt)
    assert list(traces(folder, capsys, given=("its-place",))) == []
