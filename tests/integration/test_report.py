"""`harness report`: what a page shows of runs, and that its numbers are those of the commands."""

import json
import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

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
from harness.reporting.text import number
from harness.runs.run_folder import RunFolder
from harness.testing import ScriptedModel
from harness.testing.scripted import offered

pytestmark = pytest.mark.usefixtures("elsewhere")
BENCHMARKS = ("interests", "gistbench", "perrecbench", "usersumbench", "behaviour", "horizon_items")


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


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_values_of_the_picture_are_those_of_the_summaries(pages, recorded, benchmark, capsys):
    page = pages(benchmark)
    capsys.readouterr()
    assert main(["show", str(recorded / benchmark), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    # In the order of the keys, means over groups and repeats take the place of single tasks.
    known = {(one["task"], name): each for one in document["summaries"]
             for name, each in one["metrics"].items()}  # fmt: skip
    known |= {(one["name"], one["metric"]): one for one in document.get("means", ())}
    (table,) = page.of("results")
    own = [row for row in table.rows if row[2].startswith("baseline")]
    for task, metric, _, *numbers in own:
        found = known[task, metric.partition(" ")[0]]
        ends = (found["value"], *(found["interval"] or (None, None)))
        assert numbers[:3] == [format_cell(end, 3) for end in ends]
        assert number(found["value"]) in page.texts["results"]
    assert {row[0] for row in own} >= {
        one["task"].partition("@")[0] for one in document["summaries"]
    }
    first = document["summaries"][0]
    assert first["metrics"][first["main"][0]]["description"].partition(";")[0].replace("`", "") \
        in page.texts["results"]  # fmt: skip


def test_the_verdict_and_the_differences_are_those_of_the_comparison(tmp_path, capsys):
    model = ScriptedModel('[{"interest": "film", "items": [1, 2]}]', name="constant")
    with offered((model,)):
        best, other = (
            evaluate("interests", model=one, judge="lexical", data="sample", limit=12, name=name,
                     output_path=tmp_path / "runs", reuse="run").folder
            for name, one in (("rules", "baseline"), ("same", model.spec))
        )  # fmt: skip
        page = reported(best, other)
        says, file = capsys.readouterr().out.splitlines()
        assert says.startswith("rules wins on interests. ") and says.endswith(" for 1 test.")
        assert file.endswith("MB)")
        assert main(["compare", str(best), str(other), "--json"]) == 0
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    (found,) = comparison["differences"]
    numbers = found["value"], *found["interval"], found["n"], found["p"], found["p_holm"]
    assert page.of("differences")[0].rows == [
        ["interests", "support ↑", "rules − same",
         *(format_cell(one, 0 if isinstance(one, int) else 3) for one in numbers)],
    ]  # fmt: skip
    assert "rules wins on interests" in page.texts[""]
    assert "rules wins" in page.texts["results"]
    assert found["p_holm"] < 0.001 and "p <.001" in page.texts["results"]
    # Both answers stand side by side.
    assert page.texts["samples"].count("same: ") >= 12
    assert page.texts["samples"].index("rules: ") < page.texts["samples"].index("same: ")
    assert '[{"interest": "film", "items": [1, 2]}]' in page.texts["samples"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_analyses_of_a_report_are_those_of_the_command(pages, recorded, benchmark, capsys):
    page = pages(benchmark)
    tables = {table.name: [[*row] for row in table.rows] for table in page.of("analyses")}
    titles = [about.get("alt") for name, about in page.elements if name == "img"]
    shown = 0
    for one in load_plugins().analyses.everything():
        if one.report and one.benchmark == benchmark:
            capsys.readouterr()
            if main(["analyse", one.name, str(recorded / benchmark), "--json"]):
                assert f"{one.name}: " in page.texts["analyses"], "and says why it is not shown"
                continue
            report = json.loads(capsys.readouterr().out)["report"]
            for sheet in msgspec.convert(report["sheets"], list[Sheet]):
                cells = [[format_cell(cell, digits_of(sheet, column))
                          for column, cell in enumerate(row)] for row in sheet.rows]  # fmt: skip
                shown += bool(sheet.rows) and tables.get(sheet.title) == cells
            assert {figure["title"] for figure in report["figures"]} <= {*titles}
    assert shown or benchmark == "interests"


def test_a_page_can_be_read_by_ear_and_without_a_script(pages):
    page = pages("gistbench")
    levels = [level for level, _ in page.headings]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(after - before <= 2 for before, after in pairwise(levels))
    names = [name for name, _ in page.elements]
    assert names.count("figure") == names.count("figcaption") == names.count("img") > 5
    assert "script" not in names
    for name, about in page.elements:
        if name == "img":
            assert about["alt"]
        if about.get("role") == "img":
            assert about["aria-label"]
        assert not {key for key in about if key.startswith("on") or key == "style"}, about
    links = {about["href"] for name, about in page.elements if name == "a"}
    assert links == {"#limits", "#costs", "#samples", "#analyses", "#origin"}


def test_the_command_of_a_run_comes_first_and_makes_the_same_run(pages, recorded):
    for benchmark in BENCHMARKS:
        manifest = RunFolder(recorded / benchmark).manifest()
        line = command_of(manifest)
        assert line in pages(benchmark).texts["origin"]
        words = with_command(shlex.split(line)[1:])
        context = command.get_command(None, "run").make_context("run", words[1:])
        asked = settings_from(context.params).asked()
        assert json.loads(json.dumps(asked)) == manifest.asked


def test_short_words_of_a_benchmark_are_explained_where_they_stand(pages):
    told = {about["title"] for _, about in pages("usersumbench").elements if about.get("title")}
    assert "each past is summarised by segments, which a verifier checks" in told
    told = {about["title"] for name, about in pages("behaviour").elements
            if name == "th" and "title" in about}  # fmt: skip
    assert "the true entropy: how evenly the choices of a group are spread over the candidates" \
        in told  # fmt: skip


def test_a_sample_has_its_prompt_answer_value_and_verdicts(pages, recorded):
    page = pages("interests")
    text = page.texts["samples"]
    assert "of 40 missing, then worst" in text
    assert [name for name, about in page.elements if about.get("class") == "unit"] == \
        20 * ["details"]  # fmt: skip
    for wanted in ("name: candidate, prompt", "name: answer", "name: read as", "verdict of judge",
                   "chosen: ", "history"):  # fmt: skip
        assert wanted in text
    few = reported(recorded / "interests", samples=1).texts["samples"]
    assert "1 of 40" in few and few.count("name: answer") == 1
    assert "samples" not in reported(recorded / "interests", samples=0).texts
    assert main(["report", str(recorded / "interests"), "--samples", "51"]) == 2
