import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import UsageError
from harness.cli.main import main
from harness.cli.run import run
from harness.cli.run_options import run_options
from harness.cli.settings import Setting, lines_of

LEAST = ("--model", "baseline", "--tasks", "t")


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Writes the files of settings, and gives what a run would be asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HARNESS_CACHE", raising=False)
    asked = []

    class Settings:
        folder = tmp_path

        def write(self, folder="", user=""):
            (tmp_path / "harness.toml").write_text(folder)
            (tmp_path / "config" / "harness").mkdir(parents=True, exist_ok=True)
            (tmp_path / "config" / "harness" / "config.toml").write_text(user)

        def asked(self, *arguments):
            assert main([*arguments, "--quiet"]) == 0
            return asked.pop()

    async def instead(settings, **options):
        asked.append(settings)
        return SimpleNamespace(exit_code=0)

    monkeypatch.setattr("harness.pipeline.run.arun", instead)
    return Settings()


def test_the_nearest_layer_wins(settings, monkeypatch):
    settings.write(
        user='model = "baseline"\nconcurrency = 1\nseed = 1\nlimit = 1\nattempts = 2\n',
        folder="concurrency = 2\nseed = 2\nlimit = 2\n",
    )
    monkeypatch.setenv("HARNESS_SEED", "3")
    monkeypatch.setenv("HARNESS_LIMIT", "3")
    asked = settings.asked("--tasks", "interests", "--limit", "4")
    assert (asked.model, asked.patience.attempts) == ("baseline", 2)
    assert (asked.concurrency, asked.seed, asked.limit) == (2, 3, 4)


def test_every_option_of_a_run_is_a_setting_or_meant_for_one_command():
    settable = {one.name for one in run_options() if isinstance(one, Setting)}
    assert {one.name for one in run_options()} - settable == {
        "dry_run", "resume", "retry_failures", "verbose", "json", "version", "write_requests",
        "answers",
    }  # fmt: skip
    assert {"model", "judge", "role", "store", "max_calls"} <= settable


def test_tables_and_lists_are_what_the_command_line_would_have(settings):
    settings.write(
        """
        model = "openai"
        tasks = ["interests", "interests_short"]
        data = { interests = "sample", "*" = "~/logs" }
        max_failures = { calls = 0.3 }
        [model_args]
        base_url = "http://h/v1"
        model = "m"
        immutable = true
        [role]
        judge = "lexical"
        [set]
        window = 8
        interests.names = ["x", "8"]
        [columns]
        user = "customer_id"
        engagements.title = "name"
        [values.action]
        view = "skipped"
        [gen_kwargs]
        temperature = 0.5
        stop = ["a", "b"]
        """
    )
    asked = settings.asked()
    assert asked.columns == {"user": "customer_id", "engagements.title": "name"}
    assert asked.values == {"action.view": "skipped"}
    assert asked.tasks == ("interests", "interests_short")
    assert asked.model_args == {"base_url": "http://h/v1", "model": "m", "immutable": "true"}
    assert asked.data == {"interests": "sample", "*": str(settings.folder / "home/logs")}
    assert asked.roles == {"judge": "lexical"}
    assert asked.changes == {"window": 8, "interests.names": ["x", "8"]}
    assert asked.sampling == {"temperature": 0.5, "stop": ["a", "b"]}
    assert asked.max_failures == {"calls": 0.3}


def test_what_has_names_is_overridden_name_by_name(settings):
    settings.write(
        user='[role]\njudge = "lexical"\nasker = "baseline"\n[data]\na = "x"\nb = "y"\n',
        folder="[set]\nwindow = 8\nleast = 2\n",
    )
    asked = settings.asked(*LEAST, "--role", "asker=openai:m", "--data", "b=z", "--set", "window=9")
    assert asked.roles == {"judge": "lexical", "asker": "openai:m"}
    assert asked.data == {"a": "x", "b": "z"}
    assert asked.changes == {"window": 9, "least": 2}


@pytest.mark.parametrize("word", ["false", "0", "off", "No"])
def test_a_switch_of_a_file_can_be_taken_back(settings, monkeypatch, word):
    settings.write("structured = true")
    assert settings.asked(*LEAST).structured is True
    assert settings.asked(*LEAST, "--no-structured").structured is False
    monkeypatch.setenv("HARNESS_STRUCTURED", word)
    assert settings.asked(*LEAST).structured is False


