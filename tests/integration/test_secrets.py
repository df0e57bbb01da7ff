"""Keys and passwords that a run is given stay out of everything it writes and says."""

from base64 import b64encode

import pytest

from harness.testing import faults

KEY = "correct-horse-battery-staple"
FORMED_KEY = "sk-proj-Zb81nQ0xkW4tRv7LmP2d"
SMALL = ("--attempts", "2", "--limit", "6", "--concurrency", "1")


def assert_nowhere(harness, done, *secrets, said=b""):
    """No secret is in what a run said and wrote: output, run folders, cache; what was said is."""
    files = [
        file
        for name in ("runs", "cache")
        for file in (harness.folder / name).rglob("*")
        if file.is_file()
    ]
    assert {"manifest.json", "calls.sqlite", "1-name.jsonl"} <= {file.name for file in files}
    texts = {"stdout": done.out.encode(), "stderr": done.err.encode()}
    texts |= {str(file): file.read_bytes() for file in files}
    assert any(said in text for text in texts.values())
    texts |= {f"name of {file}": str(file.relative_to(harness.folder)).encode() for file in files}
    for secret in secrets:
        assert [name for name, text in texts.items() if secret.encode() in text] == []


def echo(status, *, at=None):
    """A server that repeats the key in the message of its error, for one question or for all."""

    def fault(asked):
        if at is not None and asked.number != at and not asked.again:
            return None
        return faults.status(status, message=f"refused: {asked.headers['authorization']}")

    return fault


@pytest.mark.parametrize(
    ("variable", "key", "status"),
    [
        ("OPENAI_API_KEY", KEY, 400),
        ("OPENAI_API_KEY", FORMED_KEY, 401),
        ("OUR_SERVER", KEY, 404),
        ("OUR_SERVER", KEY, 500),
    ],
)
def test_a_key_that_the_server_echoes_is_written_nowhere(harness, serve, variable, key, status):
    server = serve(harness, faults=echo(status, at=1 if status in (400, 500) else None))
    model = f"base_url={server.url},model=candidate-model,api_key_env={variable}"
    arguments = harness.arguments("--model_args", model, *SMALL)
    done = harness.command(arguments, **{variable: key})
    assert done.code == (0 if status in (400, 500) else 1), done.err
    assert server.asked[0].headers["authorization"] == f"Bearer {key}"
    # The echo arrived, and only the key is gone from it.
    assert_nowhere(harness, done, key, said=b"refused: Bearer")


@pytest.mark.parametrize("status", [400, 401])
def test_the_key_of_a_file_is_sent_and_written_nowhere(harness, serve, status):
    server = serve(faults=echo(status, at=1 if status == 400 else None))
    (harness.folder / "key").write_text(f"{KEY}\n")
    (harness.folder / "harness.toml").write_text(
        f'''
        model = "served"
        [models.served]
        kind = "openai"
        base_url = "{server.url}"
        model = "candidate-model"
        api_key_file = "key"
        '''
    )
    run = [*harness.arguments()[:3], "--tasks", "interests", "--data", "sample"]
    done = harness.command([*run, "--judge", "lexical", *SMALL], OPENAI_API_KEY="of-somebody-else")
    assert done.code == (0 if status == 400 else 1), done.err
    assert "settings: model from harness.toml" in done.err
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert_nowhere(harness, done, KEY, said=b"refused: Bearer")
    assert harness.manifest()["asked"]["model_args"]["api_key_file"] == "key"


@pytest.mark.parametrize("place", ["harness.toml", "task", "command", "named in harness.toml"])
def test_the_usual_key_is_not_sent_to_a_host_that_only_a_file_names(harness, serve, place):
    # 0.0.0.0 is this machine as well, and no address of it that a file may name freely.
    server = serve(faults=lambda asked: faults.status(401) if at_home(asked) else None)
    url = server.url.replace("127.0.0.1", "0.0.0.0")
    judge = f"openai:base_url={url},model=judge-model"
    run = [*harness.arguments()[:3], "--tasks", "interests", "--data", "sample", "--limit", "2"]
    run += ["--model", "baseline", "--attempts", "1"]
    task = f"task: mine\nextends: interests\nroles: {{judge: {{default: '{judge}'}}}}"
    if place == "task":
        (harness.folder / "mine.yaml").write_text(task)
        run[run.index("interests")] = "mine.yaml"
    elif place == "command":
        run += ["--judge", judge]
    else:
        more = "api_key_env = 'OPENAI_API_KEY'\n" if place.startswith("named") else ""
        table = f"[models.far]\nkind = 'openai'\nmodel = 'judge-model'\nbase_url = '{url}'\n{more}"
        (harness.folder / "harness.toml").write_text(f"judge = 'far'\n{table}")
    done = harness.command(run, OPENAI_API_KEY=KEY)
    sent = {asked.headers.get("authorization") for asked in server.asked}
    if place in ("command", "named in harness.toml"):
        assert sent == {f"Bearer {KEY}"}
        assert done.code == 0, done.err
    else:
        assert sent == {"Bearer not-needed"}, done.err
        assert done.code == 1
        host = url.split("/")[2]
        said = f"received no key: OPENAI_API_KEY is not sent to {host}, which only a file names"
        assert said in " ".join(done.err.split())
        if place == "harness.toml":
            found = harness.here("doctor", *run[3:], OPENAI_API_KEY=KEY)
            assert "OPENAI_API_KEY is not sent to" in found.out
            assert "api_key_env=NAME or api_key_file=FILE" in " ".join(found.out.split())


def at_home(asked):
    return asked.headers.get("authorization") == "Bearer not-needed"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b" \n", "an empty file"),
        (b"correct-horse battery-staple", "several words"),
        (b"\xff\xfe", "not a text file"),
    ],
)
def test_a_file_without_a_key_is_reported_and_not_repeated(harness, serve, content, said):
    server = serve(harness)
    if content is not None:
        (harness.folder / "key").write_bytes(content)
    model = f"base_url={server.url},model=candidate-model,api_key_file=key"
    done = harness.command(harness.arguments("--model_args", model))
    assert done.code != 0
    assert "api_key_file=key: the key file cannot be used" in done.err
    assert said in done.err and "battery" not in done.err
    assert server.count == 0


def test_a_key_that_is_given_twice_as_an_argument_is_refused_without_being_repeated(harness, serve):
    server = serve(harness)
    model = f"base_url={server.url},model=candidate-model,api_key={KEY},api_key={KEY}"
    done = harness.run("--model_args", model)
    assert done.code == 2
    assert "api_key" in done.err
    assert KEY not in done.err + done.out
    assert server.count == 0


@pytest.mark.parametrize("status", [400, 401])
def test_a_password_in_an_address_is_sent_and_written_nowhere(harness, serve, status):
    server = serve(faults=echo(status, at=1 if status == 400 else None))
    harness.url = server.url.replace("http://", f"http://someone:{KEY}@")
    done = harness.run(*SMALL)
    assert done.code == (1 if status == 401 else 0), done.err
    token = b64encode(f"someone:{KEY}".encode()).decode()
    assert server.asked[0].headers["authorization"] == f"Basic {token}"
    assert_nowhere(harness, done, KEY, token)
