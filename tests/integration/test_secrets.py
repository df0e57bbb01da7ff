"""Keys and passwords that a run is given stay out of everything it writes and says."""

import pytest

from harness.testing import faults

KEY = "correct-horse-battery-staple"


def test_the_key_of_a_file_that_settings_name_is_sent(harness, serve):
    server = serve(harness)
    (harness.folder / "key").write_text(f"{KEY}\n")
    (harness.folder / "harness.toml").write_text(
        "[models.served]\nkind = 'openai'\nmodel = 'candidate-model'\n"
        f"base_url = '{server.url}'\napi_key_file = 'key'\n"
    )
    run = ("--model", "served", "--judge", "lexical", "--tasks", "interests", "--data", "sample")
    harness.here(*run, "--limit", "1", OPENAI_API_KEY="of-somebody-else").ok()
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert harness.manifest()["asked"]["model_args"]["api_key_file"] == "key"


@pytest.mark.parametrize("place", ["harness.toml", "task", "command", "named in harness.toml"])
def test_the_usual_key_is_not_sent_to_a_host_that_only_a_file_names(harness, serve, place):
    # 0.0.0.0 is this machine as well, and no address of it that a file may name freely.
    def refused(asked):
        keyless = asked.headers.get("authorization") == "Bearer not-needed"
        return faults.status(401) if keyless else None

    server = serve(faults=refused)
    url = server.url.replace("127.0.0.1", "0.0.0.0")
    judge = f"openai:base_url={url},model=judge-model"
    run = ["--tasks", "interests", "--data", "sample", "--limit", "2"]
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
    done = harness.here(*run, OPENAI_API_KEY=KEY)
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
            found = harness.here("doctor", *run, OPENAI_API_KEY=KEY)
            assert "OPENAI_API_KEY is not sent to" in found.out
            assert "api_key_env=NAME or api_key_file=FILE" in " ".join(found.out.split())


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
    done = harness.run("--model_args", model)
    assert done.code != 0
    assert "api_key_file=key: the key file cannot be used" in done.err
    assert said in done.err and "battery" not in done.err
    assert server.count == 0