def test_a_variable_gives_several_line_by_line_and_none_when_it_is_empty(settings, monkeypatch):
    monkeypatch.setenv("HARNESS_ROLE", "a=lexical\nb=openai:model=m,seed=false\n")
    monkeypatch.setenv("HARNESS_SEED", "")
    monkeypatch.setenv("HARNESS_OFFLINE", "yes")
    asked = settings.asked(*LEAST)
    assert asked.offline is True
    assert asked.roles == {"a": "lexical", "b": "openai:model=m,seed=false"}
    assert asked.seed == 0


NAMED = """
[models.local]
kind = "openai"
base_url = "http://localhost:8000/v1"
model = "small"
"""
BASE = "openai:base_url=http://localhost:8000/v1,model="
SETTLED = [
    ('data = { a = "x" }', [*LEAST, "--data", "sample"], {"data": "sample"}),
    ("num-repeats = 2\nnum_repeats = 3", LEAST, {"num_repeats": 3}),
    ("reuse = 'run'", LEAST, {"use_store": False, "fresh": False}),
    (
        "reuse = 'run'", [*LEAST, "--store", "calls.sqlite"],
        {"use_store": True, "store": Path("calls.sqlite")},
    ),
    ("reuse = 'none'", [*LEAST, "--store", "a.sqlite"], {"use_store": True, "fresh": True}),
    # The names of 0.1.0, where a switch that is off says nothing.
    ("no_store = true", LEAST, {"use_store": False}),
    ("no-store = false\nfresh = true", LEAST, {"use_store": True, "fresh": True}),
    ("offline = true\ndownload = false", LEAST, {"offline": True, "download": False}),
    ("offline = true", [*LEAST, "--download"], {"offline": False, "download": True}),
    # Who names a model names its arguments too.
    ('model = "openai"\nmodel_args = "model=m,seed=false"', LEAST, {"model_args": {}}),
    (
        'model = "openai"\nmodel_args = "model=m,seed=false"',
        ["--tasks", "t", "--model_args", "model=n"], {"model_args": {"model": "n"}},
    ),
    ('judge = "openai:m"', [*LEAST, "--role", "judge=lexical"], {"roles": {"judge": "lexical"}}),
    (
        'role = { judge = "openai:m" }', [*LEAST, "--judge", "lexical"],
        {"roles": {"judge": "lexical"}},
    ),
    (NAMED, ["--model", "openai:local", "--tasks", "t"], {"model_args": {"model": "local"}}),
    (
        NAMED, [*LEAST, "--judge", "panel:local:a+openai:c\\+d+local:model=b"],
        {"roles": {"judge": f"panel:{BASE}a+openai:c\\+d+{BASE}b"}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "expected"), SETTLED)
def test_what_is_settled_by_a_file_and_a_command(settings, text, words, expected):
    settings.write(text)
    asked = settings.asked(*words)
    assert {name: getattr(asked, name) for name in expected} == expected


def test_the_name_of_a_model_stands_for_it_and_is_its_label_unless_what_is_asked_changes(settings):
    settings.write(NAMED)
    asked = settings.asked("--model", "local", "--judge", "local", "--tasks", "t")
    assert asked.name == "local"
    assert asked.model_args == {"base_url": "http://localhost:8000/v1", "model": "small"}
    assert asked.roles == {"judge": f"{BASE}small,label=local"}
    assert asked.asked()["roles"] == {"judge": f"{BASE}small"}
    changed = ("--model", "local", "--model_args", "revision=b", "--tasks", "t")
    assert settings.asked(*changed).name is None
    assert settings.asked(*changed, "--name", "mine").name == "mine"
    asked = settings.asked(
        "--model", "local", "--model_args", "revision=b", "--tasks", "t",
        "--judge", "local:model=big", "--role", "asker=llm:local:other",
    )  # fmt: skip
    assert asked.model == "openai"
    base = "http://localhost:8000/v1"
    assert asked.model_args == {"base_url": base, "model": "small", "revision": "b"}
    assert asked.roles == {"judge": f"{BASE}big", "asker": f"llm:{BASE}other"}
    settings.write(NAMED, user='[models.local]\nkind = "baseline"\nrespondent = "x"\n')
    assert settings.asked("--model", "local", "--tasks", "t").model == "openai"


def test_a_local_run_has_no_use_for_what_a_file_says_of_a_cluster(settings, printed):
    settings.write('executor = "ray"\nray_address = "auto"\nworkers = 8\n')
    asked = settings.asked(*LEAST, "--engines", "2")
    assert (asked.executor, asked.ray_address, asked.workers) == ("ray", "auto", 8)
    assert asked.engines == 2
    asked = settings.asked(*LEAST, "--executor", "local")
    assert (asked.executor, asked.ray_address, asked.workers) == ("local", None, None)
    assert settings.asked(*LEAST, "--executor", "ray").workers == 8
    settings.write('ray_address = "auto"\n')
    assert settings.asked(*LEAST).ray_address is None
    assert settings.asked(*LEAST, "--executor", "ray").ray_address == "auto"
    said = printed(*LEAST, "--ray_address", "auto", code=2).err  # who says it here means it
    assert "--ray_address needs --executor ray" in said


KEY = "correct-horse-battery-staple"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "concurency = 3",
            ["harness.toml:1: there is no setting 'concurency'", "mean 'concurrency'"],
        ),
        ("structured = 'maybe'", ["harness.toml:1", "true or false"]),
        (
            "executor = 'ray'\nworkers = 0",
            ["harness.toml:2: --workers must be at least 1", "found:    0"],
        ),
        ("tasks = [['a']]", ["harness.toml:1", "list"]),
        ("seed = [1, 2]", ["harness.toml:1", "exactly one value"]),
        ("seed = {a = 1}", ["harness.toml:1", "a value that is not a table"]),
        ("[model_args]\n'm n' = 1", ["harness.toml:1", "the setting 'model_args' is not valid"]),
        (f"model_args = 'model=m,api_key={KEY}'", ["api_key_file"]),
        (f"judge = 'openai:base_url=http://me:{KEY}@host/v1'", ["harness.toml:1", "password"]),
        ("data = 'sk-proj-Zb81nQ0xkW4tRv7LmP2d'", ["harness.toml:1", "a key"]),
    ],
)
def test_a_file_that_means_nothing_is_reported_with_file_line_and_key(
    settings, printed, text, said
):
    settings.write(text)
    run = ("--model", "baseline", "--tasks", "interests", "--judge", "lexical")
    error = printed(*run, code=2).err
    assert [part for part in said if part not in error] == []
    assert KEY not in error and "sk-proj-Zb81nQ0xkW4tRv7LmP2d" not in error


