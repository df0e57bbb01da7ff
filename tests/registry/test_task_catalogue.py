"""What `--tasks` chooses, and what it says when it cannot."""

import pytest

from harness.base.errors import TaskError
from harness.registry.task_catalogue import Catalogue

FOUR = {
    "short": "task: film_short\nextends: base\ntags: [quick]",
    "long": "task: film_long\nextends: base\ntags: [slow, nightly]",
    "books": "task: books\nextends: film_short",
    "all": "group: all\ntasks: [film_long, some]\ndescription: Everything.",
    "some": "group: some\ntasks: [books, film_short]\ntags: [nightly]",
}


def names(catalogue, *specs: str) -> list[str]:
    return [task.name for task in catalogue.select(specs).tasks]


def error_of(catalogue, *specs: str) -> TaskError:
    with pytest.raises(TaskError) as caught:
        catalogue.select(specs)
    return caught.value


def test_names_groups_and_tags_are_listed(catalogue):
    found = catalogue(**FOUR, hidden="task: hidden\nabstract: true\ntags: [never]")
    assert found.names == ("base", "books", "film_long", "film_short")
    assert found.groups == ("all", "some")
    assert found.tags == {
        "nightly": ("film_long", "some"),
        "quick": ("books", "film_short"),
        "slow": ("film_long",),
    }
    assert found.problems == ()


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ("film_*", ["film_long", "film_short"]),
        ("some", ["books", "film_short"]),
        ("all", ["film_long", "books", "film_short"]),
        ("so*", ["books", "film_short"]),
        ("slow", ["film_long"]),
        ("tag:nightly", ["film_long", "books", "film_short"]),
        ("long.yaml", ["film_long"]),
        ("./all.yaml", ["film_long", "books", "film_short"]),
    ],
)
def test_every_way_to_choose(catalogue, spec, chosen):
    assert names(catalogue(**FOUR), spec) == chosen


def test_the_order_is_that_of_the_first_mention_and_groups_come_with_those_inside(catalogue):
    found = catalogue(**FOUR)
    told = names(found, "books", "film_*", "short.yaml", "all")
    assert told == ["books", "film_long", "film_short"]
    assert [(group.name, group.members) for group in found.select(["all", "some"]).groups] == [
        ("all", ("film_long", "some")),
        ("some", ("books", "film_short")),
    ]


def test_a_name_goes_before_a_tag_of_its_name_and_a_base_is_not_in_the_way_of_globs(catalogue):
    found = catalogue(
        one="task: one\nextends: base", two="task: two\nextends: base\ntags: [one]",
        bare="task: bare\nabstract: true\nextends: base", heir="task: b_heir\nextends: bare",
    )  # fmt: skip
    assert (names(found, "one"), names(found, "tag:one")) == (["one"], ["two"])
    assert names(found, "b*") == ["b_heir", "base"]


