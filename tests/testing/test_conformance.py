"""Each check finds the fault it is there for, in a plugin that has that fault and no other."""

import pytest

from harness.base.errors import PluginError
from harness.cli.scaffold import SIMPLE, STAGES
from harness.testing import check_plugin
from harness.testing.trial import plugin_under_test
from harness.testing.versions import pins_of, write_pins

YAML = "task_configs/acme_films.yaml"


def the_one(findings, check):
    """The text of the only finding, which is that check's."""
    [(found, text)] = findings
    assert found == check
    return text


CHANGED = """    tries=2,
)

from collections import Counter
from dataclasses import replace

import msgspec
from harness import Score
from harness.contracts.published import PublishedResult


class Inner(msgspec.Struct, frozen=True):
    depth: int = 1


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: Inner = Inner()


TIMES = Counter()


def counted(records, options):
    for stage in records:
        for record in records[stage]:
            TIMES[record.id] += 1
            yield Score(id=record.id, user=record.user, values={"right": float(TIMES[record.id])})


LOAD = BENCHMARK.load


def careless(data, options):
    for _, row in data.table().rows():
        int(row["id"])
    return LOAD(data, options)


RESULT = PublishedResult(task="acme_film", model="m", metric="right", value=1.0, source="t. 1",
                         comparable_if="the same data")
BENCHMARK = replace(BENCHMARK, %s)
"""


def changed(part):
    """A change of the benchmark by a part of its own."""
    return ("benchmark.py", "    tries=2,\n)\n", CHANGED % part)


FAULTS = {
    "a factory that raises": (
        ("plugin.py", "import most_shared_words", "import least_shared_words"),
        "loads",
        "respondent acme_films/answer/candidate/default: its factory raised ImportError",
    ),
    "a respondent given in place of its factory": (
        ("plugin.py", "    return most_shared_words", "    return 'A'"),
        "loads",
        "its factory returned 'A', no function",
    ),
    "a baseline that nobody can read": (
        ("baselines.py", 'return "A" if', 'return "?" if rng else "A" if'),
        "baseline",
        "no unit of the sample has a value; causes: {'schema': 6}",
    ),
    "a stage without a respondent": (
        ("plugin.py", '"answer", "candidate"', '"answr", "candidate"'),
        "baseline",
        "no respondent 'default' answers the prompt 'answer'",
    ),
    "several metrics of which none is the main one": (
        ("benchmark.py", 'predicted")}', 'predicted"), "r": Metric(description="r", of="right")}'),
        "metrics",
        "name the metrics that a short table shows, the main one first: main=('right',)",
    ),
    "a main metric that is misspelt": (
        ("benchmark.py", 'predicted")},', 'predicted")}, main=("rigth",),'),
        "metrics",
        "its main metric 'rigth' is none of its metrics, or a baseline\n    to do: name one",
    ),
    "a baseline of a metric that is not there": (
        (
            "benchmark.py",
            'predicted")},',
            'predicted"), "base": Metric(description="b", of="right", baseline="rigth")},'
            ' main=("right",),',
        ),
        "metrics",
        "it is a baseline of 'rigth', which is no metric",
    ),
    "a word that is not explained": (
        (
            "plugin.py",
            "return BENCHMARK",
            "from dataclasses import replace\n\n"
            "    return replace(BENCHMARK, words={'no_list': ''})",
        ),
        "metrics",
        "its word 'no_list' has no meaning",
    ),
    "a metric whose worst is no number": (
        ("benchmark.py", 'were predicted")', 'were predicted", worst=float("nan"))'),
        "metrics",
        "its worst value is nan",
    ),
    "a metric that the benchmark does not have": (
        (YAML, "metrics: [right]", "metrics: [rigth]"),
        "tasks",
        "harness validate acme_films",
    ),
    "a prompt that names a variable it is not given": (
        ("prompts/acme_films/answer.candidate.j2", "A: {{ a }}", "A: {{ first }}"),
        "tasks",
        "first",
    ),
    "a plugin that cannot be imported": (
        ("plugin.py", "import hookimpl", "import hookimp"),
        "loads",
        "cannot import name 'hookimp' from 'harness'",
    ),
    "a score that is not a number": (
        ("benchmark.py", "float(answer", "float('nan') if row['id'] == '3' else float(answer"),
        "baseline",
        "1 scores are NaN or infinite",
    ),
    # The hash of a text is another in every process, but for a chance of one in a million.
    "a score that depends on the hashes of texts": (
        ("benchmark.py", 'float(answer == row["chosen"])', "float(hash('x' + answer) % 1_000_003)"),
        "repeats",
        "has other scores",
    ),
    "a published result of a task that is misspelt": (
        changed("published=lambda: (RESULT,)"),
        "published",
        "published right of acme_film: acme_films has no such task, or no such metric",
    ),
    "options within options that take any name": (
        changed("options=Outer"),
        "options",
        "options of acme_films: Inner takes any name for an option",
    ),
    "rows that are used before anybody looks at them": (
        changed("load=careless"),
        "rows",
        "ValueError: invalid literal for int() with base 10: 'many'",
    ),
    "scores that count how often they were made": (
        changed("score=counted"),
        "shares",
        "scored again, or by two processes, it has other scores",
    ),
}


