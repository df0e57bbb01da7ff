"""Task 1 on a bare machine: reviews and metadata come from the hub, and are built once."""

import json
from pathlib import Path
from random import Random

import pytest
from builders.commands import run_cli
from builders.horizon import TAU
from builders.hub_server import asking, serving_hub

CATEGORIES = [
    "All_Beauty", "Amazon_Fashion", "Appliances", "Arts_Crafts_and_Sewing", "Automotive",
    "Baby_Products", "Beauty_and_Personal_Care", "Books", "CDs_and_Vinyl",
    "Cell_Phones_and_Accessories", "Clothing_Shoes_and_Jewelry", "Digital_Music", "Electronics",
    "Gift_Cards", "Grocery_and_Gourmet_Food", "Handmade_Products", "Health_and_Household",
    "Health_and_Personal_Care", "Home_and_Kitchen", "Industrial_and_Scientific", "Kindle_Store",
    "Magazine_Subscriptions", "Movies_and_TV", "Musical_Instruments", "Office_Products",
    "Patio_Lawn_and_Garden", "Pet_Supplies", "Software", "Sports_and_Outdoors",
    "Subscription_Boxes", "Tools_and_Home_Improvement", "Toys_and_Games", "Video_Games",
]  # fmt: skip
TASK = "horizon_next_item"


def files():
    """All that the data set has of its categories, of "Unknown" and of another kind, but small."""
    rng = Random(4)
    found = {"README.md": b"reviews", "raw/review_categories/Books.jsonl": b"{}\n"}
    for name in (*CATEGORIES, "Unknown"):
        rows = ["user_id,parent_asin,rating,timestamp"]
        for user in rng.sample(range(40), 12):
            time = TAU + rng.randrange(-600, 600) * 86_400_000
            rows.append(f"u{user:02},{name[:6]}-{rng.randrange(5)},4.0,{time}")
        items = [{"parent_asin": f"{name[:6]}-{n}", "title": f"{name} {n}"} for n in range(5)]
        found[f"benchmark/0core/rating_only/{name}.csv"] = "\n".join(rows).encode()
        meta = "".join(json.dumps(item) + "\n" for item in items)
        found[f"raw/meta_categories/meta_{name}.jsonl"] = meta.encode()
    return found


@pytest.fixture
def hub():
    with serving_hub() as hub:
        hub.repos["McAuley-Lab/Amazon-Reviews-2023"] = {"3" * 40: files()}
        yield hub


def test_one_command_on_a_bare_machine_ends_in_a_table(tmp_path, hub):
    own = {name: str(tmp_path / name) for name in ("HARNESS_DOWNLOADS", "HARNESS_CACHE")}

    def harness(*words):
        with asking(tmp_path, hub.url, **own, COLUMNS="400"):
            return run_cli(*words, folder=tmp_path).ok()

    def run(*more):
        return harness("--model", "baseline", "--tasks", TASK, "--output_path", "runs", *more)

    first = run()
    assert first.err.count("building data from 66 files, once: harness data horizon") == 1
    assert "fetching 33 files of the hub's McAuley-Lab/Amazon-Reviews-2023" in first.err
    assert "horizon_next_item_1d" in first.out
    assert "data built here, not the published data" in first.out
    [manifest] = (tmp_path / "runs").glob("*/manifest.json")
    tasks = json.loads(manifest.read_text())["tasks"]
    assert len(tasks) == 4
    for task in tasks.values():
        data = task["data"]
        assert (data["origin"], data["tool"]) == ("build", "horizon")
        assert [one["file"].rpartition("/")[2] for one in data["inputs"]["reviews"]] == [
            f"{name}.csv" for name in CATEGORIES
        ]
    hub.asked.clear()
    again = run("--offline", "--json").json["summaries"]
    assert all(one["metrics"]["ndcg_10"]["n"] > 0 for one in again)
    assert hub.asked == []
    where = harness("data", "where", f"{TASK}_1a").out
    train = next(line.split()[1] for line in where.splitlines() if "train" in line)
    assert Path(train).is_file()
