from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import DataError, PluginError, PromptError, TaskError, UsageError
from harness.contracts.stage import Item, Stage
from harness.contracts.task import DataSpec, Group, HubSpec, SourceSpec, TableSpec
from harness.pipeline import preparation
from harness.pipeline.desk import Binding
from harness.pipeline.preparation import check_prompts, places_of, prepare, prepare_without_data
from harness.pipeline.roles import RoleBinder
from harness.pipeline.settings import make_settings
from harness.prompts import Templates
from harness.registry import load_plugins

BASELINE = {
    "tasks": "interests", "model": "baseline", "roles": {"judge": "lexical"}, "data": "sample",
}  # fmt: skip


def prepared(**given):
    return prepare(make_settings({**BASELINE, **given}), load_plugins())


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ({}, ("bundled sample data",)),
        ({"limit": 5}, ("bundled sample data", "--limit 5")),
        ({"changes": {"window": 5}}, ("bundled sample data", "changed by --set: window=5")),
        ({"changes": {"window": 20}}, ("bundled sample data",)),
        ({"changes": {"interval.draws": 2000}}, ("bundled sample data",)),
        ({"sampling": {"temperature": 1.0}}, ("bundled sample data", "changed by --gen_kwargs")),
        ({"allow_self_judging": True}, ("bundled sample data", "the candidate may judge itself")),
    ],
    ids=str,
)
def test_why_scores_must_not_stand_beside_published_ones(given, reasons):
    (task,) = prepared(**given).tasks
    assert task.not_comparable_because == (*reasons, "judged by rule: lexical")


def test_a_change_is_told_of_the_tasks_alone_that_it_was_made_in():
    tasks = "interests,interests_short,perrec_easy_pairwise"
    ours, short, others = prepared(tasks=tasks, changes={"interests.window": 5}).tasks
    told = "changed by --set: interests.window=5"
    assert told in ours.not_comparable_because
    assert others.not_comparable_because == ("bundled sample data",)
    assert told not in short.not_comparable_because
    everywhere = prepared(tasks=tasks, changes={"window": 5}).tasks
    found = [("changed by --set: window=5" in one.not_comparable_because) for one in everywhere]
    assert found == [True, True, False]


UNKNOWN = "not the published data: the task knows no digest or count of it"


def test_local_data_are_not_the_published_data_and_own_columns_are_a_further_reason(tmp_path):
    rows = "".join(f"u{n // 9},title {n},view\n" for n in range(27))
    (tmp_path / "engagements.csv").write_text("customer_id,title,action\n" + rows)
    own = {"columns": {"user": "customer_id"}, "values": {"action.view": "liked"}}
    (task,) = prepared(data=str(tmp_path), **own).tasks
    read = "read with --columns user=customer_id, --values action.view=liked"
    assert task.not_comparable_because == (UNKNOWN, read, "judged by rule: lexical")
    assert make_settings({**BASELINE, **own}).asked() != make_settings(BASELINE).asked()
    (tmp_path / "engagements.csv").write_text("user,title,action\n" + rows.replace("view", "liked"))
    judge = {"judge": "openai:model=m,base_url=http://127.0.0.1:9/v1"}
    (task,) = prepared(data=str(tmp_path), roles=judge).tasks
    assert task.not_comparable_because == (UNKNOWN,)


def test_a_column_that_a_command_names_must_be_there(tmp_path):
    text = BARE.format(name="timed", options="{}")
    (tmp_path / "timed.yaml").write_text(
        text.replace("user: {}", "user: {}, at: {required: false}")
    )
    (tmp_path / "log.csv").write_text("user,title,action,Wann\n" + "u,t,liked,1\n" * 9)
    timed = {"tasks": str(tmp_path / "timed.yaml"), "data": str(tmp_path / "log.csv")}
    assert prepared(**timed, columns={"at": "Wann"}).tasks
    with pytest.raises(DataError, match="column 'at' is missing") as caught:
        prepared(**timed, columns={"at": "Wan"})
    assert caught.value.hint == (
        "'Wann' is the nearest name: if it is 'at', give --columns engagements.at=Wann"
    )