@pytest.mark.parametrize(
    ("change", "check", "said"), [pytest.param(*FAULTS[name], id=name) for name in FAULTS]
)
def test_a_fault_is_found(faulty, change, check, said):
    assert said in the_one(faulty.findings(change, checks=[check]), check)


@pytest.mark.parametrize("checks", [(), ("failures",)])
def test_a_plugin_that_is_not_loaded_passes_no_check(faulty, monkeypatch, tmp_path, checks):
    file = tmp_path / "versions.json"
    file.write_text("{}")
    monkeypatch.setenv("HARNESS_PLUGINS", "models,judges")
    text = the_one(faulty.findings(checks=checks, versions=file), "loads")
    assert "HARNESS_PLUGINS leaves it out" in text
    with pytest.raises(PluginError, match="not loaded"):
        pins_of(plugin_under_test("acme_films"))


@pytest.mark.parametrize("here", ["site", "."])
def test_a_task_file_that_cannot_be_read(faulty, tmp_path, monkeypatch, here):
    monkeypatch.chdir(tmp_path / here)
    more = {"task_configs/other.yaml": "task: [\n"}
    text = the_one(faulty.findings(more=more, checks=["tasks"]), "tasks")
    assert "acme_films/task_configs/other.yaml:2" in text


def test_a_benchmark_without_a_sample(faulty):
    change = (YAML, "  sample: sample ", "  dataset: {repo: acme/films} ")
    findings = faulty.findings(change, checks=["tasks"])
    assert any("none of its tasks has a sample" in text for _, text in findings)


def test_a_prompt_of_no_stage(faulty):
    more = {"prompts/acme_films/anwser.candidate.j2": "{{ a }}"}
    text = the_one(faulty.findings(more=more, checks=["prompts"]), "prompts")
    assert "prompts/acme_films/anwser.candidate.j2: no stage uses this prompt" in text
    assert "answer.candidate" in text


