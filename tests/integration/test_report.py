"""`harness report`: what a page shows of runs, and that every number on it is a number of them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from builders.report_pages import ReportPage
from builders.runs import write_sealed

from harness import evaluate
from harness.cli.main import harness as command
from harness.cli.main import main, with_command
from harness.cli.report import write_report
from harness.cli.run_options import settings_from
from harness.cli.score import open_runs
from harness.contracts.model import Reply, Request
from harness.contracts.report import Sheet
from harness.registry import load_plugins, reset
from harness.reporting.html.provenance import command_of
from harness.reporting.report_tables import digits_of, format_cell
from harness.reporting.text import number, share
from harness.runs.run_folder import RunFolder
from harness.testing import ScriptedModel
from harness.testing.scripted import offered

BENCHMARKS = ("interests", "gistbench", "perrecbench", "usersumbench", "behaviour", "horizon_items")
FIGURE = re.compile(r"(?<![\w.@-])[<>≥-]*\d[\d,]*(?:\.\d+)?(?:e-?\d+)?%?(?![\w@])")


@pytest.fixture(scope="module")
def pages(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ReportPage]:
    """The page on the run of a benchmark, which is written once."""
    place = tmp_path_factory.mktemp("pages")

    def page(benchmark: str) -> ReportPage:
        file = place / f"{benchmark}.html"
        if not file.exists():
            assert main(["report", str(recorded / benchmark), "-o", str(file)]) == 0
        return ReportPage(file.read_text("utf-8"))

    return page


def reported(*runs: Path | str, code: int = 0, **options: object) -> ReportPage:
    """The page about these runs."""
    out = Path("report.html")
    out.unlink(missing_ok=True)
    more = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert main(["report", *map(str, runs), "-o", str(out), *more]) == code
    return ReportPage(out.read_text("utf-8"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def numbers_in(value: Any) -> set[str]:
    """Every number in a JSON value, in each form in which a report writes numbers."""
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values()), *map(numbers_in, value.keys()))
    if isinstance(value, list):
        return {f"{len(value):,}"}.union(*map(numbers_in, value))
    if isinstance(value, str):
        return set(FIGURE.findall(value))
    if isinstance(value, bool) or value is None:
        return set()
    forms = {number(value), share(value, 1), f"{value:,}"}
    return forms | {format_cell(value, digits) for digits in range(5)}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_number_of_the_results_is_one_of_the_summaries(pages, recorded, benchmark, capsys):
    run = recorded / benchmark
    page = pages(benchmark)
    capsys.readouterr()
    assert main(["show", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    known = numbers_in(document) | {"0", "0.0", "100.0", "95%"}
    for summary in document["summaries"]:
        for result in summary["metrics"].values():
            known |= {f"{result['n'] + sum(result['missing'].values()):,}"}
        known |= _shares(summary)
    for mean in document.get("means", ()):
        behind = [one for one in document["summaries"] if one["task"] in mean["tasks"]]
        known |= {f"{sum(one['metrics'][mean['metric']]['n'] for one in behind):,}"}
        known |= {f"{len(mean['tasks'])}"}
    (results,) = page.of("results")
    assert results.head[:2] == ["task", "n"]
    model = results.head.index("baseline ×2" if benchmark == "interests" else "baseline")
    rows = [row for row in results.rows if len(row) > 1]
    for row in rows:
        value = re.sub(r"\](?=\S)", "] ", row[model])
        assert {each for cell in (row[1], value) for each in FIGURE.findall(cell)} <= known, row
        assert row[model].startswith(_value_of(row[0], document)), row
    for section in ("reading", "repeats"):
        for table in page.of(section):
            for row in table.rows:
                assert {each for cell in row[3:] for each in FIGURE.findall(cell)} <= known, row
    assert {row[0].partition(" ")[0] for row in rows} >= {
        summary["task"].partition("@")[0] for summary in document["summaries"]
    }


def test_every_number_of_a_difference_and_of_the_verdict_is_one_of_the_comparison(tmp_path, capsys):
    model = ScriptedModel('[{"interest": "film", "items": [1, 2]}]', name="constant")
    with offered((model,)):
        best, other = (
            evaluate("interests", model=one, judge="lexical", data="sample", limit=12, name=name,
                     output_path=tmp_path / "runs", no_store=True).folder
            for name, one in (("rules", "baseline"), ("same", model.spec))
        )  # fmt: skip
        page = reported(best, other)
        capsys.readouterr()
        assert main(["compare", str(other), str(best), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (comparison,) = document["comparisons"]
    (found,) = comparison["differences"]
    assert found["value"] < 0
    (row,) = page.of("differences")[0].rows
    numbers = found["value"], *found["interval"], found["n"], found["p"], found["p_holm"]
    assert row == [
        "interests", "same − rules", "support ↑",
        *(format_cell(one, 0 if isinstance(one, int) else 3) for one in numbers),
    ]  # fmt: skip
    verdict = page.texts["results"].partition("NOT COMPARABLE")[0]
    low, high = found["interval"]
    size = f"({number(-found['value'])} [{number(-high)}, {number(-low)}], p "
    assert f"is best on interests; the difference is established {size}" in verdict
    known = numbers_in(document) | {number(-one) for one in numbers[:3]}
    assert {*FIGURE.findall(verdict)} <= known


def _value_of(row: str, document: dict[str, Any]) -> str:
    """What the cell of a row begins with: the value of its metric, and the interval of that."""
    task, metric = row.split(maxsplit=1)[0], re.findall(r"(\S+) [↑↓]", row)[0]
    means = [one for one in document.get("means", ()) if one["metric"] == metric]
    behind = [one for one in means if one["name"] == task] or [
        summary["metrics"][metric] for summary in document["summaries"] if summary["task"] == task
    ]
    (result,) = behind
    if result["value"] is None:
        return "–"
    ends = (
        result["interval"]
        and f" [{number(result['interval'][0])}, {number(result['interval'][1])}]"
    )
    return f"{number(result['value'])}{ends or ''}"


def _shares(summary: dict[str, Any]) -> set[str]:
    found = set()
    for stage in summary["stages"].values():
        for use in stage["roles"].values():
            rungs = [*use["rungs"].values(), use["calls"] - sum(use["rungs"].values())]
            found |= {format_cell(100 * many / use["calls"], 1) for many in rungs if use["calls"]}
    return found


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_analyses_of_a_report_are_those_of_the_command(pages, recorded, benchmark, capsys):
    page = pages(benchmark)
    tables = {table.name: [[*row] for row in table.rows] for table in page.of("benchmark-1")}
    shown = 0
    for one in load_plugins().analyses.everything():
        if one.report and one.benchmark == benchmark:
            capsys.readouterr()
            if main(["analyse", one.name, str(recorded / benchmark), "--json"]):
                assert one.name in page.texts["benchmark-1"], "and says why it is not shown"
                continue
            report = json.loads(capsys.readouterr().out)["report"]
            for sheet in msgspec.convert(report["sheets"], list[Sheet]):
                cells = [[format_cell(cell, digits_of(sheet, column))
                          for column, cell in enumerate(row)] for row in sheet.rows]  # fmt: skip
                if sheet.rows:
                    shown += tables.get(sheet.title) == cells
            titles = [about.get("aria-label") for name, about in page.elements if name == "svg"]
            assert {figure["title"] for figure in report["figures"]} <= {*titles}
    assert shown or benchmark == "interests"


def test_a_page_can_be_read_by_ear(pages):
    page = pages("gistbench")
    levels = [level for level, _ in page.headings]
    assert levels[:2] == [1, 2]
    assert levels.count(1) == 1
    assert all(after - before <= 2 for before, after in pairwise(levels))
    names = [name for name, _ in page.elements]
    assert names.count("figure") == names.count("figcaption") == names.count("svg") > 5
    for at, (name, about) in enumerate(page.elements):
        if name == "svg":
            assert about["role"] == "img"
            assert about["aria-label"]
        if name == "figure":
            inside = [each for each, _ in page.elements[at:]]
            assert inside.index("details") < inside[1:].index("figure") if "figure" in inside[1:] \
                else "details" in inside  # fmt: skip
        assert not {key for key in about if key.startswith("on") or key == "style"}, about


def test_runs_that_cannot_be_compared_stand_apart_with_the_reason(small_run, tmp_path):
    other = evaluate("interests", model="baseline", judge="lexical", data="sample", limit=3,
                     output_path=tmp_path, no_store=True, name="three").folder  # fmt: skip
    page = reported(small_run, other)
    text = page.texts["benchmark-1"]
    assert "Apart, as this cannot be compared with what stands before" in text
    assert re.search(r"chosen users [23] against [23]", text)
    assert "give all runs the same --limit" in page.texts["next"]
    assert "Not tested: " in page.texts["results"]


def test_repeats_are_those_of_main_metrics(pages):
    (repeats,) = pages("interests").of("repeats")
    assert [row[2] for row in repeats.rows] == ["support ↑"]


def test_the_command_of_a_run_comes_first_and_makes_the_same_run(pages, recorded):
    for benchmark in BENCHMARKS:
        run = recorded / benchmark
        manifest = RunFolder(run).manifest()
        line = command_of(manifest)
        assert page_command(pages(benchmark)) == line
        assert asked_by(line) == manifest.asked


def test_the_command_of_a_run_has_all_that_decides_its_results(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("\n".join(["who,title,action", *(f"p,film {at},liked" for at in range(8))]))
    words = [
        "run", "--model", "baseline", "--tasks", "interests", "--judge", "lexical", "--seed", "3",
        "--data", str(people), "--columns", "user=who", "--set", "window=7", "--limit", "1",
        "--gen_kwargs", "temperature=0.5", "--num_repeats", "2", "--fresh", "--structured",
        "--output_path", "runs",
    ]  # fmt: skip
    assert main(words) == 0
    (run,) = Path("runs").iterdir()
    manifest = RunFolder(run).manifest()
    assert asked_by(command_of(manifest)) == manifest.asked
    assert manifest.asked["fresh"]


def asked_by(line: str) -> dict[str, Any]:
    """What decides the results of a run with this command line, as a manifest has it."""
    words = with_command(shlex.split(line)[1:])
    context = command.get_command(None, "run").make_context("run", words[1:])
    return json.loads(json.dumps(settings_from(context.params).asked()))


def page_command(page: ReportPage) -> str:
    command = page.texts["provenance"].partition("harness run")[2].partition("Everything that")[0]
    return f"harness run{command}"


def test_no_key_and_no_home_folder_is_on_a_page(small_run, tmp_path, monkeypatch):
    secret, home = "sk-abcdefghij0123456789", tmp_path / "somebody"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OTHER_API_KEY", "n0t-to-be-seen-by-anyone")
    run = shutil.copytree(small_run, tmp_path / "run")
    document = json.loads((run / "manifest.json").read_text())
    document["settings"] |= {
        "model_args": {"api_key": secret, "path": f"{home}/weights"},
        "tags": {"where": f"{home}", "what": "n0t-to-be-seen-by-anyone"},
    }
    write_sealed(run / "manifest.json", document)
    reported(run)
    page = (tmp_path / "report.html").read_text()
    for hidden in (secret, str(home), "n0t-to-be-seen"):
        assert hidden not in page
    assert "~/weights" in page


def test_a_run_without_a_finished_task_says_how_far_it_came(small_run, tmp_path):
    run = shutil.copytree(small_run, tmp_path / "run")
    (run / "interests" / "summary.json").unlink()
    document = json.loads((run / "manifest.json").read_text())
    document["status"] = "running"
    document["tasks"]["interests"]["stages"][1]["items"] = None
    document["sessions"][0]["ended"] = None
    write_sealed(run / "manifest.json", document)
    page = reported(run)
    assert page.of("results")[0].rows[0][2] == "1 of 2 stages done, running"
    assert "There are no samples" in page.texts["samples"]
    assert "the run is running" in page.texts["next"]


def test_a_folder_of_another_version_costs_its_own_place_alone(small_run, tmp_path, capsys):
    run = shutil.copytree(small_run, tmp_path / "run")
    document = json.loads((run / "manifest.json").read_text())
    write_sealed(run / "manifest.json", {**document, "format": 99})
    page = reported(small_run, run, code=1)
    assert "A run could not be read" in page.texts[""]
    assert len(page.of("results")[0].rows) == 1
    assert main(["report", str(run), "-o", "none.html"]) == 1
    assert not Path("none.html").exists()


def test_a_missing_plugin_leaves_results_and_a_section_that_says_so(recorded, monkeypatch):
    monkeypatch.setenv("HARNESS_PLUGINS", "models,judges,interests")
    reset()
    try:
        page = reported(recorded / "behaviour", recorded / "interests")
    finally:
        monkeypatch.undo()
        reset()
    tasks = {row[0].partition(" ")[0] for row in page.of("results")[0].rows}
    assert "behaviour_movies_a" in tasks
    assert "no plugin offers the benchmark 'behaviour'" in page.texts["benchmark-1"]
    assert "leaves out" in page.texts["benchmark-1"]


def test_an_analysis_that_fails_costs_its_section_alone(recorded, monkeypatch):
    from harness_behaviour.analyses import curves

    def broken(tasks: object, options: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    broken.__annotations__ = curves.run.__annotations__
    monkeypatch.setattr(curves, "run", broken)
    page = reported(recorded / "behaviour")
    assert "behaviour-curve: 'behaviour-curve' failed" in page.texts["benchmark-1"]
    assert "harness analyse behaviour-curve" in page.texts["benchmark-1"]
    assert page.of("benchmark-1")


def test_without_matplotlib_the_table_of_a_figure_is_open(small_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = reported(small_run)
    assert (
        "The figure is missing, as matplotlib is not installed: pip install"
        in page.texts["benchmark-1"]
    )
    figure = [name for name, _ in page.elements].index("figure")
    opened = next(about for name, about in page.elements[figure:] if name == "details")
    assert "open" in opened
    assert any(table.head[:2] == ["", "name"] for table in page.of("benchmark-1"))


def many_runs(small_run: Path, place: Path, names: list[str]) -> list[Path]:
    document = json.loads((small_run / "manifest.json").read_text())
    folders = []
    for at, name in enumerate(names):
        run = shutil.copytree(small_run, place / f"run-{at}")
        own = {"run_id": f"{document['run_id']}-{at}", "name": name}
        write_sealed(run / "manifest.json", {**document, **own})
        folders.append(run)
    return folders


def test_names_that_differ_only_in_case_stay_apart(small_run, tmp_path):
    page = reported(*many_runs(small_run, tmp_path, ["step", "Step", "STEP"]))
    labels = page.of("results")[0].head[2:]
    assert labels == ["step", "Step", "STEP"]
    assert page.packed["index"]["runs"] == labels
    assert len(page.packed["index"]["id"]) == 6


def test_two_hundred_runs_have_a_column_each(small_run, tmp_path):
    names = [f"step-{number}" for number in range(200)]
    page = reported(*many_runs(small_run, tmp_path, names), samples=4)
    assert page.of("results")[0].head[2:202] == names
    assert "too many to compare" in page.texts["results"]
    assert "too many to compare" in page.texts["differences"]


def test_samples_can_be_left_out_and_the_rule_is_told(pages, recorded):
    every = pages("perrecbench").packed["index"]
    page = reported(recorded / "perrecbench", samples=5)
    index = page.packed["index"]
    assert index["id"] == every["id"][:5]
    assert f"{len(every['id']) - 5:,} of {len(every['id']):,} samples are left out, for --samples" \
        in page.texts["samples"]  # fmt: skip
    assert "units with a failure in any run first" in page.texts["samples"]
    none = reported(recorded / "perrecbench", samples=0)
    assert none.packed == {}
    assert "on this page: --samples 0 leaves them out" in none.texts["samples"]
    assert all(about.get("id") != "viewer" for _, about in none.elements)


def test_a_sample_has_its_prompt_answer_value_verdicts_and_score(pages):
    page = pages("interests")
    block = page.packed["block-0"]
    assert len(page.packed["index"]["id"]) == 80
    sample = block["samples"][0]

    def text(value: str | int) -> str:
        if isinstance(value, str):
            return value
        return block["texts"][value] if value >= 0 else page.packed["shared"][-1 - value]

    name, *support = sample["records"]
    assert {"support", "grounded", "coverage"} <= sample["values"].keys()
    assert "history" in text(name["calls"][0]["messages"][-1][1]).lower()
    assert json.loads(text(name["calls"][0]["text"]))
    assert json.loads(text(name["value"]))
    assert all(text(one["judged"][0]["verdict"]).startswith("chosen: ") for one in support)
    assert len(set(block["texts"])) == len(block["texts"])


def test_a_page_keeps_within_its_size(tmp_path, capsys):
    people = tmp_path / "people.csv"
    random = Random(1)
    rows = [f"person-{number % 200},{random.randbytes(150).hex()},liked" for number in range(1200)]
    people.write_text("\n".join(["user,title,action", *rows]))
    run = evaluate("interests", model="baseline", judge="lexical", data=people, no_store=True,
                   output_path=tmp_path / "runs").folder  # fmt: skip
    page = reported(run, max_size=0.2)
    assert 20 <= len(page.packed["index"]["id"]) < 200
    assert 50_000 < Path("report.html").stat().st_size < 200_000
    assert "left out, for the size of the page (--max_size)" in page.texts["samples"]
    reported(run, samples=0)
    capsys.readouterr()
    bare = Path("report.html").stat().st_size / 1_000_000
    for size in (bare + 0.004, bare - 0.001):  # with room for fewer than the first few, and none
        write_report(Path("report.html"), open_runs([str(run)], None, {}), most_megabytes=size)
        page = ReportPage(Path("report.html").read_text("utf-8"))
        said = f"it takes {bare:.1f} MB without them, and --max_size is {size:g}."
        assert (page.packed, said in page.texts["samples"]) == ({}, True)
        assert Path("report.html").stat().st_size / 1_000_000 == pytest.approx(bare, abs=0.001)
        note = f"harness: note: the page has {bare:.1f} MB, more than {size:g}: fewer"
        assert capsys.readouterr().err.startswith(note) is (size < bare)


def test_the_samples_of_a_unit_stay_together(small_run, tmp_path):
    page = reported(*many_runs(small_run, tmp_path, ["step", "Step", "STEP"]), samples=2)
    (unit,) = {*page.packed["index"]["id"]}
    assert page.packed["index"]["id"] == [unit] * 3
    assert "3 of 6 samples are left out, for --samples" in page.texts["samples"]
    assert "stay together: they are more than --samples 2" in page.texts["samples"]


def test_judges_are_compared_with_peoples_labels(small_run, tmp_path):
    page = reported(small_run)
    assert "nothing says how sure it is" in page.texts["judges"]
    judged = [json.loads(line) for line in (small_run / "interests" / "2-support.jsonl").open()]
    rows = [f"{one['id']},{label},yes" for one in judged for label in one["judged"][0]["labels"]]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["item,option,label", *rows]))
    page = reported(small_run, labels=labels)
    assert "nothing says how sure it is" not in page.texts["judges"]
    assert [table for table in page.of("judges") if "people" in str(table.rows)]


def test_labels_that_are_not_there_are_refused(small_run, capsys):
    assert main(["report", str(small_run), "--labels", "none.csv"]) == 2
    assert "none.csv" in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_the_words_name_the_confidence_that_the_intervals_have(small_run, tmp_path):
    run = shutil.copytree(small_run, tmp_path / "run")
    file = run / "interests" / "summary.json"
    document = json.loads(file.read_text())
    for result in document["metrics"].values():
        result["confidence"] = 0.8
    write_sealed(file, document)
    text = reported(run).texts["results"]
    assert "In brackets is the 80% interval" in text
    assert "is below 0.2." in text
    text = reported(run, small_run).texts["results"]
    assert "In brackets is the 80% or 95% interval" in text
    assert "is below 0.2 or 0.05, as the task says." in text


def test_truncated_and_refused_replies_have_their_share_of_the_replies(tmp_path):
    ends = {1: "length", 2: "length", 3: "length", 4: "refused"}  # which is asked again
    people: dict[str, int] = {}

    def answer(request: Request) -> Reply:
        person = people.setdefault(str(request.messages), len(people) + 1)
        return Reply(text="[", finish=ends[person])

    model = ScriptedModel(answer, name="m")
    with offered((model,)):
        run = evaluate("interests", model=model.spec, judge="lexical", limit=4, data="sample",
                       max_failures=1, output_path=tmp_path / "runs", no_store=True
                       ).folder  # fmt: skip
    (table,) = reported(run).of("reading")
    row = dict(zip(table.head, table.rows[0], strict=True))
    assert (row["replies"], row["truncated, %"], row["refused, %"]) == ("5", "60.0", "40.0")
    assert (row["items"], row["because"]) == ("4", "truncated 3, refused 1")
    file = run / "interests" / "summary.json"
    document = json.loads(file.read_text())
    del document["stages"]["name"]["roles"]["candidate"]["truncated"]
    write_sealed(file, document)
    (table,) = reported(run).of("reading")
    row = dict(zip(table.head, table.rows[0], strict=True))
    assert (row["truncated, %"], row["refused, %"]) == ("unknown", "40.0")
