"""What is done before and after runs: groups from reviews, analyses, training data, adapters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import harness_perrecbench
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

SAMPLE = Path(harness_perrecbench.__file__).parent / "sample" / "all" / "all-processed"
DAY = 86_400_000
START = 1_600_000_000_000
MODULE = "base_model.model.layers.0.self_attn.q_proj"
RATED = {"ann": 5.0, "bob": 4.0, "cid": 3.0, "dee": 2.0}
"""What everybody rates each of the shared things, with an average near 3."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory, perrecs, worlds):
    """Runs tasks by the baseline on a small world with a folder for each of two domains."""
    folder = tmp_path_factory.mktemp("domains")
    worlds().write(folder / "all" / "all-processed")
    for name in ("book", "clothing"):
        worlds().write(folder / name / f"{name}-processed")
    perrec = perrecs(tmp_path_factory.mktemp("runs"), str(folder))

    def run(tasks: str) -> str:
        done = perrec.tool(
            "--model", "baseline", "--tasks", tasks, "--data", perrec.data, "--json"
        ).ok()
        return str(perrec.folder(done))

    return perrec, run


def sheets(perrec, name: str, *words: str) -> list:
    """The sheets of an analysis; as text it has them too."""
    told = perrec.tool("analyse", name, *words, "--json").ok()
    report = told.json["report"]
    assert report["sheets"] and all(one["rows"] for one in report["sheets"]), report
    shown = perrec.tool("analyse", name, *words).ok()
    for one in report["sheets"]:
        assert one["title"] in " ".join(shown.out.split())
    return report["sheets"]


@pytest.mark.parametrize(
    "words",
    [
        "perrec", "perrec --published", "perrec-sizes", "perrec-sizes --published",
        "perrec-prompting --published", "perrec-positions",
    ],
)  # fmt: skip
def test_analyses_of_the_nine_tasks_tell_of_who_knows_the_truth(true, words):
    perrec, done, _ = true
    name, *more = words.split()
    found = sheets(perrec, name, str(perrec.folder(done)), *more)
    assert found and all(sheet["columns"] for sheet in found)


def test_the_average_is_set_against_the_size_of_models(true):
    perrec, done, _ = true
    figures = perrec.harness.folder / "sizes.csv"
    figures.write_text("model,parameters\nm,7\nopenai:m,7\n")
    found = sheets(perrec, "perrec-scale", str(perrec.folder(done)), "--figures", str(figures))
    assert any(7.0 in row or 7 in row for sheet in found for row in sheet["rows"])


def test_domains_are_distinguished_and_set_against_how_often_items_are_named(runs):
    perrec, run = runs
    folder = run("perrec_easy_pointwise_book,perrec_easy_pointwise_clothing")
    counts = perrec.harness.folder / "counts.csv"
    rows = [f"Kettle-{number},{number + 1}" for number in range(6)]
    counts.write_text("\n".join(["item,count", *rows]) + "\n")
    found = sheets(perrec, "perrec-domains", folder, "--counts", str(counts))
    named = {cell for sheet in found for row in sheet["rows"] for cell in row}
    assert {"book", "clothing"} <= named


def test_shots_and_behaviours_make_a_map(runs):
    perrec, run = runs
    folder = run("perrec_easy_listwise_shots[01]_k[12]")
    perrec.tool("analyse", "perrec-shots", folder, "--plot", "map.svg").ok()
    assert (perrec.harness.folder / "map.svg").exists()
    assert sheets(perrec, "perrec-shots", folder)


def test_errors_of_ratings_are_set_against_tau(runs):
    perrec, run = runs
    tasks = ",".join(
        f"perrec_{kind}_{wording}_k2_shots0"
        for kind in ("rating", "easy_pointwise")
        for wording in "abc"
    )
    assert sheets(perrec, "perrec-rating-tau", run(tasks))


