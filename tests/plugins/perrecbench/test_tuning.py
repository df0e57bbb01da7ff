"""Training data and merged adapters, against what was worked out by hand."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from builders.perrecbench import make_group, make_member
from harness_perrecbench.records import Behaviour, Options, Thing
from harness_perrecbench.tuning import adapters, sft_export
from harness_perrecbench.tuning.sft_export import (
    Export,
    Settings,
    requested_ratings,
    run,
    training_examples,
)
from msgspec.structs import replace
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


def merged(three, out, **options):
    """What the merged adapter adds to its module's weights, and the report on it."""
    report = adapters.run(adapters.Options(**three, out=out, **options))
    tensors = load_file(out / "adapter_model.safetensors")
    config = json.loads((out / "adapter_config.json").read_text())
    return config["lora_alpha"] / config["r"] * tensors[KEY_B] @ tensors[KEY_A], report


def test_what_is_added_is_the_weighted_sum_of_what_each_adds(three, tmp_path):
    found, _ = merged(three, tmp_path / "merged", alpha=0.5, beta=0.25)
    # .5 * 2 * [[1, 0], [0, 0]] + .25 * 2 * [[0, 0], [0, 1]] + .25 * 1 * [[1, 1], [1, 1]]
    assert found.tolist() == [[1.25, 0.25], [0.25, 0.75]]
    config = json.loads((tmp_path / "merged" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (3, 3, 0.05)
    assert config["base_model_name_or_path"] == "acme/base-1b"
    with pytest.raises(UsageError, match="the folder for the merged adapter is not empty"):
        merged(three, tmp_path / "merged")
    # Thirds are the default: (2 * [[1, 0], [0, 0]] + 2 * [[0, 0], [0, 1]] + [[1, 1], [1, 1]]) / 3
    found, report = merged(three, tmp_path / "thirds")
    assert found == pytest.approx(np.array([[1, 1 / 3], [1 / 3, 1]]))
    assert [row[2:] for row in report.sheets[0].rows] == [
        (1 / 3, 1, 2.0), (1 / 3, 1, 2.0), (pytest.approx(1 / 3), 1, 1.0),
    ]  # fmt: skip


def test_the_mean_of_the_factors_is_another_thing(three, tmp_path):
    three["listwise"] = adapter(tmp_path / "other", [[1, 1]], [[1], [1]])
    factors, products = (
        merged(three, tmp_path / method, alpha=0.5, beta=0.25, method=method)[0].tolist()
        for method in ("factors", "products")
    )
    # A: .5 * [1, 0] + .25 * [0, 1] + .25 * [1, 1] = [.75, .5], and B the same upright; times 2.
    assert factors == [[1.125, 0.75], [0.75, 0.5]]
    assert products == [[1.5, 0.5], [0.5, 1.0]]


def test_adapters_of_other_ranks_scalings_and_half_precision_merge_by_products(three, tmp_path):
    # 1.0 and 0.5 as bfloat16 are 0x3f80 and 0x3f00.
    header = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [4 * number, 4 * number + 4]}
        for number, (name, shape) in enumerate(((KEY_A, [1, 2]), (KEY_B, [2, 1])))
    }
    text = json.dumps(header).encode()
    data = np.array([0x3F80, 0x3F00, 0x3F00, 0x3F80], dtype="<u2").tobytes()
    file = three["listwise"] / "adapter_model.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)
    found, _ = merged(three, tmp_path / "merged", alpha=0, beta=0)
    assert found.tolist() == [[0.5, 0.25], [1.0, 0.5]]
    four = [[1, 0], [0, 1], [0, 0], [0, 0]]
    wide = [[1, 0, 0, 0], [0, 1, 0, 0]]
    three["listwise"] = adapter(tmp_path / "wide", four, wide, r=4, lora_alpha=4, use_rslora=True)
    # .25 * 2 * [[1, 0], [0, 0]] + .25 * 2 * [[0, 0], [0, 1]] + .5 * 4/2 * [[1, 0], [0, 1]]
    found, _ = merged(three, tmp_path / "of-ranks", alpha=0.25, beta=0.25)
    assert found.tolist() == [[1.5, 0], [0, 1.5]]


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
        merged(three, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


HISTORIES = {
    "ann": [("A", 5.0), ("B", 3.0), ("TEA", 4.0), ("LAMP", 2.0)],
    "ben": [("A", 1.0), ("B", 2.0), ("TEA", 1.0)], "cem": [("A", 4.0), ("LAMP", 5.0)],
    "dot": [("B", 2.0), ("LAMP", 1.0)], "eli": [("A", 3.0), ("LAMP", 4.0)],
}  # fmt: skip
TITLES = {"A": "Apple", "B": "Brush", "TEA": "Tea", "LAMP": "Lamp"}
ANN_TEA, BEN_TEA = ("ann", 2, 0.5), ("ben", 2, -0.33)
ANN_LAMP, CEM_LAMP = ("ann", 3, -1.5), ("cem", 1, 0.5)
DOT_LAMP, ELI_LAMP = ("dot", 1, -0.5), ("eli", 1, 0.5)
TEA, LAMP = {"TEA": [ANN_TEA, BEN_TEA]}, {"LAMP": [CEM_LAMP, DOT_LAMP]}


@pytest.fixture
def write(publish):
    """Writes the published files into a folder, from the groups of each of their files."""

    def made(**groups):
        items = {item: {"title": title} for item, title in TITLES.items()}
        profiles = {"cem": "Cem shines.", "dot": "Dot dims."}
        for name, asked in groups.items():
            kind, _, level = name.rpartition("_")
            written = {kind: {item: [users] for item, users in asked.items()}}
            more = {"items": items, "profiles": profiles, "inside": "data"}
            publish(HISTORIES, level=level, **written, **more)

    return made


def settings(tmp_path, **changes):
    asked = {"data": tmp_path / "data", "out": tmp_path / "out", "profile": "none", **changes}
    return Settings(**asked)


def lines_of(file):
    return [json.loads(line)["messages"] for line in file.read_text().splitlines()]


def answers(file):
    return [messages[-1]["content"] for messages in lines_of(file)]


def rows(report):
    counts, audit = report.sheets
    return list(counts.rows), list(audit.rows)


def test_held_out_groups_are_answered_in_each_format_and_equals_only_rated(write, tmp_path):
    medium = {"LAMP": [CEM_LAMP, DOT_LAMP, ELI_LAMP]}
    write(groups_easy=TEA, held_out_easy={"LAMP": [DOT_LAMP, CEM_LAMP]}, held_out_medium=medium)
    report = run(settings(tmp_path))
    out = tmp_path / "out"
    pointwise = ['{"predicted_rating": 1.0}', '{"predicted_rating": 5.0}']
    assert answers(out / "train-pointwise.jsonl")[:2] == pointwise
    assert answers(out / "train-pairwise.jsonl")[:2] == ["[User B]", "[User A]"]
    assert answers(out / "train-listwise.jsonl") == ['{"predicted_ranking": [2, 1]}']
    # Of the second group Cem and Dot were asked about; Cem and Eli are equal.
    assert rows(report)[0] == [
        ("pointwise", "easy", 2, 0, 0, 0), ("pointwise", "medium", 1, 0, 0, 2),
        ("pairwise", "easy", 2, 0, 0, 0), ("pairwise", "medium", 2, 0, 2, 2),
        ("listwise", "easy", 1, 0, 0, 0), ("listwise", "medium", 0, 0, 1, 0),
    ]  # fmt: skip


def test_a_line_is_what_a_run_would_send_and_the_answer(write, tmp_path):
    write(groups_easy=TEA, held_out_easy=LAMP)
    run(settings(tmp_path, profile="full"))
    lines = lines_of(tmp_path / "out/train-pointwise.jsonl")[0]
    assert [one["role"] for one in lines] == ["system", "user", "assistant"]
    system, user, assistant = (one["content"] for one in lines)
    assert system.startswith("Act as a personalized product recommender system.")
    begins = "[User History]\n<|The Start of User Data|>\n## User Profile\nCem shines.\n\n"
    ends = "### Item Title\nLamp\n<|The End of Query Item Information|>\n\nAnswer:"
    assert user.startswith(begins) and user.endswith(ends)
    assert assistant == '{"predicted_rating": 5.0}'


def test_what_a_test_asks_for_is_neither_asked_nor_shown_and_is_counted(write, tmp_path):
    write(
        groups_easy=TEA,
        held_out_easy={**LAMP, **TEA},
        # Ann's history before the lamp shows how she rated the tea.
        held_out_medium={"LAMP": [ANN_LAMP, CEM_LAMP, DOT_LAMP]},
    )
    counts, audit = rows(run(settings(tmp_path)))
    assert counts == [
        ("pointwise", "easy", 2, 2, 0, 0), ("pointwise", "medium", 0, 1, 0, 2),
        ("pairwise", "easy", 2, 2, 0, 0), ("pairwise", "medium", 0, 4, 0, 2),
        ("listwise", "easy", 1, 1, 0, 0), ("listwise", "medium", 0, 1, 0, 0),
    ]  # fmt: skip
    assert audit == [(2, 4, 0)]
    written = "".join(file.read_text() for file in (tmp_path / "out").iterdir())
    assert "Tea" not in written


def test_the_test_groups_of_a_level_that_is_not_exported_count_as_well(write, tmp_path):
    write(
        groups_easy=TEA, held_out_easy=LAMP, groups_medium={"LAMP": [DOT_LAMP, ANN_LAMP, ELI_LAMP]}
    )
    counts, _ = rows(run(settings(tmp_path, level="easy")))
    assert [row[:4] for row in counts] == [
        ("pointwise", "easy", 1, 1), ("pairwise", "easy", 0, 2), ("listwise", "easy", 0, 1),
    ]  # fmt: skip
    assert answers(tmp_path / "out/train-pointwise.jsonl") == ['{"predicted_rating": 5.0}']
    assert not (tmp_path / "out/train-pairwise.jsonl").exists()


def test_an_audit_that_finds_a_shared_rating_stops_the_export(write, tmp_path, monkeypatch):
    write(groups_easy=TEA, held_out_easy=TEA)
    add = Export.add

    def careless(export, *rest):
        tested, export.tested = export.tested, frozenset()
        add(export, *rest)
        export.tested = tested

    monkeypatch.setattr(sft_export.Export, "add", careless)
    with pytest.raises(DataError, match=r"4, such as \('ann', 'TEA'\)"):
        run(settings(tmp_path))
    assert not (tmp_path / "out").exists()


def test_an_order_names_users_by_number_pairs_are_asked_both_ways_and_names_are_things():
    group = make_group(*(make_member(str(rank), rank=rank) for rank in (2, 3, 1)))
    ranked, pairs, rated = (
        [one.answer for one in training_examples(group, form, Options(profile="none"))]
        for form in ("listwise", "pairwise", "pointwise")
    )
    assert ranked == ['{"predicted_ranking": [3, 1, 2]}']
    # 1 before 2, 3 before 1, 3 before 2, as pairs (1,2), (1,3), (2,1), (2,3), (3,1), (3,2).
    assert pairs == ["[User A]", "[User B]", "[User B]", "[User B]", "[User A]", "[User A]"]
    assert rated == [None, None, None]
    cup = Behaviour(title="Cup", rating=4)
    ann = make_member("ann", shown=(cup,), rating=4, rank=1)
    of_test, group = (make_group(ann, item=title, title=title) for title in ("Cup", "Kettle"))
    other_author = replace(of_test, query=Thing(title="Cup", author="Bo"))
    [example] = training_examples(group, "pointwise", Options(profile="none"))
    assert example.traces & requested_ratings([of_test]) == {("ann", "Cup", None)}
    assert not example.traces & requested_ratings([other_author])


def test_the_mixed_file_holds_all_lines_by_seed_and_is_not_written_over(write, tmp_path):
    write(groups_easy=TEA, held_out_easy=LAMP)
    apart = [f"train-{form}.jsonl" for form in ("pointwise", "pairwise", "listwise")]
    mixed = {}
    for name, seed in {"one": 1, "same": 1, "two": 2}.items():
        out = tmp_path / name
        run(settings(tmp_path, out=out, seed=seed))
        mixed[name] = (out / "train-mixed.jsonl").read_bytes()
        lines = b"".join((out / file).read_bytes() for file in apart).splitlines()
        assert sorted(mixed[name].splitlines()) == sorted(lines)
    assert mixed["one"] == mixed["same"] != mixed["two"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out/train-mixed.jsonl").write_text("mine")
    with pytest.raises(UsageError, match="already contains training data"):
        run(settings(tmp_path, format="pointwise"))
    assert [file.read_text() for file in (tmp_path / "out").iterdir()] == ["mine"]


def test_the_trainer_is_configured_as_in_the_paper_and_the_commands_meet_in_one_folder():
    tuning = Path(sft_export.__file__).parent
    file = tuning / "lora.yaml"
    text = file.read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    batch = config["per_device_train_batch_size"] * config["gradient_accumulation_steps"]
    assert (config["use_peft"], config["lora_r"], config["lora_alpha"]) == (True, 16, 16)
    assert (config["num_train_epochs"], batch, config["learning_rate"]) == (2, 32, 0.00001)
    for told in (text, (tuning.parent / "README.md").read_text(encoding="utf-8")):
        [out] = re.findall(r"sft-export --data DIR --out (\S+)", told)
        [named] = re.findall(r"trl sft --config (\S+)", told)
        wanted = Settings(data=Path("DIR"), out=Path(out)).file("mixed")
        assert config["datasets"][0]["data_files"] == wanted.as_posix()
        assert tuning.parents[2] / named == file
        assert "cd " not in told.partition("sft-export")[2].partition("trl sft")[0]
