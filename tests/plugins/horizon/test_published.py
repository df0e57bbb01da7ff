"""The published tables are as printed, and presets and tasks have their settings."""

import pytest
from harness_horizon.recommenders.presets import PAPERS_LOSS, hyper_of

from harness.contracts.published import PublishedTables
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue

TABLES = PublishedTables("harness_horizon")


def test_table_7_has_what_does_not_fit_and_the_other_data_set():
    table = TABLES.read("table7")
    # 485.89 / 54.51 is not 9.07.
    assert "8.91" in table.notes[0]
    assert {row["attribute"]: row["Amazon Reviews"] for row in table.dicts()}["users"] == 54.51


@pytest.mark.parametrize(
    ("kind", "name"),
    [("bert4rec", "BERT4Rec"), ("gru4rec", "GRU4Rec"), ("sasrec", "SASRec"), ("core", "CORE")],
)
def test_the_published_preset_is_table_8(kind, name):
    printed = {row["parameter"]: row[name] for row in TABLES.read("table8").dicts()}
    hyper = hyper_of(kind, "published")
    assert printed["loss"].lower() == PAPERS_LOSS[kind] == hyper.loss
    sizes = ("hidden and embedding size", "layers", "dropout", "batch size")
    assert [printed[one] for one in sizes] == [
        hyper.width, hyper.layers, hyper.dropout, hyper.batch,
    ]  # fmt: skip
    assert printed["attention heads"] in (hyper.heads, None)
    assert printed["mask ratio"] in (hyper.mask_ratio, None)


@pytest.mark.parametrize(
    ("model", "end"), [("LLAMA-3.1-8B", ""), ("Qwen3-8B", "_p80_k20"), ("Gemma2-9B", "_p80")]
)
def test_the_tasks_decode_as_table_9(model, end):
    printed = {row["parameter"]: row[model] for row in TABLES.read("table9").dicts()}
    for task, number in (("horizon_query", 2), ("horizon_long", 3)):
        [one] = Catalogue(load_plugins()).select([task + end]).tasks
        sampling = one.roles["candidate"].sampling
        assert sampling == {
            "temperature": printed["temperature"],
            "top_p": printed["top-p"],
            "max_tokens": printed[f"max tokens of Task {number}"],
            **({} if printed["top-k"] == -1 else {"top_k": printed["top-k"]}),
        }