@pytest.mark.parametrize(
    ("value", "said"), [("x", "a whole number"), ("1\n2", "exactly one value")]
)
def test_a_variable_that_means_nothing_is_named(settings, printed, monkeypatch, value, said):
    monkeypatch.setenv("HARNESS_SEED", value)
    error = printed(*LEAST, code=2).err
    assert "HARNESS_SEED: the setting 'seed' is not valid" in error and said in error


def test_a_file_that_cannot_be_read_is_named_with_who_named_it(settings, printed):
    settings.write('prices = "gone.toml"')
    said = printed(*LEAST, code=2).err
    assert said.startswith("harness: harness.toml:1 (gone.toml): --prices: the file cannot be read")
    (settings.folder / "harness.toml").write_bytes(b"model = '\xff'")
    assert "harness.toml: the settings file cannot be read" in printed(*LEAST, code=2).err


def test_a_misspelt_variable_is_reported_and_those_of_others_are_not(settings, capsys, monkeypatch):
    monkeypatch.setenv("HARNESS_CONCURENCY", "3")
    monkeypatch.setenv("HARNESS_REAL_DATA", "x")
    settings.asked(*LEAST)
    assert capsys.readouterr().err == (
        "harness: HARNESS_CONCURENCY is set, but nothing reads it: "
        "did you mean HARNESS_CONCURRENCY?\n"
    )


def test_what_no_option_said_is_told_before_a_run(settings, printed, monkeypatch):
    settings.write('model = "baseline"\nseed = 3')
    monkeypatch.setenv("HARNESS_LIMIT", "3")
    assert printed("--tasks", "t").err == (
        "settings: model, seed from harness.toml; limit from HARNESS_LIMIT"
        " (`harness doctor --settings` shows them)\n"
    )