@pytest.mark.parametrize(
    ("spec", "problem", "hint"),
    [
        ("bookz", "no task, group or tag is called 'bookz'", "did you mean 'books'?"),
        ("tag:slo", "no task or group has the tag 'slo'", "did you mean 'slow'?"),
        ("zz*", "no task or group matches 'zz*'", "`harness tasks` lists all tasks"),
        ("gone.yaml", "the file cannot be read", None),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest(catalogue, spec, problem, hint):
    error = error_of(catalogue(**FOUR), spec)
    assert (error.problem, error.hint, error.exit_code) == (problem, hint, 2)


def test_one_name_in_two_files_costs_that_name_alone(catalogue):
    found = catalogue(a="task: twin\nextends: base", b="group: twin\ntasks: [base]")
    assert found.names == ("base",)
    assert len(found.problems) == 1
    error = error_of(found, "twin")
    assert (error.problem, error.found) == ("several files define 'twin'", "a.yaml and b.yaml")
    assert names(found, "a.yaml") == ["twin"]


def test_files_that_cannot_be_read_cost_themselves_alone(catalogue):
    found = catalogue(
        torn="task: [",
        nameless="version: 1",
        numbered="task: 3",
        orphan="task: orphan\nextends: nobody",
        matrix="task: film\nextends: base\nmatrix: {window: [1]}",
    )
    assert found.names == ("base",)
    told = [problem.partition(":")[0] for problem in found.problems]
    assert told == ["matrix.yaml", "nameless.yaml", "numbered.yaml", "torn.yaml", "orphan.yaml"]
    assert names(found, "base") == ["base"]


def test_errors_are_told_in_the_order_of_lines_each_where_it_stands(catalogue):
    found = catalogue(
        a="group: a\ntasks: [base, bose]",
        bad="task: bad\nextends: base\nopions: {}\nversion: 0",
        heir="task: heir\nextends: [base, bad]",
    )
    error = error_of(found, "a")
    assert (error.where, error.hint) == ("a.yaml:2:15", "did you mean 'base'?")
    error = error_of(found, "bad")
    assert (error.where, error.problem) == ("bad.yaml:3:1", "unknown key 'opions'")
    told = [(one.where, one.problem) for one in error.others]
    assert told == [("bad.yaml:4:10", "`version` is invalid")]
    assert "\nbad.yaml:4:10: `version` is invalid\n  found:    0\n" in str(error)
    assert error_of(found, "heir").where == "bad.yaml:3:1"


def test_tasks_are_checked_without_jsonschema(catalogue, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jsonschema", None)
    assert catalogue(**FOUR).select(["base"]).tasks[0].name == "base"


def test_patterns_show_parts_globs_and_tags(catalogue):
    found = catalogue(**FOUR)

    def shown(*patterns: str) -> list[str]:
        return [entry.name for entry in found.matching(patterns)]

    assert shown("film") == ["film_long", "film_short"]
    assert shown("quick", "al*") == ["all", "books", "film_short"]
    assert len(shown()) == 6
    with pytest.raises(TaskError, match="'zzz'"):
        shown("zzz")


def test_a_task_of_a_broken_plugin_tells_why(site, monkeypatch):
    site.install(
        "bad-benchmark",
        {"bad": "bad.plugin"},
        {
            "bad/plugin.py": "import no_such_thing",
            "bad/task_configs/worse.yaml": "task: worse\nversion: 1\nbenchmark: other\n",
        },
    )
    site.install("otters", {"otters": "otters"}, {"otters.py": """
from harness import hookimpl

@hookimpl
def register_benchmarks(register):
    register("otter", None)
"""})  # fmt: skip
    monkeypatch.chdir(site.folder / "bad")
    why = (
        "plugin 'bad' of bad-benchmark could not be loaded: "
        "ModuleNotFoundError: No module named 'no_such_thing'"
    )
    found = Catalogue(site.plugins())

    assert "worse" in found.names
    error = error_of(found, "worse")
    assert error.problem == "no working plugin offers the benchmark 'other'"
    assert (error.where, error.found) == ("task_configs/worse.yaml:1:7", why)
    assert error.hint == "did you mean 'otter'?"
    assert error_of(found, "worst").hint == "did you mean 'worse'?"
    assert error_of(found, "elsewhere").found == f"these could not be read: {why}"


def test_a_first_party_task_of_a_broken_plugin_tells_why(site):
    site.install("ours", {"interests": "broken_one"}, {"broken_one.py": "1 / 0"})
    error = error_of(Catalogue(site.plugins()), "interests_short")
    assert error.found == (
        "plugin 'interests' of ours could not be loaded: ZeroDivisionError: division by zero"
    )


PROMPTED = "task: mine\nextends: base\nprompts: {{say.candidate: {}}}"
DATA = "task: mine\nextends: base\ndata: {{folder: {}}}"


@pytest.fixture
def own(tmp_path, catalogue):
    """A task file in a folder of its own, with a prompt beside it and a secret outside."""
    home = tmp_path / "own"
    home.mkdir()
    (home / "mine.j2").write_text("mine")
    (tmp_path / "secret").write_text("secret")
    (home / "link.j2").symlink_to(tmp_path / "secret")
    (home / "inner.j2").symlink_to(home / "mine.j2")
    (home / "away").symlink_to(tmp_path)

    def chosen(text: str):
        (home / "mine.yaml").write_text(text)
        return catalogue(**FOUR).select([str(home / "mine.yaml")]).tasks[0]

    return chosen


@pytest.mark.parametrize("prompt", ["mine.j2", "./mine.j2", "inner.j2", "away/own/mine.j2"])
def test_a_prompt_inside_the_folder_of_its_task_is_its_own(own, tmp_path, prompt):
    assert own(PROMPTED.format(prompt)).prompts == {"say.candidate": str(tmp_path / "own" / prompt)}


OUTSIDE = ["/etc/hostname", "../secret", "link.j2", "away/secret"]


@pytest.mark.parametrize(
    ("form", "place", "column", "option"),
    [
        *((PROMPTED, prompt, 26, "--prompts DIR") for prompt in OUTSIDE),
        *((DATA, folder, 16, "--data DIR") for folder in ("/etc", "..", "away")),
    ],
)
def test_what_is_outside_the_folder_of_its_task_is_refused(own, form, place, column, option):
    with pytest.raises(TaskError, match="outside its own folder") as caught:
        own(form.format(place))
    assert caught.value.where.endswith(f"mine.yaml:3:{column}")
    assert place in caught.value.found
    assert option in caught.value.hint