def test_a_missing_value_that_only_the_task_file_could_do_without_is_named_with_its_row(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "task: own\nextends: interests\ndata: {tables: {engagements: {columns: "
        "{title: {required: false}, note: {required: false}}}}}"
    )
    file = tmp_path / "log.csv"
    own = {"tasks": str(tmp_path / "own.yaml"), "data": str(file)}
    for text, where in (
        ("user,title,action,note\nu,t,liked,n\nu,,liked,n\n", f"{file}, row 2, column 'title'"),
        ("user,action,note\nu,liked,n\n", f"{file}, row 1, column 'title'"),
    ):
        file.write_text(text)
        with pytest.raises(PluginError, match="'interests' cannot load its data") as caught:
            prepared(**own)
        assert str(caught.value.hint).endswith(f"; or complete the rows that lack a value: {where}")
    file.write_text("user,title,action\nu,t,liked\n")
    assert prepared(**own).tasks


def test_of_several_tasks_those_that_have_a_sample_are_named():
    with pytest.raises(DataError) as caught:
        prepared(tasks="gist_synthetic,gist_mind,gist_yelp,interests")
    assert caught.value.problem == "tasks without a bundled sample: gist_mind, gist_yelp"
    assert caught.value.hint == "--tasks gist_synthetic,interests runs on samples"


def test_a_change_to_what_a_task_has_is_none_of_the_settings():
    changes = {"window": 20, "interests.min_support": 2, "max_interests": 5}
    made = prepared(tasks="interests,interests_short", changes=changes)
    # The second task has another window, so that the change is one there.
    assert made.settings.changes == {"window": 20, "interests.min_support": 2}
    assert [list(task.changes) for task in made.tasks] == [["interests.min_support"], ["window"]]
    none = prepared(changes={"window": 20})
    assert none.settings == make_settings(BASELINE)
    # As it always was: the same command as before finds the run that it left.
    assert none.settings.asked()["data"] == "sample"


BARE = """
task: {name}
version: 1
benchmark: interests
data:
  sample: sample
  tables: {{engagements: {{columns: {{user: {{}}, title: {{}}, action: {{}}}}}}}}
options: {options}
metrics: [support]
"""


def test_the_content_of_a_task_is_what_shapes_its_result(tmp_path):
    written = {
        "silent": BARE.format(name="silent", options="{}"),
        "outspoken": BARE.format(name="outspoken", options="{window: 20, min_support: 3}"),
        "changed": BARE.format(name="changed", options="{window: 19}"),
        "described": "task: described\nextends: interests\ndescription: The same.\n",
    }
    for name, text in written.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    tasks = prepared(tasks=[str(tmp_path / f"{name}.yaml") for name in written]).tasks
    contents = {task.task.name: task.content for task in tasks}
    assert contents["silent"] == contents["outspoken"] != contents["changed"]
    (interests,) = prepared().tasks
    assert contents["described"] == interests.content != contents["silent"]


def test_data_that_tasks_share_are_opened_once(monkeypatch):
    opened = []
    whole = preparation.open_dataset

    def open_dataset(*args, **options):
        opened.append(options["task"])
        return whole(*args, **options)

    monkeypatch.setattr(preparation, "open_dataset", open_dataset)
    tasks = prepared(tasks=("interests", "interests_short"), changes={"window": 20}).tasks
    # Options may decide what `load` makes of the data, so only equal ones share it.
    assert opened == ["interests", "interests_short"]
    opened.clear()
    tasks = prepared(tasks=("interests", "interests_strict"), changes={"min_support": 3}).tasks
    assert opened == ["interests"]
    assert tasks[0].data is tasks[1].data


def test_a_role_is_bound_once(monkeypatch):
    bound = []
    bind_role = RoleBinder.bind_role

    def bind(self, role, task, **given):
        bound.append((task.name, role))
        return bind_role(self, role, task, **given)

    monkeypatch.setattr(RoleBinder, "bind_role", bind)
    prepared(tasks=("interests", "perrec_easy_pairwise"))
    assert sorted(bound) == [
        ("interests", "candidate"), ("interests", "judge"), ("perrec_easy_pairwise", "candidate"),
    ]  # fmt: skip