def test_doctor_lists_values_sources_and_what_they_override(settings, printed, monkeypatch):
    settings.write("seed = 2\n" + NAMED, user="seed = 1")
    monkeypatch.setenv("HARNESS_LIMIT", "3")
    monkeypatch.setenv("HARNESS_CACHE", "elsewhere")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    out = printed("doctor", "--settings", "--json", "--model", "local", "--seed", "7").out
    assert KEY not in out
    document = json.loads(out)
    settled = {one.pop("setting"): one for one in document["settings"]}
    of_folder = {"setting": "seed", "value": 2, "source": "folder file", "where": "harness.toml:1"}
    user = str(settings.folder / "config/harness/config.toml")
    of_user = {"setting": "seed", "value": 1, "source": "user file", "where": f"{user}:1"}
    assert settled["seed"] == {
        "value": 7, "source": "command line", "where": "--seed",
        "overrides": [of_folder, of_user],
    }  # fmt: skip
    assert settled["limit"]["source"] == "environment"
    assert settled["limit"]["where"] == "HARNESS_LIMIT"
    assert settled["attempts"] == {
        "value": 8, "source": "default", "where": None, "overrides": [],
    }  # fmt: skip
    assert settled["store"]["value"] == "elsewhere/calls.sqlite"
    (model,) = document["models"]
    assert model == {
        "name": "local", "where": "harness.toml:3",
        "spec": "openai:base_url=http://localhost:8000/v1,model=small",
    }  # fmt: skip
    named = {one["name"]: one["value"] for one in document["variables"]}
    assert named["HARNESS_CACHE"] == "elsewhere"
    assert named["OPENAI_API_KEY"] == "set, not shown"
    assert named["OPENAI_BASE_URL"] is None
    assert document["files"] == [
        {"file": user, "there": True}, {"file": "harness.toml", "there": True},
    ]  # fmt: skip


def test_doctor_shows_no_key_that_a_change_gives(settings, printed):
    settings.write('[set]\n"t.api_key" = "hunter2"\n')
    changes = ("t.password=hunter3", "t.server={api_key: hunter4, port: 1}", "window=3")
    for shape in ([], ["--json"]):
        words = [word for change in changes for word in ("--set", change)]
        out = printed("doctor", "--settings", *shape, *words).out
        assert "hunter" not in out
        assert "window" in out
    settled = {one["setting"]: one["value"] for one in json.loads(out)["settings"]}
    assert settled["set.t.api_key"] == settled["set.t.password"] == "[redacted]"
    assert json.loads(settled["set.t.server"]) == {"api_key": "[redacted]", "port": 1}
    assert settled["set.window"] == "3"


def test_the_page_of_settings_shows_below_each_what_it_overrides(settings, printed):
    settings.write("seed = 2")
    out = printed("doctor", "--settings", "--seed", "7").out
    lines = [line.split() for line in out.splitlines()]
    assert lines[lines.index(["seed", "7", "--seed"]) + 1] == ["overrides", "2", "harness.toml:1"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["a"], 1),
        (["t", "b"], 4),
        (["t"], 3),
        (["u", "x y", "c"], 7),
        (["i", "z"], 2),
        (["u", "l"], 9),
        (["u", "m"], 11),
        (["n"], None),
    ],
)
def test_the_line_of_a_key_is_found(path, line):
    text = 'a = 1\ni = {z = 1}\n[t]\nb = 2\n# b = 3\n[u."x y"]\nc = 4\n[u]\nl = [\n["]"]]\nm = 5\n'
    assert lines_of(text).get((*path,)) == line


def test_a_table_in_place_of_a_file_reaches_its_option_whole(settings):
    settings.write('[prices."openai:m"]\ninput = 1.5\n', user='prices = "p.toml"')
    ctx = run.make_context("run", [])
    assert ctx.params["prices"] == {"openai:m": {"input": 1.5}}
    error = ctx.obj.with_source(UsageError("no price", where='prices, [prices."openai:m"]'))
    assert error.where == 'harness.toml:1 (prices, [prices."openai:m"])'


def test_hosts_that_only_files_name_are_known(settings, monkeypatch):
    settings.write(
        user='judge = "llm:openai:base_url=http://USER:1/v1,model=j"\n',
        folder="""
        model = "far"
        role = { asker = "panel:openai:base_url=http://a/v1,model=x+openai:y" }
        [models.far]
        kind = "openai"
        base_url = "https://far.org/v1"
        model = "m"
        """,
    )
    run = ["--tasks", "interests"]
    assert settings.asked(*run).file_hosts == ("a", "far.org", "user:1")
    monkeypatch.setenv("HARNESS_JUDGE", "openai:base_url=http://user:1/v1,model=other")
    assert settings.asked(*run).file_hosts == ("a", "far.org")
    own = ["--model_args", "base_url=https://far.org/v1"]
    assert settings.asked(*run, *own).file_hosts == ("a",)
    assert settings.asked(*run, "--model", "baseline", "--role", "asker=openai:z").file_hosts == (
        "far.org",
    )


def test_custom_headers_are_not_shown(settings, printed, monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: gateway-9\nCookie: a=b")
    for more in ([], ["--json"]):
        said = printed("doctor", "--settings", *more).out
        assert "set, not shown" in said
        assert "gateway" not in said and "Cookie" not in said
