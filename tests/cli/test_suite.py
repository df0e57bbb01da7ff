import json
import os
import signal
from pathlib import Path

import pytest
from builders.commands import run_cli

from harness.cli.main import main
from harness.pipeline.suite import read_suite
from harness.runs.run_folder import RunFolder
from harness.testing import ScriptedModel
from harness.testing.scripted import offered

pytestmark = pytest.mark.usefixtures("elsewhere", "own_cache")

NAMED = '[{"interest": "gardening", "items": [1, 2, 3]}]'


class Engine(ScriptedModel):
    """A model that notes when its engine opens and closes."""

    def __init__(self, answers, events, *, name, occupies="gpu"):
        super().__init__(answers, name=name)
        self.events = events
        self.occupies = occupies

    async def open(self):
        self.events.append(f"open {self.identity.name}")

    async def close(self):
        self.events.append(f"close {self.identity.name}")


@pytest.fixture
def suite(tmp_path, capsys):
    """The exit code and the document of a suite of few people in a folder of its own."""

    def run(models, *words, judge="lexical", more="", limit=2, task="interests", data="sample"):
        text = f"models: {json.dumps(models)}\ntasks: [{task}]\njudge: {judge}\n"
        text += f"limit: {limit}\n"
        (tmp_path / "s.yaml").write_text(f"{text}options: {{data: {data}}}\n{more}")
        code = main(["suite", "s.yaml", "--json", *words])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return run


def named(*models):
    """Scripted models as a suite names them."""
    return [{"name": each.identity.name, "spec": each.spec} for each in models]


def ended(document):
    return [(run["model"], run["seed"], run["status"], run["before"]) for run in document["runs"]]


BASE = {"name": "base", "spec": "baseline"}
GONE = {"name": "gone", "spec": "openai:model=m,base_url=http://127.0.0.1:1/v1"}


def test_a_suite_may_ask_for_this_process_whatever_a_settings_file_says(suite, tmp_path, capsys):
    (tmp_path / "harness.toml").write_text('executor = "ray"\nray_address = "nowhere:1"\n')
    assert suite([BASE])[0] == 2
    assert main(["suite", "s.yaml"]) == 2
    assert "put `executor: local` below `options` of the suite" in capsys.readouterr().err
    code, document = suite([BASE], data="sample, executor: local")
    assert (code, ended(document)) == (0, [("base", 0, "done", False)])


def test_each_model_runs_with_each_seed_and_what_is_done_is_not_run_again(suite):
    code, document = suite([BASE], more="seeds: [1]")
    assert (code, ended(document)) == (0, [("base", 1, "done", False)])
    code, again = suite([BASE], more="seeds: [1, 2]")
    assert ended(again) == [("base", 1, "done", True), ("base", 2, "done", False)]
    assert again["runs"][0]["folder"] == document["runs"][0]["folder"]
    manifest = RunFolder(Path(again["runs"][1]["folder"])).manifest()
    assert (manifest.seed, manifest.limit, manifest.label) == (2, 2, "base")
    assert manifest.tags == {"suite": "s", "model": "base"}


def test_a_run_is_run_again_where_its_data_or_its_task_changed(suite, tmp_path):
    gone = {"name": "gone", "spec": "vllm:pretrained=/nowhere/weights"}
    people, task = tmp_path / "people.csv", tmp_path / "own.yaml"
    rows = [
        "user,title,action",
        *(f"p{user},film {at},liked" for user in (1, 2) for at in range(8)),
    ]
    people.write_text("\n".join(rows))
    task.write_text("task: own\nextends: interests\n")

    def before():
        _, document = suite([gone, BASE], task=task.name, data=people.name)
        return document["runs"][1]["before"]

    assert [before(), before()] == [False, True]
    people.write_text("\n".join([*rows, "p2,film 8,skipped"]))
    assert before() is False
    task.write_text("task: own\nextends: interests\noptions: {window: 7}\n")
    assert [before(), before()] == [False, True]


def test_a_model_that_fails_does_not_stop_the_others(suite):
    failing = ScriptedModel(["no list"], name="failing")
    with offered((failing,)):
        code, document = suite([GONE, *named(failing), BASE])
    found = [(run["model"], run["exit_code"]) for run in document["runs"]]
    assert found == [("gone", 1), ("failing", 1), ("base", 0)]
    assert "127.0.0.1:1" in document["runs"][0]["errors"][0]
    assert code == document["exit_code"] == 1


def test_too_many_failures_are_the_exit_code_where_nothing_worse_happened(suite):
    poor = ScriptedModel("I cannot say.", name="poor")
    with offered((poor,)):
        code, document = suite([*named(poor), BASE])
        assert (code, [run["exit_code"] for run in document["runs"]]) == (3, [3, 0])
        asked = poor.count
        assert suite([*named(poor), BASE])[0] == 3
    assert poor.count == asked