def test_a_role_without_a_prompt_is_found_unless_nobody_asks_it(tmp_path):
    stage = Stage("weigh", item=Item, value=str, items=None, work=None, judges=("judge",))
    benchmark = SimpleNamespace(name="toy")
    asked = {"judge": Binding(role="judge", label="m", model=object(), judge=object())}
    by_rule = {"judge": Binding(role="judge", label="lexical", model=None, judge=object())}
    templates = Templates([tmp_path])
    check_prompts(benchmark, [stage], by_rule, templates)
    with pytest.raises(PromptError, match="stage 'weigh' has no prompt") as caught:
        check_prompts(benchmark, [stage], asked, templates)
    assert "prompts/toy/weigh.judge.j2" in str(caught.value)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "weigh.judge.j2").write_text("right?")
    check_prompts(benchmark, [stage], asked, Templates([tmp_path]))


def test_a_benchmark_refuses_models_that_do_not_suit_its_data(monkeypatch):
    asked = []

    def suits(data, options, identities):
        asked.append((len(list(data)), options.window, sorted(identities)))
        raise UsageError("these weights are of another split")

    plugins = load_plugins()
    benchmark = replace(plugins.benchmark("interests"), suits=suits)
    monkeypatch.setattr(type(plugins), "benchmark", lambda self, name: benchmark)
    with pytest.raises(UsageError) as caught:
        prepared(limit=3)
    assert str(caught.value) == "task interests: these weights are of another split"
    assert asked == [(3, 20, ["candidate"])]


def test_stages_that_the_data_did_not_call_for_are_not_bound_and_other_tasks_are_refused():
    (whole,) = prepared(tasks="perrec_easy_pairwise").tasks
    first = whole.stages[0].name
    (bound,) = prepare_without_data(whole.settings, load_plugins(), {whole.task.name: {first}})
    assert [stage.name for stage in bound.stages] == [first]
    assert [one.key for one in bound.contexts("run")] == [whole.contexts("run")[0].key]
    with pytest.raises(TaskError) as caught:
        prepare_without_data(prepared().settings, load_plugins(), {"interests_short": {"name"}})
    assert (caught.value.found, caught.value.expected) == ("interests", "interests_short")


CLICKS = DataSpec(tables={"clicks": TableSpec(), "items": TableSpec(required=False)})
RATINGS = DataSpec(tables={"ratings": TableSpec(files=("all/ratings.csv", "ratings.csv"))})
ON_HUB = DataSpec(sources=(SourceSpec(hub=HubSpec(repo="acme/ratings")),), tables=RATINGS.tables)
EASY = Group(name="easy", members=("easy_a", "easy_b"))
ALL = Group(name="all", members=("easy", "hard_a"))
TASKS = dict.fromkeys(("easy_a", "easy_b", "hard_a"), CLICKS)


def wrote(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("user\nu1\n")
    return str(folder)


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (None, [None, None, None]),
        ("sample", ["sample", "sample", "sample"]),
        ({"easy": "x"}, ["x", "x", None]),
        ({"all": "x", "*": "z"}, ["x", "x", "x"]),
        ({"all": "x", "easy": "y", "easy_b": "z"}, ["y", "z", "x"]),
        ({"easy_*": "x", "*": "y"}, ["x", "x", "y"]),
        ({"*_a": "x", "easy": "y"}, ["y", "y", "x"]),
        ({"[eh]*_a": "x", "easy_a": "y"}, ["y", None, "x"]),
    ],
    ids=str,
)
def test_a_place_is_for_a_task_a_group_or_a_glob(data, places):
    assert list(places_of(data, TASKS, [ALL, EASY])[0].values()) == places


def test_two_places_for_a_task_are_refused():
    with pytest.raises(UsageError) as caught:
        places_of({"*_a": "x", "??????": "y", "easy*": "z"}, TASKS, [])
    assert caught.value.problem == "--data gives the task 'easy_a' two places"
    assert caught.value.found == "*_a=x, easy*=z"
    assert list(places_of({"*_a": "x", "h*_a": "x"}, TASKS, [])[0].values()) == ["x", None, "x"]


