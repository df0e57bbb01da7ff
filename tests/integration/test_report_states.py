"""`harness report`: what a page says of runs that are unlike, unfinished, many or broken."""

import json
import re
import shutil
from pathlib import Path

import pytest
from builders.report_pages import reported
from builders.runs import write_sealed

from harness import evaluate
from harness.cli.main import main
from harness.contracts.model import Reply, Request
from harness.registry import reset
from harness.testing import ScriptedModel
from harness.testing.scripted import offered

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_runs_that_cannot_be_compared_say_why(small_run, tmp_path, capsys):
    other = evaluate("interests", model="baseline", judge="lexical", data="sample", limit=3,
                     output_path=tmp_path, reuse="run", name="three").folder  # fmt: skip
    page = reported(small_run, other)
    assert "No two of these runs can be compared on a task." in page.texts[""]
    assert "not compared: " in page.texts[""]
    assert re.search(r"(baseline|three) on interests: chosen users [23] against [23]",
                     page.texts["limits"])  # fmt: skip
    assert "differences" not in page.texts
    said = capsys.readouterr().out
    assert said.startswith("No two of these runs can be compared on a task. ")
    assert re.search(r" (baseline|three) is not compared: chosen users [23] against [23]", said)


def test_a_run_without_a_finished_task_says_how_far_it_came(small_run, tmp_path):
    run = shutil.copytree(small_run, tmp_path / "run")
    for name in ("interests/summary.json", "lock"):
        (run / name).unlink()
    document = json.loads((run / "manifest.json").read_text())
    document["status"] = "running"
    document["tasks"]["interests"]["stages"][1]["items"] = None
    document["sessions"][0]["ended"] = None
    write_sealed(run / "manifest.json", document)
    page = reported(run)
    assert "baseline has no result.1 of 2 stages done, killed" in page.texts[""].replace("\n", "")
    assert "1 of 2 stages done, killed" in page.texts["results"]
    assert "baseline: killed" in page.texts["limits"]
    assert page.texts.keys() == {"", "results", "limits", "origin"}


def test_a_folder_of_another_version_costs_its_own_place_alone(small_run, tmp_path):
    run = shutil.copytree(small_run, tmp_path / "run")
    document = json.loads((run / "manifest.json").read_text())
    write_sealed(run / "manifest.json", {**document, "format": 99})
    page = reported(small_run, run, code=1)
    assert "a run could not be read" in page.texts[""]
    assert page.texts["results"]
    assert main(["report", str(run), "-o", "none.html"]) == 1
    assert not Path("none.html").exists()


def test_a_missing_plugin_leaves_results_and_says_so(recorded, monkeypatch):
    monkeypatch.setenv("HARNESS_PLUGINS", "models,judges,interests")
    reset()
    try:
        page = reported(recorded / "behaviour", recorded / "interests")
    finally:
        monkeypatch.undo()
        reset()
    assert "behaviour_movies_a" in page.texts["results"]
    assert "no plugin offers the benchmark 'behaviour'" in page.texts["analyses"]
    assert "leaves out" in page.texts["analyses"]


def test_an_analysis_that_fails_costs_its_own_place_alone(recorded, monkeypatch):
    from harness_usersumbench.analyses import rounds

    def broken(tasks: object, options: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    broken.__annotations__ = rounds.rounds.__annotations__
    monkeypatch.setattr(rounds, "rounds", broken)
    page = reported(recorded / "usersumbench")
    assert "usersum-rounds: 'usersum-rounds' failed" in page.texts["analyses"]
    assert "harness analyse usersum-rounds" in page.texts["analyses"]
    assert page.of("analyses")


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
    assert [row[2] for row in page.of("results")[0].rows] == ["step", "Step", "STEP"]
    assert [row[2] for row in page.of("differences")[0].rows] == ["Step − step", "STEP − step"]
    assert "Undecided on interests" in page.texts[""]
    assert "no difference at all" in page.texts["results"]
    assert "samples" not in page.texts, "as nothing changed"


def test_forty_runs_have_a_name_each_at_their_value(small_run, tmp_path):
    names = [f"step-{number}" for number in range(40)]
    page = reported(*many_runs(small_run, tmp_path, names), samples=0)
    assert [row[2] for row in page.of("results")[0].rows] == names
    labels = [about for name, about in page.elements if name == "tspan"
              and about.get("class") == "label"]  # fmt: skip
    assert len(labels) == 40
    assert "40 runs are too many to compare" in page.texts[""]
    assert "differences" not in page.texts


def test_judges_are_compared_with_peoples_labels(small_run, tmp_path, printed):
    judged = [json.loads(line) for line in (small_run / "interests" / "2-support.jsonl").open()]
    rows = [f"{one['id']},{label},yes" for one in judged for label in one["judged"][0]["labels"]]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["item,option,label", *rows]))
    page = reported(small_run, labels=labels)
    assert [table for table in page.of("analyses") if "people" in str(table.rows)]
    assert not reported(small_run).of("analyses")
    Path("report.html").unlink()
    assert "none.csv" in printed("report", str(small_run), "--labels", "none.csv", code=2).err
    assert not Path("report.html").exists()


def test_what_is_missing_is_drawn_by_cause_and_limits_the_answer(small_run, tmp_path):
    ends = {1: "length", 2: "length", 3: "length", 4: "refused"}
    people: dict[str, int] = {}

    def answer(request: Request) -> Reply:
        person = people.setdefault(str(request.messages), len(people) + 1)
        return Reply(text="[", finish=ends.get(person, "stop"))

    model = ScriptedModel(answer, name="m")
    with offered((model,)):
        run = evaluate("interests", model=model.spec, judge="lexical", limit=4, data="sample",
                       max_failures=1, output_path=tmp_path / "runs", reuse="run"
                       ).folder  # fmt: skip
    page = reported(run)
    assert "a whole bar is 100% of its items" in page.texts["failures"]
    bars = [(about["x"], about["width"]) for name, about in page.elements
            if name == "rect" and "x" in about]  # fmt: skip
    assert bars == [("0%", "75.0%"), ("75.0%", "25.0%")]
    assert "4 of 4" in page.texts["failures"]
    assert "the reply was cut at the limit of tokens" in page.texts["failures"]
    assert "failures" not in reported(small_run).texts


def test_the_first_sentence_counts_the_people_whom_both_runs_have(tmp_path):
    people: dict[str, int] = {}

    def answer(request: Request) -> Reply:
        person = people.setdefault(str(request.messages), len(people) + 1)
        return Reply(text="[" if person <= 8 else '[{"interest": "x", "items": [1, 2, 3]}]')

    whole = Reply(text='[{"interest": "y", "items": [1, 2, 3]}]')
    models = ScriptedModel(answer, name="m"), ScriptedModel(lambda request: whole, name="n")
    with offered(models):
        runs = [
            evaluate("interests", model=one.spec, judge="lexical", limit=30, data="sample",
                     max_failures=1, output_path=tmp_path / one.spec, reuse="run").folder
            for one in models
        ]  # fmt: skip
    assert "Paired over 22 people" in " ".join(reported(*runs).texts[""].split())


def test_parts_of_the_data_are_compared_with_by(recorded, tmp_path):
    runs = many_runs(recorded / "usersumbench", tmp_path, ["a", "b"])
    assert "`--by SLICE` adds the differences" in reported(*runs).texts["differences"]
    page = reported(*runs, by="history")
    assert page.of("differences")[1].name == "usersum_movielens by history"
    assert main(["report", *map(str, runs), "--by", "histry"]) == 2
    assert main(["report", str(runs[0]), "--by", "history"]) == 2
