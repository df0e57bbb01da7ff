"""`harness report`: what a page shows of runs, and that every number on it is a number of them."""

import json
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.report_pages import ReportPage, reported

from harness import evaluate
from harness.cli.main import harness as command
from harness.cli.main import main, with_command
from harness.cli.run_options import settings_from
from harness.contracts.report import Sheet
from harness.registry import load_plugins
from harness.reporting.grid import digits_of, format_cell
from harness.reporting.html.provenance import command_of
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
                     output_path=tmp_path / "runs", reuse="run").folder
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


def asked_by(line: str) -> dict[str, Any]:
    """What decides the results of a run with this command line, as a manifest has it."""
    words = with_command(shlex.split(line)[1:])
    context = command.get_command(None, "run").make_context("run", words[1:])
    return json.loads(json.dumps(settings_from(context.params).asked()))


def page_command(page: ReportPage) -> str:
    command = page.texts["provenance"].partition("harness run")[2].partition("Everything that")[0]
    return f"harness run{command}"


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
