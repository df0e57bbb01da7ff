"""`harness report`: what a page says of runs that are unlike, unfinished, many or broken."""

import json
import re
import shutil
import sys
from pathlib import Path
from random import Random

import pytest
from builders.report_pages import ReportPage, reported
from builders.runs import write_sealed

from harness import evaluate
from harness.cli.kept_runs import open_runs
from harness.cli.main import main
from harness.cli.report import write_report
from harness.contracts.model import Reply, Request
from harness.registry import reset
from harness.testing import ScriptedModel
from harness.testing.scripted import offered


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_runs_that_cannot_be_compared_stand_apart_with_the_reason(small_run, tmp_path):
    other = evaluate("interests", model="baseline", judge="lexical", data="sample", limit=3,
                     output_path=tmp_path, reuse="run", name="three").folder  # fmt: skip
    page = reported(small_run, other)
    text = page.texts["benchmark-1"]
    assert "Apart, as this cannot be compared with what stands before" in text
    assert re.search(r"chosen users [23] against [23]", text)
    assert "baseline is not compared with three: chosen users" in page.texts["next"]
    assert "Not tested: " in page.texts["results"]


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
    from harness_usersumbench.analyses import rounds

    def broken(tasks: object, options: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    broken.__annotations__ = rounds.rounds.__annotations__
    monkeypatch.setattr(rounds, "rounds", broken)
    page = reported(recorded / "usersumbench")
    assert "usersum-rounds: 'usersum-rounds' failed" in page.texts["benchmark-1"]
    assert "harness analyse usersum-rounds" in page.texts["benchmark-1"]
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


def test_names_that_differ_only_in_case_stay_apart_and_samples_of_a_unit_together(
    small_run, tmp_path
):
    page = reported(*many_runs(small_run, tmp_path, ["step", "Step", "STEP"]), samples=2)
    labels = page.of("results")[0].head[2:]
    assert labels == ["step", "Step", "STEP"]
    assert page.packed["index"]["runs"] == labels
    (unit,) = {*page.packed["index"]["id"]}
    assert page.packed["index"]["id"] == [unit] * 3
    assert "3 of 6 samples are left out, for --samples" in page.texts["samples"]
    assert "stay together: they are more than --samples 2" in page.texts["samples"]


def test_forty_runs_have_a_column_each(small_run, tmp_path):
    names = [f"step-{number}" for number in range(40)]
    page = reported(*many_runs(small_run, tmp_path, names), samples=4)
    assert page.of("results")[0].head[2:42] == names
    assert "too many to compare" in page.texts["results"]
    assert "too many to compare" in page.texts["differences"]


def test_samples_can_be_left_out_and_the_rule_is_told(recorded):
    every = reported(recorded / "horizon_items").packed["index"]
    page = reported(recorded / "horizon_items", samples=5)
    index = page.packed["index"]
    assert index["id"] == every["id"][:5]
    assert f"{len(every['id']) - 5:,} of {len(every['id']):,} samples are left out, for --samples" \
        in page.texts["samples"]  # fmt: skip
    assert "units with a failure in any run first" in page.texts["samples"]
    none = reported(recorded / "horizon_items", samples=0)
    assert none.packed == {}
    assert "on this page: --samples 0 leaves them out" in none.texts["samples"]
    assert all(about.get("id") != "viewer" for _, about in none.elements)


def test_a_page_keeps_within_its_size(tmp_path, capsys):
    people = tmp_path / "people.csv"
    random = Random(1)
    rows = [f"person-{number % 200},{random.randbytes(150).hex()},liked" for number in range(1200)]
    people.write_text("\n".join(["user,title,action", *rows]))
    run = evaluate("interests", model="baseline", judge="lexical", data=people, reuse="run",
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


def test_judges_are_compared_with_peoples_labels(small_run, tmp_path, capsys):
    page = reported(small_run)
    assert "nothing says how sure it is" in page.texts["judges"]
    judged = [json.loads(line) for line in (small_run / "interests" / "2-support.jsonl").open()]
    rows = [f"{one['id']},{label},yes" for one in judged for label in one["judged"][0]["labels"]]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["item,option,label", *rows]))
    page = reported(small_run, labels=labels)
    assert "nothing says how sure it is" not in page.texts["judges"]
    assert [table for table in page.of("judges") if "people" in str(table.rows)]
    Path("report.html").unlink()
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
                       max_failures=1, output_path=tmp_path / "runs", reuse="run"
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
