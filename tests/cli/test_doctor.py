import json
import sqlite3

import pytest
from rich.console import Console

from harness import registry as plugin_manager
from harness.calls.store import Store
from harness.cli.doctor import installation, plugins, store
from harness.contracts.finding import bad, doubtful, good
from harness.reporting.grid import PLAIN_MARKS, marks_for, print_findings
from harness.testing.faults import status
from harness.testing.server import FaultyServer


@pytest.fixture(autouse=True)
def alone(elsewhere, own_cache, tmp_path, monkeypatch):
    """A folder, a home and a cache of its own, without a hub, keys or settings."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def listed(printed):
    """All findings about a run with these options, where it ends with this code."""

    def of(*arguments, code=0):
        return json.loads(printed("doctor", "--json", *arguments, code=code).out)["findings"]

    return of


@pytest.fixture
def findings(listed):
    """State and words of a finding by what it is about."""

    def of(*arguments, code=0):
        return {one["about"]: (one["state"], one["says"]) for one in listed(*arguments, code=code)}

    return of


def test_a_run_that_can_go_well(findings):
    run = ("--model", "baseline", "--judge", "lexical", "--tasks", "interests", "--data", "sample")
    found = findings(*run)
    assert {state for state, _ in found.values()} == {"good"}
    assert list(found) == [
        "installation", "plugins", "settings", "tasks", "candidate", "runs", "store's folder",
        "store",
    ]  # fmt: skip
    assert found["tasks"] == ("good", "interests: sample")
    assert found["candidate"] == ("good", "baseline:default, from --model: can be used")


def test_ray_is_looked_at_where_it_is_asked_for(findings):
    model = ("--model", "baseline", "--executor", "ray")
    state, says = findings(*model)["ray"]
    assert state == "good"
    assert says.endswith("without --ray_address a run uses this machine alone")
    assert findings(*model, "--ray_address", "127.0.0.1:1", code=1)["ray"] == (
        "bad", "--ray_address 127.0.0.1:1: no Ray cluster is at this address; found [Errno 111] "
        "Connection refused; expected a cluster that runs, and to which this machine belongs",
    )  # fmt: skip


def test_each_model_is_looked_at_once(findings, tmp_path):
    with FaultyServer(models=["m"]) as server:
        (tmp_path / "harness.toml").write_text(
            f'model = "mine"\njudge = "mine"\n[models.mine]\nkind = "openai"\nmodel = "m"\n'
            f'base_url = "{server.url}"\n[models.spare]\nkind = "vllm"\npython = "/none"\n'
        )
        found = findings()
        assert server.count == 0, "nothing is asked without --ask"
    assert found["settings"] == (
        "good", "model, judge from harness.toml (`harness doctor --settings` shows them)",
    )  # fmt: skip
    assert found["candidate and judge"] == (
        "good", "openai:m, from harness.toml:1, from harness.toml:2: OPENAI_API_KEY is not set: "
        f"requests carry no key; {server.url} lists 1 model without a key, including 'm'",
    )  # fmt: skip
    assert not any("spare" in about for about in found), "no role is played by it"


def test_what_stands_in_the_way_is_named_with_a_cure(printed):
    missing = status(404, message="no model m")
    with FaultyServer(models=["other"], thinks=missing) as server:
        spec = f"openai:m,base_url={server.url}"
        *found, last = printed("doctor", "--model", spec, "--quiet", code=1).out.splitlines()
    assert " ".join(" ".join(found).split()) == (
        f"✗ candidate openai:m, from --model: {server.url} lists 1 model without a key, but not "
        "'m': other; a small question failed: not_found: HTTP 404: no model m (requested 'm' from "
        f"{server.url}) to do: correct the model's name"
    )
    assert last == "1 to fix before a run"


def test_a_question_that_is_answered_settles_it(listed):
    with FaultyServer(models=["other"]) as server:
        found = listed("--model", f"openai:m,base_url={server.url}")
        assert (server.asked_if_thinking, server.count) == (1, 0), "one small question, no other"
    told = [(one["state"], one["to_do"]) for one in found if one["about"] == "candidate"]
    assert told == [("good", None), ("doubtful", "correct the model's name")]


def test_the_faults_of_all_tasks_are_found_at_once(listed, tmp_path):
    for name in ("one", "two"):
        text = f"task: {name}\nextends: interests\noptions:\n  {name}_option: 3\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    run = ("--model", "baseline", "--judge", "lexical", "--data", "sample")
    found = listed(*run, "--tasks", "one.yaml,interests,two.yaml,intrests", code=1)
    wrong = [one["says"] for one in found if one["state"] == "bad"]
    assert len(wrong) == 3
    for part in ("one_option", "two_option", "'intrests'"):
        assert sum(part in says for says in wrong) == 1


def test_settings_that_cannot_be_used_are_named_and_do_not_end_the_looking(findings, tmp_path):
    (tmp_path / "harness.toml").write_text('modle = "baseline"\n')
    found = findings("--model", "baseline", code=1)
    state, says = found["settings"]
    assert (state, says.partition(";")[0]) == ("bad", "harness.toml:1: there is no setting 'modle'")
    assert found["candidate"][0] == "good"
    (tmp_path / "harness.toml").write_text(
        '\nmodel = "mine"\n[models.mine]\nkind = "openai"\nmodle = "m"\n'
    )
    state, says = findings(code=1)["candidate"]
    assert state == "bad"
    assert says.startswith("harness.toml:3 (--model_args): an openai model has no argument 'modle'")


@pytest.mark.parametrize(
    ("arguments", "about", "says"),
    [
        (["--tasks", "interest"], "tasks", "no task, group or tag is called 'interest'"),
        (["--limit", "0"], "options", "--limit must be at least 1; found 0"),
        (["--judge", "lexicl"], "judge", "role judge: no plugin offers a judge or a kind of model "
         "named 'lexicl'"),
        (["--model", "opnai:m"], "candidate", "role candidate: no plugin offers the kind of model "
         "'opnai'"),
    ],
)  # fmt: skip
def test_options_that_mean_nothing_are_findings(findings, arguments, about, says):
    found = findings(*arguments, code=1)
    state, said = found[about]
    assert (state, said[: len(says)]) == ("bad", says)
    assert found["plugins"][0] == "good", "all else is looked at"


def test_a_judge_with_a_misspelt_argument_is_one_finding_at_its_option(findings):
    found = findings(
        "--model", "openai:m,base_url=http://127.0.0.1:9/v1", "--tasks", "gist_synthetic",
        "--data", "sample", "--judge", "openai:j,baseurl=http://127.0.0.1:9/v1", code=1,
    )  # fmt: skip
    assert "taxonomist" not in found and "tasks" not in found
    state, says = found["judge and 3 other roles"]
    assert state == "bad"
    assert says.startswith("--judge: an openai model has no argument 'baseurl'; expected one of ")


def test_the_page_has_colours_on_a_terminal_only_and_marks_without_their_characters(capsys):
    found = [good("a", "fine"), doubtful("bcd", "hm", "look"), bad("e", "[red]no[/red]\x1b[2J")]
    console = Console(width=40, markup=False, highlight=False, emoji=False)
    print_findings(found, console)
    assert capsys.readouterr().out.splitlines() == [
        "✓  a    fine",
        "!  bcd  hm",
        "        to do: look",
        "✗  e    [red]no[/red]\\x1b[2J",
        "1 to fix before a run; 1 to check",
    ]
    terminal = Console(width=40, force_terminal=True, color_system="standard")
    print_findings(found[:1], terminal)
    assert "\x1b[32m✓" in capsys.readouterr().out
    assert marks_for("latin-1") is PLAIN_MARKS
    assert marks_for("utf-8") == {"good": "✓", "doubtful": "!", "bad": "✗"}


def test_every_model_of_a_panel_is_looked_at(listed):
    with FaultyServer(models=["a"], thinks=status(404)) as server:
        judges = "+".join(f"openai:{name},base_url={server.url}" for name in ("a", "b"))
        found = listed("--judge", f"panel:{judges}+lexical", code=1)
    judges = [one for one in found if one["about"] == "judge"]
    told = [(one["state"], one["says"].partition(",")[0]) for one in judges]
    assert told == [("good", "openai:a"), ("bad", "openai:b")]


def test_a_judge_that_only_the_task_names_and_data_are_looked_at(findings, tmp_path):
    with FaultyServer() as server:
        pass
    (tmp_path / "judged.yaml").write_text(
        "task: judged\nextends: interests\nroles:\n"
        f"  judge: {{default: 'openai:j,base_url={server.url}'}}\n"
    )
    found = findings("--model", "baseline", "--tasks", "judged.yaml", "--data", "no", code=1)
    assert found["data"][0] == "bad"
    state, says = found["judge"]
    assert state == "bad"
    assert says.startswith(f"openai:j, the default of judged: {server.url} cannot be reached: ")


METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


def distribution(folder, name, version, *, requires=(), points=""):
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = "".join(f"Requires-Dist: {one}\n" for one in requires)
    (info / "METADATA").write_text(METADATA.format(name=name, version=version) + lines)
    (info / "entry_points.txt").write_text(points)


def test_libraries_are_held_to_what_is_asked_of_them(tmp_path, monkeypatch):
    distribution(tmp_path, "acmefit", "2.5")
    distribution(tmp_path, "acmeold", "1.9")
    distribution(
        tmp_path, "acme", "1",
        requires=["acmefit>=2.0", "acmeold>=2.0", "acmegone>=3", "acmemore; extra == 'more'"],
    )  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    old, gone, versions = installation("acme")
    assert old == bad(
        "installation", "found acmeold 1.9; expected acmeold>=2.0", "pip install 'acmeold>=2.0'"
    )
    assert gone == bad(
        "installation", "found no acmegone; expected acmegone>=3", "pip install 'acmegone>=3'"
    )
    assert (versions.state, versions.says.partition(";")[0]) == ("good", "harness 1")


def test_a_broken_plugin_and_a_misspelt_hook_are_told(tmp_path, monkeypatch):
    (tmp_path / "acme_broken.py").write_text("import acme_is_not_here\n")
    (tmp_path / "acme_misspelt.py").write_text(
        "from harness import hookimpl\n\n@hookimpl\ndef register_model(register):\n    pass\n"
    )
    points = "[harness.plugins]\nbroken = acme_broken\nmisspelt = acme_misspelt\n"
    distribution(tmp_path, "acme", "1.0", points=points)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HARNESS_PLUGINS", "broken,misspelt")
    plugin_manager.reset()
    try:
        broken, misspelt, loaded, left_out = plugins()
    finally:
        plugin_manager.reset()
    assert broken == bad(
        "plugins",
        "plugin 'broken' of acme could not be loaded: ModuleNotFoundError: No module named "
        "'acme_is_not_here'",
        "`harness list plugins broken` shows the traceback; install another version of acme, "
        "or uninstall it",
    )
    assert misspelt == doubtful(
        "plugins",
        "plugin 'misspelt' of acme implements 'register_model', which is no hook: did you mean "
        "'register_models'?",
        "`harness list plugins NAME` shows the details of one",
    )
    assert loaded == good("plugins", "misspelt 1.0")
    assert left_out.says.startswith("left out by HARNESS_PLUGINS: ")
    assert "interests" in left_out.says


def test_a_store_is_looked_at_and_not_changed_and_what_is_none_is_told(tmp_path):
    path = tmp_path / "calls.sqlite"
    told = list(store(path))
    assert told == [good("store", f"{path}; does not exist yet, the first run creates it")]
    assert not path.exists()
    made = Store.open(path)
    made.put(b"0" * 16, b"x" * 20_000)
    made.close()
    before = path.read_bytes()
    (found,) = store(path)
    assert (found.state, path.read_bytes()) == ("good", before)
    assert found.says.startswith(f"{path}; 0.")
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("no database " * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    for path, says in (
        (text, f"{text} cannot be read: file is not a database"),
        (tmp_path, f"{tmp_path} cannot be read: "),
        (other, f"{other} is not a store that this version can use"),
    ):
        (found,) = store(path)
        assert (found.state, found.says[: len(says)]) == ("bad", says)
        assert "--store FILE names another store" in found.to_do
