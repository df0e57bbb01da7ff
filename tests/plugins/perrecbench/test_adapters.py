"""Merging of adapters, held against products that were worked out by hand."""

import json

import numpy as np
import pytest
from harness_perrecbench.tuning.adapters import Options, run
from safetensors.numpy import load_file, save_file

from harness.base.errors import DataError, UsageError

MODULE = "base_model.model.layers.0.self_attn.q_proj"
KEY_A, KEY_B = f"{MODULE}.lora_A.weight", f"{MODULE}.lora_B.weight"
CONFIG = {
    "peft_type": "LORA", "base_model_name_or_path": "acme/base-1b", "revision": None, "r": 1,
    "lora_alpha": 2, "target_modules": ["q_proj"], "bias": "none", "use_dora": False,
    "use_rslora": False, "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {},
    "fan_in_fan_out": False, "lora_dropout": 0.05, "task_type": "CAUSAL_LM",
}  # fmt: skip


def adapter(folder, a, b, **config):
    folder.mkdir()
    tensors = {KEY_A: np.array(a, dtype=np.float32), KEY_B: np.array(b, dtype=np.float32)}
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG | config))
    return folder


@pytest.fixture
def three(tmp_path):
    """Three adapters of one 2 x 2 module: rank 1, scaling 2, 2 and 1."""
    return {
        "pointwise": adapter(tmp_path / "point", [[1, 0]], [[1], [0]]),
        "pairwise": adapter(tmp_path / "pair", [[0, 1]], [[0], [1]]),
        "listwise": adapter(tmp_path / "list", [[1, 1]], [[1], [1]], lora_alpha=1),
    }


def added(folder):
    """What an adapter adds to its module's weights."""
    tensors = load_file(folder / "adapter_model.safetensors")
    config = json.loads((folder / "adapter_config.json").read_text())
    return config["lora_alpha"] / config["r"] * tensors[KEY_B] @ tensors[KEY_A]


def test_what_is_added_is_the_weighted_sum_of_what_each_adds(three, tmp_path):
    run(Options(**three, out=tmp_path / "merged", alpha=0.5, beta=0.25))
    # .5 * 2 * [[1, 0], [0, 0]] + .25 * 2 * [[0, 0], [0, 1]] + .25 * 1 * [[1, 1], [1, 1]]
    assert added(tmp_path / "merged").tolist() == [[1.25, 0.25], [0.25, 0.75]]
    config = json.loads((tmp_path / "merged" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (3, 3, 0.05)
    assert config["base_model_name_or_path"] == "acme/base-1b"


def test_the_mean_of_the_factors_is_another_thing(three, tmp_path):
    three["listwise"] = adapter(tmp_path / "other", [[1, 1]], [[1], [1]])
    run(Options(**three, out=tmp_path / "factors", alpha=0.5, beta=0.25, method="factors"))
    run(Options(**three, out=tmp_path / "products", alpha=0.5, beta=0.25))
    # A: .5 * [1, 0] + .25 * [0, 1] + .25 * [1, 1] = [.75, .5], and B the same upright; times 2.
    assert added(tmp_path / "factors").tolist() == [[1.125, 0.75], [0.75, 0.5]]
    assert added(tmp_path / "products").tolist() == [[1.5, 0.5], [0.5, 1.0]]


def test_thirds_are_the_default(three, tmp_path):
    report = run(Options(**three, out=tmp_path / "merged"))
    # (2 * [[1, 0], [0, 0]] + 2 * [[0, 0], [0, 1]] + [[1, 1], [1, 1]]) / 3
    assert added(tmp_path / "merged") == pytest.approx(np.array([[1, 1 / 3], [1 / 3, 1]]))
    assert [row[2:] for row in report.sheets[0].rows] == [
        (1 / 3, 1, 2.0), (1 / 3, 1, 2.0), (pytest.approx(1 / 3), 1, 1.0),
    ]  # fmt: skip


def test_adapters_of_other_ranks_and_of_rank_stabilised_scaling_merge_by_products(three, tmp_path):
    four = [[1, 0], [0, 1], [0, 0], [0, 0]]
    wide = [[1, 0, 0, 0], [0, 1, 0, 0]]
    three["listwise"] = adapter(tmp_path / "wide", four, wide, r=4, lora_alpha=4, use_rslora=True)
    run(Options(**three, out=tmp_path / "merged", alpha=0.25, beta=0.25))
    # .25 * 2 * [[1, 0], [0, 0]] + .25 * 2 * [[0, 0], [0, 1]] + .5 * 4/2 * [[1, 0], [0, 1]]
    assert added(tmp_path / "merged").tolist() == [[1.5, 0], [0, 1.5]]


def test_half_precision_is_read_whole(three, tmp_path):
    # 1.0 and 0.5 as bfloat16 are 0x3f80 and 0x3f00.
    header = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [4 * number, 4 * number + 4]}
        for number, (name, shape) in enumerate(((KEY_A, [1, 2]), (KEY_B, [2, 1])))
    }
    text = json.dumps(header).encode()
    data = np.array([0x3F80, 0x3F00, 0x3F00, 0x3F80], dtype="<u2").tobytes()
    file = three["listwise"] / "adapter_model.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)
    run(Options(**three, out=tmp_path / "merged", alpha=0, beta=0))
    assert added(tmp_path / "merged").tolist() == [[0.5, 0.25], [1.0, 0.5]]


@pytest.mark.parametrize(
    "config",
    [
        {"base_model_name_or_path": "acme/other"}, {"revision": "v2"},
        {"target_modules": ["q_proj", "v_proj"]}, {"use_dora": True}, {"bias": "all"},
        {"modules_to_save": ["lm_head"]}, {"rank_pattern": {"q_proj": 2}},
        {"init_lora_weights": "pissa"}, {"peft_type": "IA3"},
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_refused_and_nothing_is_written(three, tmp_path, config):
    (three["pairwise"] / "adapter_config.json").write_text(json.dumps(CONFIG | config))
    with pytest.raises(DataError, match=next(iter(config))):
        run(Options(**three, out=tmp_path / "merged"))
    assert not (tmp_path / "merged").exists()


def test_a_full_folder_is_refused(three):
    with pytest.raises(UsageError, match="the folder for the merged adapter is not empty"):
        run(Options(**three, out=three["listwise"]))
