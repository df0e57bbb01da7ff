"""Results at the Hub: what of a run is on no card, and which entries can be made."""

from pathlib import Path

import pytest
import yaml
from builders.runs import (
    make_entry,
    make_finished_task,
    make_manifest,
    make_metric,
    make_summary,
    make_task,
)
from builders.stages import make_benchmark
from huggingface_hub import ModelCard, parse_eval_result_entries

from harness.analysis.hf_eval_export import write_eval_results, write_model_cards
from harness.base.errors import UsageError
from harness.contracts.identity import label_of
from harness.runs.manifest import Session

SUMMARY = make_summary("t", metrics={"m": make_metric(1, n=6)})


def a_task(path, weights, *, summary=SUMMARY, **fields):
    """A finished task of the run of a model with these weights."""
    settings = {"model_args": {"pretrained": weights}}
    manifest = make_manifest(tasks={"t": make_entry(make_task("t"))}, settings=settings, **fields)
    return make_finished_task(
        path, make_task("t"), label="one", manifest=manifest, entry=manifest.tasks["t"],
        benchmark=make_benchmark(), summary=summary,
    )  # fmt: skip


def test_a_card_has_the_label_of_its_run_and_not_the_path_of_its_weights(tmp_path):
    weights = "/ckpts/run7/step-1000"
    model = label_of("vllm", {"pretrained": weights})
    tasks = [
        a_task(tmp_path, weights, model=model, run_id=run, **named)
        for run, named in (("r1", {}), ("r2", {}), ("r3", {"name": "night"}))
    ]
    out = tmp_path / "out"
    paths = write_model_cards(out, tasks)
    found = [str(path.relative_to(out)) for path in paths]
    assert found == ["step-1000/README.md", "step-1000 r2/README.md", "night/README.md"]
    names = [ModelCard.load(path).data.model_name for path in paths]
    assert names == ["step-1000", "step-1000", "night"]
    assert all("ckpts" not in path.read_text("utf-8") for path in paths)


def test_no_key_and_no_home_folder_is_on_a_card(tmp_path, monkeypatch):
    home = tmp_path / "somebody"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OTHER_API_KEY", "n0t-to-be-seen-by-anyone")
    why = (f"data of {home}/mine.jsonl", "judged with n0t-to-be-seen-by-anyone")
    summary = make_summary(
        "t", metrics={"m": make_metric(0.5, n=6)}, comparable=False, not_comparable_because=why
    )
    task = a_task(tmp_path, f"{home}/weights", summary=summary)
    (path,) = write_model_cards(tmp_path / "out", [task])
    text = path.read_text("utf-8")
    assert str(home) not in text
    assert "n0t-to-be-seen" not in text
    card = ModelCard.load(path)
    assert card.data.model_name == "m"
    (result,) = card.data.eval_results
    assert result.dataset_args["not_comparable_because"][0] == "data of ~/mine.jsonl"


def test_an_entry_has_the_main_metric_and_the_data_set_at_the_hub(tmp_path):
    summary = make_summary(
        "t",
        metrics={
            "other": make_metric(0.1, n=6),
            "m": make_metric(0.5, n=6, interval=(0.25, 0.75), missing={"name/overflow": 2}),
        },
        main=("m",),
        data={"origin": "hub", "repo": "org/people", "revision": "3f2a"},
        not_comparable_because=("--limit 6",),
    )
    sessions = (Session(started="2026-11-28T22:59:25Z", ended="2026-11-28T23:00:00Z"),)
    task = a_task(tmp_path, "org/w", summary=summary, sessions=sessions)
    (path,) = write_eval_results(tmp_path / "out", [task])
    assert path.relative_to(tmp_path) == Path("out/m/.eval_results/t.yaml")
    (entry,) = parse_eval_result_entries(yaml.safe_load(path.read_text("utf-8")))
    assert (entry.dataset_id, entry.dataset_revision, entry.task_id, entry.value) == (
        "org/people", "3f2a", "t", 0.5,
    )  # fmt: skip
    assert entry.notes == "m, n 6, missing 2; 95% interval 0.25 to 0.75; --limit 6"


@pytest.mark.parametrize(
    ("data", "metric", "found"),
    [
        ({"origin": "sample"}, make_metric(1, n=6), "data of the kind sample"),
        ({"origin": "hub", "repo": "org/people"}, make_metric(None, n=0), "no value"),
    ],
)
def test_a_result_that_the_hub_has_no_place_for_is_named(tmp_path, raised, data, metric, found):
    summary = make_summary("t", metrics={"m": metric}, data=data)
    task = a_task(tmp_path, "org/w", summary=summary)
    wording = raised(UsageError, write_eval_results, tmp_path / "out", [task], found=found)
    assert wording.startswith("results that the Hub has no place for: t\n")
    assert not (tmp_path / "out").exists()
