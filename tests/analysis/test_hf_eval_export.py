"""Model cards: what of a run is on no card."""

from builders.runs import (
    make_entry,
    make_finished_task,
    make_manifest,
    make_metric,
    make_summary,
    make_task,
)
from builders.stages import make_benchmark
from huggingface_hub import ModelCard

from harness.analysis.hf_eval_export import write_hf_eval
from harness.contracts.identity import label_of

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
    paths = write_hf_eval(out, tasks)
    assert [str(path.relative_to(out)) for path in paths] == [
        "step-1000/README.md", "step-1000 r2/README.md", "night/README.md",
    ]  # fmt: skip
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
    (path,) = write_hf_eval(tmp_path / "out", [task])
    text = path.read_text("utf-8")
    assert str(home) not in text
    assert "n0t-to-be-seen" not in text
    card = ModelCard.load(path)
    assert card.data.model_name == "m"
    (result,) = card.data.eval_results
    assert result.dataset_args["not_comparable_because"][0] == "data of ~/mine.jsonl"