def test_a_rehearsal_names_what_will_not_be_comparable_and_what_helps(suite, capsys):
    def server(name, port):
        return {"name": name, "spec": f"openai:model={name},base_url=http://127.0.0.1:{port}/v1"}

    def unlike(models, task, *more, **options):
        code, document = suite(models, "--dry_run", *more, task=task, **options)
        assert code == 0
        return document["not_comparable"]

    two = [server("a", 1), server("b", 2)]
    # Each model's own server is also that of the judge by default.
    weights = "openai:meta-llama/Llama-3.3-70B-Instruct"
    judge = "openai:model=j,base_url=http://127.0.0.1:3/v1"
    unlike(two, "gist_synthetic", judge="null")
    assert main(["suite", "s.yaml", "--dry_run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"not comparable: gist_synthetic: the judge is {weights} for a; another {weights} for b: "
        "name one for all with `judge: SPEC`"
    )
    assert unlike(two, "interests", judge=judge) == []
    # The predictor of each is itself.
    assert unlike(two, "usersum_movielens", judge=judge) == []
    own = [server("a", 1), server("j", 3)]
    data = "sample, allow_self_judging: true"
    found = unlike(own, "interests", judge=judge, data=data)
    assert found == ["interests: j is its own judge: name another model as the judge"]


def test_an_interruption_ends_the_command_at_once_with_130(suite, tmp_path):
    def interrupted(request):
        os.kill(os.getpid(), signal.SIGINT)
        return NAMED

    one, two = ScriptedModel(interrupted, name="one"), ScriptedModel(NAMED, name="two")
    with offered((one, two)):
        assert suite(named(one, two)) == (130, None)
        assert (two.count, list(tmp_path.glob("*.html"))) == (0, [])
        one.answers = NAMED
        code, document = suite(named(one, two))
    assert (code, ended(document)) == (0, [("one", 0, "done", False), ("two", 0, "done", False)])
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_runs_ends_the_command_with_130(tmp_path, number, request):
    """The engine closes outside of the run."""
    # Jobs in the background ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    class Stopped(ScriptedModel):
        occupies = "gpu"

        async def close(self):
            os.kill(os.getpid(), number)

    (tmp_path / "s.yaml").write_text(
        "models: [{name: one, spec: 'scripted:model=one'}]\ntasks: [interests]\n"
        "judge: lexical\nlimit: 2\noptions: {data: sample}"
    )
    with offered((Stopped(NAMED, name="one"),)):
        done = run_cli("suite", "s.yaml", folder=tmp_path)
    assert (done.code, done.err.splitlines()[-1]) == (130, "harness: interrupted")
    assert "support" in done.out


@pytest.mark.parametrize(
    ("gpu", "happens", "sessions"),
    [
        ("gpu:0", "open one, close one, open two, close two, open judge, close judge",
         ["interrupted", "done"]),
        ("gpu:1", "open one, open judge, close one, open two, close judge, close two", ["done"]),
    ],
)  # fmt: skip
def test_each_engine_opens_once_and_judges_on_the_same_gpu_come_last(suite, gpu, happens, sessions):
    events = []
    one, two = (Engine(NAMED, events, name=name, occupies="gpu:0") for name in ("one", "two"))
    judge = Engine("1", events, name="judge", occupies=gpu)
    with offered((one, two, judge)):
        code, document = suite(named(one, two), judge=judge.spec, more="seeds: [0, 1]")
    assert code == 0, document
    assert {run["status"] for run in document["runs"]} == {"done"}
    assert events == happens.split(", ")
    assert one.count == two.count == 4
    manifest = RunFolder(Path(document["runs"][0]["folder"])).manifest()
    assert [session.status for session in manifest.sessions] == sessions


def test_an_engine_closes_after_a_run_that_failed(suite):
    events = []
    one = Engine([NAMED], events, name="one")  # its script ends, which ends the run
    with offered((one,)):
        code, _ = suite(named(one), more="seeds: [0, 1]")
    assert code == 1
    assert events == ["open one", "close one"] * 2


def test_a_glob_finds_a_model_for_each_match(suite, tmp_path):
    for name in ("night-02", "night-01", "day-01"):
        (tmp_path / name).mkdir()
    made = {
        name: ScriptedModel(NAMED, name=str(tmp_path / name)) for name in ("night-01", "night-02")
    }
    nights = {
        "name": "night", "glob": str(tmp_path / "night-*"), "kind": "scripted", "argument": "model",
    }  # fmt: skip
    with offered((*made.values(),)):
        code, document = suite([nights, BASE], "--only", "night")
    assert (code, [run["model"] for run in document["runs"]]) == (0, ["night-01", "night-02"])
    assert RunFolder(Path(document["runs"][0]["folder"])).manifest().tags["model"] == "night"


def gated(suite, *words, against="good", limit=2, seeds="[0]"):
    """A suite of a good and a poor model, compared with the good one by default."""
    good = ScriptedModel('[{"interest": "zebras", "items": [1, 2, 3, 4, 5, 6]}]', name="good")
    poor = ScriptedModel('[{"interest": "xyz", "items": [1, 2, 3, 4, 5, 6]}]', name="poor")
    judge = ScriptedModel(lambda request: "1" if "zebras" in str(request) else "none", name="judge")
    more = f"seeds: {seeds}\nagainst: {against}\ngates: [interests.support>-0.02]"
    with offered((good, poor, judge)):
        return suite(named(good, poor), *words, judge=judge.spec, more=more, limit=limit)


def test_gates_are_decided_for_each_seed_and_end_the_command_with_4(suite):
    code, document = gated(suite, seeds="[0, 1]")
    assert code == document["exit_code"] == 4, document
    gates = document["gates"]
    assert [gate["holds"] for gate in gates] == [False, False]
    assert all(gate["interval"][1] < 0 for gate in gates)
    assert ["poor" in gate["first"] and "good" in gate["second"] for gate in gates] == [True] * 2


def test_models_are_compared_with_the_one_of_against_also_without_gates(suite, capsys):
    names = {"good": "zebras", "poor": "xyz", "bad": "uvw"}
    made = [
        ScriptedModel(json.dumps([{"interest": word, "items": [1, 2, 3]}]), name=name)
        for name, word in names.items()
    ]
    judge = ScriptedModel(lambda request: "1" if "zebras" in str(request) else "none", name="judge")
    with offered((*made, judge)):
        suite(named(*made), "--dry_run", judge=judge.spec, limit=12, more="against: poor")
        assert main(["suite", "s.yaml", "--quiet"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "good is better than poor on interests 3 runs on the units that all" in said
    assert "interests support ↑ bad − poor 0.000" in said
    assert "Each run minus poor, over the people" in Path("s.html").read_text()


@pytest.mark.parametrize(("limit", "code", "holds"), [(2, 0, [True]), (1, 1, [None])])
def test_gates_that_hold_and_that_cannot_be_decided(suite, limit, code, holds):
    ended, document = gated(suite, against="poor", limit=limit)
    assert (ended, [gate["holds"] for gate in document["gates"]]) == (code, holds)
    assert [run["exit_code"] for run in document["runs"]] == [0] * 2
    undecided = [gate["undecided"] for gate in document["gates"] if gate["holds"] is None]
    assert all("fewer than two users" in why for why in undecided)


def test_what_is_printed_names_the_models(suite, capsys):
    suite([GONE, BASE], "--dry_run", more="against: base\ngates: ['interests.support>0']")
    for words in ((), ("--dry_run",)):
        main(["suite", "s.yaml", *words])
        lines = capsys.readouterr().out.splitlines()
        gate = "gate undecided: interests.support>0: gone − base: gone has not finished interests"
        assert (gate in lines) is not words
    main(["suite", "s.yaml", "--only", "gone"])
    assert gate in capsys.readouterr().out.splitlines()


def test_gates_compare_with_a_base_that_an_earlier_command_finished(suite):
    assert gated(suite, "--only", "good")[0] == 0
    code, document = gated(suite, "--only", "poor")
    assert (code, len(document["gates"]), len(document["runs"])) == (4, 1, 1)


def test_the_example_of_the_documentation_is_a_suite(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "suites.md").read_text("utf-8")
    (tmp_path / "night-2026-11-22").mkdir()
    (tmp_path / "nightly.yaml").write_text(
        text.partition("```yaml\n")[2].partition("```")[0].replace("/checkpoints", str(tmp_path))
    )
    found = read_suite(tmp_path / "nightly.yaml")
    assert [one.name for one in found.candidates] == ["night-2026-11-22", "release"]
    assert (found.name, len(found.file.gates)) == ("nightly", 2)


def test_a_rehearsal_says_what_all_runs_would_cost(suite, capsys):
    spec = "openai:model={},base_url=http://127.0.0.1:1/v1,revision=r1"
    models = [{"name": name, "spec": spec.format(name)} for name in ("small", "big")]
    data = 'sample, prices: {currency: USD, "openai:small": {input: 1, output: 2}}'
    code, document = suite(models[:1], "--dry_run", data=data, more="seeds: [0, 1]")
    assert code == 0
    (row,) = document["models"]
    assert (row["model"], row["runs"], row["calls"]) == ("small", 2, 4)
    tokens, most = row["prompt_tokens"], row["most_completion_tokens"]
    assert row["cost"]["at_most"] == pytest.approx((tokens * 1 + most * 2) / 1_000_000)
    suite(models, "--dry_run", data=data)
    assert main(["suite", "s.yaml", "--dry_run"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[-1] for line in lines if line[:1] in (["big"], ["all"])] == ["unknown"] * 2