def test_groups_are_built_of_reviews_then_run_then_analysed(perrec):
    folder = perrec.harness.folder
    reviews, items = [], set()

    def rate(user: str, item: str, rating: float, day: int) -> None:
        items.add(item)
        time = START + day * DAY
        reviews.append({"user_id": user, "parent_asin": item, "rating": rating, "timestamp": time})

    for place, (user, rating) in enumerate(RATED.items()):
        for number in range(22):
            rate(user, f"{user}-{number}", 2.0 + 2 * (number % 2), number)
        for thing in range(6):
            rate(user, f"thing-{thing}", rating, 30 + 3 * thing + place % 2)
    meta = [{"parent_asin": item, "title": f"The {item}", "author": None} for item in sorted(items)]
    for name, rows in (("reviews", reviews), ("meta", meta)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    perrec.tool(
        "data", "perrec-groups", "--reviews", "reviews.jsonl", "--meta", "meta.jsonl",
        "--out", "built", "--test_items", "4", "--behaviours", "5", "--json",
    ).ok()  # fmt: skip
    ran = perrec.tool(
        "--model", "baseline", "--role", "profiler=baseline",
        "--tasks", "perrec_hard,perrec_rating", "--data", "built", "--json",
    ).ok()  # fmt: skip
    units = {one["task"]: one["units"] for one in ran.json["summaries"]}
    assert units == {
        "perrec_hard_pointwise": 4, "perrec_hard_pairwise": 4, "perrec_hard_listwise": 4,
        "perrec_rating": 5,
    }  # fmt: skip
    # Who rates all things higher is always first: the averages know the order.
    higher = {
        one["task"]: one["metrics"]["higher_average_first"]["value"]
        for one in ran.json["summaries"]
        if one["task"] != "perrec_rating"
    }
    assert set(higher.values()) == {1.0}
    stages = ran.json["summaries"][0]["stages"]
    assert stages["profile"]["done"] == len(RATED)
    assert sheets(perrec, "perrec", str(perrec.folder(ran)), "--task", "perrec_hard_listwise")
    perrec.tool("data", "perrec-describe", "--data", "built").ok()


def test_training_data_of_the_sample_tells_of_no_rating_that_a_test_asks_for(perrec):
    done = perrec.tool(
        "perrec", "sft-export", "--data", str(SAMPLE), "--out", "training_examples", "--json"
    ).ok()
    found = {one["title"]: one for one in done.json["report"]["sheets"]}
    audit = found["Audit of users and things"]
    (row,) = audit["rows"]
    assert audit["columns"][-1] == "shared" and row[-1] == 0 and row[0] > 0 and row[1] > 0

    profiles = json.loads((SAMPLE / "userid2profile.json").read_text())
    users = {text: user for user, text in profiles.items()}
    assert len(users) == len(profiles)
    items = json.loads((SAMPLE / "parentasin2item.json").read_text())
    tested = {
        (user["user_id"], items[item]["title"])
        for level in ("easy", "medium", "hard")
        for item, groups in json.loads(
            (SAMPLE / f"item2group_avg_diff_sample-{level}.json").read_text()
        ).items()
        for user in groups[0]
    }
    files = sorted(Path(perrec.harness.folder, "training_examples").glob("train-*.jsonl"))
    assert [file.stem for file in files] == [
        f"train-{name}" for name in ("listwise", "mixed", "pairwise", "pointwise")
    ]
    told = set()
    for file in files:
        for line in file.read_text().splitlines():
            turns = json.loads(line)["messages"]
            assert [turn["role"] for turn in turns] == ["system", "user", "assistant"]
            prompt = turns[1]["content"]
            (asked,) = re.findall(r"Item Information\|>\n### Item Title\n(.*)", prompt)
            parts = re.findall(r"## User Profile\n(.*)\n([^|]*)", prompt)
            assert parts
            for profile, rest in parts:
                titles = re.findall(r"### Item Title\n(.*)", rest)
                told |= {(users[profile], title) for title in (*titles, asked)}
    assert told.isdisjoint(tested)
    assert len(told) > 1000


def adapter(folder: Path, a: list, b: list) -> None:
    """An adapter of one module, of rank 1 and scaling 1."""
    folder.mkdir()
    tensors = {f"{MODULE}.lora_A.weight": a, f"{MODULE}.lora_B.weight": b}
    save_file(
        {name: np.array(one, dtype=np.float32) for name, one in tensors.items()},
        folder / "adapter_model.safetensors",
    )
    config = {
        "peft_type": "LORA", "base_model_name_or_path": "acme/base", "r": 1, "lora_alpha": 1,
        "target_modules": ["q_proj"], "bias": "none",
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config))


def test_three_adapters_are_merged_into_one_that_adds_the_mean_of_what_they_add(perrec):
    folder = perrec.harness.folder
    adapter(folder / "point", [[3, 0]], [[1], [0]])
    adapter(folder / "pair", [[0, 3]], [[0], [1]])
    adapter(folder / "list", [[3, 3]], [[1], [1]])
    words = ("--pointwise", "point", "--pairwise", "pair", "--listwise", "list", "--out", "merged")
    done = perrec.tool("perrec", "merge-adapters", *words, "--json").ok()
    (sheet,) = done.json["report"]["sheets"]
    assert [row[0] for row in sheet["rows"]] == ["pointwise", "pairwise", "listwise"]
    merged = load_file(folder / "merged" / "adapter_model.safetensors")
    config = json.loads((folder / "merged" / "adapter_config.json").read_text())
    a, b = merged[f"{MODULE}.lora_A.weight"], merged[f"{MODULE}.lora_B.weight"]
    # A third of [[3, 0], [0, 0]] + [[0, 0], [0, 3]] + [[3, 3], [3, 3]].
    assert config["lora_alpha"] / config["r"] * b @ a == pytest.approx(np.array([[2, 1], [1, 2]]))
    again = perrec.tool("perrec", "merge-adapters", *words)
    assert again.code == 2 and "merged" in again.err