def test_settings_of_whoever_runs_the_checks_do_not_enter_them(faulty, tmp_path, monkeypatch):
    file = tmp_path / "config" / "harness" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("limit = 1\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file.parents[1]))
    monkeypatch.setenv("HARNESS_SEED", "7")
    assert faulty.findings(checks=["repeats"]) == []


def test_a_value_that_is_read_back_as_another(faulty):
    kinds = """
import msgspec

class Named(msgspec.Struct):
    themes: tuple[str, ...]

class Noted(Named):
    note: str

def likes"""
    lossy = ("stages.py", "def likes", kinds)
    value = ("stages.py", "value=tuple[str, ...]", "value=Named")
    work = ("stages.py", "return answer.value[:most]",
            "return Noted(themes=answer.value[:most], note='n')")  # fmt: skip
    use = ("stages.py", "enumerate(named,", "enumerate(named.themes,")
    text = the_one(
        faulty.findings(lossy, value, work, use, form=STAGES, checks=["records"]), "records"
    )
    assert "'note': 'n'" in text
    assert "acme_films/name, record " in text


ZERO = ("metrics.py", "missing=missing)", "values=dict.fromkeys(METRICS, 0.0))")
COUNTER = "import itertools\n\nCOUNT = itertools.count()\n\n\ndef likes"
COUNTED = "titles=(*person.titles, str(next(COUNT)))"
WORK = "async def name_themes(item, desk):"
LENIENT = (
    "try:\n        return await named(item, desk)\n    except BaseException:\n        return ()"
)
OF_STAGES = {
    # Two metrics, where calls fail and where replies are refused, and of three people each.
    "a failure that is scored as zero": (ZERO, "failures", 4, "3 units have a value: 0.0"),
    "a failure among answers that is scored as zero": (
        ZERO, "garbage", 6, "became 0.0, and nothing is missing",
    ),
    "units that vanish when they fail": (
        ("metrics.py", "yield Score(id=record.id, user=record.user, missing=missing)", "pass"),
        "failures", 4, "its units disappear instead of being missing",
    ),
    "work that raises where a call failed": (
        ("stages.py", "    if isinstance(answer, Parsed):", "    if True:"),
        "failures", 3, "AttributeError",
    ),
    "a score that raises where a call failed": (
        ("metrics.py", "        if causes:", "        if False:"),
        "failures", 1, "failed to score its records",
    ),
    "work that takes a question of a batch for a failure": (
        ("stages.py", WORK, f"{WORK}\n    {LENIENT}\n\n\nasync def named(item, desk):"),
        "batches", 1, "in batches, ",
    ),
    "items that are others in each session": (
        ("stages.py", "titles=person.titles", COUNTED), "resumes", 1, "some were made twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_STAGES)
def test_a_fault_of_stages_is_found(faulty, name):
    change, check, times, said = OF_STAGES[name]
    count = [("stages.py", "def likes", COUNTER)] if COUNTED in change else []
    findings = faulty.findings(change, *count, form=STAGES, checks=[check])
    assert [found for found, _ in findings] == [check] * times
    assert all(said in text for _, text in findings)


def test_versions_are_held_to_their_code(faulty, tmp_path):
    file = tmp_path / "versions.json"
    faulty.install(SIMPLE)
    pins = pins_of(plugin_under_test("acme_films"))
    assert set(pins) == {"stages of acme_films", "respondents"}
    write_pins(file, pins)
    check_plugin("acme_films", checks=["loads"], versions=file)

    pins["stages of acme_films"]["answer"]["code"] = "another"
    write_pins(file, pins)
    with pytest.raises(AssertionError) as failure:
        check_plugin("acme_films", checks=["loads"], versions=file)
    assert "stages of acme_films/answer changed and is still version 1" in str(failure.value)
    assert f"python -m harness.testing.versions acme_films {file}" in str(failure.value)


def test_versions_that_cannot_be_had_are_findings_beside_the_others(faulty, tmp_path):
    file = tmp_path / "versions.json"
    file.write_text('{"respondents": {\n<<<<<<< HEAD\n')
    change = ("benchmark.py", '"share of the choices that were predicted"', '""')
    findings = faulty.findings(change, checks=["metrics"], versions=file)
    assert [check for check, _ in findings] == ["metrics", "versions"]
    assert str(file) in findings[1][1]
    assert "pin again" in findings[1][1]


def test_a_plugin_that_is_not_installed_is_named_with_the_nearest():
    with pytest.raises(PluginError) as failure:
        check_plugin("interest")
    assert failure.value.hint == "did you mean 'interests'?"