@pytest.mark.parametrize(("name", "near"), [("esy", "easy"), ("medium_*", None)])
def test_a_name_of_nothing_that_is_run_is_refused(name, near):
    with pytest.raises(UsageError) as caught:
        places_of({name: "x"}, TASKS, [EASY])
    assert caught.value.expected == (
        "TASK=PLACE with one of: easy_a, easy_b, hard_a; or a group: easy"
    )
    path = f"write a path with = in its name as --data ./{name}=…"
    assert caught.value.hint == (f"did you mean {near!r}?" if near else path)


def test_a_file_goes_to_the_tasks_with_one_table(tmp_path):
    file = str(Path(wrote(tmp_path, "log.csv")) / "log.csv")
    on_hub = DataSpec(sources=(SourceSpec(hub=HubSpec(repo="acme/clicks")),), tables=CLICKS.tables)
    found = places_of(file, {"rated": RATINGS, "seen": on_hub}, [])[0]
    assert found == {"rated": file, "seen": None}


def test_a_folder_goes_to_the_tasks_whose_tables_it_holds(tmp_path):
    here = wrote(tmp_path, "clicks.jsonl")
    with pytest.raises(DataError) as caught:
        places_of(here, {"seen": CLICKS, "rated": RATINGS}, [])
    assert caught.value.problem == "--data holds no table of task 'rated'"
    assert caught.value.where == here
    assert caught.value.found == "a folder with clicks.jsonl"
    assert caught.value.expected == (
        "a folder with such files:\n      ratings: all/ratings.csv, ratings.csv"
    )
    assert caught.value.hint == "give the task a folder of its own with --data rated=DIR"
    own = DataSpec(folder="mine", tables=RATINGS.tables)
    places, notes = places_of(here, {"seen": CLICKS, "rated": own}, [])
    assert places == {"seen": here, "rated": "mine"}
    assert notes == [f"rated: no table in --data {here}, so read from mine"]
    places, notes = places_of(here, {"seen": CLICKS, "rated": ON_HUB, "rated_too": ON_HUB}, [])
    assert places == {"seen": here, "rated": None, "rated_too": None}
    assert notes == [
        f"rated, rated_too: no table in --data {here}, so read from the hub's acme/ratings"
    ]
    both = wrote(tmp_path, "ratings.csv")
    found = places_of(both, {"seen": CLICKS, "rated": ON_HUB}, [])[0]
    assert found == {"seen": both, "rated": both}


@pytest.mark.parametrize("data", ["{}", {"seen": "{}"}], ids=str)
def test_the_only_folder_inside_that_holds_the_tables_is_read(tmp_path, data):
    here = wrote(tmp_path, "raw/clicks.csv", "other/notes.txt", ".old/clicks.csv")
    given = data.format(here) if isinstance(data, str) else {"seen": here}
    places, notes = places_of(given, {"seen": CLICKS}, [])
    assert places == {"seen": f"{here}/raw"}
    assert notes == [f"seen: the data is in {here}/raw"]


def test_a_folder_inside_is_not_read_for_what_a_glob_finds_in_it(tmp_path):
    parts = DataSpec(tables={"clicks": TableSpec(files=("*/clicks.csv",))})
    here = wrote(tmp_path, "raw/deep/clicks.csv")
    assert places_of(here, {"seen": parts}, [])[0] == {"seen": here}


OPTIONAL = DataSpec(tables={"clicks": TableSpec(required=False)})


@pytest.mark.parametrize(
    ("files", "below", "task", "hint"),
    [
        (
            ("one/clicks.csv", "two/clicks.csv"), "", "seen",
            "such files are in DIR/one, DIR/two: give one of them",
        ),
        (
            ("clicks.csv", "deep/notes.txt"), "/deep", "seen",
            "such files are in the folder above, DIR: give that folder",
        ),
        # A similar name is no reason to read the hub.
        (("clicks.csv", "rating.csv"), "", "rated", "'rating.csv' is the nearest name"),
    ],
)  # fmt: skip
def test_what_may_be_meant_is_named(tmp_path, files, below, task, hint):
    here = wrote(tmp_path, *files)
    with pytest.raises(DataError) as caught:
        places_of(f"{here}{below}", {"seen": OPTIONAL, "rated": ON_HUB}, [])
    assert caught.value.problem == f"--data holds no table of task {task!r}"
    assert caught.value.hint == hint.replace("DIR", here)
